from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.command import Ack
from fila.core.fairness import FairnessKey, Ring
from fila.core.settings import Settings
from tests.core.turn import DEAD_LETTER, SECOND, Turns


def ring_of(*names: bytes) -> tuple[Ring, dict[bytes, FairnessKey]]:
    ring = Ring()
    keys = {name: FairnessKey(name) for name in names}
    for key in keys.values():
        ring.join(key)
    return ring, keys


def order(ring: Ring) -> list[bytes]:
    names: list[bytes] = []
    key = ring.head
    while key is not None and (not names or key is not ring.head):
        names.append(key.name)
        assert key.after is not None and key.after.before is key
        key = key.after
    return names


# --- the ring itself


def test_keys_stand_in_the_order_they_joined() -> None:
    ring, _ = ring_of(b"a", b"b", b"c")
    assert order(ring) == [b"a", b"b", b"c"]
    assert ring.keys == 3


def test_a_newcomer_stands_at_the_end_behind_the_one_whose_visit_was_last() -> None:
    ring, keys = ring_of(b"a", b"b", b"c")
    ring.head = keys[b"b"]
    ring.join(FairnessKey(b"new"))
    assert order(ring) == [b"b", b"c", b"a", b"new"]


def test_when_the_head_leaves_the_next_key_is_the_head() -> None:
    ring, keys = ring_of(b"a", b"b", b"c")
    ring.leave(keys[b"a"])
    assert order(ring) == [b"b", b"c"]
    assert not keys[b"a"].active


def test_the_last_key_leaves_an_empty_ring() -> None:
    ring, keys = ring_of(b"a")
    ring.leave(keys[b"a"])
    assert ring.head is None
    assert (ring.keys, ring.weight) == (0, 0)


def test_the_ring_knows_the_sum_of_its_weights() -> None:
    ring, keys = ring_of(b"a", b"b")
    ring.set_weight(keys[b"a"], 5)
    assert ring.weight == 6
    ring.leave(keys[b"a"])
    assert ring.weight == 1
    ring.set_weight(keys[b"a"], 7)  # outside of the ring it counts for nothing
    assert ring.weight == 1
    ring.join(keys[b"a"])
    assert ring.weight == 8


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=80))
def test_the_ring_is_a_line_that_newcomers_join_at_the_end(steps: list[tuple[int, bool]]) -> None:
    ring = Ring()
    keys = [FairnessKey(bytes([65 + at])) for at in range(7)]
    line: list[bytes] = []
    for at, visit in steps:
        key = keys[at]
        if visit and line:
            assert ring.head is not None
            ring.head = ring.head.after
            line.append(line.pop(0))
        elif key.active:
            ring.leave(key)
            line.remove(key.name)
        else:
            ring.join(key)
            line.append(key.name)
        assert order(ring) == line
        assert ring.keys == ring.weight == len(line)


# --- turns of keys in a machine


def served(turns: Turns, count: int) -> bytes:
    """The keys of the next `count` messages, each delivered, and acked, on its own."""
    outcome = turns.consume("q", prefetch=1)
    keys = outcome.keys()
    while len(keys) < count and (ids := outcome.ids()):
        outcome = turns.ack("q", ids)
        keys += outcome.keys()
    return b"".join(keys[:count])


def queue_with(weights: dict[bytes, int], count: int, settings: Settings | None = None) -> Turns:
    turns = Turns(settings)
    turns.create("q")
    for key, weight in weights.items():
        turns.enqueue("q", key, count=count, weight=weight)
    return turns


def test_keys_of_equal_weight_take_turns_message_by_message() -> None:
    assert served(queue_with({b"a": 1, b"b": 1, b"c": 1}, 5), 9) == b"abcabcabc"


def test_a_visit_serves_as_many_messages_as_the_weight() -> None:
    assert served(queue_with({b"a": 3, b"b": 1, b"c": 2}, 20), 12) == b"aaabccaaabcc"


def test_a_visit_serves_weight_times_quantum() -> None:
    turns = queue_with({b"a": 2, b"b": 1}, 30, Settings(quantum=3))
    assert served(turns, 18) == b"aaaaaabbb" * 2


def test_a_delivery_of_many_messages_is_in_the_same_order_as_many_of_one() -> None:
    turns = queue_with({b"a": 3, b"b": 1, b"c": 2}, 20)
    assert b"".join(turns.consume("q", prefetch=12).keys()) == b"aaabccaaabcc"


@pytest.mark.parametrize("prefetch", [1, 2, 4, 5, 7])
def test_a_visit_cut_off_by_credit_goes_on_where_it_stopped(prefetch: int) -> None:
    turns = queue_with({b"a": 3, b"b": 1, b"c": 2}, 20)
    outcome = turns.consume("q", prefetch=prefetch)
    keys = outcome.keys()
    while len(keys) < 24:
        outcome = turns.ack("q", outcome.ids())
        keys += outcome.keys()
    assert b"".join(keys[:24]) == b"aaabcc" * 4


