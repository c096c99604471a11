"""Pause and resume of queues and keys: no turns, no cost, nothing lost, and the time is told."""

from __future__ import annotations

import pytest

from fila.core import effect
from fila.core.command import (
    Command,
    Consume,
    Enqueue,
    Hold,
    PauseKey,
    PauseQueue,
    ResumeKey,
    ResumeQueue,
)
from fila.core.lane import LANE_PAUSED
from fila.core.rejection import INVALID_CONFIG_VALUE, QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.stats import QueueStats, stats, summaries
from fila.core.verdict import FailureVerdict
from fila.core.waits import Waits
from tests.core.turn import MS, SECOND, START, Turns


def queue(settings: Settings | None = None) -> Turns:
    turns = Turns(settings, journal=True)
    turns.create("q", visibility_ms=3_600_000)
    return turns


def seen(turns: Turns) -> QueueStats:
    found = stats(turns.machine.state, "q", 100)
    assert isinstance(found, QueueStats)
    return found


# --- a queue


def test_a_paused_queue_takes_messages_in_and_hands_none_out() -> None:
    turns = queue()
    turns.consume("q")
    assert turns.turn(PauseQueue("q", "migration", "ada")).replies == [1]
    assert turns.turn(turns.messages("q", count=3)).ids() == []
    assert seen(turns).depth == 3
    assert turns.turn(ResumeQueue("q")).ids() != []
    assert seen(turns).depth == 0


def test_a_paused_queue_wants_no_waking() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.turn(PauseQueue("q"))
    turns.enqueue("q", count=5, throttle=(b"t",))
    assert turns.machine.next_deadline() == 0


def test_a_paused_queue_keeps_no_tokens_from_others() -> None:
    turns = queue()
    turns.create("other", visibility_ms=3_600_000)
    turns.limit("t", 1, 1)
    turns.consume("q", "a")
    turns.consume("other", "b", connection=2)
    turns.enqueue("q", count=3, throttle=(b"t",))  # the first token goes, the rest is parked
    turns.turn(PauseQueue("q"))
    turns.enqueue("other", count=3, throttle=(b"t",))
    assert len(turns.wait(3 * SECOND).ids("b")) == 3


def test_leases_may_be_finished_while_the_queue_is_paused() -> None:
    turns = queue()
    ids = turns.enqueue("q", count=3)
    turns.consume("q", prefetch=2)
    turns.turn(PauseQueue("q"))
    assert turns.ack("q", ids[:1]).ids() == []
    assert turns.nack("q", ids[1:2]).ids() == []
    assert sorted(turns.turn(ResumeQueue("q")).ids()) == ids[1:]


def test_consumers_come_go_and_stop_reading_while_the_queue_is_paused() -> None:
    turns = queue()
    turns.enqueue("q", count=4)
    turns.turn(PauseQueue("q"))
    turns.consume("q", "a", prefetch=1)
    turns.consume("q", "b", prefetch=1)
    turns.consume("q", "c", prefetch=1)
    turns.leave("q", "b")
    turns.turn(Hold("q", "c"))
    assert seen(turns).ready_consumers == 1
    assert [one.consumer.id for one in turns.turn(ResumeQueue("q")).deliveries] == ["a"]


def test_the_pause_of_a_queue_is_a_part_of_the_wait_of_its_own() -> None:
    turns = queue()
    turns.enqueue("q")
    turns.wait(2 * SECOND)  # nobody is there
    turns.turn(PauseQueue("q"))
    turns.wait(3 * SECOND)
    turns.consume("q")
    turns.wait(4 * SECOND)
    turns.enqueue("q")
    turns.wait(1 * SECOND)
    outcome = turns.turn(ResumeQueue("q"))
    assert outcome.waits() == [
        Waits(0, 0, 2 * SECOND, 0, 0, 8 * SECOND),
        Waits(0, 0, 0, 0, 0, 1 * SECOND),
    ]


def test_time_after_a_pause_is_not_paused() -> None:
    turns = queue()
    turns.turn(PauseQueue("q"))
    turns.wait(SECOND)
    turns.turn(ResumeQueue("q"))
    turns.enqueue("q")
    turns.wait(SECOND)
    assert turns.consume("q").waits() == [Waits(0, 0, SECOND, 0, 0, 0)]


# --- a key


def test_a_paused_key_has_no_turns_and_the_others_have_theirs() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=3)
    turns.enqueue("q", b"b", count=2)
    assert turns.turn(PauseKey("q", b"a", "too loud", "ada")).replies == [1]
    assert turns.queue("q").ring.keys == 1
    assert turns.consume("q").keys() == [b"b", b"b"]
    turns.enqueue("q", b"a")
    assert turns.turn(ResumeKey("q", b"a")).keys() == [b"a"] * 4


