"""Was it fair? Against models with known answers, and against the broker's own core."""

from __future__ import annotations

from fila.core.effect import (
    EVENT_DELIVERED,
    EVENT_ENQUEUED,
    EVENT_PARKED,
    EVENT_SNAPSHOT,
    EVENT_THROTTLED,
    Event,
)
from fila.core.settings import Settings
from fila.journal.recovery import gap_event
from fila.spark.fairness import fairness, summary
from fila.spark.gaps import gaps_of
from tests.core.turn import MS, SECOND, START, Turns
from tests.spark.conftest import Journal

# Window boundaries fall on whole seconds.
BEGIN = START


def snapshot(key: bytes, eligible: int, weight: int = 1, at: int = BEGIN) -> Event:
    return Event(
        at, EVENT_SNAPSHOT, "q", fairness_key=key, weight=weight, key_pending=eligible,
        key_eligible=eligible,
    )  # fmt: skip


def delivery(key: bytes, at: int, left: int, weight: int = 1) -> Event:
    return Event(
        at,
        EVENT_DELIVERED,
        "q",
        fairness_key=key,
        weight=weight,
        key_pending=left,
        key_eligible=left,
    )


def rows_of(frame):
    return {
        ((row.window_start.timestamp() - BEGIN / SECOND), row.fairness_key): row
        for row in frame.collect()
    }


def test_a_weight_of_two_makes_a_fair_share_twice_as_large(journal: Journal) -> None:
    events = [snapshot(b"a", 100, weight=2), snapshot(b"b", 100)]
    at = BEGIN + SECOND
    left = {b"a": 100, b"b": 100}
    for turn in range(20):
        for key in (b"a", b"a", b"b"):
            left[key] -= 1
            events.append(
                delivery(key, at + turn * 40 * MS, left[key], weight=2 if key == b"a" else 1)
            )
    rows = rows_of(fairness(journal(events), window_s=1))
    a, b = rows[1.0, "a"], rows[1.0, "b"]
    assert (a.delivered, b.delivered) == (40, 20)
    assert (a.fair_share, b.fair_share) == (40.0, 20.0)
    assert (a.jain, a.spread, a.verdict) == (1.0, 0.0, "PASS")
    assert a.backlogged and b.backlogged


def test_a_key_with_little_ready_leaves_the_rest_to_the_others(journal: Journal) -> None:
    """Max-min: 30 deliveries, one key could use only 4, so the others' fair share is 13 each."""
    events = [snapshot(b"a", 50), snapshot(b"b", 50), snapshot(b"c", 4)]
    left = {b"a": 50, b"b": 50, b"c": 4}
    for key, count in ((b"c", 4), (b"a", 13), (b"b", 13)):
        for _ in range(count):
            left[key] -= 1
            events.append(delivery(key, BEGIN + SECOND, left[key]))
    rows = rows_of(fairness(journal(events), window_s=1))
    shares = {key: row.fair_share for (_, key), row in rows.items()}
    assert shares == {"a": 13.0, "b": 13.0, "c": 4.0}
    assert rows[1.0, "a"].verdict == "PASS"
    assert not rows[1.0, "c"].backlogged


def test_a_starved_key_is_seen_in_windows_without_events_of_its_own(journal: Journal) -> None:
    events = [snapshot(b"noisy", 1000), snapshot(b"starved", 5)]
    left = 1000
    for second in range(1, 4):
        for _ in range(10):
            left -= 1
            events.append(delivery(b"noisy", BEGIN + second * SECOND, left))
    rows = rows_of(fairness(journal(events), window_s=1))
    for window_s in (1.0, 2.0, 3.0):
        starved = rows[window_s, "starved"]
        assert (starved.delivered, starved.fair_share, starved.backlogged) == (0, 5.0, True)
        assert (starved.spread, starved.verdict) == (10.0, "FAIL")
    found = summary(fairness(journal(events), window_s=1)).collect()
    assert [(row.queue, row.judged, row.failed, row.verdict) for row in found] == [
        ("q", 3, 3, "FAIL")
    ]


def test_a_key_parked_on_a_bucket_is_not_taken_for_starved(journal: Journal) -> None:
    events = [snapshot(b"free", 1000), snapshot(b"slow", 5)]
    parked = Event(
        BEGIN + 500 * MS,
        EVENT_PARKED,
        "q",
        fairness_key=b"slow",
        throttle_keys=(b"api",),
        key_pending=4,
    )
    events += [delivery(b"slow", BEGIN + 500 * MS, 4), parked]
    left = 1000
    for second in range(1, 4):
        for _ in range(10):
            left -= 1
            events.append(delivery(b"free", BEGIN + second * SECOND, left))
    throttled = Event(
        BEGIN + 4 * SECOND, EVENT_THROTTLED, "q", fairness_key=b"slow", throttle_keys=(b"api",),
        since_ns=BEGIN + 500 * MS, key_pending=4, key_eligible=4,
    )  # fmt: skip
    events += [throttled, delivery(b"slow", BEGIN + 4 * SECOND, 3)]
    rows = rows_of(fairness(journal(events), window_s=1))
    assert {row.verdict for row in rows.values()} == {"-"}
    assert (2.0, "slow") not in rows


