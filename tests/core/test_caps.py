"""In-flight caps: never exceeded, no slot lost, woken at once, and told as what it is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.cap_clock import MARKS_MAX, CapClock
from fila.core.command import Consume, CreateQueue, DeleteQueue, Release, UpdateQueue
from fila.core.effect import EVENT_CAPPED, EVENT_PARKED, EVENT_THROTTLED
from fila.core.explain import explain
from fila.core.rejection import Rejection
from fila.core.settings import Settings
from fila.core.waits import Waits
from tests.core.turn import DEAD_LETTER, SECOND, Outcome, Turns


def capped(limit: int = 2, journal: bool = False, **created: object) -> Turns:
    turns = Turns(journal=journal)
    made = CreateQueue("q", max_in_flight_per_key=limit, **created)  # type: ignore[arg-type]
    assert turns.turn(made).replies == [None]
    return turns


def cap(turns: Turns, name: str, limit: str) -> Outcome:
    return turns.set(f"throttle:{name}:max_in_flight", limit)


def test_no_more_of_a_key_is_leased_than_may_be_and_others_go_on() -> None:
    turns = capped(2)
    turns.enqueue("q", b"slow", count=50)
    turns.enqueue("q", b"other", count=2)
    assert sorted(turns.consume("q").keys()) == [b"other", b"other", b"slow", b"slow"]


def test_an_ack_lets_the_next_one_go_in_the_same_turn() -> None:
    turns = capped(1)
    ids = turns.enqueue("q", count=3)
    assert turns.consume("q").ids() == ids[:1]
    assert turns.ack("q", ids[:1]).ids() == ids[1:2]
    assert turns.driven.due_ns() == turns.now + 30 * SECOND  # nothing polls: the lease's end


def test_every_way_a_lease_ends_gives_the_slot_back() -> None:
    turns = capped(1)
    ids = turns.enqueue("q", count=6)
    turns.consume("q")
    assert turns.nack("q", ids[:1], DEAD_LETTER).ids() == ids[1:2]
    assert turns.turn(Release("q", ids[1:2], 1)).ids() == ids[1:2]
    assert turns.nack("q", ids[1:2]).ids() == ids[2:3]
    assert turns.wait(30 * SECOND).ids() == ids[3:4]  # it ran out
    turns.leave("q", release=True)
    assert turns.consume("q", "d", connection=2).ids() == ids[3:4]


def test_a_restart_counts_the_leases_and_nothing_else() -> None:
    turns = capped(3)
    ids = turns.enqueue("q", count=10)
    turns.consume("q", prefetch=2)
    cap(turns, "t", "1")
    turns.enqueue("q", b"x", count=2, throttle=(b"t",))
    assert turns.consume("q", "d", connection=2).keys() == [b"k", b"x"]
    again = turns.restart()
    assert again.consume("q", "e").ids() == []
    assert again.ack("q", ids[:2]).ids() == ids[3:5]
    assert again.queue("q").keys[b"k"].cap.in_flight == 3  # type: ignore[union-attr]
    assert again.machine.state.caps[b"t"].in_flight == 1


def test_a_throttle_keys_cap_holds_across_queues() -> None:
    turns = Turns()
    for name in ("a", "b"):
        turns.create(name)
        turns.enqueue(name, name.encode(), count=5, throttle=(b"api",))
    assert cap(turns, "api", "3").replies == [None]
    got = turns.consume("a", "ca", prefetch=2).ids()
    assert len(got) == 2
    assert len(turns.consume("b", "cb").ids()) == 1
    assert turns.ack("a", got[:1]).keys() in ([b"a"], [b"b"])
    assert turns.machine.state.caps[b"api"].in_flight == 3


def test_a_deleted_queue_gives_its_slots_back() -> None:
    turns = Turns()
    for name in ("a", "b"):
        turns.create(name)
        turns.enqueue(name, name.encode(), count=2, throttle=(b"api",))
    cap(turns, "api", "1")
    turns.consume("a", "ca")
    assert turns.consume("b", "cb").ids() == []
    assert turns.turn(DeleteQueue("a")).keys() == [b"b"]


def test_a_cap_is_raised_lowered_and_lifted_on_a_live_queue() -> None:
    turns = capped(1)
    ids = turns.enqueue("q", count=9)
    turns.consume("q")
    assert turns.turn(UpdateQueue("q", {"max_in_flight_per_key": "3"})).ids() == ids[1:3]
    assert turns.turn(UpdateQueue("q", {"max_in_flight_per_key": "1"})).ids() == []
    assert turns.ack("q", ids[:2]).ids() == []  # one is still in flight: no more than one may be
    assert turns.ack("q", ids[2:3]).ids() == ids[3:4]
    assert turns.turn(UpdateQueue("q", {"max_in_flight_per_key": ""})).ids() == ids[4:]


def test_a_lifted_cap_of_a_throttle_key_lets_all_go() -> None:
    turns = Turns()
    turns.create("q")
    cap(turns, "api", "1")
    ids = turns.enqueue("q", count=4, throttle=(b"api",))
    turns.consume("q")
    assert cap(turns, "api", "").ids() == ids[1:]
    assert not turns.machine.state.caps


def test_what_a_cap_may_not_be_is_refused() -> None:
    turns = capped()
    for value in ("0", "-1", "1.5", "many", "1000001", "٣"):
        (reply,) = cap(turns, "t", value).replies
        assert isinstance(reply, Rejection) and "whole number from 1 to 1000000" in reply.message
    (reply,) = turns.set("throttle::max_in_flight", "1").replies
    assert isinstance(reply, Rejection) and "missing" in reply.message
    for text in ("1000001", "few", "-1"):
        (reply,) = turns.turn(UpdateQueue("q", {"max_in_flight_per_key": text})).replies
        assert isinstance(reply, Rejection) and "max_in_flight_per_key" in reply.message
    (reply,) = turns.turn(CreateQueue("r", max_in_flight_per_key=1_000_001)).replies
    assert isinstance(reply, Rejection) and "the most is 1000000" in reply.message


def test_the_settings_survive_a_restart() -> None:
    turns = capped(4)
    again = turns.restart().restart()
    assert again.machine.view.settings_of("q")["max_in_flight_per_key"] == "4"
    assert again.machine.view.settings_of("q.dlq")["max_in_flight_per_key"] == "0"


def test_time_at_a_full_cap_is_capped_for_the_whole_line() -> None:
    turns = capped(1)
    ids = turns.enqueue("q", count=3)
    turns.consume("q")
    turns.wait(5 * SECOND)
    assert turns.ack("q", ids[:1]).waits() == [Waits(0, 0, 0, 0, 0, capped=5 * SECOND)]
    turns.wait(4 * SECOND)
    assert turns.ack("q", ids[1:2]).waits() == [Waits(0, 0, 0, 0, 0, capped=9 * SECOND)]


def test_a_bucket_and_a_cap_are_told_apart() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.limit("t", 0.5, 1)
    cap(turns, "t", "1")
    ids = turns.enqueue("q", count=3, throttle=(b"t",))
    turns.consume("q")
    turns.wait(5 * SECOND)  # 2 s for the token, then 3 s for the slot
    outcome = turns.ack("q", ids[:1])
    assert outcome.waits() == [Waits(0, 2 * SECOND, 0, 0, 0, capped=3 * SECOND)]
    outcome.extend(turns.wait(1 * SECOND))
    outcome.extend(turns.ack("q", ids[1:2]))
    outcome.extend(turns.wait(4 * SECOND))
    assert outcome.waits()[1] == Waits(0, 4 * SECOND, 0, 0, 0, capped=3 * SECOND)
    kinds = [one.event for one in outcome.events]
    assert EVENT_CAPPED in kinds and EVENT_THROTTLED in kinds and EVENT_PARKED in kinds
    spans = {one.event: one.ts_ns - one.since_ns for one in outcome.events if one.event == "capped"}
    assert spans == {EVENT_CAPPED: 3 * SECOND}


def test_a_restart_does_not_make_it_throttled() -> None:
    turns = capped(1)
    ids = turns.enqueue("q", count=2)
    turns.consume("q")
    turns.wait(2 * SECOND)
    turns.ack("q", [])
    turns.enqueue("q", b"other")  # something is committed: the clocks with it
    turns.enqueue("q", b"k")
    again = turns.restart()
    again.consume("q")
    (wait, *_) = again.ack("q", ids[:1]).waits()
    assert wait.throttled == 0 and wait.capped == 2 * SECOND


def test_explain_names_the_cap_and_what_would_change_it() -> None:
    turns = capped(2)
    turns.enqueue("q", b"acme", count=5)
    turns.consume("q")
    turns.wait(SECOND)
    turns.turn()
    found = explain(turns.machine.state, "q", b"acme", None, 1)
    assert isinstance(found, dict)
    assert found["waiting_for"] == "capped" and found["mostly"] == "capped"
    assert found["parts_ns"]["capped"] == SECOND
    assert found["cap"] == {
        "of": "fairness_key", "key": "acme", "in_flight": 2, "limit": 2, "waiting_lanes": 1,
    }  # fmt: skip
    assert "2 messages of its key are in flight, and 2 may be" in found["sentence"]
    assert found["changes"][0]["command"] == "fila queue update q --max-in-flight-per-key 4"
    whole = explain(turns.machine.state, "q", None, None, 5)
    assert isinstance(whole, dict) and whole["keys"][0]["waiting_for"] == "capped"


def test_a_queue_where_messages_cost_their_bytes_has_caps_too() -> None:
    turns = capped(2, cost="bytes")
    ids = turns.enqueue("q", b"a", count=4, body_bytes=100)
    turns.enqueue("q", b"b", count=4, body_bytes=3_000)
    assert sorted(turns.consume("q").keys()) == [b"a", b"a", b"b", b"b"]
    assert turns.ack("q", ids[:1]).ids() == ids[2:3]


def test_waking_costs_as_many_lanes_as_there_are_slots() -> None:
    """A thousand keys behind one cap: a freed slot looks at one of them."""
    turns = Turns(Settings(pass_messages=100))
    turns.create("q")
    cap(turns, "api", "1")
    first = turns.enqueue("q", b"first", throttle=(b"api",))
    turns.consume("q")
    for number in range(1_000):
        turns.enqueue("q", b"k%d" % number, throttle=(b"api",))
    waiters = turns.machine.state.caps[b"api"].waiters
    assert len(waiters) == 1_000
    _, more = turns.one_pass()
    assert not more
    outcome = turns.ack("q", first)
    assert outcome.keys() == [b"k0"] and len(waiters) == 999
    parked = [lane for lane in waiters if lane.state != 3]
    assert parked == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_caps_hold_whatever_is_done_and_nothing_is_stuck(data: st.DataObject) -> None:
    """Any order of enqueues, ends of leases, changes of caps and restarts."""
    turns = Turns()
    assert turns.turn(CreateQueue("q", max_in_flight_per_key=2)).replies == [None]
    limit, shared = 2, 0
    held: dict[bytes, bytes] = {}  # id: key

    def take(outcome: Outcome) -> None:
        for id, key in zip(outcome.ids(), outcome.keys(), strict=True):
            held[id] = key
            mine = sum(one == key for one in held.values())
            assert not limit or mine <= limit
            assert not shared or len(held) <= shared

    take(turns.consume("q", "c0"))
    for step in range(data.draw(st.integers(5, 40))):
        act = data.draw(st.sampled_from(("put", "put", "ack", "nack", "limit", "cap", "restart")))
        if act == "put":
            key = data.draw(st.sampled_from((b"a", b"b", b"c")))
            take(turns.turn(turns.messages("q", key, data.draw(st.integers(1, 4)), 1, (b"t",))))
        elif act in ("ack", "nack") and held:
            id = data.draw(st.sampled_from(sorted(held)))
            del held[id]
            take(turns.ack("q", [id]) if act == "ack" else turns.nack("q", [id]))
        elif act == "limit":
            limit = data.draw(st.integers(0, 3))
            before = dict(held)
            found = turns.turn(UpdateQueue("q", {"max_in_flight_per_key": str(limit)}))
            assert not limit or all(
                sum(one == key for one in before.values()) < limit for key in set(found.keys())
            )
            held.update(zip(found.ids(), found.keys(), strict=True))
        elif act == "cap":
            shared = data.draw(st.integers(0, 4))
            found = cap(turns, "t", str(shared) if shared else "")
            assert not found.ids() or not shared or len(held) + len(found.ids()) <= shared
            held.update(zip(found.ids(), found.keys(), strict=True))
        elif act == "restart":
            turns = turns.restart()
            take(turns.turn(Consume("q", f"c{step + 1}", 1)))
    for _ in range(200):
        if not held:
            break
        id = next(iter(held))
        del held[id]
        take(turns.ack("q", [id]))
    assert not held and turns.queue("q").pending == 0


@given(st.lists(st.tuples(st.integers(1, 1_000), st.booleans()), max_size=20))
def test_the_clock_of_caps_is_exact_while_its_marks_last(spans: list[tuple[int, bool]]) -> None:
    clock = CapClock(0, 0)
    truth = [0]
    for length, at_cap in spans:
        truth += [truth[-1] + at_cap * (step + 1) for step in range(length)]
        clock.add(len(truth) - 1, at_cap)
    assert [clock.at(reading) for reading in range(len(truth))] == truth


def test_the_clock_of_caps_keeps_so_many_marks_and_its_sum() -> None:
    clock = CapClock(10, 4)
    for number in range(1_000):
        clock.add(20 + 10 * number, number % 2 == 0)
    assert clock.at(10_010) == 4 + 5_000
    readings = [clock.at(reading) for reading in range(0, 10_011, 5)]
    assert readings == sorted(readings)
    assert len(clock._marks) <= MARKS_MAX