def test_a_key_may_be_paused_before_it_has_messages_and_stays_so_when_its_lane_is_forgotten() -> (
    None
):
    turns = queue(Settings(idle_lanes=1))
    turns.turn(PauseKey("q", b"a"))
    turns.consume("q")
    turns.enqueue("q", b"a")
    for name in (b"b", b"c", b"d"):
        ids = turns.turn(turns.messages("q", name)).ids()
        turns.ack("q", ids)
    turns.turn(ResumeKey("q", b"a"))
    turns.turn(PauseKey("q", b"b"))  # its lane is long forgotten
    assert turns.turn(turns.messages("q", b"b")).ids() == []


def test_a_paused_key_leaves_its_buckets_line() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.enqueue("q", b"a", count=3, throttle=(b"t",))
    turns.turn(PauseKey("q", b"a"))
    assert not turns.machine.state.buckets[b"t"].waiters
    assert turns.wait(5 * SECOND).ids() == []
    outcome = turns.turn(ResumeKey("q", b"a"))
    outcome.extend(turns.wait(5 * SECOND))
    first, second = outcome.waits()
    assert first == Waits(0, 0, 0, 0, 0, 5 * SECOND)
    assert second == Waits(0, SECOND, 0, 0, 0, 5 * SECOND)


def test_a_delay_that_runs_out_while_its_key_is_paused_waits_for_the_key() -> None:
    turns = queue()
    turns.consume("q")
    turns.turn(PauseKey("q", b"a"))
    turns.enqueue("q", b"a", delay_ms=1_000)
    turns.wait(3 * SECOND)
    (lane,) = turns.queue("q").keys[b"a"].lanes.values()
    assert lane.state == LANE_PAUSED
    assert turns.turn(ResumeKey("q", b"a")).waits() == [Waits(SECOND, 0, 0, 0, 0, 2 * SECOND)]


def test_a_key_that_is_resumed_gets_no_more_than_its_share() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=6, weight=2)
    turns.enqueue("q", b"b", count=6)
    turns.turn(PauseKey("q", b"a"))
    turns.wait(SECOND)
    turns.turn(ResumeKey("q", b"a"))
    assert turns.consume("q").keys()[:6] == [b"b", b"a", b"a", b"b", b"a", b"a"]


def test_the_pause_of_a_key_does_not_overlap_the_time_without_consumers() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=2)
    turns.wait(SECOND)
    turns.turn(PauseKey("q", b"a"))
    turns.wait(2 * SECOND)  # paused, but nobody was there anyway
    turns.consume("q")
    turns.wait(4 * SECOND)
    waits = turns.turn(ResumeKey("q", b"a")).waits()
    assert waits == [Waits(0, 0, 3 * SECOND, 0, 0, 4 * SECOND)] * 2


# --- both


def test_pausing_twice_renews_the_reason_and_not_the_time() -> None:
    turns = queue()
    turns.turn(PauseQueue("q", "one", "ada"), PauseKey("q", b"a", "one", "ada"))
    turns.wait(SECOND)
    outcome = turns.turn(PauseQueue("q", "two", "bob"), PauseKey("q", b"a", "two", "bob"))
    assert outcome.replies == [0, 0]
    pause = seen(turns).pause
    assert pause is not None
    assert (pause.reason, pause.who, pause.since_ns) == ("two", "bob", START)
    assert seen(turns).key_pauses[b"a"].reason == "two"
    assert turns.turn(ResumeQueue("q"), ResumeQueue("q")).replies == [1, 0]
    assert turns.turn(ResumeKey("q", b"a"), ResumeKey("q", b"a")).replies == [1, 0]


def test_pauses_survive_a_restart_and_end_as_they_would_have() -> None:
    turns = queue()
    turns.enqueue("q", b"a")
    turns.enqueue("q", b"b")
    turns.turn(PauseKey("q", b"a", "too loud", "ada"))
    turns = turns.restart(after_ns=SECOND)
    assert seen(turns).key_pauses[b"a"][2:] == ("ada", "too loud")
    assert turns.consume("q").keys() == [b"b"]
    turns.turn(PauseQueue("q", "audit", "bob"))
    turns = turns.restart(after_ns=SECOND)
    assert summaries(turns.machine.state)[0].pause == seen(turns).pause != None  # noqa: E711
    assert turns.consume("q").ids() == []
    turns.turn(ResumeKey("q", b"a"))
    assert turns.turn(ResumeQueue("q")).keys() == [b"a"]
    turns = turns.restart(after_ns=SECOND)
    assert seen(turns).pause is None and not seen(turns).key_pauses


