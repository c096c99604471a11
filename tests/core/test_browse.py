from __future__ import annotations

from collections.abc import Generator

from hypothesis import given
from hypothesis import strategies as st

from fila.core import browse, rows
from fila.core.browse import (
    BROWSE_ALL,
    BROWSE_DELAYED,
    BROWSE_LEASED,
    BROWSE_READY,
    STEP_LANES,
    Seen,
    Snapshot,
    count,
    ranges,
)
from fila.core.command import Lease, Nack, Release
from fila.core.entry import message_id, ready_ns
from fila.core.rejection import QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.verdict import RETRY_NOW
from fila.core.view import Browsing
from tests.core.turn import MS, Turns

MANY = 1 << 40


def drained(steps: Generator[int, None, Browsing | Rejection] | Rejection) -> object:
    """What the steps end with."""
    assert not isinstance(steps, Rejection)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def frozen(steps: Generator[int, None, Browsing | Rejection] | Rejection) -> Browsing:
    found = drained(steps)
    assert isinstance(found, Browsing)
    return found


def opened(turns: Turns, queue: str = "q") -> Snapshot:
    state = turns.machine.state
    return Snapshot(turns.store.snapshot(), state.queues[queue], state.now)


def read(
    turns: Turns,
    key: bytes | None = None,
    parts: int = 1,
    states: int = BROWSE_ALL,
    rows_max: int = MANY,
) -> list[list[Seen]]:
    """What each range holds, page by page."""
    snapshot = opened(turns)
    found = []
    for start, end in ranges(turns.queue("q"), key, parts):
        seen: list[Seen] = []
        while start:
            page = snapshot.page(start, end, states, rows_max, MANY)
            seen += page.messages
            start = page.next
        found.append(seen)
    return found


def ids(seen: list[Seen]) -> list[bytes]:
    return [message_id(one.entry) for one in seen]


def test_every_message_is_seen_once_in_its_state() -> None:
    turns = Turns()
    turns.create("q")
    leased = turns.enqueue("q", b"a", 2, weight=3, throttle=(b"t",))
    turns.turn(Lease("q", "s/0", 1, 2))
    ready = turns.enqueue("q", b"b", 3)
    (late,) = turns.enqueue("q", b"a", delay_ms=500)
    (seen,) = read(turns)
    by_state: dict[int, list[bytes]] = {}
    for one in seen:
        by_state.setdefault(one.state, []).append(message_id(one.entry))
    assert by_state == {BROWSE_LEASED: leased, BROWSE_READY: ready, BROWSE_DELAYED: [late]}
    assert seen[0].lane.fairness_key == b"a"
    assert seen[0].lane.throttle_keys == (b"t",)
    (delayed,) = read(turns, states=BROWSE_DELAYED)[0]
    assert ready_ns(delayed.entry) == turns.now + 500 * MS
    assert ids(read(turns, b"b")[0]) == ready
    assert read(turns, b"nobody") == []
    assert count(turns.queue("q"), None) == 6
    assert count(turns.queue("q"), b"a") == 3


def test_a_retried_and_a_released_message_are_ready_not_leased() -> None:
    turns = Turns()
    turns.create("q")
    first, second, third = turns.enqueue("q", count=3)
    turns.consume("q", "c", prefetch=3)
    turns.leave("q", "c")
    turns.turn(Nack("q", [first], ["no"], [RETRY_NOW], 1), Release("q", [second], 1))
    assert set(ids(read(turns, states=BROWSE_READY)[0])) == {first, second}
    assert ids(read(turns, states=BROWSE_LEASED)[0]) == [third]


def test_a_snapshot_does_not_see_what_comes_later() -> None:
    turns = Turns()
    turns.create("q")
    before = turns.enqueue("q", count=5)
    snapshot = opened(turns)
    turns.drain("q")
    turns.enqueue("q", count=2)
    prefix = rows.queue_prefix(turns.queue("q").number)
    page = snapshot.page(prefix, rows.after(prefix), BROWSE_ALL, MANY, MANY)
    assert ids(page.messages) == before
    assert {one.state for one in page.messages} == {BROWSE_READY}


