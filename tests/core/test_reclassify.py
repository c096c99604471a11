"""Reclassifying: what waits goes where the hook would put it now, by age, in steps, resumable."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from fila.core import rows
from fila.core.command import Ack, Consume, DeleteQueue, Enqueue, Purge, UpdateQueue
from fila.core.entry import ATTEMPTS, BODY, STAMP
from fila.core.reclassify_job import JOBS_MAX
from fila.core.reclassify_rows import START, Course, course_row, read_course
from fila.core.rejection import Rejection
from fila.core.settings import Settings
from fila.core.verdict import Assignment, FailureVerdict
from tests.core.test_ttl import body_of
from tests.core.turn import MS, SECOND, Decided, Turns, id_of

SMALL = Settings(
    window_messages=4, page_messages=3, head_messages=2, reclassify_messages=3, redrive_pages=2
)


class ByBody(Decided):
    """The body says the fairness key, the weight and the throttle keys, by the version it is."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 1
        self.weight = 0
        self.fails: set[bytes] = set()
        self.asked = 0
        self._undecided: list[int] = []

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        self.asked += len(bodies)
        self._undecided = [at for at, body in enumerate(bodies) if body in self.fails]
        return [self.of(body) for body in bodies]

    def undecided(self, queue: str) -> list[int]:
        return self._undecided

    def of(self, body: bytes) -> Assignment:
        number = int(body)
        if self.version == 1:
            return Assignment(b"all", 1, ())
        throttle = (b"t%d" % (number % 2),) if self.version == 3 else ()
        return Assignment(b"k%d" % (number % 5), self.weight or 1 + number % 3, throttle)


def machine(settings: Settings | None = None, journal: bool = False) -> tuple[Turns, ByBody]:
    policy = ByBody()
    turns = Turns(settings, journal=journal, policy=policy)
    turns.create("q", visibility_ms=3_600_000)
    return turns, policy


def put(turns: Turns, policy: ByBody, numbers: Sequence[int], delay_ms: int = 0) -> None:
    """Message n has the id n + 1."""
    for number in numbers:
        body = b"%d" % number
        turns.now += 1_000
        ids = [id_of(number + 1)]
        turns.turn(Enqueue("q", ids, [body], [policy.of(body)], [delay_ms]))


def begin(turns: Turns, rate: int = 0, dry_run: bool = False) -> Any:
    turns.driven.begin(turns.now)
    found = turns.driven.reclassify.begin("q", rate, "ada", dry_run)
    turns.driven.end()
    return found


def told(turns: Turns) -> dict[str, Any]:
    found: Any = turns.driven.reclassify.told("q")
    assert not isinstance(found, Rejection)
    return found


def run(turns: Turns, rate: int = 0, dry_run: bool = False) -> dict[str, Any]:
    found = begin(turns, rate, dry_run)
    assert not isinstance(found, Rejection), found
    return finish(turns)


def finish(turns: Turns) -> dict[str, Any]:
    for _ in range(10_000):
        turns.turn()
        found = told(turns)
        if found["state"] != "running":
            return found
    raise AssertionError("it does not end")


def stands(turns: Turns) -> dict[bytes, set[int]]:
    """By fairness key what is stored."""
    lanes = {
        rows.lane_number(key): rows.read_lane(value).fairness_key
        for key, value in turns.rows(rows.STATE, rows.LANE_PREFIX)
    }
    found: dict[bytes, set[int]] = {}
    for key, value in turns.rows(rows.MESSAGES):
        _, lane, _, _ = rows.MESSAGE_KEY.unpack(key)
        found.setdefault(lanes[lane], set()).add(int(value[rows.MESSAGE_HEAD_BYTES :]))
    return found


def wanted(numbers: Sequence[int]) -> dict[bytes, set[int]]:
    return {b"k%d" % key: {one for one in numbers if one % 5 == key} for key in range(5)}


def numbers_of(entries: Sequence[Any]) -> list[int]:
    return [int(entry[BODY]) for entry in entries]


