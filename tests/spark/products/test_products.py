"""Objectives, chargeback, capacity and habits, against books kept message by message."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest

from fila.spark.products.anomalies import HABIT, anomalies, habits, minutes_of, remembered
from fila.spark.products.capacity import capacity
from fila.spark.products.chargeback import chargeback
from fila.spark.products.slo import Objective, ObjectiveError, budgets, objective, slo
from fila.spark.tables.histogram import bucket_number, upper_edge
from fila.spark.tables.schemas import carry_schema
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import rows
from tests.spark.tables.scenario import Scenario

HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
WINDOW_US = 10_000_000
CHARGED = ("enqueued", "enqueued_bytes", "delivered", "delivered_bytes", "acked")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("99%<1s", Objective("*", "*", 0.99, 1_000)),
        ("orders=99.9% < 500ms", Objective("orders", "*", 0.999, 500)),
        ("orders/acme*=95%<2m", Objective("orders", "acme*", 0.95, 120_000)),
    ],
)
def test_an_objective_is_read(text, meant) -> None:
    found = objective(text)
    assert found[:2] == meant[:2]
    assert found[2:] == pytest.approx(meant[2:])


@pytest.mark.parametrize("text", ["", "99%", "orders<1s", "100%<1s", "99%<1h", "a/b/c=9%<1s=1"])
def test_what_is_no_objective_is_refused(text) -> None:
    with pytest.raises(ObjectiveError, match="is no objective"):
        objective(text)


def test_slow_deliveries_are_counted_by_tenant_and_minute(
    scenario: Scenario, whole: ParquetStore
) -> None:
    """The first objective that fits holds; time before a message was ready does not count."""
    rules = [objective("jobs/noisy=50%<2s"), objective("jobs=90%<300ms")]
    limits = {"noisy": 2_000_000, "": 300_000}
    expected: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for _, event in scenario.events:
        if (event.event, event.queue) == ("delivered", "jobs") and event.waits:
            key = event.fairness_key.decode()
            us = event.ts_ns // 1_000
            ready_us = us - event.since_ns // 1_000 - event.waits.retry // 1_000
            limit = upper_edge(bucket_number(limits.get(key, limits[""])))
            expected[key, us // MINUTE_US].update(deliveries=1, slow=int(ready_us >= limit))
    found = {}
    for row in slo(rows(whole, "facts"), rules).collect():
        minute = round(row.minute.timestamp()) // 60
        found[row.fairness_key, minute] = Counter(deliveries=row.deliveries, slow=row.slow)
        assert row.target == (0.5 if row.fairness_key == "noisy" else 0.9)
        assert row.burn_rate == pytest.approx(row.slow / row.deliveries / (1 - row.target), 1e-4)
    assert found == expected
    assert sum(one["slow"] for one in expected.values()) > 5


def test_a_budget_is_what_the_target_allows(spark) -> None:
    minutes = spark.createDataFrame(
        [("b", "q", "a", 60 * at, 100, 2 if at >= 8 else 0, 0.99, 1e3) for at in range(10)]
        + [("b", "q", "b", 0, 1_000, 5, 0.99, 1e3)],
        "broker string, queue string, fairness_key string, at long, deliveries long, slow long, "
        "target double, within_ms double",
    ).selectExpr("* except (at)", "timestamp_seconds(at) as minute")
    found = {row.fairness_key: row for row in budgets(minutes).collect()}
    assert found["a"].burn_5m == pytest.approx(4 / 5)  # 4 slow where 5 minutes allow 5
    assert found["a"].burn_1h == pytest.approx(4 / 10)
    assert found["a"].budget_left == pytest.approx(0.6)
    assert found["b"].burn_5m is None  # nothing was delivered lately
    assert found["b"].budget_left == pytest.approx(0.5)


def test_a_tenant_is_charged_what_it_used(scenario: Scenario, whole: ParquetStore) -> None:
    expected: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for _, event in scenario.events:
        key = (event.queue, event.fairness_key.decode(), event.ts_ns // 1_000 // HOUR_US)
        if event.event == "enqueued":
            expected[key].update(enqueued=1, enqueued_bytes=event.body_bytes)
        elif event.event == "delivered":
            expected[key].update(delivered=1, delivered_bytes=event.body_bytes)
        elif event.event == "acked":
            expected[key].update(acked=1)
    found = {}
    for row in chargeback(rows(whole, "facts")).collect():
        hour = round(row.hour_start.timestamp()) // 3_600
        counts = {name: row[name] for name in CHARGED}
        found[row.queue, row.fairness_key, hour] = +Counter(counts)
    assert {key: one for key, one in found.items() if one} == dict(expected)


def test_backlog_and_the_limit_that_binds_are_told(
    spark, scenario: Scenario, whole: ParquetStore
) -> None:
    """The backlog at a window's end is what its keys have pending then."""
    expected: dict[tuple[int, str, int], int] = {}
    for epoch, events in scenario.runs.items():
        pending: dict[str, dict[bytes, int]] = defaultdict(dict)
        for event in events:
            if event.fairness_key:
                pending[event.queue][event.fairness_key] = event.key_pending
            if event.queue:
                window = event.ts_ns // 1_000 // WINDOW_US
                expected[epoch, event.queue, window] = sum(pending[event.queue].values())
    found = capacity(rows(whole, "facts"), spark.createDataFrame([], carry_schema())).collect()
    told = {(row.epoch, row.queue, row.window): row.backlog for row in found}
    assert {key: told[key] for key in expected} == expected
    assert {row.binding for row in found} >= {"consumers"}
    waits: dict[tuple[int, str, int], Counter[str]] = defaultdict(Counter)
    for epoch, event in scenario.events:
        if event.event == "delivered" and event.waits:
            one = event.waits
            waits[epoch, event.queue, event.ts_ns // 1_000 // WINDOW_US].update(
                consumers=(one.no_consumer + one.busy_own + one.busy_others) // 1_000,
                throttle=one.throttled // 1_000,
                paused=one.paused // 1_000, turns=one.turn // 1_000 + one.own // 1_000,
            )  # fmt: skip
    before: dict[tuple[int, str], int] = {}
    for row in sorted(found, key=lambda row: row.window):
        place = (row.epoch, row.queue, row.window)
        if place in expected:
            largest = max(waits[place].values(), default=0)
            fitting = [name for name, us in waits[place].items() if us == largest]
            assert row.binding in (fitting if largest else ["-"]), place
        fallen = before.get(place[:2], 0) - row.backlog
        assert (row.clears_s is None) == (fallen <= 0), place
        if fallen > 0:  # at the pace of these ten seconds
            assert row.clears_s == pytest.approx(row.backlog / (fallen / 10), abs=0.06)
        before[place[:2]] = row.backlog
    assert any(row.clears_s for row in found)


