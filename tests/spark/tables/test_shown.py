"""`fila pipeline show`: the newest rows of a product, by the commit log alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.cli.main import main
from fila.spark.tables.commits import Commit, CommitLog, TableFile
from fila.spark.tables.place import LocalPlace

MINUTE_US = 60_000_000
START_US = 1_790_000_040 * 1_000_000


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two batches of `slo`, of two minutes each, and a file that no commit names."""
    log = CommitLog(LocalPlace(tmp_path))
    for batch in range(3):
        first = START_US + 2 * batch * MINUTE_US
        rows = [
            {"broker": "b", "queue": queue, "fairness_key": key, "deliveries": 10 * batch + at,
             "minute": datetime.fromtimestamp((first + at * MINUTE_US) / 1e6, UTC)}
            for queue in ("jobs", "mails") for key in ("acme", "globex") for at in range(2)
        ]  # fmt: skip
        schema = pa.schema(
            [("broker", pa.string()), ("queue", pa.string()), ("fairness_key", pa.string()),
             ("minute", pa.timestamp("us", "UTC")), ("deliveries", pa.int64())]
        )  # fmt: skip
        path = f"slo/date=2026-09-21/hour=14/b{batch:010d}-0000.parquet"
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / path)
        if batch < 2:
            file = TableFile("slo", path, len(rows), 1, first, first + MINUTE_US)
            log.add(Commit(batch, "q", [file]))
    return tmp_path


def said(capsys: Any, tables: Path, *words: str) -> list[dict[str, Any]]:
    assert main(["pipeline", "show", "slo", "--tables", str(tables), "--json", *words]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["slo"]
    return found


def test_the_newest_rows_come_first_and_only_what_is_committed(capsys: Any, tables: Path) -> None:
    found = said(capsys, tables, "--top", "3")
    assert [row["deliveries"] for row in found] == [11, 11, 11]
    assert [(row["queue"], row["fairness_key"]) for row in found] == [
        ("jobs", "acme"), ("jobs", "globex"), ("mails", "acme"),
    ]  # fmt: skip
    assert len(said(capsys, tables, "--top", "100")) == 16


def test_rows_are_chosen_by_queue_key_and_time(capsys: Any, tables: Path) -> None:
    found = said(capsys, tables, "--queue", "jobs", "--key", "acme")
    assert [row["deliveries"] for row in found] == [11, 10, 1, 0]
    until = datetime.fromtimestamp((START_US + 2 * MINUTE_US) / 1e6, UTC).isoformat()
    since = datetime.fromtimestamp((START_US + MINUTE_US) / 1e6, UTC).isoformat()
    found = said(capsys, tables, "--queue", "jobs", "--from", since, "--to", until)
    assert [row["deliveries"] for row in found] == [1, 1]


def test_a_reader_sees_a_table_and_what_is_not_there_is_told(
    capsys: Any, tables: Path, tmp_path: Path
) -> None:
    assert main(["pipeline", "show", "slo", "--tables", str(tables), "--top", "1"]) == 0
    assert "fairness_key" in capsys.readouterr().out
    assert main(["pipeline", "show", "blame", "--tables", str(tables)]) == 0
    assert "No rows." in capsys.readouterr().out
    assert main(["pipeline", "show", "slo", "--tables", str(tmp_path / "none")]) == 1
    assert "no tables in" in capsys.readouterr().err
