"""Events of lanes, keys and queues: a reader knows at any moment which keys took part."""

from __future__ import annotations

from fila.core.command import SetConfig
from fila.core.effect import (
    EVENT_DELIVERED,
    EVENT_PARKED,
    EVENT_STALLED,
    EVENT_THROTTLED,
    EVENT_WEIGHT_CHANGED,
    Event,
)
from tests.core.turn import SECOND, Turns


def of(events: list[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event.event in kinds]


def test_a_lane_that_parks_says_so_and_again_when_it_may_go_on() -> None:
    turns = Turns(journal=True)
    turns.turn(SetConfig("throttle.api", "1,2"))
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 5, throttle=(b"api",)))
    first = turns.consume("q", prefetch=10)
    seen = [
        (one.event, one.key_eligible)
        for one in of(first.events, EVENT_DELIVERED, EVENT_PARKED, EVENT_THROTTLED)
    ]
    assert seen == [(EVENT_DELIVERED, 4), (EVENT_DELIVERED, 3), (EVENT_PARKED, 0)]
    parked_ns = of(first.events, EVENT_PARKED)[0].ts_ns
    later = turns.wait(SECOND)
    found = of(later.events, EVENT_DELIVERED, EVENT_PARKED, EVENT_THROTTLED)
    assert [(one.event, one.key_eligible) for one in found] == [
        (EVENT_THROTTLED, 3),
        (EVENT_DELIVERED, 2),
        (EVENT_PARKED, 0),
    ]
    assert (found[0].since_ns, found[0].ts_ns) == (parked_ns, parked_ns + SECOND)
    assert {one.throttle_keys for one in found} == {(b"api",)}


def test_another_lane_of_the_key_stays_eligible() -> None:
    turns = Turns(journal=True)
    turns.turn(SetConfig("throttle.api", "1,1"))
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 3, throttle=(b"api",)))
    turns.now += SECOND
    turns.turn(turns.messages("q", b"a", 4))
    events = turns.consume("q", prefetch=2).events
    (parked,) = of(events, EVENT_PARKED)
    assert (parked.key_pending, parked.key_eligible) == (6, 4)


def test_messages_that_waited_for_credit_tell_how_long() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.turn(turns.messages("q", b"a", 3))
    began = turns.now
    turns.now += 5 * SECOND
    outcome = turns.consume("q", prefetch=2)
    (nobody,) = of(outcome.events, EVENT_STALLED)
    assert (nobody.since_ns, nobody.ts_ns) == (began, turns.now)
    full = turns.now
    turns.now += 2 * SECOND
    (no_credit,) = of(turns.ack("q", outcome.ids()).events, EVENT_STALLED)
    assert (no_credit.since_ns, no_credit.ts_ns) == (full, turns.now)
    turns.now += SECOND
    assert of(turns.ack("q", []).events, EVENT_STALLED) == []


def test_a_queue_without_messages_does_not_stall() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.now += SECOND
    assert of(turns.consume("q").events, EVENT_STALLED) == []


def test_another_weight_of_a_waiting_key_is_told_once() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    assert of(turns.turn(turns.messages("q", b"a", 2, 3)).events, EVENT_WEIGHT_CHANGED) == []
    (changed,) = of(turns.turn(turns.messages("q", b"a", 2, 5)).events, EVENT_WEIGHT_CHANGED)
    assert (changed.fairness_key, changed.weight, changed.key_pending) == (b"a", 5, 2)