@pytest.mark.parametrize("settings", [None, SMALL])
def test_what_waits_stands_where_the_hook_would_put_it(settings: Settings | None) -> None:
    turns, policy = machine(settings)
    put(turns, policy, range(40))
    policy.version = 2
    found = run(turns)
    assert stands(turns) == wanted(range(40))
    assert (found["state"], found["judged"], found["moved"]) == ("done", 40, 40)
    order = numbers_of(turns.consume("q", prefetch=100).entries())
    assert sorted(order) == list(range(40))
    for key in range(5):
        mine = [one for one in order if one % 5 == key]
        assert mine == sorted(mine), "by age within a key"


def test_what_came_under_the_new_hook_stands_behind_what_is_older() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(0, 20, 5))
    policy.version = 2
    put(turns, policy, range(20, 40, 5))
    run(turns)
    order = numbers_of(turns.consume("q", prefetch=100).entries())
    assert order == list(range(0, 40, 5))


def test_it_is_idempotent_and_a_second_run_moves_nothing() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(30))
    policy.version = 3
    run(turns)
    again = run(turns)
    assert (again["moved"], again["reweighed"], again["differences"]) == (0, 0, [])
    assert run(turns, dry_run=True)["differences"] == []


def test_a_trial_run_says_what_would_move_and_moves_nothing() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(20))
    before = turns.rows(rows.MESSAGES)
    policy.version = 2
    found = run(turns, dry_run=True)
    assert turns.rows(rows.MESSAGES) == before
    assert (found["state"], found["moved"], found["dry_run"]) == ("done", 20, True)
    kinds = found["differences"]
    assert sum(one["messages"] for one in kinds) == 20
    assert kinds[0]["from"] == {"key": "all", "weight": 1, "throttle_keys": []}
    assert turns.rows(rows.STATE, rows.RECLASSIFY_PREFIX) == []


def test_another_weight_alone_rewrites_the_message_in_its_place() -> None:
    turns, policy = machine(SMALL)
    policy.version = 2
    put(turns, policy, range(15))
    policy.weight = 7
    found = run(turns)
    assert (found["moved"], found["reweighed"]) == (0, 15)
    assert turns.queue("q").keys[b"k1"].weight == 7
    assert run(turns)["reweighed"] == 0


class Half(ByBody):
    """Of one lane every other message goes, the others stay with another weight."""

    def of(self, body: bytes) -> Assignment:
        number = int(body)
        if number % 4 == 2:
            return Assignment(b"other", 1, ())
        if self.version == 2 and number % 4 == 0:
            return Assignment(b"even", 1, ())
        return Assignment(b"all", self.version, ())


@pytest.mark.parametrize(("at_once", "prefetch"), [(2, 2), (3, 7), (8, 7)])
def test_what_stays_with_another_weight_is_not_lost_when_its_window_is_cut(
    at_once: int, prefetch: int
) -> None:
    """By a lane that needs the room, in the turn of the step."""
    settings = SMALL._replace(
        window_bytes_total=600, page_messages=1, head_messages=1, reclassify_messages=at_once
    )
    turns, _ = machine(settings)
    turns.policy = policy = Half()
    put(turns, policy, range(60))
    turns = turns.restart()
    policy.version = 2
    begin(turns)
    outcome = turns.turn(Consume("q", "c", 1, prefetch))
    order: list[int] = []
    while outcome.entries():
        order += numbers_of(outcome.entries())
        assert turns.machine.view.quarantined == {}
        outcome = turns.ack("q", outcome.ids())
    assert sorted(order) == list(range(60))
    odd = [one for one in order if one % 2]
    assert odd == sorted(odd)


def test_where_the_hook_fails_a_message_stays() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(10))
    policy.version = 2
    policy.fails = {b"3", b"7"}
    found = run(turns)
    assert (found["moved"], found["undecided"]) == (8, 2)
    assert stands(turns)[b"all"] == {3, 7}


