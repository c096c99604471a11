from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core import rows
from fila.core.command import Ack, Enqueue
from fila.core.entry import ENTRY_BYTES, Entry, entry_of, row_of
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.lease import Lease
from fila.core.queue import Group, Queue
from fila.core.rejection import OK
from fila.core.rows import QueueRow
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import SECOND, START, Turns, id_of


def lane_of(number: int = 1) -> Lane:
    queue = Queue("q", QueueRow(1, 1, 30_000, START, None, None), Group(1), START)
    return Lane(queue, FairnessKey(b"k"), number, ())


def entry(stamp: int, body: bytes = b"body") -> Entry:
    key = rows.MESSAGE_KEY.pack(1, 1, stamp, id_of(stamp))
    return (key, stamp, 0, 1, START, START, 0, 0, body, 0, 0)


def row(stamp: int) -> tuple[bytes, bytes]:
    one = entry(stamp)
    return one[0], row_of(one)


def insert(lane: Lane, one: Entry, window_messages: int, room: bool) -> int:
    return lane.insert(one, window_messages, room, START, {})


def page(lane: Lane, rows: list[tuple[bytes, bytes]], complete: bool, room: int = 1 << 40) -> int:
    return lane.page(rows, complete, room, START, {})


def stamps(entries: object) -> list[int]:
    return [one[1] for one in entries]  # type: ignore[attr-defined]


# --- the window


def test_messages_stand_in_the_window_in_stamp_order() -> None:
    lane = lane_of()
    for stamp in (10, 30, 20, 40, 5):
        insert(lane, entry(stamp), 100, room=True)
    assert stamps(lane.window) == [5, 10, 20, 30, 40]
    assert lane.horizon == b""


def test_the_window_knows_its_bytes() -> None:
    lane = lane_of()
    grown = sum(insert(lane, entry(stamp, b"x" * stamp), 100, room=True) for stamp in (3, 1, 2))
    assert grown == lane.window_bytes == 3 * ENTRY_BYTES + 6


def test_a_message_beyond_a_full_window_is_left_to_the_store() -> None:
    lane = lane_of()
    for stamp in (1, 2, 3):
        insert(lane, entry(stamp), 2, room=True)
    assert stamps(lane.window) == [1, 2]
    assert lane.horizon == entry(2)[0]
    assert stamps(lane.unflushed) == [3]


def test_behind_a_horizon_everything_is_left_to_the_store() -> None:
    lane = lane_of()
    for stamp in (1, 2, 3):
        insert(lane, entry(stamp), 2, room=True)
    lane.window.popleft()
    assert insert(lane, entry(4), 2, room=True) == 0
    assert stamps(lane.window) == [2]


def test_a_message_from_before_the_horizon_finds_its_place_in_the_window() -> None:
    lane = lane_of()
    for stamp in (10, 20, 30):
        insert(lane, entry(stamp), 2, room=True)
    lane.window.popleft()
    insert(lane, entry(15), 2, room=True)
    assert stamps(lane.window) == [15, 20]


def test_an_overfull_window_is_cut_and_what_is_cut_is_found_again() -> None:
    lane = lane_of()
    for stamp in (10, 20, 30, 40):
        insert(lane, entry(stamp), 4, room=True)
    insert(lane, entry(5), 4, room=True)
    assert stamps(lane.window) == [5, 10]
    assert lane.horizon == entry(10)[0]
    assert sorted(stamps(lane.unflushed)) == [20, 30, 40]
    assert lane.window_bytes == 2 * (ENTRY_BYTES + 4)


def test_without_room_a_lane_leaves_everything_to_the_store() -> None:
    lane = lane_of()
    lane.delivered = entry(5)[0]
    insert(lane, entry(10), 100, room=False)
    insert(lane, entry(20), 100, room=False)
    assert not lane.window
    assert stamps(lane.unflushed) == [10, 20]
    assert lane.horizon < entry(10)[0]
    assert lane.head_stamp() == 10


def test_without_room_only_what_was_handed_back_stays_and_not_its_body() -> None:
    lane = lane_of()
    lane.delivered = entry(5)[0]
    fresh: dict[bytes, bytes] = {}
    lane.insert(entry(4), 100, False, START, fresh)
    lane.insert(entry(10), 100, False, START, fresh)
    assert [(one[1], one[8]) for one in lane.window] == [(4, b"")]
    assert lane.window_bytes == 0
    assert fresh == {entry(4)[0]: b"body"}
    assert lane.horizon == entry(5)[0]