def test_a_deleted_queue_takes_its_pauses_along() -> None:
    turns = queue()
    turns.turn(PauseQueue("q"), PauseKey("q", b"a"))
    turns.delete("q")
    turns = turns.restart()
    assert turns.rows(3, b"p") == []
    turns.create("q")
    assert seen(turns).pause is None and not seen(turns).key_pauses


def test_pauses_are_told_to_the_journal() -> None:
    turns = queue()
    turns.enqueue("q", b"a")
    commands: list[Command] = [
        PauseQueue("q", "why", "ada"),
        ResumeQueue("q", "bob"),
        PauseKey("q", b"a", "loud", "ada"),
        ResumeKey("q", b"a", "bob"),
    ]
    events = turns.turn(*commands).events
    assert [(one.event, one.fairness_key, one.reason, one.consumer) for one in events] == [
        (effect.EVENT_QUEUE_PAUSED, b"", "why", "ada"),
        (effect.EVENT_QUEUE_RESUMED, b"", "", "bob"),
        (effect.EVENT_KEY_PAUSED, b"a", "loud", "ada"),
        (effect.EVENT_KEY_RESUMED, b"a", "", "bob"),
    ]


@pytest.mark.parametrize(
    "command",
    [PauseQueue("no"), ResumeQueue("no"), PauseKey("no", b"a"), ResumeKey("no", b"a")],
)
def test_an_unknown_queue_is_named(command: Command) -> None:
    (reply,) = queue().turn(command).replies
    assert isinstance(reply, Rejection) and reply.code == QUEUE_NOT_FOUND


def test_a_reason_has_a_limit_and_so_has_the_number_of_paused_keys() -> None:
    turns = queue(Settings(paused_keys_max=2))
    (reply,) = turns.turn(PauseQueue("q", "x" * 1_025)).replies
    assert isinstance(reply, Rejection) and reply.code == INVALID_CONFIG_VALUE
    replies = turns.turn(*[PauseKey("q", name) for name in (b"a", b"b", b"c", b"a")]).replies
    assert replies[:2] == [1, 1] and replies[3] == 0
    assert isinstance(replies[2], Rejection) and "pause the queue" in replies[2].message


def test_many_short_pauses_still_add_up() -> None:
    turns = queue()
    command = turns.messages("q", b"a")
    turns.turn(command)
    turns.consume("other") if "other" in turns.machine.state.queues else None
    for number in range(100):
        turns.turn(PauseQueue("q") if number % 2 else PauseKey("q", b"a"))
        turns.wait(10 * MS)
        turns.turn(ResumeQueue("q") if number % 2 else ResumeKey("q", b"a"))
    (waits,) = turns.turn(Consume("q", "c", 1)).waits()
    assert sum(waits) == 1_000 * MS
    assert waits.paused > 0


def test_a_retry_delay_and_a_pause_stand_side_by_side() -> None:
    turns = queue()
    ids = turns.enqueue("q", b"a")
    turns.consume("q")
    turns.turn(PauseKey("q", b"a"))
    turns.nack("q", ids, FailureVerdict(False, 500))
    turns.wait(2 * SECOND)
    (waits,) = turns.turn(ResumeKey("q", b"a")).waits()
    assert waits == Waits(500 * MS, 0, 0, 0, 0, 1_500 * MS)


def test_an_enqueue_to_a_paused_key_costs_no_more_than_any_other() -> None:
    """It neither joins the ring nor wakes a pass."""
    turns = queue()
    turns.consume("q")
    turns.turn(PauseKey("q", b"a"))
    command: Enqueue = turns.messages("q", b"a", count=50)
    turns.turn(command)
    assert turns.queue("q").ring.head is None
    assert not turns.machine.state.touched


def test_a_pause_ends_the_visit_that_a_short_bucket_had_cut_off() -> None:
    turns = queue(Settings(quantum=3))
    turns.limit("t", 0, 1)
    turns.consume("q", prefetch=100)
    turns.enqueue("q", b"a", count=9, throttle=(b"t",))  # one of three goes, then it is parked
    turns.turn(PauseKey("q", b"a"))
    turns.turn(PauseQueue("q"))
    turns.enqueue("q", b"b", count=6)
    turns.turn(ResumeKey("q", b"a"))
    turns.set("throttle.t", "")
    assert turns.turn(ResumeQueue("q")).keys() == [b"b"] * 3 + [b"a"] * 3 + [b"b"] * 3 + [b"a"] * 5
