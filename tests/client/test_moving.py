"""Both clients on the move: drained, told about, and sent to the leader by another broker."""

import logging
import ssl
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from fila import (
    ClientClosedError,
    ConnectionLostError,
    NotLeaderError,
    QueueNotFoundError,
    RequestTimeoutError,
)
from fila.client.course import MOVES_MAX
from fila.client.event import ConnectionEvent
from fila.wire import errors as codes
from fila.wire import opcodes as op
from tests.client.drivers import SyncDriver
from tests.client.peer import Connection, Peer, TinyBroker
from tests.e2e.process import wait_until

FAST = {"reconnect_pause_min_ms": 5, "reconnect_pause_max_ms": 50}
CERTS = Path(__file__).parent / "certs"


class Follower:
    """Leads nothing: sends every request to `leader`."""

    def __init__(self, leader: str | None) -> None:
        self.leader = leader

    def __call__(self, connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode in op.REPLY_TO and opcode != op.PING:
            metadata = {"leader_addr": self.leader} if self.leader else {}
            connection.error(request_id, codes.NOT_LEADER, "not here", **metadata)


# Following.


def test_calls_batches_and_consumers_move_to_the_leader(
    driver: SyncDriver, broker: TinyBroker, peer: Peer
) -> None:
    broker.queues["q"] = deque()
    with Peer(Follower(peer.address)) as follower:
        client = driver.open(follower.address, **FAST)
        consumer = driver.call(client, "consume", "q")
        ids = [driver.call(client, "enqueue", "q", None, b"%d" % n) for n in range(3)]
        got = [driver.next(consumer) for _ in ids]
        assert [message.id for message in got] == ids
        for message in got:
            driver.call(message, "ack")
        assert broker.acked == ids
        assert driver.call(client, "get_stats", "q").depth == 0
        driver.call(client, "close")


def test_a_move_that_leads_nowhere_ends_with_the_cause(driver: SyncDriver) -> None:
    with Peer(Follower(None)) as lost:
        client = driver.open(lost.address, **FAST)
        with pytest.raises(NotLeaderError, match="not here") as refused:
            driver.call(client, "enqueue", "q")
        assert refused.value.retryable and refused.value.leader_addr is None
        driver.call(client, "close")


def test_two_that_send_a_client_to_each_other_are_not_followed_for_ever(
    driver: SyncDriver,
) -> None:
    first, second = Follower(None), Follower(None)
    with Peer(first) as one, Peer(second) as two:
        first.leader, second.leader = two.address, one.address
        client = driver.open(one.address, **FAST)
        with pytest.raises(NotLeaderError):
            driver.call(client, "enqueue", "q", timeout=10)
        assert len(one.connections) + len(two.connections) <= MOVES_MAX + 1
        driver.call(client, "close")


def test_a_leader_that_cannot_be_reached_is_forgotten(
    driver: SyncDriver, broker: TinyBroker
) -> None:
    broker.queues["q"] = deque()
    follower = Follower("127.0.0.1:1")
    calls: list[int] = []

    def script(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.ENQUEUE and not calls:
            calls.append(opcode)
            follower(connection, opcode, request_id, body)
        else:
            broker(connection, opcode, request_id, body)

    with Peer(script) as peer:
        client = driver.open(peer.address, **FAST)
        assert driver.call(client, "enqueue", "q", None, b"x", timeout=10)
        driver.call(client, "close")


def test_a_client_with_tls_never_follows_into_plaintext(driver: SyncDriver) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTS / "server.pem", CERTS / "server.key")
    with (
        Peer(lambda *frame: None) as clear,
        Peer(Follower(clear.address), tls=context) as follower,
    ):
        client = driver.open(
            follower.address, tls_ca=str(CERTS / "ca.pem"), api_key="secret", connect_timeout=0.3,
            **FAST,
        )  # fmt: skip
        with pytest.raises((NotLeaderError, RequestTimeoutError, ConnectionLostError)):
            driver.call(client, "enqueue", "q", timeout=1.5)
        driver.call(client, "close")
        assert all(one.handshake is None for one in clear.connections)


# Draining.


def test_drain_answers_what_is_under_way_and_refuses_what_is_new(
    driver: SyncDriver, broker: TinyBroker, peer: Peer
) -> None:
    broker.queues["q"] = deque()
    client = driver.open(peer.address, batch="linger", linger_ms=60_000, **FAST)
    lingering = [driver.start(client, "enqueue", "q", None, b"%d" % n) for n in range(5)]
    wait_until(lambda: _waiting(client) == 5, 5, "five lingering enqueues")
    driver.call(client, "drain", timeout=10)
    for thread in lingering:
        thread.join(5)
        assert isinstance(thread.outcome, str), thread.outcome  # type: ignore[attr-defined]
    assert len(broker.queues["q"]) == 5
    for method in ("enqueue", "consume", "get_stats"):
        with pytest.raises(ClientClosedError):
            driver.call(client, method, "q")


def test_drain_ends_consumers_and_hands_back_what_nobody_read(
    driver: SyncDriver, broker: TinyBroker, peer: Peer
) -> None:
    broker.queues["q"] = deque()
    client = driver.open(peer.address, **FAST)
    ids = driver.call(client, "enqueue_many", [("q", None, b"%d" % n) for n in range(4)])
    consumer = driver.call(client, "consume", "q")
    assert driver.next(consumer).id == ids[0]
    assert not consumer.closed
    driver.call(client, "drain", timeout=10)
    assert consumer.closed
    assert driver.call(consumer, "receive", timeout=1) is None
    wait_until(lambda: not broker.leased, 5, "everything handed back")


def test_a_drain_that_takes_too_long_closes_all_the_same(driver: SyncDriver) -> None:
    with Peer(lambda *frame: None) as silent:
        client = driver.open(silent.address, **FAST)
        stuck = driver.start(client, "enqueue", "q")
        silent.wait_for(lambda: silent.connections[0].count(op.ENQUEUE) == 1)
        with pytest.raises(RequestTimeoutError, match="drain"):
            driver.call(client, "drain", timeout=0.2)
        stuck.join(5)
        assert isinstance(stuck.outcome, ClientClosedError)  # type: ignore[attr-defined]


# Events.


def test_a_listener_hears_of_the_connection_from_beginning_to_end(
    driver: SyncDriver, peer: Peer
) -> None:
    told: list[ConnectionEvent] = []
    client = driver.open(peer.address, on_event=told.append, **FAST)
    wait_until(lambda: len(told) == 1, 5, "connected")
    peer.connections[0].cut()
    wait_until(lambda: len(told) == 4, 5, "connected again")
    driver.call(client, "close")
    kinds = [event.kind for event in told]
    assert kinds == ["connected", "disconnected", "reconnecting", "connected", "closed"]
    assert {event.address for event in told} == {peer.address}
    assert told[1].reason and told[2].reason
    assert told[2].pause > 0


def test_a_listener_hears_of_the_move_to_the_leader(
    driver: SyncDriver, broker: TinyBroker, peer: Peer
) -> None:
    broker.queues["q"] = deque()
    told: list[ConnectionEvent] = []
    with Peer(Follower(peer.address)) as follower:
        client = driver.open(follower.address, on_event=told.append, **FAST)
        driver.call(client, "enqueue", "q", None, b"x")
        driver.call(client, "close")
    assert [(event.kind, event.address) for event in told] == [
        ("connected", follower.address),
        ("disconnected", follower.address),
        ("redirected", peer.address),
        ("connected", peer.address),
        ("closed", peer.address),
    ]
    assert peer.address in told[2].reason


def test_a_logger_is_told_the_same_in_words(
    driver: SyncDriver, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[ConnectionEvent] = []
    logger = logging.getLogger("orders.broker")
    client = driver.open(
        peer.address, logger=logger, on_event=told.append, api_key="a-secret", **FAST
    )
    wait_until(lambda: len(told) == 1, 5, "connected")
    peer.connections[0].cut()
    wait_until(lambda: len(told) == 4, 5, "connected again")
    driver.call(client, "close")
    lines = [line for line in caplog.records if line.name == "orders.broker"]
    assert [line.levelname for line in lines] == ["INFO", "WARNING", "INFO", "INFO", "INFO"]
    assert all(peer.address in line.getMessage() for line in lines)
    assert "lost" in lines[1].getMessage()
    assert "a-secret" not in caplog.text


def test_a_logger_hears_why_a_client_ended_by_itself(
    driver: SyncDriver, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("orders.broker")
    client = driver.open(peer.address, logger=logger, reconnect=False)
    peer.connections[0].cut()
    wait_until(lambda: "has ended" in caplog.text, 5, "the last line")
    (last,) = [line for line in caplog.records if "has ended" in line.getMessage()]
    assert last.levelname == "ERROR" and peer.address in last.getMessage()
    driver.call(client, "close")


def test_a_listener_may_fail_and_may_use_the_client(
    driver: SyncDriver, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    heard = threading.Event()

    def listen(event: ConnectionEvent) -> None:
        heard.set()
        raise RuntimeError("a listener's own trouble")

    client = driver.open(peer.address, on_event=listen, **FAST)
    assert heard.wait(5)
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "get_stats", "nowhere")
    driver.call(client, "close")
    assert "on_event or the logger failed" in caplog.text


def test_a_message_is_released_by_itself(
    driver: SyncDriver, broker: TinyBroker, peer: Peer
) -> None:
    broker.queues["q"] = deque()
    client = driver.open(peer.address, **FAST)
    message_id = driver.call(client, "enqueue", "q", None, b"x")
    consumer = driver.call(client, "consume", "q")
    driver.call(driver.next(consumer), "release")
    again = driver.next(consumer)
    assert (again.id, again.attempt_count) == (message_id, 0)
    driver.call(client, "close")


def _waiting(client: Any) -> int:
    return len(client._link.exchange._sender._enqueues._items)
