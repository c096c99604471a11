"""A consumer's heart-beat: without sockets, and both clients against a real broker."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from fila import BatchError, FilaError, MessageNotFoundError
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.testing import RealBroker, broker
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import layouts
from fila.wire import opcodes as op
from tests.client.drivers import SyncDriver
from tests.client.test_exchange import Bench

IDS = [f"0190a0b1-c2d3-7e4f-8a5b-00000000000{n}" for n in range(3)]


class Beating(Bench):
    """An exchange with one consumer that has a heart-beat."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream("q", 10, Ticket(), heartbeat=True)
        self.exchange.subscribe(self.stream)
        ((opcode, self.consume_id, _),) = self.sent()
        assert opcode == op.CONSUME
        self.hear(self.consume_id, b.ConsumeOk("c1"))

    def beats(self, now: float) -> list[tuple[int, b.Extend]]:
        self.now = now
        self.exchange.tick(now, 0)
        sent = [one for one in self.sent() if one[0] == op.EXTEND]
        return [(id, layouts.decode(b.Extend, body)) for _, id, body in sent]

    def deliver(self, *ids: str) -> None:
        items = [b.DeliveryItem(id, "q", {}, b"x", "k", 1, (), 0, 1, 1) for id in ids]
        self.hear(self.consume_id, b.Delivery(tuple(items)))


def test_the_first_beat_asks_how_long_a_lease_lasts() -> None:
    bench = Beating()
    ((id, first),) = bench.beats(100.0)
    assert first == b.Extend("q", (), 0)
    bench.hear(id, b.ExtendResult(0, 30_000, ()))
    assert bench.beats(109.9) == []
    assert bench.beats(110.0) == []  # nothing is held
    bench.deliver(*IDS)
    assert bench.beats(119.9) == []
    assert [one.message_ids for _, one in bench.beats(120.0)] == [tuple(IDS)]


def test_what_is_settled_or_gone_is_not_extended_any_more() -> None:
    bench = Beating()
    ((id, _),) = bench.beats(100.0)
    bench.hear(id, b.ExtendResult(0, 3_000, ()))
    bench.deliver(*IDS)
    bench.ack(IDS[0])
    ((_, ack_id, _),) = bench.sent()
    bench.hear(ack_id, b.AckResult((b.CodeItem(0),)))
    ((id, beat),) = bench.beats(101.0)
    assert beat.message_ids == tuple(IDS[1:])
    bench.hear(id, b.ExtendResult(0, 3_000, (IDS[1],)))
    ((_, beat),) = bench.beats(102.0)
    assert beat.message_ids == (IDS[2],)


def test_many_messages_are_extended_some_at_a_time() -> None:
    bench = Beating()
    ((id, _),) = bench.beats(100.0)
    bench.hear(id, b.ExtendResult(0, 3_000, ()))
    assert bench.stream.heartbeat is not None
    bench.stream.heartbeat.held = {b"%d" % n: None for n in range(2_500)}
    assert [len(one.message_ids) for _, one in bench.beats(101.0)] == [1_000, 1_000, 500]


def test_after_a_reconnect_the_old_leases_are_nobodys() -> None:
    bench = Beating()
    ((id, _),) = bench.beats(100.0)
    bench.hear(id, b.ExtendResult(0, 3_000, ()))
    bench.deliver(*IDS)
    bench.exchange.connection_lost("gone", 100.5)
    bench.connect()
    bench.sent()
    ((_, beat),) = bench.beats(101.0)
    assert beat.message_ids == ()


def test_a_broker_without_extensions_ends_the_consumer_with_its_reason() -> None:
    bench = Beating()
    ((id, _),) = bench.beats(100.0)
    bench.hear(id, b.Error(codes.INVALID_FRAME, "opcode 0x2e is unknown", {}))
    assert isinstance(bench.stream.error, FilaError)
    bench.exchange.tick(100.0, 0)
    assert [one[0] for one in bench.sent()][:1] == [op.CANCEL_CONSUME]
    assert bench.stream.closed


def test_a_refusal_that_may_pass_is_tried_again() -> None:
    bench = Beating()
    ((id, _),) = bench.beats(100.0)
    bench.hear(id, b.Error(codes.NODE_NOT_READY, "not yet", {}))
    assert bench.beats(100.5) == []
    assert len(bench.beats(101.0)) == 1


# --- a real broker


@pytest.fixture(scope="module")
def server() -> Iterator[RealBroker]:
    with broker() as running:
        yield running


def test_a_slow_consumer_with_a_heart_beat_keeps_its_message(
    driver: SyncDriver, server: RealBroker
) -> None:
    client = driver.open(server.address)
    queue = f"slow-{driver.name}"
    driver.call(client, "create_queue", queue, visibility_timeout_ms=3_000)
    for payload in (b"1", b"2"):
        driver.call(client, "enqueue", queue, None, payload)
    consumer = driver.call(client, "consume", queue, heartbeat=True)
    first, second = driver.next(consumer), driver.next(consumer)
    time.sleep(6)
    stats = driver.call(client, "get_stats", queue)
    assert (stats.depth, stats.in_flight) == (0, 2)
    driver.call(first, "ack")
    driver.call(second, "ack")
    driver.call(client, "close")


def test_a_message_is_extended_by_hand(driver: SyncDriver, server: RealBroker) -> None:
    client = driver.open(server.address)
    queue = f"hand-{driver.name}"
    driver.call(client, "create_queue", queue, visibility_timeout_ms=3_000)
    for payload in (b"1", b"2"):
        driver.call(client, "enqueue", queue, None, payload)
    consumer: Any = driver.call(client, "consume", queue)
    first, second = driver.next(consumer), driver.next(consumer)
    driver.call(first, "extend", 60)
    driver.call(client, "extend_many", queue, [second.id], 60)
    time.sleep(4.5)
    driver.call(first, "ack")
    with pytest.raises(MessageNotFoundError):
        driver.call(first, "extend")
    with pytest.raises(BatchError):
        driver.call(client, "extend_many", queue, [first.id, second.id])
    driver.call(second, "ack")
    driver.call(client, "close")


def test_a_queue_with_a_limit_of_attempts_needs_no_hook(
    driver: SyncDriver, server: RealBroker
) -> None:
    client = driver.open(server.address)
    queue = f"limit-{driver.name}"
    driver.call(client, "create_queue", queue, max_attempts=2)
    driver.call(client, "enqueue", queue, None, b"poison")
    consumer = driver.call(client, "consume", queue)
    for attempt in range(2):
        message = driver.next(consumer)
        assert message.attempt_count == attempt
        driver.call(message, "nack", "it broke")
    assert driver.call(client, "get_stats", f"{queue}.dlq").depth == 1
    assert driver.call(client, "get_stats", queue).depth == 0
    driver.call(client, "close")
