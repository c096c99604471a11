"""Was it fair? Against models with known answers, and against the broker's own core."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from fila.core.command import SetConfig
from fila.core.effect import (
    EVENT_DELIVERED,
    EVENT_DUE,
    EVENT_ENQUEUED,
    EVENT_PARKED,
    EVENT_SNAPSHOT,
    EVENT_THROTTLED,
    EVENT_WEIGHT_CHANGED,
    Event,
)
from fila.core.eligible import UNKNOWN
from fila.core.fairness import FairnessKey, Ring
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from fila.journal.recovery import gap_event
from fila.spark.events import read_events
from fila.spark.fairness import by_key, fairness, judged, summary
from fila.spark.gaps import Gap, _runs, gaps_of
from fila.spark.tables.cells import WINDOW_US, cells
from fila.spark.tables.known import presence_of
from tests.core.turn import MS, SECOND, START, Turns
from tests.spark.conftest import Journal, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Window boundaries fall on whole seconds.
BEGIN = START


class Story:
    """Events of one queue as a broker would tell them, whoever is served."""

    def __init__(self, **ready: int) -> None:
        self.events: list[Event] = []
        self.ready = {name.encode(): count for name, count in ready.items()}
        self.delayed = dict.fromkeys(self.ready, 0)
        self.weights = dict.fromkeys(self.ready, 1)
        self.delivered = 0
        self.now = BEGIN
        self.snapshot()

    def snapshot(self) -> None:
        for key in self.ready:
            self.tell(EVENT_SNAPSHOT, key)

    def tell(self, kind: str, key: bytes, ring_delta: int = 0, **more: int) -> None:
        ready = self.ready[key]
        event = Event(
            self.now, kind, "q", fairness_key=key, weight=self.weights[key],
            key_pending=ready + self.delayed[key], key_eligible=ready, ring_delta=ring_delta,
            queue_delivered=self.delivered,
        )  # fmt: skip
        self.events.append(event._replace(**more))  # type: ignore[arg-type]

    def deliver(self, key: bytes, count: int = 1) -> None:
        for _ in range(count):
            self.ready[key] -= 1
            self.delivered += 1
            self.tell(EVENT_DELIVERED, key, -1 if self.ready[key] == 0 else 0)

    def enqueue(self, key: bytes, count: int = 1) -> None:
        for _ in range(count):
            self.ready[key] += 1
            self.tell(EVENT_ENQUEUED, key, 1 if self.ready[key] == 1 else 0)

    def delay(self, key: bytes, until: int) -> None:
        self.delayed[key] += 1
        self.tell(EVENT_ENQUEUED, key, ready_ns=until)

    def fall_due(self, key: bytes) -> None:
        """The lane had nothing else; its delayed ones may go."""
        joins = self.ready[key] == 0
        self.ready[key] += self.delayed[key]
        self.delayed[key] = 0
        self.tell(EVENT_DUE, key, int(joins))


Row = Any


class Told(NamedTuple):
    """What is said about one story."""

    rows: dict[tuple[float, str], Row]  # by second and key
    queue: Row
    keys: dict[str, Row]

    def verdicts(self, key: str) -> set[str]:
        return {row.verdict for (_, name), row in self.rows.items() if name == key}


STORIES: dict[str, Callable[[], list[Event]]] = {}


def story(made: Callable[[], list[Event]]) -> Callable[[], list[Event]]:
    """Stories are judged all at once, each as a broker of its own: a job of Spark for each would
    take longer than all of them."""
    STORIES[made.__name__] = made
    return made


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    root = tmp_path_factory.mktemp("stories")
    for name, made in STORIES.items():
        write(root, made(), broker=name)
    events = read_events(spark, str(root))
    shares = fairness(events, window_s=1, gaps=gaps_of(events)).persist()
    rows: dict[str, dict[tuple[float, str], Row]] = {name: {} for name in STORIES}
    for row in shares.collect():
        second = row.window_start.timestamp() - BEGIN / SECOND
        rows[row.broker][second, row.fairness_key] = row
    queues = {row.broker: row for row in summary(shares).collect()}
    keys: dict[str, dict[str, Row]] = {name: {} for name in STORIES}
    for row in by_key(shares).collect():
        keys[row.broker][row.fairness_key] = row
    shares.unpersist()
    return {name: Told(rows[name], queues[name], keys[name]) for name in STORIES}


@story
def weight_of_two() -> list[Event]:
    one = Story(a=100, b=100)
    one.weights[b"a"] = 2
    one.snapshot()
    for turn in range(20):
        one.now = BEGIN + SECOND + turn * 40 * MS
        one.deliver(b"a", 2)
        one.deliver(b"b")
    return one.events


def test_a_weight_of_two_makes_a_fair_share_twice_as_large(told: dict[str, Told]) -> None:
    rows = told["weight_of_two"].rows
    a, b = rows[1.0, "a"], rows[1.0, "b"]
    assert (a.delivered, b.delivered) == (40, 20)
    assert (a.fair_share, b.fair_share) == (40.0, 20.0)
    assert (a.jain, b.behind, b.verdict) == (1.0, 0.0, "PASS")
    assert (a.ready_ms, b.ready_ms) == (1000.0, 1000.0)


@story
def little_ready() -> list[Event]:
    one = Story(a=50, b=50, c=4)
    one.now = BEGIN + SECOND
    for key in (b"c", b"a", b"b"):
        one.deliver(key, 4)
    for key in (b"a", b"b") * 9:
        one.deliver(key)
    return one.events


def test_a_key_with_little_ready_leaves_the_rest_to_the_others(told: dict[str, Told]) -> None:
    """Max-min: 30 deliveries, one key could use only 4, so the others' fair share is 13 each."""
    shares = {key: row.fair_share for (_, key), row in told["little_ready"].rows.items()}
    assert shares == {"a": 13.0, "b": 13.0, "c": 4.0}


