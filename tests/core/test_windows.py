"""Memory for windows belongs to lanes that are being delivered, whatever else was there before."""

from __future__ import annotations

import gc

import pytest

from fila.core import rows
from fila.core.command import Ack, DeleteQueue
from fila.core.entry import ENTRY_BYTES
from fila.core.fairness import NO_OTHERS, FairnessKey
from fila.core.lane import NO_BUCKETS, NO_WINDOW, Lane
from fila.core.settings import Settings
from fila.core.windows import Windows
from fila.storage.memory import MemoryStore
from tests.core.turn import MS, SECOND, Turns

BODY = 600
COST = ENTRY_BYTES + BODY
LIMIT = 64 * COST
SMALL = Settings(
    window_bytes_total=LIMIT, window_messages=32, page_messages=16, page_bytes=16 * BODY
)


class CountingStore(MemoryStore):
    """How often messages were read, and how many."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.rows = 0

    def get(self, family: int, key: bytes) -> bytes | None:
        self.reads += family == rows.MESSAGES
        return super().get(family, key)

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        found = super().scan(family, start, end, rows_max, bytes_max)
        if family == rows.MESSAGES:
            self.reads += 1
            self.rows += len(found)
        return found


def windows(turns: Turns) -> Windows:
    found = turns.machine.state.windows
    assert found.bytes <= found.limit
    return found


def lane_of(turns: Turns, queue: str, key: bytes = b"k") -> Lane:
    (lane,) = turns.queue(queue).keys[key].lanes.values()
    return lane


def fill_idle(turns: Turns, queue: str = "idle", keys: int = 10, each: int = 32) -> None:
    """More than fits, in a queue nobody consumes."""
    turns.create(queue)
    for at in range(keys):
        turns.enqueue(queue, b"idle-%d" % at, count=each, body_bytes=BODY)


def lifecycles(turns: Turns, queue: str, count: int, batch: int = 4) -> None:
    """Enqueue, deliver, ack; then the same again."""
    turns.consume(queue, prefetch=batch)
    held: list[bytes] = []
    for at in range(count):
        turns.now += MS
        more = turns.messages(queue, b"k%d" % (at % 3), count=batch, body_bytes=BODY)
        held = turns.turn(more, Ack(queue, held, 1)).ids()
        assert len(held) == batch


# --- what is idle costs the others nothing


@pytest.mark.parametrize("keys", [1, 10, 200])
def test_messages_that_go_at_once_are_never_read_whatever_is_idle(keys: int) -> None:
    store = CountingStore()
    turns = Turns(SMALL, store)
    fill_idle(turns, keys=keys)
    assert windows(turns).bytes > LIMIT * 15 // 16 - COST or keys == 1
    turns.create("busy")
    lifecycles(turns, "busy", 100)
    assert store.reads == 0
    windows(turns)


@pytest.mark.parametrize("keys", [1, 10, 200])
def test_a_backlog_is_read_in_as_few_pages_as_with_nothing_idle(keys: int) -> None:
    reads = []
    for idle in (0, keys):
        store = CountingStore()
        turns = Turns(SMALL, store)
        if idle:
            fill_idle(turns, keys=idle)
        turns.create("busy")
        ids = turns.enqueue("busy", count=400, body_bytes=BODY)
        turns.consume("busy", prefetch=5)
        store.reads = store.rows = 0
        got: list[bytes] = []
        held = turns.ack("busy", []).ids() or list(turns.queue("busy").leased)
        while held:
            got += held
            turns.now += MS
            held = turns.ack("busy", held).ids()
            windows(turns)
        assert got == ids
        reads.append((store.reads, store.rows))
    alone, beside = reads
    assert beside[0] <= alone[0] * 1.2 + 2  # before its first turn it had no room for a window
    assert beside[1] <= alone[1] * 1.2 + 32


def test_many_queues_that_deliver_all_get_pages_of_a_useful_size() -> None:
    store = CountingStore()
    turns = Turns(SMALL, store)
    fill_idle(turns)
    names = [f"q{at}" for at in range(4)]
    left = {}
    for name in names:
        turns.create(name)
        left[name] = turns.enqueue(name, count=100, body_bytes=BODY)
        turns.consume(name, prefetch=1)
    store.reads = store.rows = 0
    for _ in range(100):
        turns.now += MS
        for name in names:
            turns.ack(name, left[name][:1])
            left[name].pop(0)
        windows(turns)
    assert not any(left.values())
    # A share is 64 × 15/16 / 4 messages, half of it a page: 7 rows at least.
    assert store.reads <= 400 / 7 + 8
    assert store.rows <= 400 * 1.25


# --- who gives back


def test_a_queue_that_delivers_nothing_any_more_gives_back() -> None:
    turns = Turns(SMALL._replace(window_idle_ms=1_000))
    turns.create("first")
    turns.enqueue("first", count=32, body_bytes=BODY)
    turns.consume("first", prefetch=1)
    turns.create("second")
    turns.wait(SECOND)  # two windows of 32 messages have room, and no third
    for at in range(3):
        turns.enqueue("second", b"k%d" % at, count=32, body_bytes=BODY)
    turns.consume("second", prefetch=1)
    assert lane_of(turns, "first").window
    turns.wait(SECOND)
    turns.ack("second", list(turns.queue("second").leased))
    for at in range(3):
        turns.enqueue("second", b"more-%d" % at, count=32, body_bytes=BODY)
    assert not lane_of(turns, "first").window
    assert lane_of(turns, "first").pending == 31
    windows(turns)


def test_a_queue_that_delivers_keeps_its_share_whatever_another_enqueues() -> None:
    turns = Turns(SMALL)
    turns.create("quiet")
    turns.enqueue("quiet", count=20, body_bytes=BODY)
    turns.consume("quiet", prefetch=1)
    turns.create("loud")
    turns.consume("loud", prefetch=1)
    for at in range(20):
        turns.enqueue("loud", b"k%d" % at, count=32, body_bytes=BODY)
    assert len(lane_of(turns, "quiet").window) == 19
    windows(turns)


def test_a_lane_that_has_more_than_its_share_gives_to_one_that_has_less() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    turns.consume("q", prefetch=1)
    for at in range(2):
        turns.enqueue("q", b"large-%d" % at, count=32, body_bytes=BODY)
    assert windows(turns).bytes > LIMIT * 14 // 16
    turns.enqueue("q", b"small", count=12, body_bytes=BODY)
    assert len(lane_of(turns, "q", b"small").window) == 12
    held = [len(lane_of(turns, "q", b"large-%d" % at).window) for at in range(2)]
    assert 20 <= min(held) < 28  # a third of what there is, at least
    windows(turns)


def test_what_cannot_go_now_gives_back_before_what_can() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    turns.consume("q", prefetch=1)
    turns.enqueue("q", b"delayed", count=30, body_bytes=BODY, delay_ms=60_000)
    turns.enqueue("q", b"ready", count=28, body_bytes=BODY)
    kept = len(lane_of(turns, "q", b"ready").window)
    turns.enqueue("q", b"small", count=10, body_bytes=BODY)
    assert not lane_of(turns, "q", b"delayed").window
    assert len(lane_of(turns, "q", b"ready").window) == kept == 27
    assert len(lane_of(turns, "q", b"small").window) == 10


def test_a_queue_nobody_consumes_takes_nothing_from_anybody() -> None:
    turns = Turns(SMALL)
    fill_idle(turns, "first")
    before = turns.queue("first").windowed.count
    fill_idle(turns, "second")
    assert turns.queue("first").windowed.count == before
    assert not lane_of(turns, "second", b"idle-9").window


def test_what_was_taken_back_is_delivered_in_order_when_its_time_comes() -> None:
    turns = Turns(SMALL)
    turns.create("idle")
    ids = turns.enqueue("idle", count=50, body_bytes=BODY)
    late = turns.enqueue("idle", body_bytes=BODY, delay_ms=3_000)
    turns.create("busy")
    turns.consume("busy", prefetch=1)
    for at in range(40):
        turns.enqueue("busy", b"k%d" % at, count=4, body_bytes=BODY)
    assert not lane_of(turns, "idle").window
    early = turns.enqueue("idle", body_bytes=BODY)
    assert turns.drain("idle").ids() == [*ids, *early]
    assert turns.wait(3 * SECOND).ids() == late


def test_a_message_larger_than_all_windows_together_is_delivered() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    turns.enqueue("q", count=2, body_bytes=BODY)
    big = turns.messages("q", count=2, body_bytes=LIMIT + 1)
    turns.turn(big)
    windows(turns)
    got = turns.drain("q").entries()
    assert [entry[8] for entry in got[2:]] == big.bodies


def test_a_deleted_queue_leaves_nothing_behind() -> None:
    turns = Turns(SMALL)
    fill_idle(turns)
    turns.create("busy")
    turns.enqueue("busy", count=4, body_bytes=BODY)
    turns.consume("busy", prefetch=1)
    turns.turn(DeleteQueue("idle"), DeleteQueue("busy"))
    assert windows(turns).bytes == 0
    turns.create("again")
    lifecycles(turns, "again", 40)


# --- the price of taking back


def test_taking_back_looks_at_few_lanes_per_message() -> None:
    """Room is taken back in steps of a sixteenth, so a look is shared by many messages."""
    turns = Turns(SMALL._replace(window_bytes_total=100 * LIMIT))
    fill_idle(turns, keys=400)
    turns.create("busy")
    turns.consume("busy", prefetch=1)
    taken = 0
    before = turns.machine.state.windows.bytes
    for at in range(300):
        turns.enqueue("busy", b"k%d" % at, count=4, body_bytes=BODY)
        now = turns.machine.state.windows.bytes
        taken += now < before
        before = now
    assert taken <= 4


# --- keys that come and go


def test_keys_that_are_forgotten_leave_nothing_behind() -> None:
    turns = Turns(Settings(idle_lanes=10))
    turns.create("q")
    turns.consume("q", prefetch=1_000)
    for first in range(0, 8_000, 100):
        turns.now += MS
        more = [turns.messages("q", b"k%d" % at) for at in range(first, first + 100)]
        turns.ack("q", turns.turn(*more).ids())
    queue = turns.queue("q")
    assert len(queue.keys) <= 11
    gc.collect()
    found = gc.get_objects()
    # Forgotten ones may be mentioned in the ledger until there are enough of them.
    assert sum(isinstance(one, Lane) and one.queue is queue for one in found) <= 2_600
    assert sum(isinstance(one, FairnessKey) and one.number > 0 for one in found) <= 2_600


def test_what_forgotten_keys_were_served_still_counts() -> None:
    turns = Turns(Settings(idle_lanes=1))
    turns.create("q")
    turns.consume("q", prefetch=1_000)
    for at in range(500):
        key = b"busy" if at % 10 == 0 else b"k%d" % at
        turns.ack("q", turns.turn(turns.messages("q", key)).ids())
    served = turns.queue("q").service.since(turns.now - SECOND, turns.now + 1)
    assert served.served == 500
    assert served.keys[b"busy"] == 50


def test_lanes_without_messages_share_what_is_empty() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q")
    for at in range(3):
        turns.ack("q", turns.turn(turns.messages("q", b"k%d" % at)).ids())
    assert not NO_WINDOW and not NO_BUCKETS and not NO_OTHERS
