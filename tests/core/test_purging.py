"""Purge: what is pending goes, what is leased stays, and nothing of it comes back."""

from __future__ import annotations

from fila.core import effect, rows
from fila.core.command import PauseKey, Purge
from fila.core.purging import LaneName, Purgeable
from fila.core.rejection import QUEUE_NOT_FOUND, Rejection
from fila.core.row_batch import DELETE_MESSAGE, DELETE_RANGE
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from tests.core.turn import SECOND, Outcome, Turns


def queue(settings: Settings | None = None) -> Turns:
    turns = Turns(settings, journal=True)
    turns.create("q", visibility_ms=3_600_000)
    return turns


def named(turns: Turns, key: bytes | None) -> tuple[Purgeable, list[LaneName]]:
    """What a purge would empty, and all of its lanes."""
    found = turns.machine.purgeable("q", key)
    assert isinstance(found, Purgeable)
    found.gather(1 << 62)
    return found, found.take(found.left)


def purge(turns: Turns, key: bytes | None = None) -> Outcome:
    found, lanes = named(turns, key)
    return turns.turn(Purge("q", lanes, key is None, "ada", found.next_lane))


def purged(outcome: Outcome) -> int:
    (count,) = outcome.replies
    assert isinstance(count, int)
    return count


def ranges(outcome: Outcome) -> int:
    return sum(op[0] == DELETE_RANGE | rows.MESSAGES for one in outcome.batches for op in one.ops)


def test_a_purge_takes_everything_pending_and_nothing_leased() -> None:
    turns = queue()
    first = turns.enqueue("q", b"a", count=2)
    turns.consume("q", prefetch=2)
    turns.enqueue("q", b"a", count=5)
    turns.enqueue("q", b"b", count=3)
    turns.enqueue("q", b"b", delay_ms=60_000)
    outcome = purge(turns)
    assert purged(outcome) == 9
    assert turns.queue("q").counters.purged == 9
    assert (turns.queue("q").pending, turns.queue("q").keys_pending) == (0, 0)
    assert {key[rows.ID_AT :] for key, _ in turns.rows(rows.MESSAGES)} == set(first)
    turns.nack("q", first[:1])
    assert turns.ack("q", first[1:]).ids() == []  # the nacked one has come back already
    turns = turns.restart()
    assert turns.wait(120 * SECOND).ids() == []
    assert turns.queue("q").pending == 0


def test_a_purge_of_one_key_leaves_the_others_alone() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=3)
    turns.enqueue("q", b"b", count=2)
    turns.enqueue("q", b"a", count=3, throttle=(b"t",))
    assert purged(purge(turns, b"a")) == 6
    assert turns.restart().drain("q").keys() == [b"b", b"b"]
    assert purged(purge(turns, b"nobody")) == 0


def test_what_was_handed_back_before_a_lease_goes_too_and_the_lease_stays() -> None:
    turns = queue()
    ids = turns.enqueue("q", b"a", count=4)
    turns.consume("q", "x", prefetch=2)
    turns.consume("q", "y", prefetch=2, connection=2)
    turns.leave("q", "x", release=True)
    assert purged(purge(turns)) == 2
    assert [key[rows.ID_AT :] for key, _ in turns.rows(rows.MESSAGES)] == ids[2:]
    turns = turns.restart()
    assert turns.queue("q").pending == 0
    assert turns.ack("q", ids[2:]).replies == [[0, 0]]


def test_a_deep_backlog_goes_by_range_without_being_read() -> None:
    turns = queue(Settings(window_messages=4, page_messages=4))
    for _ in range(20):
        turns.enqueue("q", b"a", count=50)
        turns.enqueue("q", b"b", count=50)
    outcome = purge(turns)
    assert purged(outcome) == 2_000
    assert ranges(outcome) == 1  # neighbouring lanes without leases share a range
    assert not any(op[0] == DELETE_MESSAGE for one in outcome.batches for op in one.ops)
    assert turns.rows(rows.MESSAGES) == []
    assert turns.machine.state.windows.bytes == 0


def test_a_lane_with_a_lease_breaks_the_range_and_keeps_its_message() -> None:
    turns = queue()
    for name in (b"a", b"b", b"c", b"d"):
        turns.enqueue("q", name, count=3)
    ids = turns.consume("q", prefetch=1).ids()  # one of a
    outcome = purge(turns)
    assert purged(outcome) == 11
    assert ranges(outcome) == 1
    assert [key[rows.ID_AT :] for key, _ in turns.rows(rows.MESSAGES)] == ids


