"""What may go now, exactly, and who is told when a key joins the ring or leaves it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core import later
from fila.core.command import PauseKey, ResumeKey, SetConfig
from fila.core.effect import Event
from fila.core.later import UNKNOWN, Later, Times
from fila.core.settings import Settings
from fila.storage.memory import MemoryStore
from tests.core.turn import MS, SECOND, Turns


def told(events: list[Event], *kinds: str) -> list[tuple[str, int, int]]:
    return [
        (one.event, one.key_eligible, one.ring_delta)
        for one in events
        if one.fairness_key and (not kinds or one.event in kinds)
    ]


def test_a_delayed_message_behind_ready_ones_does_not_count() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 3, delay_ms=1_000))
    events = turns.turn(turns.messages("q", b"a", 2)).events
    assert told(events) == [("enqueued", 1, 1), ("enqueued", 2, 0)]
    assert [one.key_pending for one in events] == [4, 5]


def test_one_that_came_due_unseen_counts_from_then_on() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 2), turns.messages("q", b"a", 3, delay_ms=1_000))
    turns.now += SECOND
    assert told(turns.turn(turns.messages("q", b"a", 1)).events) == [("enqueued", 6, 0)]


def test_a_lane_that_falls_due_says_that_its_key_joined() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 2, delay_ms=1_000))
    assert told(turns.wait(SECOND).events) == [("due", 2, 1)]


def test_the_last_one_that_may_go_takes_its_key_out_of_the_ring() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 2), turns.messages("q", b"a", 5, delay_ms=1_000))
    events = turns.consume("q", prefetch=10).events
    assert told(events, "delivered") == [("delivered", 1, 0), ("delivered", 0, -1)]


def test_parking_and_pausing_take_a_key_out_of_the_ring_and_say_so_once() -> None:
    turns = Turns(journal=True)
    turns.turn(SetConfig("throttle.api", "1,1"))
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 3, throttle=(b"api",)), turns.messages("q", b"a", 1))
    assert told(turns.consume("q", prefetch=10).events, "delivered", "parked") == [
        ("delivered", 3, 0), ("delivered", 2, 0), ("parked", 0, -1),
    ]  # fmt: skip
    turns.turn(turns.messages("q", b"b", 2, throttle=(b"api",)))
    paused = turns.turn(PauseKey("q", b"a", "me", "why")).events
    assert told(paused) == [("throttled", 0, 0), ("key_paused", 0, 0)]
    resumed = turns.turn(ResumeKey("q", b"a", "me")).events
    assert told(resumed, "key_resumed", "parked") == [("key_resumed", 2, 1), ("parked", 0, -1)]


def test_deliveries_are_numbered_within_their_queue() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.create("other")
    turns.turn(turns.messages("q", b"a", 3), turns.messages("other", b"a", 1))
    events = turns.consume("q", prefetch=2).events + turns.consume("other").events
    seen = [(one.queue, one.queue_delivered) for one in events if one.event == "delivered"]
    assert seen == [("q", 1), ("q", 2), ("other", 1)]


def test_after_a_restart_the_store_is_asked_once_and_the_count_is_exact() -> None:
    settings = Settings(window_messages=4, page_messages=4)
    turns = Turns(settings, journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 20), turns.messages("q", b"a", 30, delay_ms=60_000))
    again = turns.restart(SECOND)
    assert told(again.turn(again.messages("q", b"a", 1)).events) == [("enqueued", 21, 0)]


def test_more_delayed_ones_than_are_read_at_once_are_not_guessed() -> None:
    settings = Settings(window_messages=4, page_messages=4)
    turns = Turns(settings, journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 2))
    for at in range(600):
        turns.turn(turns.messages("q", b"a", 1, delay_ms=60_000 + at))
    # As long as the broker runs it knows.
    assert told(turns.turn(turns.messages("q", b"a", 1)).events) == [("enqueued", 3, 0)]
    again = turns.restart(SECOND)
    assert told(again.turn(again.messages("q", b"a", 1)).events) == [("enqueued", UNKNOWN, 0)]
    # Enough of them are due: the rest can be counted.
    again.now += 59 * SECOND + 400 * MS
    events = again.turn(again.messages("q", b"a", 1)).events
    assert told(events, "enqueued") == [("enqueued", 5 + 401, 0)]


@given(
    st.lists(st.tuples(st.sampled_from(("add", "remove", "pass")), st.integers(1, 40)), max_size=60)
)
def test_the_count_is_right_or_unknown(steps: list[tuple[str, int]]) -> None:
    times = Times(MemoryStore())
    found = Later(times)
    waiting: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later, "TIMES", 8)
        _compare_along(steps, times, found, waiting)


def _compare_along(
    steps: list[tuple[str, int]], times: Times, found: Later, waiting: list[int]
) -> None:
    now = 0
    for verb, number in steps:
        if verb == "add":
            found.add(now + number)
            waiting.append(now + number)
        elif verb == "remove" and number % 4 == 0 and now:
            found.remove(number % now + 1)  # due already: counted no more
        elif verb == "remove" and waiting:
            stamp = waiting.pop(number % len(waiting))
            found.remove(stamp)
        else:
            now += number
        waiting = [one for one in waiting if one > now]
        found.pass_to(now)
        if found.wants_more(now):
            start = found.read_from(now)
            some = sorted(one for one in waiting if one >= start)
            found.found(some[:5], len(some) <= 5)
        assert found.count() in (len(waiting), UNKNOWN)
        assert times.kept == len(found.near)


def test_no_lane_keeps_more_times_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "TIMES_MAX", 100)
    times = Times(MemoryStore())
    lanes = [Later(times) for _ in range(30)]
    for lane in lanes:
        for stamp in range(1, 21):
            lane.add(stamp)
    assert times.kept <= 101
    assert [lane.count() for lane in lanes] == [20] * 30
    for lane in lanes:
        lane.pass_to(0)
        assert lane.count() == 20