def test_what_is_leased_keeps_its_place_and_its_lease() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(20))
    leased = turns.consume("q", prefetch=6).ids()
    policy.version = 2
    assert run(turns)["moved"] == 14
    assert stands(turns)[b"all"] == set(range(6))
    assert turns.ack("q", leased).replies == [[0] * 6]


def test_a_killed_broker_goes_on_where_it_was() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(60))
    policy.version = 2
    begin(turns)
    for _ in range(9):
        turns.turn()
    before = told(turns)
    assert 0 < before["judged"] < 60
    policy.asked = 0
    again = turns.restart(after_ns=SECOND)
    found = finish(again)
    assert stands(again) == wanted(range(60))
    assert found["judged"] == 60 and policy.asked == 60 - before["judged"]
    assert again.rows(rows.STATE, rows.RECLASSIFY_PREFIX) == []


def test_another_version_of_the_hook_begins_again() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(40))
    policy.version = 2
    begin(turns)
    for _ in range(6):
        turns.turn()
    policy.version = 3
    turns.turn(UpdateQueue("q", {"max_attempts": "9"}))
    assert finish(turns)["version"] == 2
    names = {
        lane.throttle_keys
        for key in turns.queue("q").keys.values()
        for lane in key.lanes.values()
        if lane.pending
    }
    assert names == {(b"t0",), (b"t1",)}


def test_delays_and_attempts_go_along() -> None:
    turns, policy = machine(SMALL, journal=True)
    put(turns, policy, range(6), delay_ms=5_000)
    put(turns, policy, range(6, 9))
    (first, *_) = turns.consume("q", prefetch=1).ids()
    turns.nack("q", [first], FailureVerdict(False, 2_000))
    policy.version = 2
    run(turns)
    turns.leave("q", release=True)
    assert stands(turns) == {**wanted([0, 1, 2, 3, 4, 5, 6, 8]), b"all": {7}}  # 7 was leased
    assert sorted(numbers_of(turns.consume("q", "d", prefetch=50).entries())) == [7, 8]
    assert turns.wait(1_990 * MS).ids() == []
    (again,) = turns.wait(20 * MS).entries()
    assert (again[BODY], again[ATTEMPTS]) == (b"6", 1)
    assert sorted(numbers_of(turns.wait(5 * SECOND).entries())) == [0, 1, 2, 3, 4, 5]


def test_a_rate_is_kept_and_nothing_polls_meanwhile() -> None:
    turns, policy = machine()
    put(turns, policy, range(200))
    policy.version = 2
    begin(turns, rate=50)
    began = turns.now
    count = 0
    while told(turns)["state"] == "running":
        due = turns.driven.due_ns()
        assert due
        turns.now = max(turns.now, due)
        turns.turn()
        count += 1
    assert 3.0 < (turns.now - began) / SECOND < 5.0
    assert count < 300
    assert stands(turns) == wanted(range(200))


def test_a_second_run_and_a_queue_that_is_not_there_are_refused() -> None:
    turns, policy = machine()
    put(turns, policy, range(5))
    assert not isinstance(begin(turns), Rejection)
    again = begin(turns)
    assert isinstance(again, Rejection) and "already" in again.message
    assert isinstance(turns.driven.reclassify.begin("nowhere", 0, "ada", False), Rejection)
    found: Any = turns.driven.reclassify.cancel("q", "ada")
    assert found["state"] == "cancelled"
    turns.turn()
    assert turns.rows(rows.STATE, rows.RECLASSIFY_PREFIX) == []
    assert isinstance(turns.driven.reclassify.cancel("q", "ada"), Rejection)