def test_a_page_never_leaves_its_queue() -> None:
    turns = Turns()
    turns.create("p")
    turns.create("q")
    turns.create("r")
    for name in ("p", "q", "r"):
        turns.enqueue(name, count=2)
    page = opened(turns).page(b"", b"\xff" * 40, BROWSE_ALL, MANY, MANY)
    assert len(page.messages) == 2
    assert opened(turns).page(b"\xff" * 8, b"\xff" * 9, BROWSE_ALL, MANY, MANY) == browse.Page(
        [], b""
    )


@given(
    lanes=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), min_size=1, max_size=6),
    parts=st.integers(1, 12),
    rows_max=st.integers(1, 9),
    taken=st.integers(0, 20),
)
def test_ranges_hold_everything_once_whatever_their_number(
    lanes: list[tuple[int, int]], parts: int, rows_max: int, taken: int
) -> None:
    turns = Turns(Settings(delivery_messages=4))
    turns.create("q")
    for number, (messages, throttle) in enumerate(lanes):
        turns.now += 1_000 * (number % 3)
        turns.enqueue("q", b"k%d" % (number % 4), messages, throttle=(b"t",) * (throttle == 3))
    turns.turn(Lease("q", "s/0", 1, max(taken, 1)))
    found = read(turns, None, parts, rows_max=rows_max)
    everything = [id for part in found for id in ids(part)]
    total = sum(messages for messages, _ in lanes)
    assert len(everything) == len(set(everything)) == total
    edges = ranges(turns.queue("q"), None, parts)
    assert [end for _, end in edges[:-1]] == [start for start, _ in edges[1:]]
    assert len(edges) <= parts + 1
    one_key = [id for part in read(turns, b"k0", parts, rows_max=rows_max) for id in ids(part)]
    of_key = sum(messages for number, (messages, _) in enumerate(lanes) if number % 4 == 0)
    assert len(one_key) == len(set(one_key)) == of_key


def test_a_key_in_more_lanes_than_a_reply_can_count_is_refused_and_the_queue_is_not() -> None:
    turns = Turns(Settings(browse_ranges_max=3))
    turns.create("q")
    for number in range(4):
        turns.enqueue("q", b"k", throttle=(b"t%d" % number,))
    turns.enqueue("q", b"other")
    view = turns.machine.view
    refused = view.browse("q", b"k", 1)
    assert isinstance(refused, Rejection)
    assert "4 lanes" in refused.message and "browse the whole queue" in refused.message
    whole = frozen(view.browse("q", None, 1))
    assert whole.messages == 5
    one = frozen(view.browse("q", b"other", 1))
    assert len(one.ranges) == 1


def test_ranges_of_many_lanes_are_found_in_steps_whatever_happens_between_them() -> None:
    turns = Turns(Settings(idle_lanes=1))
    turns.create("q")
    total = 3 * STEP_LANES + 10
    ids = [turns.enqueue("q", b"k%d" % at)[0] for at in range(total)]
    steps = turns.machine.view.browse("q", None, 7)
    assert not isinstance(steps, Rejection)
    looked = [next(steps)]
    turns.consume("q", prefetch=40)
    turns.ack("q", ids[:30])  # their lanes are forgotten
    turns.enqueue("q", b"new")
    while True:
        try:
            looked.append(next(steps))
        except StopIteration as end:
            found = end.value
            break
    assert isinstance(found, Browsing) and found.messages == total
    assert max(looked) <= STEP_LANES and len(looked) == 6
    assert [end for _, end in found.ranges[:-1]] == [start for start, _ in found.ranges[1:]]
    pages = [found.snapshot.page(*one, BROWSE_ALL, MANY, MANY) for one in found.ranges]
    seen = [message_id(one.entry) for page in pages for one in page.messages]
    assert sorted(seen) == sorted(ids), "as of the moment it was asked for"
    assert max([len(page.messages) for page in pages]) < total // 3


def test_a_queue_that_is_deleted_while_it_is_frozen_is_not_found() -> None:
    turns = Turns()
    turns.create("q")
    for at in range(STEP_LANES):
        turns.enqueue("q", b"k%d" % at)
    steps = turns.machine.view.browse("q", None, 7)
    assert not isinstance(steps, Rejection)
    next(steps)
    turns.delete("q")
    refused = drained(steps)
    assert isinstance(refused, Rejection) and refused.code == QUEUE_NOT_FOUND