def test_a_visit_cut_off_by_bytes_goes_on_where_it_stopped() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=10, weight=3, body_bytes=100)
    turns.enqueue("q", b"b", count=10, weight=1, body_bytes=100)
    keys: list[bytes] = []
    outcome = turns.consume("q", prefetch_bytes=150)
    while len(keys) < 12:
        keys += outcome.keys()
        outcome = turns.ack("q", outcome.ids())
    assert b"".join(keys[:12]) == b"aaabaaabaaab"


def test_a_new_key_waits_for_one_visit_of_every_other_key_and_no_longer() -> None:
    turns = queue_with({b"a": 1, b"b": 1, b"c": 1}, 9)
    outcome = turns.consume("q", prefetch=1)  # a was visited
    command = turns.messages("q", b"n", count=3)
    outcome = turns.turn(command, Ack("q", outcome.ids(), 1))
    keys = outcome.keys()
    while len(keys) < 7:
        outcome = turns.ack("q", outcome.ids())
        keys += outcome.keys()
    assert b"".join(keys) == b"bcanbca"


def test_a_new_key_does_not_wait_behind_a_deep_backlog() -> None:
    turns = queue_with({b"deep": 1}, 3_000)
    turns.enqueue("q", b"new")
    assert turns.consume("q", prefetch=2).keys() == [b"deep", b"new"]


def test_a_lone_key_gets_everything() -> None:
    turns = queue_with({b"a": 1}, 50)
    assert len(turns.consume("q", prefetch=50).ids()) == 50


def test_keys_that_run_out_leave_their_share_to_the_others() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=2, weight=3)
    turns.enqueue("q", b"b", count=6)
    assert served(turns, 8) == b"aabbbbbb"


def test_an_emptied_key_leaves_with_deficit_zero() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=1, weight=5)
    turns.enqueue("q", b"b", count=8)
    outcome = turns.consume("q", prefetch=1)  # a sent 1 of 5 and is empty
    key = turns.queue("q").keys[b"a"]
    assert (key.deficit, key.active) == (0, False)
    outcome = turns.turn(turns.messages("q", b"a", count=9, weight=2), Ack("q", outcome.ids(), 1))
    keys = outcome.keys()
    while len(keys) < 7:
        outcome = turns.ack("q", outcome.ids())
        keys += outcome.keys()
    # It saved nothing of the four it did not send, and stands behind b.
    assert b"".join(keys) == b"baabaab"


# --- weights


def test_the_weight_is_that_of_the_newest_message() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=10, weight=1)
    turns.enqueue("q", b"b", count=10, weight=1)
    turns.enqueue("q", b"a", count=1, weight=4)
    assert served(turns, 10) == b"aaaabaaaab"


def test_a_weight_below_one_counts_as_one() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=4, weight=0)
    turns.enqueue("q", b"b", count=4, weight=-3)
    assert served(turns, 6) == b"ababab"
    assert turns.queue("q").ring.weight == 2


def test_a_new_weight_counts_from_the_next_visit() -> None:
    turns = queue_with({b"a": 3, b"b": 1}, 20)
    first = turns.consume("q", prefetch=1)  # one of a's three
    outcome = turns.turn(turns.messages("q", b"a", weight=1), Ack("q", first.ids(), 1))
    keys = outcome.keys()
    while len(keys) < 7:
        outcome = turns.ack("q", outcome.ids())
        keys += outcome.keys()
    assert b"".join(keys) == b"aababab"


def test_a_retry_does_not_change_the_weight() -> None:
    turns = Turns()
    turns.create("q")
    (old,) = turns.enqueue("q", b"a", weight=7)
    turns.consume("q", prefetch=1)
    turns.enqueue("q", b"a", weight=2)
    turns.nack("q", [old])
    assert turns.queue("q").keys[b"a"].weight == 2


# --- lanes of one key


def test_among_the_lanes_of_one_key_the_oldest_message_goes_first() -> None:
    turns = Turns()
    turns.create("q")
    lanes = [(), (b"x",), (b"y",), (b"x",), (), (b"y",), ()]
    ids = []
    for throttle in lanes:
        ids += turns.enqueue("q", b"a", throttle=throttle)
        turns.wait(1_000)
    assert turns.drain("q").ids() == ids


def test_the_lanes_of_a_key_share_its_weight() -> None:
    turns = Turns()
    turns.create("q")
    for throttle in ((), (b"x",), (b"y",)):
        turns.enqueue("q", b"a", count=4, weight=2, throttle=throttle)
    turns.enqueue("q", b"b", count=8)
    assert served(turns, 9) == b"aabaabaab"


def test_a_lane_that_empties_at_the_end_of_a_visit_ends_the_visit() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=1, weight=1, throttle=(b"x",))
    turns.wait(1_000)
    turns.enqueue("q", b"a", count=3, weight=1)
    turns.enqueue("q", b"b", count=3)
    assert served(turns, 6) == b"ababab"


def test_a_short_bucket_parks_only_its_own_lane() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("x", 0, 1)
    stuck = turns.enqueue("q", b"a", count=3, throttle=(b"x",))
    free = turns.enqueue("q", b"a", count=3)
    other = turns.enqueue("q", b"b", count=3)
    got = turns.consume("q", prefetch=100).ids()
    assert set(got) == {stuck[0], *free, *other}


