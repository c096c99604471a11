"""Leases end on time: when they run out, when a client leaves, when nobody looks.

How late is late is told by `jitter`; earliness has no slack beyond the millisecond of the wire.
"""

from __future__ import annotations

import time

from fila.wire import errors
from tests.e2e.jitter import Jitter
from tests.e2e.load import busy
from tests.e2e.peer import Peer
from tests.e2e.process import Broker, wait_until

RETRY_LATER = "function on_failure(msg) return {action = 'retry', delay_ms = 700} end"


def test_a_lease_that_runs_out_is_redelivered_on_time_with_attempt_one(
    peer: Peer, queue: str, jitter: Jitter
) -> None:
    peer.create_queue(queue, visibility_ms=1_000)
    [id] = peer.enqueue(queue, b"x")
    stream = peer.consume(queue)
    first = peer.take_one(stream)
    again = peer.take_one(stream)
    assert (again.id, again.attempts) == (id, 1)
    assert 1_000 <= again.leased_at_ms - first.leased_at_ms <= 1_000 + jitter.late_ms_max


def test_leases_run_out_on_time_under_load(broker: Broker, queue: str, jitter: Jitter) -> None:
    """A second connection keeps the broker busy with full frames all the while."""
    with broker.peer() as peer, busy(broker, queue + "-load"):
        peer.create_queue(queue, visibility_ms=1_000)
        peer.enqueue(queue, *[b"x"] * 5)
        stream = peer.consume(queue)
        first = peer.take(stream, 5)
        again = peer.take(stream, 5)
    assert [message.attempts for message in again] == [1] * 5
    late = [b.leased_at_ms - a.leased_at_ms - 1_000 for a, b in zip(first, again, strict=True)]
    assert min(late) >= 0
    assert max(late) <= jitter.late_ms_max


def test_a_delayed_retry_is_ready_on_time(peer: Peer, queue: str, jitter: Jitter) -> None:
    assert_retry_is_on_time(peer, queue, jitter)


def test_a_delayed_retry_is_ready_on_time_under_load(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    with broker.peer() as peer, busy(broker, queue + "-load"):
        assert_retry_is_on_time(peer, queue, jitter)


def assert_retry_is_on_time(peer: Peer, queue: str, jitter: Jitter) -> None:
    peer.create_queue(queue, on_failure=RETRY_LATER)
    [id] = peer.enqueue(queue, b"x")
    stream = peer.consume(queue)
    peer.take_one(stream)
    began = time.monotonic()
    peer.nack(queue, id)
    again = peer.take_one(stream)
    assert again.attempts == 1
    assert 0.699 <= again.arrived_s - began <= 0.7 + jitter.late_ms_max / 1000


def test_a_late_ack_after_redelivery_to_another_finds_nothing(broker: Broker, queue: str) -> None:
    with broker.peer() as slow, broker.peer() as quick:
        slow.create_queue(queue, visibility_ms=3_000)
        [id] = slow.enqueue(queue, b"x")
        stream = slow.consume(queue, prefetch=1)
        slow.take_one(stream)
        other = quick.consume(queue)
        # The quick one has waited longer, so the message goes to it.
        assert quick.take_one(other).id == id
        assert slow.ack(queue, id) == [errors.MESSAGE_NOT_FOUND]
        assert slow.nack(queue, id) == [errors.MESSAGE_NOT_FOUND]
        assert quick.ack(queue, id) == [errors.OK]


def test_a_late_ack_before_redelivery_finds_nothing_either(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, visibility_ms=1_000)
    [id] = peer.enqueue(queue, b"x")
    stream = peer.consume(queue)
    peer.take_one(stream)
    peer.cancel(stream)
    wait_until(lambda: peer.stats(queue).depth == 1, 3, "the lease to run out")
    assert peer.ack(queue, id) == [errors.MESSAGE_NOT_FOUND]


def test_a_graceful_disconnect_hands_leases_back_at_once_without_an_attempt(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    with broker.peer() as leaving, broker.peer() as staying:
        leaving.create_queue(queue)
        ids = leaving.enqueue(queue, b"1", b"2", b"3")
        leaving.take(leaving.consume(queue), 3)
        stream = staying.consume(queue)
        began = time.monotonic()
        leaving.disconnect()
        messages = staying.take(stream, 3)
        assert [message.id for message in messages] == ids
        assert [message.attempts for message in messages] == [0, 0, 0]
        assert messages[-1].arrived_s - began < jitter.late_ms_max / 1000


def test_a_lost_connection_keeps_its_leases_until_they_run_out(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    with broker.peer() as lost, broker.peer() as staying:
        lost.create_queue(queue, visibility_ms=1_000)
        lost.enqueue(queue, b"x")
        first = lost.take_one(lost.consume(queue))
        lost.close()
        wait_until(lambda: staying.stats(queue).active_consumers == 0, 2, "the consumer to go")
        assert staying.stats(queue).in_flight == 1
        again = staying.take_one(staying.consume(queue))
        assert again.attempts == 1
        assert 1_000 <= again.leased_at_ms - first.leased_at_ms <= 1_000 + jitter.late_ms_max


def test_a_message_from_a_lost_connection_can_be_acked_over_another(
    broker: Broker, queue: str
) -> None:
    with broker.peer() as lost, broker.peer() as back:
        lost.create_queue(queue)
        [id] = lost.enqueue(queue, b"x")
        lost.take_one(lost.consume(queue))
        lost.close()
        wait_until(lambda: back.stats(queue).active_consumers == 0, 2, "the consumer to go")
        back.consume(queue)
        assert back.ack(queue, id) == [errors.OK]


def test_a_slow_consumer_does_not_slow_a_quick_one(broker: Broker, queue: str) -> None:
    """The slow one holds its credit and answers nothing; all the rest goes to the quick one."""
    with broker.peer() as slow, broker.peer() as quick:
        slow.create_queue(queue)
        slow_stream = slow.consume(queue, prefetch=10)
        quick_stream = quick.consume(queue, prefetch=50)
        quick.enqueue(queue, *[b"x"] * 500)
        held = slow.take(slow_stream, 10)
        done = 0
        while done < 490:
            message = quick.take_one(quick_stream)
            quick.post_ack(queue, [message.id])
            done += 1
        wait_until(lambda: quick.stats(queue).in_flight == 10, 5, "the acks to be counted")
        assert slow.ack(queue, *(message.id for message in held)) == [errors.OK] * 10