def test_a_step_asks_about_so_many_and_so_many_queues_are_judged_at_once() -> None:
    turns, policy = machine()
    put(turns, policy, range(300))
    policy.version = 2
    policy.asked = 0
    begin(turns)
    asked = []
    while told(turns)["state"] == "running":
        before = policy.asked
        turns.turn()
        asked.append(policy.asked - before)
    assert max(asked) == Settings().reclassify_messages == 96
    for number in range(JOBS_MAX):
        turns.create(f"q{number}")
    for number in range(JOBS_MAX):
        found = turns.driven.reclassify.begin(f"q{number}", 0, "ada", True)
        assert not isinstance(found, Rejection)
    one_more = begin(turns)
    assert isinstance(one_more, Rejection) and f"{JOBS_MAX} queues" in one_more.message


def test_a_queue_that_is_deleted_and_made_again_is_another() -> None:
    turns, policy = machine(SMALL)
    put(turns, policy, range(30))
    policy.version = 2
    begin(turns)
    turns.turn()
    turns.turn()
    turns.turn(DeleteQueue("q"))
    turns.create("q")
    policy.version = 1
    put(turns, policy, range(5))
    policy.version = 2
    for _ in range(30):
        turns.turn()
    assert stands(turns) == {b"all": set(range(5))}
    assert not turns.driven.reclassify.jobs


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_meanwhile_nothing_is_lost_and_order_is_by_stamp(seed: int) -> None:
    rng = Random(seed)
    turns, policy = machine(SMALL, journal=bool(seed % 2))
    alive: set[int] = set()
    number = 0
    held: list[bytes] = []
    for step in range(250):
        turns.now += rng.choice((0, 1_000, 3 * MS))
        roll = rng.random()
        if roll < 0.4:
            some = list(range(number, number + rng.randint(1, 4)))
            number += len(some)
            alive |= set(some)
            put(turns, policy, some, delay_ms=rng.choice((0, 0, 0, 4)))
        elif roll < 0.5:
            held += turns.consume("q", f"c{step}", prefetch=3).ids()
            turns.leave("q", f"c{step}", release=rng.random() < 0.5)
        elif roll < 0.6 and held:
            gone, held = held[: len(held) // 2], held[len(held) // 2 :]
            codes = turns.turn(Ack("q", gone, 1)).replies[0]
            assert isinstance(codes, list)
            for id, code in zip(gone, codes, strict=True):
                alive -= {int.from_bytes(id, "big") - 1} if code == 0 else set()
        elif roll < 0.7:
            policy.version = rng.choice((1, 2, 3))
            turns.turn(UpdateQueue("q", {"max_attempts": str(rng.randint(100, 10**5))}))
        elif roll < 0.8:
            begin(turns, dry_run=rng.random() < 0.2)
        else:
            turns.turn()
    queue = turns.queue("q")
    assert queue.pending + len(queue.leased) == len(alive)
    assert {one for some in stands(turns).values() for one in some} == alive
    for key in queue.keys.values():
        for lane in key.lanes.values():
            stamps = [one[STAMP] for one in lane.window]
            assert stamps == sorted(stamps)
    again = turns.restart().queue("q")
    pending = {name: one.pending for name, one in queue.keys.items() if one.pending}
    assert {name: one.pending for name, one in again.keys.items() if one.pending} == pending


def test_the_row_comes_back_as_it_was_written() -> None:
    course = Course(5, 6, 7, 8, 9, 10, 11, 12, 13, "ada", START)
    assert read_course(course_row(course)) == course
    with pytest.raises(rows.CorruptRowError):
        read_course(course_row(course)[:-1])


def test_a_lane_that_is_made_again_under_its_name_hides_none_before_it() -> None:
    turns, policy = machine(SMALL._replace(idle_lanes=0, reclassify_messages=1))
    policy.version = 2
    put(turns, policy, range(20))
    policy.weight = 9
    begin(turns)
    turns.turn()
    first = turns.queue("q").keys[b"k1"]
    turns.turn(Purge("q", [(b"k1", ())], False, "ada"))
    assert b"k1" not in turns.queue("q").keys
    turns.now += SECOND
    turns.turn(Enqueue("q", [id_of(102)], [b"101"], [Assignment(b"k1", 1, ())]))
    assert turns.queue("q").keys[b"k1"] is not first
    finish(turns)
    weights = {
        int(value[rows.MESSAGE_HEAD_BYTES :]): rows.MESSAGE_HEAD.unpack_from(value)[2]
        for _, value in turns.rows(rows.MESSAGES)
    }
    assert {one for one, weight in weights.items() if weight != 9} == {101}


class Moving(Decided):
    """One message goes over to another lane."""

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        names = [body if body.isalnum() and body != b"old" else b"new" for body in bodies]
        return [Assignment(name, 1, ()) for name in names]


def send(turns: Turns, *keys: bytes, first: int = 1, delay_ms: int = 0) -> list[bytes]:
    """At one moment, each to the key its body names; `old` and `used` are throttled."""
    ids = [id_of(first + at) for at in range(len(keys))]
    lanes = [Assignment(key, 1, (b"t",) if key in (b"old", b"used") else ()) for key in keys]
    assert turns.turn(Enqueue("q", ids, list(keys), lanes, [delay_ms] * len(ids))).replies == [None]
    return ids


def test_of_two_with_one_stamp_that_are_not_in_memory_none_counts_the_others_turn() -> None:
    turns = Turns(Settings(pass_messages=1, window_bytes_total=1), policy=Moving())
    turns.create("q")
    turns.limit("t", 1, 1)
    send(turns, b"used", first=100)
    assert turns.consume("q", prefetch=100).ids() == [id_of(100)]
    fillers = [b"f%d" % at for at in range(30)]
    ids = [id_of(1 + at) for at in range(32)]
    lanes = [Assignment(b"old", 1, (b"t",)), *[Assignment(key, 1, ()) for key in fillers]]
    bodies = [b"old", *fillers, b"new"]
    waits = {}
    command = Enqueue("q", ids, bodies, [*lanes, Assignment(b"new", 1, ())])
    outcome, _ = turns.one_pass(command)
    since = turns.now
    for at in range(60):
        for delivery in outcome.deliveries:
            for entry, wait in zip(delivery.entries, delivery.waits, strict=True):
                waits[entry[BODY]] = wait
                assert min(wait) >= 0, (entry[BODY], wait)
                assert sum(wait) == turns.now - since
        turns.now += MS
        if at == 5:
            begin(turns)
        outcome, _ = turns.one_pass()
    assert b"new" in waits
    assert waits[b"old"].throttled > 5 * MS


def test_one_whose_delay_is_over_does_not_wait_for_the_time_of_its_new_place() -> None:
    turns = Turns(policy=Moving())
    turns.create("q")
    (late,) = send(turns, b"old", delay_ms=1)
    since = turns.now
    turns.consume("q", prefetch=5)
    turns.now = since + MS - 3
    burst = send(turns, *[b"new"] * 5, first=11)  # their stamps are a nanosecond apart
    assert turns.queue("q").keys[b"new"].leased == 5
    turns.now = since + MS
    turns.turn()
    begin(turns)
    assert finish(turns)["moved"] == 1
    outcome = turns.ack("q", burst[:1])
    assert outcome.ids() == [late]
    (wait,) = outcome.waits()
    assert min(wait) >= 0
    assert sum(wait) == turns.now - since


@pytest.mark.parametrize("steps", range(4))
def test_one_that_went_before_its_time_sets_nobody_elses_time(steps: int) -> None:
    turns = Turns(policy=Moving())
    turns.create("q")
    (late,) = send(turns, b"old", delay_ms=5_000)
    dies = body_of([("fila.ttl_ms", "50")])
    lane = [Assignment(b"new", 1, ())]
    turns.turn(Enqueue("q", [id_of(9)], [dies], lane, [3_600_000]))
    begin(turns)
    for _ in range(steps):
        turns.one_pass()
    turns.now += 50 * MS
    assert finish(turns)["state"] == "done"
    assert turns.queue("q").counters.aged_out == 1
    assert turns.consume("q").ids() == []
    assert turns.wait(5 * SECOND).ids() == [late]
