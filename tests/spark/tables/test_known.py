"""Cells say what events say: reports from facts and from the raw journal are the same."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as fn

from fila.spark.delays import delays, delays_of_cells
from fila.spark.events import read_events
from fila.spark.fairness import fairness, judged
from fila.spark.funnel import funnel, funnel_of_cells
from fila.spark.latency import PERCENTILES, latency, latency_of_cells
from fila.spark.tables.commits import CommitLog, TablesError
from fila.spark.tables.known import known, presence_of
from fila.spark.tables.place import LocalPlace
from tests.spark.tables.filled import fill
from tests.spark.tables.scenario import Scenario

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def behind(spark: Any, record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that have come to a part of the second run; the journal beside them goes on."""
    home = tmp_path_factory.mktemp("known")
    parts = sorted((record / "events").rglob("part-*.parquet"))
    runs = sorted({part.name.rsplit("-", 3)[1] for part in parts})
    for part in parts:
        run = part.name.rsplit("-", 3)[1]
        first = int(part.name.rsplit("-", 2)[1])
        if run < runs[-2] or (run == runs[-2] and first == 1):
            target = home / "journal" / part.relative_to(record)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(part, target)
    fill(spark, home / "journal", home / "tables")
    shutil.rmtree(home / "journal")
    shutil.copytree(record, home / "journal")
    return home


@pytest.fixture(scope="module")
def times(scenario: Scenario) -> tuple[datetime, datetime]:
    """A time that begins and ends in the middle of windows, across the restart."""
    stamps = [event.ts_ns for _, event in scenario.events]
    first = datetime.fromtimestamp(min(stamps) / 1e9, UTC)
    last = datetime.fromtimestamp(max(stamps) / 1e9, UTC)
    return first + 13 * SECOND, last - 7 * SECOND


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("queue", ["", "jobs"])
def test_reports_of_cells_are_those_of_events(
    spark: Any, behind: Path, times: tuple[datetime, datetime], queue: str
) -> None:
    start, end = (None, None) if queue else times
    journal = str(behind / "journal")
    raw = read_events(spark, journal, start, end, queue).persist()
    moved = read_events(spark, journal, start, end, queue, True)
    cells = known(spark, str(behind / "tables"), journal, start, end, queue).persist()

    # Less than nothing is allowed: every window is judged, and who is not ahead fails.
    for window_s, quantum in ((10, -1), (30, 1)):
        us = window_s * 1_000_000
        told = rows(fairness(raw, window_s, quantum))
        assert rows(judged(presence_of(cells, us), us, quantum)) == told, window_s
        assert quantum > 0 or {row[-1] for row in told} >= {"PASS", "FAIL"}
    assert rows(funnel_of_cells(cells)) == rows(funnel(moved, queue=queue))
    assert rows(delays_of_cells(cells, 50)) == rows(delays(raw, 50))

    ours, exact = rows(latency_of_cells(cells)), rows(latency(raw))
    names = latency(raw).columns
    assert len(ours) == len(exact) > 3
    for one, other in zip(ours, exact, strict=True):
        for name, a, b in zip(names, one, other, strict=True):
            if any(name.endswith(f"_{p}_ms") for p in PERCENTILES):
                assert a == pytest.approx(b, rel=0.017, abs=0.001), name
            else:
                assert a == b, name


def test_a_silent_starved_key_is_caught_from_facts(spark: Any, behind: Path) -> None:
    """Unfairness planted in the facts themselves: what one key got is taken from it."""
    cells = known(spark, str(behind / "tables"), str(behind / "journal"))
    present = presence_of(cells)
    starved = fn.col("fairness_key") == "quiet"
    taken = present.where(starved).groupBy("broker", "epoch", "queue", "window").agg(
        fn.sum("delivered").alias("taken")
    )  # fmt: skip
    planted = (
        present.join(taken, ["broker", "epoch", "queue", "window"], "left")
        .withColumn("in_before", fn.when(starved, 1).otherwise(fn.col("in_before")))
        .withColumn("in_after", fn.when(starved, 1).otherwise(fn.col("in_after")))
        .withColumn("joins", fn.when(starved, 0).otherwise(fn.col("joins")))
        .withColumn("positions", fn.when(starved, 0).otherwise(fn.col("positions")))
        .withColumn(
            "delivered",
            fn.when(starved, 0)
            .when(
                fn.col("fairness_key") == "noisy",
                fn.col("delivered") + fn.coalesce("taken", fn.lit(0)),
            )
            .otherwise(fn.col("delivered")),
        )
        .drop("taken")
    )
    found = judged(planted, 10_000_000).where("verdict = 'FAIL'")
    assert {row.fairness_key for row in found.collect()} == {"quiet"}
    assert judged(present, 10_000_000).where("verdict = 'FAIL'").isEmpty()


def test_tables_of_an_older_fila_say_so(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    place.write("_commits/batch-0000000000.json", '{"version": 1}')
    with pytest.raises(TablesError, match=r"older Fila.*empty folder"):
        CommitLog(place).contents()
