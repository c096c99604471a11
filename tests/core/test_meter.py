"""Meters and fair time: what keys were due, what they got, and what their messages waited for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.measuring import measure
from fila.core.meter import LATENCY_BOUNDS_NS
from fila.core.settings import Settings
from tests.core.turn import MS, SECOND, Outcome, Turns


def measured(outcome: Outcome) -> Outcome:
    for delivery in outcome.deliveries:
        measure(delivery)
    return outcome


def due(turns: Turns, key: bytes) -> float:
    queue = turns.machine.state.queues["q"]
    return queue.ring.entitled(queue.keys[key])


def test_keys_are_due_their_weights_while_they_have_messages() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"heavy", 100, weight=3)
    turns.enqueue("q", b"light", 100)
    turns.consume("q", prefetch=40)
    assert due(turns, b"heavy") == pytest.approx(30)
    assert due(turns, b"light") == pytest.approx(10)
    assert turns.machine.state.queues["q"].ring.clock == pytest.approx(10)  # ten rounds


def test_a_key_without_messages_is_due_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"short", 2)
    turns.enqueue("q", b"long", 10)
    turns.consume("q")
    assert due(turns, b"short") == pytest.approx(2, abs=0.6)
    assert due(turns, b"short") + due(turns, b"long") == pytest.approx(12)


def test_a_heavy_key_is_not_owed_what_it_had_no_messages_for() -> None:
    """Weight 3 and one message beside a backlog: it gets that one, and that was its due."""
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"long", 50)
    held = turns.consume("q", prefetch=1).ids()
    for _ in range(10):
        turns.enqueue("q", b"heavy", 1, weight=3)
        for _ in range(3):
            held = turns.ack("q", held).ids()
    queue = turns.machine.state.queues["q"]
    assert queue.keys[b"heavy"].served == 10
    assert due(turns, b"heavy") == pytest.approx(10)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 30)), max_size=20),
    st.integers(1, 60),
)
def test_no_key_is_due_more_than_it_had_to_send(
    load: list[tuple[int, int, int]], prefetch: int
) -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", prefetch=prefetch)
    for key, weight, count in load:
        outcome = turns.turn(turns.messages("q", b"k%d" % key, count, weight))
        turns.ack("q", outcome.ids()[:3])
    queue = turns.machine.state.queues["q"]
    for one in queue.keys.values():
        found = queue.ring.entitled(one)
        assert 0 <= found <= one.served + one.pending
        if not one.pending:
            assert found == one.served


def test_no_key_strays_from_its_due_by_more_than_a_visit() -> None:
    turns = Turns(Settings(quantum=2))
    turns.create("q")
    for key, weight in ((b"a", 1), (b"b", 2), (b"c", 5)):
        turns.enqueue("q", key, 500, weight=weight)
    outcome = turns.consume("q", prefetch=333)
    served = outcome.keys()
    for key, weight in ((b"a", 1), (b"b", 2), (b"c", 5)):
        assert abs(served.count(key) - due(turns, key)) <= 2 * weight


def test_waits_and_latencies_are_counted_by_key_and_queue() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", 2)
    turns.now += SECOND
    measured(turns.consume("q", prefetch=100))
    turns.limit("t", 0.5, 1)
    measured(turns.turn(turns.messages("q", b"b", 2, throttle=(b"t",))))
    measured(turns.wait(3 * SECOND))
    queue = turns.machine.state.queues["q"]
    assert queue.keys[b"a"].meter is not None and queue.keys[b"b"].meter is not None
    assert queue.keys[b"a"].meter.reading() == (2, 0, 0, 2 * SECOND, 0, 0, 0, 0, 0, 0)
    delivered, _, throttled, *_ = queue.keys[b"b"].meter.reading()
    assert delivered == 2 and throttled == pytest.approx(2 * SECOND, rel=0.01)
    meter = queue.meter
    assert meter is not None and meter.limited == 1
    assert meter.waits.delivered == sum(meter.latency_counts) == 4
    assert meter.latency_ns == pytest.approx(4 * SECOND, rel=0.01)
    assert meter.latency_counts[LATENCY_BOUNDS_NS.index(1_000 * MS)] == 2
    bucket = turns.machine.state.buckets[b"t"]
    assert bucket.passed == 2 and bucket.limited >= 1