def starving(seconds: int = 6) -> Story:
    """A tenant that always has something to send, and gets one message for ten of the other's."""
    one = Story(noisy=100_000, starved=1_000)
    for second in range(1, seconds + 1):
        for step in range(10):
            one.now = BEGIN + second * SECOND + step * 80 * MS
            one.deliver(b"noisy", 10)
            one.deliver(b"starved")
    return one


@story
def silent() -> list[Event]:
    one = Story(noisy=1_000, starved=5)
    for second in range(1, 4):
        one.now = BEGIN + second * SECOND
        one.deliver(b"noisy", 10)
    return one.events


def test_a_starved_key_is_seen_in_windows_without_events_of_its_own(told: dict[str, Told]) -> None:
    found = told["silent"]
    for second in (1.0, 2.0, 3.0):
        starved = found.rows[second, "starved"]
        assert (starved.delivered, starved.fair_share) == (0, 5.0)
        assert (starved.behind, starved.allowed, starved.verdict) == (10.0, 1.0, "FAIL")
    queue = found.queue
    assert (queue.queue, queue.judged, queue.failed, queue.verdict) == ("q", 3, 3, "FAIL")


@story
def delayed() -> list[Event]:
    one = starving()
    one.delay(b"starved", BEGIN + 3_600 * SECOND)
    early = one.events.pop()
    # It came first of all, and waits for its time all along.
    one.events.insert(2, early._replace(ts_ns=BEGIN, queue_delivered=0, key_eligible=1_000))
    return one.events


@story
def retried() -> list[Event]:
    one = Story(noisy=100_000, starved=1_000)
    for second in range(1, 5):
        one.now = BEGIN + second * SECOND
        one.delay(b"starved", one.now + 2 * SECOND)
        for step in range(10):
            one.now = BEGIN + second * SECOND + step * 80 * MS
            one.deliver(b"noisy", 10)
            one.deliver(b"starved")
    return one.events


@pytest.mark.parametrize("name", ["delayed", "retried"])
def test_a_delayed_message_does_not_hide_a_starved_key(told: dict[str, Told], name: str) -> None:
    assert told[name].verdicts("starved") == {"FAIL"}


@story
def empty_for_moments() -> list[Event]:
    one = Story(noisy=100_000, starved=1)
    for second in range(1, 5):
        for step in range(10):
            one.now = BEGIN + second * SECOND + step * 80 * MS
            one.deliver(b"noisy", 10)
            one.deliver(b"starved")  # its last one
            one.now += MS // 2
            one.enqueue(b"starved")
    return one.events


def test_half_a_millisecond_without_messages_does_not_hide_a_starved_key(
    told: dict[str, Told],
) -> None:
    found = told["empty_for_moments"]
    assert found.verdicts("starved") == {"FAIL"}
    starved = found.rows[2.0, "starved"]
    assert (starved.stretches, starved.ready_ms) == (11, 995.0)


