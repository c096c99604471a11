"""The last minutes from the tables, without Spark: the same counts as the products."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.cli.main import main
from fila.spark.products.slo import objective, slo
from fila.spark.tables.commits import Commit, CommitLog, TableFile
from fila.spark.tables.live import EXPORTED, export, fair_shares, live
from fila.spark.tables.place import LocalPlace
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import rows

WINDOW_US = 10_000_000


@pytest.mark.parametrize(
    ("total", "demand", "weight", "expected"),
    [
        (10, [100, 100], [1, 1], [5, 5]),
        (12, [100, 100], [1, 3], [3, 9]),
        (10, [2, 100, 100], [1, 1, 1], [2, 4, 4]),
        (10, [2, 3], [1, 1], [2, 3]),
        (0, [5, 5], [1, 1], [0, 0]),
        (9, [0, 100, 1], [5, 1, 1], [0, 8, 1]),
    ],
)
def test_shares_are_weighted_and_never_more_than_is_wanted(total, demand, weight, expected) -> None:
    found = fair_shares(total, np.array(demand, float), np.array(weight, float))
    assert found == pytest.approx(expected)


def test_live_counts_are_those_of_the_products(whole: ParquetStore) -> None:
    objectives = [objective("q/a=99%<10ms"), objective("95%<100ms")]
    tables = whole.place.root
    found = live(tables, 0.0, objectives, windows=3_000, shown=10_000)
    expected: Counter[tuple[str, str, str]] = Counter()
    slow: Counter[tuple[str, str, str]] = Counter()
    for row in slo(rows(whole, "facts"), objectives).collect():
        expected[row.broker, row.queue, row.fairness_key] += row.deliveries
        slow[row.broker, row.queue, row.fairness_key] += row.slow
    last = whole.contents().last
    assert last is not None
    still_open = pq.read_table(whole.place.address(f"{last.state}/cells")).to_pylist()
    assert not any(one["delivered"] for one in still_open)  # else they would count as well
    named = [((one["broker"], one["queue"], one["key"]), one) for one in found["slo"]]
    assert {name: one["deliveries"] for name, one in named} == +expected
    assert Counter({name: one["slow"] for name, one in named}) == slow
    for one in found["blame"]:
        assert sum(other["s"] for other in one["by"]) <= one["waited_s"] + 0.01


def cells(*made: tuple[str, int, int, int, int, int]) -> pa.Table:
    """Of (key, window, delivered, eligible, weight, turn_us) in one queue."""
    return pa.table(
        {
            "broker": ["b"] * len(made),
            "queue": ["q"] * len(made),
            "fairness_key": [one[0] for one in made],
            "window": pa.array([one[1] for one in made], pa.int64()),
            "delivered": pa.array([one[2] for one in made], pa.int64()),
            "dead_lettered": pa.array([0 for _ in made], pa.int64()),
            "wait_turn_us": pa.array([one[5] for one in made], pa.int64()),
            "pending": pa.array([one[3] for one in made], pa.int64()),
            "eligible": pa.array([one[3] for one in made], pa.int64()),
            "weight": pa.array([one[4] for one in made], pa.int64()),
            "histogram": pa.array([[] for _ in made], pa.map_(pa.int32(), pa.int64())),
        }
    )


def tables_of(root: Path, made: pa.Table, last_window: int) -> str:
    place = LocalPlace(root)
    (root / "facts").mkdir(parents=True)
    pq.write_table(made, root / "facts" / "one.parquet")
    file = TableFile("facts", "facts/one.parquet", made.num_rows, 1, 1, last_window * WINDOW_US)
    reached = {"b/1": (last_window * WINDOW_US + WINDOW_US - 1, 9)}
    CommitLog(place).add(Commit(0, files=[file], reached=reached))
    return str(root)


def test_a_tenant_starved_in_silence_is_behind(tmp_path: Path) -> None:
    """It has no event of its own after the first window."""
    made = [("starved", 100, 0, 50, 1, 0)]
    for window in range(100, 110):
        made += [("a", window, 30, 200, 1, 5_000_000), ("b", window, 60, 200, 2, 0)]
    found = live(tables_of(tmp_path, cells(*made), 109), 1_100.0)
    first, *others = found["fairness"]
    assert (first["key"], first["delivered"], first["ratio"]) == ("starved", 0, 0.0)
    assert first["behind"] == pytest.approx(9 * 22.5, abs=1)  # a quarter of 90, nine times
    assert all(one["behind"] == 0 for one in others)
    (blamed,) = found["blame"]
    assert blamed["key"] == "a"
    assert blamed["by"] == [{"key": "b", "s": blamed["waited_s"]}] and blamed["waited_s"] == 50.0
    assert found["lag_s"] == pytest.approx(0.0, abs=0.1)


def test_two_hundred_thousand_tenants_are_a_short_page(tmp_path: Path) -> None:
    made = [(f"k{at}", 100, 1, 5, 1, 10) for at in range(200_000)]
    found = live(tables_of(tmp_path, cells(*made), 100), 1_010.0)
    assert found["queues"][0]["keys"] == 200_000
    assert len(json.dumps(found)) < 10_000


def test_watch_shows_it_and_the_broker_finds_it(tmp_path: Path, capsys: Any) -> None:
    tables = tables_of(tmp_path / "tables", cells(("acme", 100, 7, 0, 1, 0)), 100)
    assert main(["pipeline", "watch", "--tables", tables, "--once"]) == 0
    assert "acme" in capsys.readouterr().out
    assert main(["pipeline", "watch", "--tables", tables, "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fairness"][0]["key"] == "acme"
    assert main(["pipeline", "watch", "--tables", str(tmp_path / "none"), "--once"]) == 1
    assert "been started?" in capsys.readouterr().err
    journal = tmp_path / "journal"
    journal.mkdir()
    export(tables, [str(journal), "s3a://elsewhere"], 1_010.0)
    assert json.loads((journal / EXPORTED).read_text())["batch"] == 0


def test_tables_are_looked_for_beside_the_journal_as_by_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "status", "--journal", str(tmp_path / "journal")]) == 1
    assert f"no tables in {tmp_path / 'tables'}: has" in capsys.readouterr().err
    words = ["--journal", str(tmp_path / "journal"), "--tables", str(tmp_path / "others")]
    assert main(["pipeline", "status", *words]) == 1
    assert f"no tables in {tmp_path / 'others'}: has" in capsys.readouterr().err
    assert main(["pipeline", "watch", "--once", "--tables", str(tmp_path / "none")]) == 1
    assert f"fila pipeline run --tables {tmp_path / 'none'}" in capsys.readouterr().err
