"""Fixtures of the tables: a short record, in pieces, and what is made of it batch by batch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila.spark.events import read_events
from fila.spark.tables.commits import TableFile
from fila.spark.tables.job import TableJob
from fila.spark.tables.lake import store_of
from fila.spark.tables.schemas import schemas
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.scenario import Scenario

Filled = Callable[..., ParquetStore]


def rows(store: ParquetStore, table: str) -> Any:
    files: list[TableFile] = store.contents().of(table)
    return store.read(table, files)


def batch(spark: Any, journal: Path, tables: Path, number: int, form: str = "") -> None:
    """What the stream calls for a batch, by a job that has just been started."""
    job = TableJob(store_of(spark, str(tables), schemas(), form))
    job(read_events(spark, str(journal)), number)


@pytest.fixture(scope="session")
def short_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of half a minute: events, facts and capacity come of it; for products it is too short."""
    root = tmp_path_factory.mktemp("short") / "journal"
    Scenario(1, seconds=25, sign_of_life=False).write(root)
    return root


@pytest.fixture(scope="session")
def short_pieces(short_record: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same in two journals, one after the other."""
    parts = sorted((short_record / "events").rglob("part-*.parquet"))
    halves = [tmp_path_factory.mktemp("half") for _ in range(2)]
    for number, part in enumerate(parts):
        target = halves[2 * number // len(parts)] / part.relative_to(short_record)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(part, target)
    return halves


@pytest.fixture(scope="session")
def at_once(
    spark: Any, short_record: Path, tmp_path_factory: pytest.TempPathFactory
) -> ParquetStore:
    """The tables of the short record as Parquet, in one batch."""
    tables = tmp_path_factory.mktemp("at-once")
    batch(spark, short_record, tables, 0)
    return ParquetStore(spark, str(tables), schemas())