def test_a_starved_key_with_throttle_keys_is_seen_too(journal: Journal) -> None:
    """Its bucket has tokens: nothing says that it is parked."""
    events = [snapshot(b"noisy", 1000), snapshot(b"starved", 5)]
    waiting = Event(
        BEGIN, EVENT_ENQUEUED, "q", fairness_key=b"starved", weight=1, throttle_keys=(b"api",),
        key_pending=6, key_eligible=6,
    )  # fmt: skip
    events.append(waiting)
    events += [delivery(b"noisy", BEGIN + 2 * SECOND, 1000 - n) for n in range(1, 11)]
    starved = rows_of(fairness(journal(events), window_s=1))[2.0, "starved"]
    assert (starved.delivered, starved.fair_share, starved.verdict) == (0, 5.0, "FAIL")


def test_windows_that_a_gap_touches_are_marked_and_not_judged(journal: Journal) -> None:
    events = [snapshot(b"a", 100), snapshot(b"b", 100)]
    for second in range(1, 7):
        for n in range(10):  # only a is served: every window would fail
            events.append(delivery(b"a", BEGIN + second * SECOND, 99 - 10 * (second - 1) - n))
        if second == 3:
            events.append(gap_event(BEGIN + 3 * SECOND + MS, BEGIN + 2 * SECOND + MS, 7))
        if second == 4:
            events += [snapshot(b"a", 59, at=BEGIN + 4 * SECOND + MS),
                       snapshot(b"b", 100, at=BEGIN + 4 * SECOND + MS)]  # fmt: skip
    found = journal(events)
    (gap,) = gaps_of(found)
    assert (gap.lost, gap.known_us - gap.end_us) == (7, 1_000_000)
    rows = rows_of(fairness(found, window_s=1, gaps=[gap]))
    judged = {second: (row.incomplete, row.verdict) for (second, key), row in rows.items()}
    assert judged == {
        1.0: (False, "FAIL"), 2.0: (True, "-"), 3.0: (True, "-"), 4.0: (True, "-"),
        5.0: (False, "FAIL"), 6.0: (False, "FAIL"),
    }  # fmt: skip


def test_a_changed_weight_is_not_judged_in_its_window(journal: Journal) -> None:
    events = [snapshot(b"a", 100), snapshot(b"b", 100)]
    enqueued = Event(
        BEGIN + SECOND, EVENT_ENQUEUED, "q", fairness_key=b"a", weight=9, key_pending=101,
        key_eligible=101,
    )  # fmt: skip
    events += [enqueued, *[delivery(b"a", BEGIN + SECOND, 101 - n) for n in range(1, 10)]]
    events.append(delivery(b"b", BEGIN + SECOND, 99))
    events += [delivery(b"a", BEGIN + 2 * SECOND, 92 - n, 9) for n in range(1, 10)]
    events.append(delivery(b"b", BEGIN + 2 * SECOND, 98))
    rows = rows_of(fairness(journal(events), window_s=1))
    assert (rows[1.0, "a"].verdict, rows[2.0, "a"].verdict) == ("-", "PASS")


def test_shares_of_a_window_sum_to_its_deliveries(journal: Journal) -> None:
    rows = fairness(journal(traffic(quantum=1)), window_s=1).collect()
    windows = {row.window_start for row in rows}
    assert len(windows) > 5
    for window in windows:
        own = [row for row in rows if row.window_start == window]
        delivered = sum(row.delivered for row in own)
        assert abs(sum(row.fair_share for row in own) - delivered) < 1e-3


def test_the_core_passes(journal: Journal) -> None:
    found = summary(fairness(journal(traffic(quantum=1)), window_s=1)).collect()[0]
    assert (found.verdict, found.failed) == ("PASS", 0)
    assert found.judged > 5


def test_a_quantum_of_a_hundred_thousand_fails(journal: Journal) -> None:
    found = summary(fairness(journal(traffic(quantum=100_000)), window_s=1)).collect()[0]
    assert found.verdict == "FAIL"


def test_a_planted_fault_of_the_scheduler_fails(journal: Journal, monkeypatch) -> None:
    """Every visit of one tenant gets three messages more than its weight allows."""
    from fila.core.fairness import Ring

    honest = Ring.set_weight

    def favour(ring, key, weight):
        honest(ring, key, weight + 3 if key.name == b"a" else weight)

    monkeypatch.setattr(Ring, "set_weight", favour)
    found = summary(fairness(journal(traffic(quantum=1, weight=2)), window_s=1)).collect()[0]
    assert found.verdict == "FAIL"


def test_one_scan_and_one_large_shuffle(spark, tmp_path) -> None:
    """Every exchange but the first carries rows per key and window, not events."""
    from fila.spark.events import read_events
    from tests.spark.conftest import write

    write(tmp_path, traffic(quantum=1))
    shares = fairness(read_events(spark, str(tmp_path)), window_s=1)
    plan = shares._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == 1
    lines = plan.splitlines()
    exchanges = [at for at, line in enumerate(lines) if " Exchange " in line]
    aggregates = [at for at, line in enumerate(lines) if "HashAggregate" in line]
    assert len(exchanges) == 2
    # The plan reads upwards: scan, partial aggregate, the one exchange of events, final aggregate.
    assert len(aggregates) == 2
    assert aggregates[0] < exchanges[1] < aggregates[1]
    assert exchanges[0] < aggregates[0]
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
