"""The record from the tables, and from the journal what is newer: for reports.

Owns which of the two an event comes from: each event of a run up to where the tables have come is
theirs, and the journal's otherwise. So a report says the same with tables and without, also while
they are kept, and reads the hours it asks for instead of every part.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fila.spark.events import JournalMissing, narrowed, read_events
from fila.spark.tables.commits import FOLDER, Commit, TablesError
from fila.spark.tables.schemas import EVENTS, schemas
from fila.spark.tables.store import ParquetStore

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

BESIDE: Final = "tables"  # where `fila pipeline run` keeps them beside a journal by default


def tables_beside(journal: str) -> str:
    """The tables that stand beside a journal, as `fila pipeline run` makes them; empty: none."""
    if "://" in journal:
        return ""
    place = Path(journal).absolute().with_name(BESIDE)
    return str(place) if (place / FOLDER).is_dir() else ""


def recorded(
    spark: SparkSession,
    tables: str,
    journal: str,
    start: datetime | None = None,
    end: datetime | None = None,
    queue: str = "",
    moved: bool = False,
    needs: Collection[str] = (),
) -> DataFrame:
    """As `fila.spark.events.read_events`, from the tables as far as they go."""
    store = ParquetStore(spark, tables, schemas())
    contents = store.contents()
    if contents.last is None:
        raise TablesError(f"no tables in {tables}: has `fila pipeline run` been started?")
    span = (_micros(start, 0), _micros(end, 1 << 62))
    found = store.read(EVENTS, contents.of(EVENTS, *span)).drop("date", "hour")
    found = narrowed(found, start, end, queue, moved)
    try:
        rest = read_events(spark, journal, start, end, queue, moved, needs, reached(contents.last))
    except JournalMissing:
        return found  # its days are over; the tables have them
    return found.unionByName(rest)


def reached(last: Commit) -> dict[str, tuple[int, int]]:
    """By broker the run and the number of the last event in the tables; runs before it are over."""
    found: dict[str, tuple[int, int]] = {}
    for run, (_, seq) in last.reached.items():
        broker, _, epoch = run.rpartition("/")
        found[broker] = max(found.get(broker, (0, 0)), (int(epoch), seq))
    return found


def _micros(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else round(moment.timestamp() * 1_000_000)