# --- cutting


def test_a_cut_leaves_the_newest_messages_to_the_store() -> None:
    lane = lane_of()
    for stamp in (1, 2, 3, 4):
        insert(lane, entry(stamp), 100, room=True)
    freed = lane.cut(100, 2 * (ENTRY_BYTES + 4), START + 1, {})
    assert stamps(lane.window) == [1, 2]
    assert lane.horizon == entry(2)[0]
    assert freed == 2 * (ENTRY_BYTES + 4) == lane.window_bytes
    assert not lane.unflushed


def test_what_is_cut_in_the_turn_it_came_is_remembered_until_it_is_stored() -> None:
    lane = lane_of()
    for stamp in (1, 2, 3):
        insert(lane, entry(stamp), 100, room=True)
    lane.cut(1, lane.window_bytes, START, {})
    assert sorted(stamps(lane.unflushed)) == [2, 3]


@pytest.mark.parametrize("delayed", [False, True])
def test_a_lane_cut_to_nothing_still_knows_its_head(delayed: bool) -> None:
    lane = lane_of()
    one = entry(7)
    insert(lane, (*one[:6], -1 if delayed else 0, *one[7:]), 100, room=True)
    insert(lane, entry(8), 100, room=True)
    lane.pending = 2
    stored = lane.stored_head()
    lane.cut(0, 0, START + 1, {})
    assert not lane.window
    assert lane.window_bytes == 0
    assert (lane.head_stamp(), lane.head_has_delay()) == (7, delayed)
    assert lane.stored_head() == stored
    page(lane, [row(7), row(8)], complete=True)
    assert stamps(lane.window) == [7, 8]


def test_a_cut_takes_only_the_bodies_of_what_was_handed_back() -> None:
    lane = lane_of()
    for stamp in (1, 2, 9):
        insert(lane, entry(stamp), 100, room=True)
    lane.delivered = entry(5)[0]
    fresh: dict[bytes, bytes] = {}
    lane.cut(0, 0, START, fresh)
    assert [(one[1], one[8]) for one in lane.window] == [(1, b""), (2, b"")]
    assert lane.horizon == entry(5)[0]
    assert fresh == {entry(1)[0]: b"body", entry(2)[0]: b"body"}
    assert lane.cut(0, 0, START, {}) == 0


# --- paging


def test_a_page_continues_where_the_window_ended() -> None:
    lane = lane_of()
    lane.horizon = entry(2)[0]
    grown = page(lane, [row(3), row(4)], complete=False)
    assert stamps(lane.window) == [3, 4]
    assert lane.horizon == entry(4)[0]
    assert grown == lane.window_bytes == 2 * (ENTRY_BYTES + 4)


def test_the_last_page_lifts_the_horizon() -> None:
    lane = lane_of()
    lane.horizon = entry(2)[0]
    page(lane, [row(3)], complete=True)
    assert lane.horizon == b""


def test_leased_messages_are_not_paged_in_again() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    lease = Lease(1, lane.queue, None, START, [])
    lane.queue.leased[id_of(3)] = (lease, lane, entry(3)[0], 4)
    page(lane, [row(2), row(3), row(4)], complete=True)
    assert stamps(lane.window) == [2, 4]


def test_messages_of_this_turn_are_merged_into_the_page_they_belong_to() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    lane.unflushed = [entry(5), entry(3), entry(9)]
    page(lane, [row(2), row(4), row(6)], complete=False)
    assert stamps(lane.window) == [2, 3, 4, 5, 6]
    assert stamps(lane.unflushed) == [9]


def test_the_last_page_takes_all_messages_of_this_turn() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    lane.unflushed = [entry(9), entry(3)]
    page(lane, [row(2)], complete=True)
    assert stamps(lane.window) == [2, 3, 9]
    assert not lane.unflushed


def test_a_message_both_in_the_store_and_of_this_turn_comes_once() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    lane.unflushed = [entry(3)]
    page(lane, [row(2), row(3)], complete=True)
    assert stamps(lane.window) == [2, 3]


