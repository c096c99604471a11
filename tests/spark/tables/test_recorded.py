"""Reports say the same from the raw journal and from tables that are behind it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fila.cli.main import main
from fila.spark.events import read_events
from fila.spark.tables.recorded import recorded, tables_beside
from tests.spark.tables.filled import fill


@pytest.fixture(scope="module")
def behind(spark: Any, record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with tables beside it that have come to a part of the last run but one."""
    home = tmp_path_factory.mktemp("behind")
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


def test_the_record_is_the_same_with_tables_and_without(
    spark: Any, record: Path, behind: Path
) -> None:
    journal = str(behind / "journal")
    assert tables_beside(journal) == str(behind / "tables")
    assert tables_beside(str(record)) == ""
    raw = read_events(spark, journal)
    found = recorded(spark, str(behind / "tables"), journal)
    assert found.count() == raw.count()
    assert found.exceptAll(raw).isEmpty()
    # Both have a part in it.
    shutil.move(behind / "journal", behind / "aside")
    try:
        alone = recorded(spark, str(behind / "tables"), journal).count()
    finally:
        shutil.move(behind / "aside", behind / "journal")
    assert 0 < alone < raw.count()


@pytest.mark.parametrize("verb", ["fairness", "funnel"])
def test_reports_say_the_same(spark: Any, behind: Path, capsys: Any, verb: str) -> None:
    told = []
    for tables in ([], ["--tables", ""]):
        words = [verb, "--journal", str(behind / "journal"), "--json", *tables]
        code = main(["pipeline", *words])
        told.append((code, json.loads(capsys.readouterr().out)))
    assert told[0] == told[1]
    assert told[0][1]