@story
def away_for_half() -> list[Event]:
    """Nine others share what there is, so that none of them got much; it got a tenth of a share."""
    others = [b"t%d" % at for at in range(9)]
    one = Story(starved=0, **{name.decode(): 10_000 for name in others})
    for second in range(1, 4):
        one.now = BEGIN + second * SECOND
        for _ in range(50):
            for key in others:
                one.deliver(key)
        one.now += 500 * MS
        one.enqueue(b"starved", 5)
        for _ in range(4):
            one.deliver(b"starved")
            for key in others * 10:
                one.deliver(key)
        one.deliver(b"starved")
    return one.events


def test_being_away_for_half_of_the_time_does_not_hide_a_starved_key(told: dict[str, Told]) -> None:
    assert told["away_for_half"].verdicts("starved") == {"FAIL"}
    assert told["away_for_half"].verdicts("t3") == {"PASS"}


@story
def parked() -> list[Event]:
    one = Story(free=1_000, slow=5)
    one.now = BEGIN + 500 * MS
    one.deliver(b"slow")
    one.ready[b"slow"] = 0
    one.tell(EVENT_PARKED, b"slow", -1)
    for second in range(1, 4):
        one.now = BEGIN + second * SECOND
        one.deliver(b"free", 10)
    one.now = BEGIN + 4 * SECOND
    one.ready[b"slow"] = 4
    one.tell(EVENT_THROTTLED, b"slow", 1, since_ns=BEGIN + 500 * MS)
    one.deliver(b"slow")
    return one.events


def test_a_key_parked_on_a_bucket_is_not_taken_for_starved(told: dict[str, Told]) -> None:
    rows = told["parked"].rows
    assert {row.verdict for row in rows.values()} == {"-"}
    assert rows[2.0, "free"].unjudged == "alone"
    assert (2.0, "slow") not in rows


@story
def late() -> list[Event]:
    one = Story(free=1_000, late=0)
    one.delay(b"late", BEGIN + 3 * SECOND)
    for second in range(1, 4):
        one.now = BEGIN + second * SECOND
        if second == 3:
            one.fall_due(b"late")
        one.deliver(b"free")
        if second == 3:
            one.deliver(b"late")
        one.deliver(b"free", 9)
    return one.events


def test_a_delayed_key_is_not_taken_for_starved(told: dict[str, Told]) -> None:
    rows = told["late"].rows
    assert (1.0, "late") not in rows
    assert rows[3.0, "late"].verdict != "FAIL"


@story
def with_tokens() -> list[Event]:
    """Its bucket has tokens: nothing says that it is parked."""
    one = Story(noisy=1_000, starved=5)
    one.enqueue(b"starved")
    one.events[-1] = one.events[-1]._replace(throttle_keys=(b"api",))
    one.now = BEGIN + 2 * SECOND
    one.deliver(b"noisy", 10)
    return one.events


def test_a_starved_key_with_throttle_keys_is_seen_too(told: dict[str, Told]) -> None:
    starved = told["with_tokens"].rows[2.0, "starved"]
    assert (starved.delivered, starved.fair_share, starved.verdict) == (0, 5.0, "FAIL")


@story
def with_a_gap() -> list[Event]:
    one = Story(a=100, b=100)
    for second in range(1, 7):
        one.now = BEGIN + second * SECOND
        one.deliver(b"a", 10)  # only a is served: every window would fail
        if second == 3:
            one.events.append(gap_event(one.now + MS, BEGIN + 2 * SECOND + MS, 7))
            one.ready[b"a"] -= 7
            one.delivered += 7
        if second == 4:
            one.now += MS
            one.snapshot()
    return one.events


def test_windows_that_a_gap_touches_are_marked_and_not_judged(told: dict[str, Told]) -> None:
    found = told["with_a_gap"]
    seen = {second: (row.unjudged, row.verdict) for (second, key), row in found.rows.items()}
    assert seen == {
        1.0: (None, "FAIL"), 2.0: ("gap", "-"), 3.0: ("gap", "-"), 4.0: ("gap", "-"),
        5.0: (None, "FAIL"), 6.0: (None, "FAIL"),
    }  # fmt: skip
    b = found.keys["b"]
    assert (b.judged, b.failed, b.ready_s, b.unjudged_s) == (3, 3, 6.0, 3.0)
    assert (found.queue.ready_s, found.queue.judged_s, found.queue.unjudged_s) == (12.0, 6.0, 6.0)


