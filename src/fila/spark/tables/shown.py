"""Rows of a table for reading, from the commit log and the files: no Spark, no JVM.

Owns which rows `fila pipeline show` shows: of a time and of a queue, the newest that fit. Events
and facts are for Spark; products are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fila.spark.tables.commits import CommitLog, TablesError
from fila.spark.tables.place import LocalPlace
from fila.spark.tables.schemas import PARTITIONS, TIME


def shown(
    tables: str,
    table: str,
    start: datetime | None = None,
    end: datetime | None = None,
    queue: str = "",
    key: str = "",
    top: int = 20,
) -> tuple[list[str], list[Sequence[Any]]]:
    """Columns, and the newest rows."""
    place = LocalPlace(tables)
    contents = CommitLog(place).contents()
    if contents.last is None:
        raise TablesError(
            f"no tables in {tables}: has `fila pipeline run --tables {tables}` been started?"
        )
    files = contents.of(table, _micros(start, 0), _micros(end, 1 << 62))
    time = TIME[table]
    kept: list[Any] = []
    count = 0
    # The newest files first: what is older than enough rows is not read.
    for one in sorted(files, key=lambda file: -file.last_us):
        if count >= top and one.last_us < _oldest(kept, time):
            break
        file = pq.ParquetFile(place.address(one.path))
        # Iceberg's files have what the table is cut by as columns, too.
        rows = file.read([name for name in file.schema_arrow.names if name not in PARTITIONS])
        mask = pc.is_valid(rows[time])
        for column, wanted in (("queue", queue), ("fairness_key", key)):
            if wanted and column in rows.column_names:
                mask = pc.and_(mask, pc.equal(rows[column], wanted))
        if start is not None:
            mask = pc.and_(mask, pc.greater_equal(rows[time], pa.scalar(start, rows[time].type)))
        if end is not None:
            mask = pc.and_(mask, pc.less(rows[time], pa.scalar(end, rows[time].type)))
        fitting = rows.filter(mask)
        if fitting.num_rows:
            kept.append(fitting)
            count += fitting.num_rows
    if not kept:
        return [], []
    found = pa.concat_tables(kept, promote_options="permissive")
    by = [(time, "descending"), *[(name, "ascending") for name in ("queue", "fairness_key")
                                  if name in found.column_names]]  # fmt: skip
    newest = found.sort_by(by).slice(0, top)
    return newest.column_names, [tuple(row.values()) for row in newest.to_pylist()]


def _oldest(kept: list[Any], time: str) -> int:
    """Of what is kept, in microseconds."""
    return min(_micros(pc.min(one[time]).as_py(), 0) for one in kept)


def _micros(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else round(moment.timestamp() * 1_000_000)