def test_of_a_page_stays_what_there_is_room_for() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    lane.unflushed = [entry(5)]
    room = 2 * (ENTRY_BYTES + 4) + 100
    assert page(lane, [row(2), row(3), row(4)], complete=True, room=room) == room - 100
    assert stamps(lane.window) == [2, 3]
    assert lane.horizon == entry(3)[0]
    assert stamps(lane.unflushed) == [4, 5]


def test_of_a_page_without_room_the_head_stays_without_its_body() -> None:
    lane = lane_of()
    lane.horizon = entry(1)[0]
    assert page(lane, [row(2), row(3)], complete=True, room=10) == 0
    assert [(one[1], one[8]) for one in lane.window] == [(2, b"")]
    assert lane.horizon == entry(2)[0]


def test_where_a_restart_begins_to_read_lies_at_or_before_every_pending_message() -> None:
    lane = lane_of()
    lane.tail = 77
    assert lane.head_stamp() == 77
    insert(lane, entry(10), 1, room=True)
    insert(lane, entry(20), 1, room=True)
    assert lane.head_stamp() == 10
    lane.window.popleft()
    assert lane.head_stamp() == 10


# --- rows


def test_a_pending_message_survives_being_stored() -> None:
    one: Entry = (entry(7)[0], 7, 3, 9, START, START + 1, -1, 5, b"\0\0\0\0\0\1x", 6, 4)
    assert entry_of(one[0], row_of(one)) == one


def test_a_message_of_another_version_is_refused() -> None:
    key, value = row(1)
    with pytest.raises(rows.CorruptRowError, match="version 3; this Fila reads versions 1 and 2"):
        entry_of(key, b"\3" + value[1:])


def test_a_message_of_the_version_before_busy_clocks_is_read_as_if_they_stood_at_zero() -> None:
    key, value = row(1)
    before = b"\1" + value[1:41] + value[57:]
    assert entry_of(key, before) == entry(1)
    assert rows.message_row(before) == value


# --- a lane of a whole machine, whatever the size of its window

SMALL = Settings(window_messages=3, page_messages=2)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("page", [1, 2, 5])
def test_a_deep_lane_is_delivered_in_order_and_completely(window: int, page: int) -> None:
    turns = Turns(Settings(window_messages=window, page_messages=page))
    turns.create("q")
    ids = [id for _ in range(10) for id in turns.enqueue("q", count=4)]
    assert turns.drain("q").ids() == ids


def test_a_lane_takes_new_messages_in_the_turn_in_which_its_window_runs_dry() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    ids = turns.enqueue("q", count=8)
    turns.consume("q", prefetch=5)
    late = turns.messages("q", count=4)
    outcome = turns.turn(late, Ack("q", ids[:5], 1))
    assert outcome.ids() == ids[5:] + late.ids[:2]
    assert turns.ack("q", ids[5:]).ids() == late.ids[2:]


def test_messages_enqueued_and_delivered_in_one_turn_need_no_store() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    turns.consume("q", prefetch=100)
    command = turns.messages("q", count=20)
    outcome = turns.turn(command)
    assert outcome.ids() == command.ids
    assert [one[8] for one in outcome.entries()] == command.bodies


def test_delayed_messages_stand_at_their_time_among_those_paged_in() -> None:
    turns = Turns(SMALL)
    turns.create("q")
    first = turns.enqueue("q", count=4)
    (delayed,) = turns.enqueue("q", delay_ms=1_000)
    turns.wait(500_000_000)
    second = turns.enqueue("q", count=4)
    turns.wait(500_000_000)
    third = turns.enqueue("q", count=4)
    got = turns.drain("q").ids()
    assert got == [*first, *second, delayed, *third]


def test_bodies_beyond_the_memory_for_windows_are_read_from_the_store() -> None:
    turns = Turns(Settings(window_bytes_total=3_000, page_messages=4))
    turns.create("q")
    bodies = []
    for at in range(20):
        command = turns.messages("q", key=b"k%d" % (at % 7), body_bytes=500)
        bodies += command.bodies
        turns.turn(command)
        assert turns.machine.state.windows.bytes <= 3_000
    got = turns.drain("q").entries()
    assert sorted(one[8] for one in got) == sorted(bodies)
    assert turns.machine.state.windows.bytes == 0