@story
def with_a_row_missing() -> list[Event]:
    events = starving(3).events
    second = [one for one in events if one.ts_ns // SECOND == BEGIN // SECOND + 2]
    events.remove(second[50])
    return events


def test_what_keys_hold_is_known_after_a_round_of_snapshots_that_began_after_the_loss() -> None:
    times = [10_000_000, 10_100_000, 10_400_000, 20_000_000, 20_200_000]
    assert _runs(times) == [(10_000_000, 10_400_000), (20_000_000, 20_200_000)]
    assert _runs([]) == []


def test_rows_that_are_missing_without_a_word_are_noticed(told: dict[str, Told]) -> None:
    """The queue's own count goes on."""
    rows = told["with_a_row_missing"].rows
    assert [rows[at, "starved"].unjudged for at in (1.0, 2.0, 3.0)] == [None, "gap", None]


@story
def another_weight() -> list[Event]:
    one = Story(a=1_000, b=1_000)
    one.now = BEGIN + SECOND
    one.deliver(b"a", 2)
    one.deliver(b"b", 2)
    one.weights[b"a"] = 9
    one.tell(EVENT_WEIGHT_CHANGED, b"a")
    one.enqueue(b"a")
    for _ in range(20):
        one.deliver(b"a", 9)
        one.deliver(b"b")
    one.now += SECOND
    one.deliver(b"a", 200)
    one.deliver(b"b", 2)
    return one.events


def test_a_weight_that_changes_is_judged_with_a_visit_more(told: dict[str, Told]) -> None:
    rows = told["another_weight"].rows
    assert rows[1.0, "b"].verdict == "PASS"
    assert rows[2.0, "b"].verdict == "FAIL"


@story
def hardly_judged() -> list[Event]:
    one = Story(a=500, b=500)
    one.now = BEGIN + SECOND
    for _ in range(10):
        one.deliver(b"a")
        one.deliver(b"b")
    for second in range(2, 8):
        one.now = BEGIN + second * SECOND
        one.deliver(b"a")
    return one.events


def test_little_that_can_be_judged_is_no_verdict(told: dict[str, Told]) -> None:
    queue = told["hardly_judged"].queue
    assert (queue.judged, queue.failed, queue.verdict) == (1, 0, "-")
    assert (queue.judged_s, queue.unjudged_s) == (2.0, 12.0)


@story
def the_core() -> list[Event]:
    return traffic(quantum=1)


def test_the_core_passes(told: dict[str, Told]) -> None:
    queue = told["the_core"].queue
    assert (queue.verdict, queue.failed) == ("PASS", 0)
    assert queue.judged > 5


def test_shares_of_a_window_sum_to_its_deliveries(told: dict[str, Told]) -> None:
    rows = told["the_core"].rows
    seconds = {second for second, _ in rows}
    assert len(seconds) > 5
    for second in seconds:
        own = [row for (at, _), row in rows.items() if at == second]
        assert abs(sum(row.fair_share - row.delivered for row in own)) < 1e-3


def shares_by_hand(events: list[Event], window_ns: int) -> dict[tuple[int, bytes], list[float]]:
    """Event by event: what each key got in a window, what it could have used, and nothing else."""
    ring: set[bytes] = set()
    ready: dict[bytes, int] = {}
    windows: dict[int, dict[bytes, list[float]]] = {}
    at = 0

    def close() -> None:
        for key in ring:
            row = windows.setdefault(at, {}).setdefault(key, [0, 0, 0])
            row[2] = max(ready[key], 1)

    for event in events:
        key = event.fairness_key
        if not key or not event.queue:
            continue
        while at and at < event.ts_ns // window_ns:
            close()
            at += 1
        at = event.ts_ns // window_ns
        inside = event.key_eligible == UNKNOWN or event.key_eligible > 0
        if int(inside) - event.ring_delta == 1:
            ring.add(key)
        here = windows.setdefault(at, {})
        if event.event == EVENT_DELIVERED:
            for one in ring:
                here.setdefault(one, [0, 0, 0])[1] += 1
            here[key][0] += 1
        ready[key] = event.key_pending if event.key_eligible == UNKNOWN else event.key_eligible
        if inside:
            ring.add(key)
            here.setdefault(key, [0, 0, 0])
        else:
            ring.discard(key)
    close()
    return {
        (window, key): [row[0], max(row[0], min(row[0] + row[2], row[1]))]
        for window, keys in windows.items()
        if sum(row[0] for row in keys.values())
        for key, row in keys.items()
    }


def dealt_by_hand(
    total: float, wanted: dict[str, float], weights: dict[str, int]
) -> dict[str, float]:
    """Weighted max-min: who wants less than its part has what it wants, the others share."""
    shares: dict[str, float] = {}
    while len(shares) < len(wanted):
        left = total - sum(shares.values())
        rest = [key for key in wanted if key not in shares]
        each = left / sum(weights[key] for key in rest)
        content = [key for key in rest if wanted[key] <= each * weights[key]]
        shares |= {key: wanted[key] for key in content}
        if not content:
            shares |= {key: each * weights[key] for key in rest}
    return shares


@pytest.mark.parametrize(
    "name", ["the_core", "favoured", *[f"lively_{seed}" for seed in range(1, 5)]]
)
def test_fair_shares_are_those_of_a_computation_by_hand(told: dict[str, Told], name: str) -> None:
    by_hand = shares_by_hand(STORIES[name](), SECOND)
    rows = {
        (round(second + BEGIN / SECOND), key): row for (second, key), row in told[name].rows.items()
    }
    assert {(at, key.decode()): row[0] for (at, key), row in by_hand.items()} == {
        place: row.delivered for place, row in rows.items()
    }
    for window in {at for at, _ in by_hand}:
        own = {key.decode(): row for (at, key), row in by_hand.items() if at == window}
        shares = dealt_by_hand(
            sum(row[0] for row in own.values()),
            {key: row[1] for key, row in own.items()},
            {key: rows[window, key].weight for key in own},
        )
        for key, share in shares.items():
            assert rows[window, key].fair_share == pytest.approx(share, abs=1e-4), (window, key)


for seed in range(1, 5):
    STORIES[f"lively_{seed}"] = partial(lambda one: lively(one), seed)


def test_the_core_passes_whatever_comes_and_goes(told: dict[str, Told]) -> None:
    """Delays, retries, limits, weights that change."""
    rows = [row for seed in range(1, 5) for row in told[f"lively_{seed}"].rows.values()]
    verdicts = [row.verdict for row in rows]
    assert "FAIL" not in verdicts
    assert verdicts.count("PASS") > 10
    assert not [row for row in rows if row.unjudged == "gap"]


@story
def large_quantum() -> list[Event]:
    return traffic(quantum=100_000)


@story
def favoured() -> list[Event]:
    """Every visit of one tenant gets three messages more than the weight that is told allows."""
    honest = Ring.set_weight

    def favour(ring: Ring, key: FairnessKey, weight: int) -> None:
        honest(ring, key, weight + 3 if key.name == b"a" else weight)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ring, "set_weight", favour)
        events = traffic(quantum=1, weight=2)
    return [
        one._replace(weight=one.weight - 3) if one.fairness_key == b"a" and one.weight else one
        for one in events
    ]