def book(minutes: list[tuple[int, float, int, float]]):
    """A habit kept step by step, and which minutes stood out."""
    mean = variance = failing = failing_variance = 0.0
    marks = []
    by_minute = {minute: rest for minute, *rest in minutes}
    for seen, minute in enumerate(range(minutes[0][0], minutes[-1][0] + 1)):
        load, ended, failed = by_minute.get(minute, (0.0, 0, 0.0))
        off, off_failing = load - mean, failed - failing
        limit = max(10, 4 * math.sqrt(variance))
        failing_limit = max(0.2, 4 * math.sqrt(failing_variance))
        if seen >= 30 and minute in by_minute:
            if abs(off) > limit:
                marks.append((minute, "load" if off > 0 else "silence"))
                off = math.copysign(limit, off)
            if ended and off_failing > failing_limit:
                marks.append((minute, "failing"))
                off_failing = failing_limit
        newer = max(1 / 30, 1 / (seen + 1))
        variance = (1 - newer) * (variance + off**2 * newer)
        mean += off * newer
        if ended:
            failing_variance = (1 - newer) * (failing_variance + off_failing**2 * newer)
            failing += off_failing * newer
    return marks, (mean, variance, failing, failing_variance)


def test_a_minute_out_of_a_tenants_habit_stands_out(spark) -> None:
    """In two batches: the habit is carried from one to the next."""
    loads = [100 + (at * 37) % 11 for at in range(120)]
    loads[70], loads[95] = 400, 3
    minutes = [
        (at, float(load), 50, 0.9 if at == 80 else 0.02)
        for at, load in enumerate(loads)
        if not 40 <= at < 45  # silent
    ]
    schema = (
        "broker string, queue string, fairness_key string, minute long, load double, ended long, "
        "failing double"
    )
    before = spark.createDataFrame([], HABIT)
    marks = []
    for some in (minutes[:60], minutes[60:]):
        frame = spark.createDataFrame([("b", "q", "a", *one) for one in some], schema)
        found = habits(frame, before)
        marks += [
            (round(row.minute.timestamp()) // 60, row.what) for row in anomalies(found).collect()
        ]
        (kept,) = remembered(found).collect()
        before = spark.createDataFrame([kept], HABIT)
    expected, habit = book(minutes)
    assert sorted(marks) == sorted(expected)
    assert {(70, "load"), (80, "failing"), (95, "silence")} <= set(marks)
    assert (kept.load, kept.load_variance, kept.failing, kept.failing_variance) == pytest.approx(
        habit
    )


def test_minutes_are_summed_from_facts(scenario: Scenario, whole: ParquetStore) -> None:
    expected: Counter[tuple[str, str, int]] = Counter()
    for _, event in scenario.events:
        if event.event == "enqueued":
            minute = event.ts_ns // 1_000 // MINUTE_US
            expected[event.queue, event.fairness_key.decode(), minute] += 1
    found = minutes_of(rows(whole, "facts")).where("load > 0").collect()
    assert {(row.queue, row.fairness_key, row.minute): row.load for row in found} == expected