def test_without_room_a_message_can_go_in_the_turn_it_came() -> None:
    turns = Turns(Settings(window_bytes_total=1))
    turns.create("q")
    turns.enqueue("q", key=b"other")
    turns.consume("q", prefetch=100)
    command = turns.messages("q", key=b"k", count=5)
    assert [one[8] for one in turns.turn(command).entries()] == command.bodies


def test_rows_behind_the_horizon_are_never_deleted_one_by_one() -> None:
    """Paging would walk over their tombstones: a drained queue would read ever more slowly."""
    turns = Turns(Settings(window_messages=8, page_messages=4))
    turns.create("q")
    turns.enqueue("q", count=40)
    turns.consume("q", "a", prefetch=3)
    turns.consume("q", "b", prefetch=5, connection=2)
    lane = next(iter(turns.queue("q").keys[b"k"].lanes.values()))
    for step in range(30):
        held = [id for id, one in turns.queue("q").leased.items() if one[0].consumer]
        if not held:
            break
        before = lane.horizon
        outcome = turns.turn(Ack("q", [held[step * 7 % len(held)]], 0))
        deleted = [key for batch in outcome.batches for code, key, _ in batch.ops if code == 8]
        assert deleted
        if before:
            assert all(key <= before for key in deleted)


# --- the horizon stays above what was delivered


def _released_before_leased(turns: Turns) -> list[bytes]:
    """Message 1 handed back and pending, 2 and 3 leased by b, 4 behind a full window."""
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    turns.consume("q", "a", prefetch=1)
    turns.consume("q", "b", prefetch=2, connection=2)
    turns.leave("q", "a", release=True)
    return ids + turns.enqueue("q")


def test_an_acknowledged_message_does_not_come_back_with_a_page_of_the_same_turn() -> None:
    turns = Turns(Settings(window_messages=1, page_messages=10))
    one, two, three, four = _released_before_leased(turns)
    outcome = turns.turn(Ack("q", [two, three], 2))
    assert outcome.replies == [[OK, OK]]
    assert outcome.ids() == [one, four]


def test_an_acknowledged_message_does_not_come_back_when_windows_have_no_room() -> None:
    turns = Turns(Settings(window_bytes_total=1))
    one, two, three, four = _released_before_leased(turns)
    assert turns.turn(Ack("q", [two, three], 2)).ids() == [one, four]


def test_a_cut_window_does_not_bring_acknowledged_messages_back() -> None:
    turns = Turns(Settings(window_messages=2, page_messages=10))
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.consume("q", "a", prefetch=2)
    turns.consume("q", "b", prefetch=2, connection=2)
    more = turns.enqueue("q", count=2)
    turns.leave("q", "a", release=True)  # 1 and 2 come back before 5 and 6: the window is cut
    assert turns.turn(Ack("q", ids[2:], 2)).ids() == ids[:2]
    assert turns.ack("q", ids[:2], connection=2).ids() == more


def test_after_a_restart_an_acknowledged_message_does_not_come_back() -> None:
    turns = Turns(Settings(page_messages=2))
    turns.create("q")
    ids = turns.enqueue("q", count=6)
    turns.consume("q", "a", prefetch=3)
    turns.consume("q", "b", prefetch=3, connection=2)
    turns.leave("q", "a", release=True)
    turns = turns.restart()
    turns.consume("q", "c", prefetch=1, connection=3)
    got = turns.turn(Ack("q", ids[3:], 9), Ack("q", ids[:1], 3)).ids()
    for _ in range(10):
        if not got:
            break
        assert not set(got) & set(ids[3:])
        got = turns.ack("q", got, connection=3).ids()


# --- any order of arrival


@given(
    delays=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    window=st.integers(1, 6),
    page=st.integers(1, 4),
)
def test_whatever_the_delays_messages_come_in_the_order_they_became_ready(
    delays: list[int], window: int, page: int
) -> None:
    turns = Turns(Settings(window_messages=window, page_messages=page))
    turns.create("q")
    ready: list[tuple[int, int]] = []
    for at, delay in enumerate(delays):
        command = Enqueue(
            "q", [id_of(at + 1)], [b"body.."], [Assignment(b"k", 1, ())], [delay * 100]
        )
        turns.turn(command)
        ready.append((turns.now + delay * 100_000_000, at + 1))
        turns.wait(100_000_001)
    turns.wait(SECOND)
    assert turns.drain("q").ids() == [id_of(at) for _, at in sorted(ready)]