@story
def jumping() -> list[Event]:
    """Whoever comes into the ring goes first."""
    honest = Ring.join

    def jump(ring: Ring, key: FairnessKey) -> None:
        honest(ring, key)
        if key.name == b"a":
            ring.head = key

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ring, "join", jump)
        return comings_and_goings()


@pytest.mark.parametrize("name", ["large_quantum", "favoured", "jumping"])
def test_a_planted_fault_of_the_scheduler_fails(told: dict[str, Told], name: str) -> None:
    assert told[name].queue.verdict == "FAIL"


def test_every_story_has_the_same_verdicts_from_facts(spark: SparkSession, tmp_path: Path) -> None:
    """Planted unfairness of every kind, fair runs and gaps: row for row, of windows of 10 s."""
    for name, made in STORIES.items():
        write(tmp_path, made(), broker=name)
    events = read_events(spark, str(tmp_path)).persist()
    gaps = gaps_of(events)
    raw = sorted(map(tuple, fairness(events, 10, gaps=gaps).collect()), key=repr)
    present = presence_of(cells(events))
    assert sorted(map(tuple, judged(present, WINDOW_US, gaps=gaps).collect()), key=repr) == raw
    events.unpersist()
    assert {row[-1] for row in raw} == {"PASS", "FAIL", "-"}


def test_ten_bad_minutes_are_not_lost_in_a_day(journal: Journal) -> None:
    one = Story(noisy=100_000, starved=100_000)
    for minute in range(0, 24 * 60, 2):
        for step in range(2):
            one.now = BEGIN + (60 * minute + 20 * step) * SECOND
            bad = 600 <= minute < 610
            one.deliver(b"noisy", 11 if bad else 5)
            one.deliver(b"starved", 1 if bad else 5)
    (queue,) = summary(fairness(journal(one.events))).collect()
    assert (queue.failed, queue.verdict) == (10, "FAIL")
    assert queue.judged == queue.windows == 1_440


