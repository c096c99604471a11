from __future__ import annotations

from fila.core.rejection import QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.stats import BucketStats, QueueStats, stats, summaries
from tests.core.turn import SECOND, Turns


def stats_of(turns: Turns, queue: str = "q", keys_max: int = 100) -> QueueStats:
    found = stats(turns.machine.state, queue, keys_max)
    assert isinstance(found, QueueStats)
    return found


def test_an_unknown_queue_has_no_stats() -> None:
    found = stats(Turns().machine.state, "q", 10)
    assert isinstance(found, Rejection)
    assert found.code == QUEUE_NOT_FOUND


def test_a_new_queue_counts_nothing() -> None:
    turns = Turns(Settings(quantum=4))
    turns.create("q")
    found = stats_of(turns)
    assert found[:5] == (0, 0, 0, 0, 4)
    assert (found.keys, found.buckets) == ([], [])


def test_depth_counts_pending_messages_and_delayed_ones_but_not_leased_ones() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=5)
    turns.enqueue("q", delay_ms=1_000)
    turns.consume("q", prefetch=2)
    found = stats_of(turns)
    assert (found.depth, found.in_flight, found.consumers) == (4, 2, 1)


def test_active_keys_are_those_with_pending_messages() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=2)
    turns.enqueue("q", b"b")
    turns.consume("q", prefetch=2)
    assert stats_of(turns).active_keys == 1
    assert [one.key for one in stats_of(turns).keys] == [b"a"]


def test_the_deepest_keys_come_first_and_their_number_is_bounded() -> None:
    turns = Turns()
    turns.create("q")
    for key, count in ((b"a", 2), (b"b", 5), (b"c", 3), (b"d", 2)):
        turns.enqueue("q", key, count=count, weight=count)
    found = stats_of(turns, keys_max=3)
    assert [(one.key, one.pending, one.weight) for one in found.keys] == [
        (b"b", 5, 5),
        (b"c", 3, 3),
        (b"a", 2, 2),
    ]
    assert found.active_keys == 4


def test_the_deficit_of_a_visit_under_way_is_shown() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=9, weight=5)
    turns.consume("q", prefetch=2)
    assert stats_of(turns).keys[0].deficit == 3


def test_buckets_of_the_queues_lanes_are_shown_with_their_level_now() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("x", 2, 10)
    turns.limit("unused", 1, 1)
    turns.enqueue("q", count=4, throttle=(b"x", b"unlimited"))
    turns.consume("q")
    turns.wait(SECOND)
    turns.turn()
    assert stats_of(turns).buckets == [BucketStats(b"x", 8.0, 2.0, 10.0)]


def test_summaries_are_sorted_by_name() -> None:
    turns = Turns()
    turns.create("b")
    turns.create("a")
    turns.enqueue("b", count=3)
    turns.consume("b", prefetch=1)
    assert [one[:4] for one in summaries(turns.machine.state)] == [
        ("a", 0, 0, 0),
        ("a.dlq", 0, 0, 0),
        ("b", 2, 1, 1),
        ("b.dlq", 0, 0, 0),
    ]
