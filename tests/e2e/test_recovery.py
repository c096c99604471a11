"""What a broker knows after it was killed: everything it had acknowledged, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from fila.wire import errors
from tests.e2e.jitter import Jitter
from tests.e2e.peer import Peer
from tests.e2e.process import Broker

Make = Callable[..., Broker]


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_every_acknowledged_message_is_there_after_a_kill(
    own_broker: Make, durability: str
) -> None:
    with own_broker(settings={"storage.durability": durability}) as broker:
        peer = broker.peer()
        peer.create_queue("orders")
        ids = []
        for n in range(20):
            ids += peer.enqueue("orders", *(b"%d-%d" % (n, k) for k in range(50)))
        stream = peer.consume("orders", prefetch=100)
        done = [message.id for message in peer.take(stream, 100)]
        assert peer.ack("orders", *done) == [errors.OK] * 100
        # What is leased at the time of the kill stays leased: take nothing more in the meantime.
        peer.disconnect()
        broker.restart()
        with broker.peer() as again:
            assert again.stats("orders").depth == 900
            left = again.take(again.consume("orders", prefetch=1_000), 900)
            assert [message.id for message in left] == ids[100:]
            assert {message.attempts for message in left} == {0}


def test_leases_survive_a_restart_and_run_out_on_time(own_broker: Make, jitter: Jitter) -> None:
    with own_broker() as broker:
        for visibility_ms in (2_000, 4_000, 8_000, 16_000):
            queue = f"orders-{visibility_ms}"
            with broker.peer() as peer:
                peer.create_queue(queue, visibility_ms=visibility_ms)
                first, second = peer.enqueue(queue, b"1", b"2")
                leased = peer.take(peer.consume(queue), 2)
            broker.restart()
            if time.time() * 1_000 - leased[0].leased_at_ms > visibility_ms - 500:
                continue  # a crowded machine was slower to start it than the lease is long
            with broker.peer() as again:
                assert again.ack(queue, first) == [errors.OK]
                back = again.take_one(again.consume(queue), timeout_s=20)
                assert (back.id, back.attempts) == (second, 1)
                late_ms = back.leased_at_ms - leased[1].leased_at_ms - visibility_ms
                assert 0 <= late_ms <= jitter.late_ms_max
            return
        raise AssertionError("the broker takes 16 s to start")


def test_leases_that_ran_out_while_the_broker_was_down_are_handed_out_at_once(
    own_broker: Make,
) -> None:
    with own_broker() as broker:
        peer = broker.peer()
        peer.create_queue("orders", visibility_ms=1_000)
        [id] = peer.enqueue("orders", b"1")
        peer.take_one(peer.consume("orders"))
        broker.kill()
        time.sleep(1.1)  # the lease's own time must pass
        broker.start()
        with broker.peer() as again:
            back = again.take_one(again.consume("orders"))
            assert (back.id, back.attempts) == (id, 1)


def test_a_delayed_retry_keeps_its_moment_over_a_restart(own_broker: Make, jitter: Jitter) -> None:
    script = "function on_failure(msg) return { action = 'retry', delay_ms = 2000 } end"
    with own_broker() as broker:
        peer = broker.peer()
        peer.create_queue("orders", on_failure=script)
        [id] = peer.enqueue("orders", b"x")
        peer.take_one(peer.consume("orders"))
        nacked_s = time.time()
        peer.nack("orders", id)
        broker.restart()
        with broker.peer() as again:
            assert again.stats("orders").depth == 1
            stream = again.consume("orders")
            consumed_s = time.time()  # a crowded machine may be slower to start than the delay
            back = again.take_one(stream)
            assert back.attempts == 1
            assert back.leased_at_ms - nacked_s * 1000 >= 1_999
            due_s = max(nacked_s + 2, consumed_s)
            assert back.leased_at_ms - due_s * 1000 <= jitter.late_ms_max


def test_queues_hooks_config_and_limits_are_as_they_were(own_broker: Make) -> None:
    script = "function on_enqueue(msg) return { fairness_key = msg.headers.t, weight = 7 } end"
    failure = "function on_failure(msg) return { action = 'dlq' } end"
    with own_broker() as broker:
        peer = broker.peer()
        peer.create_queue("orders", script, failure, 5_000)
        peer.create_queue("gone")
        peer.delete_queue("gone")
        peer.set_config("feature", "on")
        peer.set_config("removed", "x")
        peer.set_config("removed", "")
        peer.enqueue("orders", b"1", headers={"t": "acme"})
        broker.restart()
        with broker.peer() as again:
            assert set(again.queues()) == {"orders", "orders.dlq"}
            assert again.list_config("") == {"feature": "on"}
            again.enqueue("orders", b"2", headers={"t": "globex"})
            messages = again.take(again.consume("orders"), 2)
            keys = {(message.fairness_key, message.weight) for message in messages}
            assert keys == {("acme", 7), ("globex", 7)}
            again.nack("orders", messages[0].id)
            assert again.stats("orders.dlq").depth == 1


def test_a_deleted_queue_stays_deleted(own_broker: Make) -> None:
    with own_broker() as broker:
        peer = broker.peer()
        peer.create_queue("orders")
        peer.enqueue("orders", *[b"x"] * 100)
        peer.take(peer.consume("orders", prefetch=10), 10)
        peer.delete_queue("orders")
        broker.restart()
        with broker.peer() as again:
            assert again.queues() == {}
            again.create_queue("orders")
            found = again.stats("orders")
            assert (found.depth, found.in_flight) == (0, 0)


def test_ids_go_on_rising_over_restarts(own_broker: Make) -> None:
    with own_broker() as broker:
        broker.peer().create_queue("orders")
        ids = []
        for _ in range(4):
            with broker.peer() as peer:
                ids += peer.enqueue("orders", *[b"x"] * 20)
            broker.restart()
    assert ids == sorted(set(ids))
    assert {(id[14], id[19] in "89ab") for id in ids} == {("7", True)}


def test_a_backlog_of_many_keys_is_whole_after_a_restart(own_broker: Make) -> None:
    script = "function on_enqueue(msg) return { fairness_key = msg.headers.t } end"
    with own_broker() as broker:
        peer = broker.peer()
        peer.create_queue("orders", on_enqueue=script)
        expected: dict[str, list[str]] = {}
        for round in range(4):
            for tenant in range(50):
                name = f"tenant-{tenant}"
                ids = peer.enqueue("orders", *[b"%d" % round] * 5, headers={"t": name})
                expected.setdefault(name, []).extend(ids)
        broker.restart()
        with broker.peer() as again:
            found = again.stats("orders")
            assert (found.depth, found.active_fairness_keys) == (1_000, 50)
            got: dict[str, list[str]] = {}
            for message in again.take(again.consume("orders", prefetch=1_000), 1_000):
                got.setdefault(message.fairness_key, []).append(message.id)
            assert got == expected


def test_redelivery_after_a_kill_starts_with_what_was_never_delivered_or_ran_out(
    own_broker: Make,
) -> None:
    """A consumer comes back after the kill: it sees the pending ones, not what it still holds."""
    with own_broker() as broker:
        peer: Peer = broker.peer()
        peer.create_queue("orders")
        ids = peer.enqueue("orders", *[b"x"] * 30)
        peer.take(peer.consume("orders", prefetch=10), 10)
        broker.restart()
        with broker.peer() as again:
            stream = again.consume("orders")
            assert [message.id for message in again.take(stream, 20)] == ids[10:]
            again.expect_quiet(stream, 0.1)
            assert again.ack("orders", *ids) == [errors.OK] * 30
            found = again.stats("orders")
            assert (found.depth, found.in_flight) == (0, 0)