def test_a_thousand_gaps_make_no_longer_plan_than_one(journal: Journal) -> None:
    found = journal(starving(2).events)
    gaps = [Gap("test", 1, at, at + 1, at + 1, 1) for at in range(0, 10_000_000_000, 10_000_000)]
    sizes = [
        len(fairness(found, 1, 1, some)._jdf.queryExecution().optimizedPlan().toString())
        for some in (gaps[:1], gaps)
    ]
    assert sizes[1] < 1.2 * sizes[0]


def test_one_scan_and_one_large_shuffle(spark, tmp_path) -> None:
    """Events are aggregated before they meet; all that comes after are rows per key and window."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would decide while it runs
    write(tmp_path, traffic(quantum=1))
    shares = fairness(read_events(spark, str(tmp_path)), window_s=1)
    plan = shares._jdf.queryExecution().executedPlan().toString()
    lines = plan.splitlines()
    scans = [at for at, line in enumerate(lines) if "FileScan parquet" in line]
    assert len(scans) == 1, "the others are the same exchange, used again"
    assert plan.count("ReusedExchange") >= 2
    # The plan reads upwards: scan, partial aggregate, the one exchange of events.
    exchanges = [at for at, line in enumerate(lines) if " Exchange " in line and at < scans[0]]
    assert "HashAggregate" in "".join(lines[exchanges[-1] : scans[0]])
    assert "SortAggregate" not in plan


def traffic(quantum: int, weight: int = 1) -> list[Event]:
    """A backlog of three tenants, served for ten seconds by one consumer."""
    turns = Turns(Settings(quantum=quantum, pass_messages=16), journal=True)
    turns.create("q")
    events = []
    commands = [
        turns.messages("q", b"a", 900, weight), turns.messages("q", b"b", 900, weight),
        turns.messages("q", b"c", 900, weight * 2),
    ]  # fmt: skip
    events += turns.turn(*commands).events
    turns.now += 10 * MS
    outcome = turns.consume("q", prefetch=30)
    events += outcome.events
    for _ in range(60):
        turns.now += 150 * MS
        outcome = turns.ack("q", outcome.ids())
        events += outcome.events
    return events


def comings_and_goings() -> list[Event]:
    """Two tenants, of whom one sends one message after the other, the next when it got one."""
    turns = Turns(journal=True)
    turns.create("q")
    events = turns.turn(turns.messages("q", b"b", 500)).events
    outcome = turns.consume("q", prefetch=1)
    events += outcome.events
    for _ in range(120):
        turns.now += 20 * MS
        ids = outcome.ids()
        events += turns.turn(turns.messages("q", b"a", 1)).events
        outcome = turns.ack("q", ids)
        events += outcome.events
    return events


def lively(seed: int) -> list[Event]:
    """Twelve seconds in which tenants of all kinds come and go."""
    rng = random.Random(seed)
    turns = Turns(Settings(pass_messages=16, window_messages=8, page_messages=4), journal=True)
    turns.create("q", 3_600_000)
    turns.turn(SetConfig("throttle.api", "30,5"))
    rates = {b"t%d" % at: rng.choice((2, 20, 60)) for at in range(rng.choice((2, 3, 8)))}
    weights = {key: rng.choice((1, 1, 2)) for key in rates}

    def weight_of(key: bytes) -> int:
        if rng.random() < 0.01:
            weights[key] = rng.choice((1, 2, 3))
        return weights[key]

    outcome = turns.consume("q", prefetch=10)
    events, held = outcome.events, outcome.ids()
    for _ in range(240):
        commands = [
            turns.messages(
                "q", key, rng.randint(1, 2 * rate // 20 + 1), weight_of(key),
                rng.choice(((), (), (), (b"api",))), rng.choice((0, 0, 0, 50, 3_000)),
            )
            for key, rate in rates.items()
            if rng.random() < 0.7
        ]  # fmt: skip
        for outcome in (turns.turn(*commands), turns.wait(50 * MS)):
            events += outcome.events
            held += outcome.ids()
        failed, done, held = held[:1], held[1:6], held[6:]
        if failed and rng.random() < 0.3:
            delay_ms = rng.choice((0, 100, 20_000))
            for outcome in (turns.nack("q", failed, FailureVerdict(False, delay_ms)),):
                events += outcome.events
                held += outcome.ids()
        else:
            done += failed
        outcome = turns.ack("q", done)
        events += outcome.events
        held += outcome.ids()
    return events