def test_a_lane_made_again_between_two_steps_neither_stays_nor_takes_others_with_it() -> None:
    turns = queue(Settings(idle_lanes=1))
    of_b = [turns.enqueue("q", name, count=2) for name in (b"a", b"b", b"c", b"d")][1]
    turns.consume("q", "x", prefetch=8)
    turns.ack("q", of_b)
    turns.leave("q", "x", release=True)
    found, lanes = named(turns, None)
    assert [lane[0] for lane in lanes] == [b"a", b"b", b"c", b"d"]
    # The first step lets a rest, so that b is forgotten. New lanes come, b among them.
    turns.turn(Purge("q", lanes[:1], True, "ada", found.next_lane))
    assert b"b" not in turns.queue("q").keys
    (kept,) = turns.enqueue("q", b"new")
    turns.enqueue("q", b"b", count=2)
    (late,) = turns.enqueue("q", b"newer")
    outcome = turns.turn(Purge("q", lanes[1:], True, "ada", found.next_lane))
    assert purged(outcome) == 6
    assert [key[rows.ID_AT :] for key, _ in turns.rows(rows.MESSAGES)] == [kept, late]
    assert turns.restart().drain("q").ids() == [kept, late]


def test_messages_that_arrive_after_a_purge_stand_in_order_and_are_delivered() -> None:
    turns = queue(Settings(window_messages=2, page_messages=2))
    turns.enqueue("q", b"a", count=20)
    purge(turns)
    ids = turns.enqueue("q", b"a", count=10)
    assert turns.restart().drain("q").ids() == ids


def test_an_enqueue_in_the_same_turn_before_the_purge_goes_with_it() -> None:
    turns = queue()
    turns.enqueue("q", b"a")
    _, lanes = named(turns, None)
    before, after = turns.messages("q", b"a", count=2), turns.messages("q", b"a", count=2)
    outcome = turns.turn(before, Purge("q", lanes, True), after)
    assert outcome.replies == [None, 3, None]
    assert turns.restart().drain("q").ids() == after.ids


def test_a_page_read_in_the_turn_of_the_purge_does_not_bring_its_rows_back() -> None:
    turns = queue(Settings(window_messages=1, page_messages=1))
    turns.enqueue("q", b"a", count=3, delay_ms=60_000)  # their rows stand behind everything else
    turns.consume("q")
    _, lanes = named(turns, None)
    fresh = turns.messages("q", b"a", count=4)
    outcome = turns.turn(Purge("q", lanes, True), fresh)
    assert outcome.ids() == fresh.ids
    assert turns.queue("q").pending == 0
    assert turns.wait(120 * SECOND).ids() == []


def test_a_paused_key_can_be_purged_and_stays_paused() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=3)
    turns.turn(PauseKey("q", b"a"))
    assert purged(purge(turns, b"a")) == 3
    turns.enqueue("q", b"a")
    assert turns.consume("q").ids() == []


def test_a_throttled_and_a_delayed_lane_can_be_purged() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.enqueue("q", b"a", count=4, throttle=(b"t",))
    turns.enqueue("q", b"b", delay_ms=5_000)
    assert purged(purge(turns)) == 4
    assert turns.wait(20 * SECOND).ids() == []
    assert turns.machine.next_deadline() in (0, turns.queue("q").armed_ns)


def test_a_message_that_failed_after_the_purge_is_retried_as_ever() -> None:
    turns = queue()
    ids = turns.enqueue("q", b"a")
    turns.consume("q")
    purge(turns)
    turns.nack("q", ids, FailureVerdict(False, 100))
    assert turns.wait(SECOND).ids() == ids


def test_each_emptied_lane_is_told_to_the_journal_with_its_count() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=3)
    turns.enqueue("q", b"b", count=2)
    events = purge(turns).events
    told = [(one.event, one.fairness_key, one.key_pending, one.reason) for one in events]
    assert told == [
        (effect.EVENT_PURGED, b"a", 0, "messages=3"),
        (effect.EVENT_PURGED, b"b", 0, "messages=2"),
    ]


def test_an_unknown_queue_is_named() -> None:
    turns = queue()
    (reply,) = turns.turn(Purge("no", [], True)).replies
    assert isinstance(reply, Rejection) and reply.code == QUEUE_NOT_FOUND
    assert isinstance(turns.machine.purgeable("no", None), Rejection)