# --- keys behind a short bucket


def shares_behind_a_bucket(weights: dict[bytes, int], seconds: int) -> dict[bytes, int]:
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    turns.limit("t", 1, 1)
    for key, weight in weights.items():
        turns.enqueue("q", key, count=seconds * 2, weight=weight, throttle=(b"t",))
    turns.consume("q", prefetch=10_000)
    turns.wait(seconds * SECOND)
    counts = dict.fromkeys(weights, 0)
    for _, lane, _, _ in turns.queue("q").leased.values():
        counts[lane.key.name] += 1
    return counts


def test_a_visit_resumed_behind_a_short_bucket_keeps_the_weights_three_to_one() -> None:
    counts = shares_behind_a_bucket({b"a": 3, b"b": 1}, 400)
    assert sum(counts.values()) in (400, 401)
    assert counts[b"b"] in (100, 101)


def test_weights_hold_among_many_keys_behind_one_bucket() -> None:
    weights = {b"a": 3, b"b": 1, b"c": 2, b"d": 4}
    counts = shares_behind_a_bucket(weights, 500)
    visits = [counts[key] / weight for key, weight in weights.items()]
    assert max(visits) - min(visits) <= 1


def test_a_key_behind_a_short_bucket_does_not_hold_up_the_others() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 0)
    turns.enqueue("q", b"a", count=5, weight=9, throttle=(b"t",))
    turns.enqueue("q", b"b", count=5)
    assert turns.consume("q", prefetch=100).keys() == [b"b"] * 5


def test_a_key_emptied_while_parked_leaves_with_deficit_zero() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", b"a", count=3, weight=5, throttle=(b"t",))
    turns.consume("q", prefetch=3)
    turns.nack("q", ids, DEAD_LETTER)
    turns.limit("t", 0, 1)
    turns.consume("q.dlq", "d", prefetch=3)  # sends one of five, then parks
    assert turns.redrive("q.dlq", 2, key=b"z").replies == [2]
    assert turns.queue("q.dlq").keys[b"a"].deficit == 0


def test_a_weight_beyond_the_limit_counts_as_the_limit_and_a_lower_limit_as_soon_as_set() -> None:
    turns = Turns(settings=Settings(weight_max=3))
    turns.create("q")
    turns.enqueue("q", b"a", count=20, weight=4_000_000)
    turns.enqueue("q", b"b", count=20, weight=1)
    outcome = turns.consume("q", prefetch=8)
    assert b"".join(outcome.keys()) == b"aaabaaab"
    again = turns.restart(settings=Settings(weight_max=2))
    assert again.queue("q").keys[b"a"].weight == 2


class StubLane:
    """A lane, as far as its key looks."""

    def __init__(self, number: int, stamp: int) -> None:
        self.number = number
        self.stamp = stamp
        self.stands = self.lost_since = self.head_active_ns = 0

    def head_stamp(self) -> int:
        return self.stamp


@given(
    steps=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 30)), max_size=120),
    bulk=st.booleans(),
)
def test_the_lane_with_the_oldest_head_is_the_candidate_whatever_came_and_went(
    steps: list[tuple[int, int]], bulk: bool
) -> None:
    key = FairnessKey(b"k")
    lanes: list[Any] = [StubLane(number, number) for number in range(12)]
    standing: dict[int, Any] = {}
    if bulk:
        standing = dict(enumerate(lanes))
        key.add_lanes(lanes, 0)
    for number, stamp in steps:
        lane = lanes[number]
        if number in standing and key.lane is lanes[number] and stamp % 2:
            lanes[number].stamp = stamp
            key.reorder(0)
        elif number in standing:
            del standing[number]
            key.drop_lane(lane, 0)
        else:
            lane.stamp = stamp
            standing[number] = lane
            key.add_lane(lane, 0)
        stamps = [one.stamp for one in standing.values()]
        assert (key.lane.head_stamp() if key.lane else None) == min(stamps, default=None)
        others = sorted([one.number for one in key.standing()])
        own = [] if key.lane is None else [key.lane.number]
        assert sorted([*others, *own]) == sorted(standing)
        assert bool(key.others) == bool(others)
    key.drop_lanes(0)
    assert key.lane is None and not key.others


def test_a_lane_of_many_comes_and_goes_without_a_look_at_the_others() -> None:
    key = FairnessKey(b"k")
    lanes: list[Any] = [StubLane(number, number) for number in range(2_000)]
    key.add_lanes(lanes, 0)
    compared = 0

    class Stamp(int):
        def __lt__(self, other: int) -> bool:
            nonlocal compared
            compared += 1
            return int(self) < other

    for round in range(5):
        for lane in reversed(lanes[1:]):
            key.drop_lane(lane, 0)
            lane.stamp = Stamp(lane.number + round)
            key.add_lane(lane, 0)
            assert len(key.others) <= 2 * (len(lanes) + 64)
    assert compared < 5 * 2_000 * 50, "a few steps of a heap for each, and a sweep now and then"
