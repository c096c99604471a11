"""Closed days in few large parts instead of many small ones.

Owns when parts may be merged and in which order that is safe. A merged part appears by rename and
only then are the small ones deleted; a reader in between finds by their names that the merged one
holds them all. Doing it again, or after a crash in the middle, changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from fila.spark.events import Part, covering, list_parts, part_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS_MAX: Final = 5_000_000  # in one merged part
_ROW_GROUP: Final = 1 << 17
_SCHEMA: Final = (
    "date string, broker string, epoch long, parts long, events long, bytes_before long, "
    "bytes_after long, part string"
)


class Unsupported(Exception):  # noqa: N818
    """Cannot be done there."""


class Merge(NamedTuple):
    """Parts that follow one another without a hole, and the part they become."""

    parts: list[Part]
    target: str


def merges(parts: list[Part], today: date, events_max: int = EVENTS_MAX) -> list[Merge]:
    """What can be merged: neighbours of one run and one day that is over."""
    closed = [part for part in parts if part.date < today.isoformat()]
    found: list[Merge] = []
    for _, same in groupby(covering(closed), key=lambda one: (one.broker, one.epoch, one.date)):
        group: list[Part] = []
        for part in same:
            full = group and part.last - group[0].first >= events_max
            if group and (full or part.first != group[-1].last + 1):
                found.append(_merge(group))
                group = []
            group.append(part)
        found.append(_merge(group))
    return [merge for merge in found if len(merge.parts) > 1]


def compact(spark: SparkSession, root: str, today: date, events_max: int = EVENTS_MAX) -> DataFrame:
    """Merge what can be merged, a task per part; one row for each part made."""
    if "://" in root:
        raise Unsupported(f"{root}: parts are merged by rename, which needs a file system")
    every = list_parts(spark, root)
    kept = {part.path for part in covering(every)}
    for part in every:
        if part.path not in kept and part.date < today.isoformat():
            Path(part.path).unlink(missing_ok=True)  # left by a compaction that was cut short
    found = merges(every, today, events_max)
    plan = [(merge.target, [part.path for part in merge.parts]) for merge in found]
    frame = spark.createDataFrame(plan, "target string, sources array<string>")
    # Collected here: looking at a lazy result twice would merge twice.
    made = frame.repartition(max(1, len(plan))).mapInArrow(_merge_all, _SCHEMA).collect()
    return spark.createDataFrame(made, _SCHEMA)


def _merge(group: list[Part]) -> Merge:
    first, last = group[0], group[-1]
    folder = first.path.rpartition("/")[0]
    name = f"part-{first.broker}-{first.epoch}-{first.first:012d}-{last.last:012d}.parquet"
    return Merge(list(group), f"{folder}/{name}")


def _merge_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for row in batch.to_pylist():
            made = _write(Path(row["target"]), [Path(one) for one in row["sources"]])
            yield pa.RecordBatch.from_pylist([made])


def _write(target: Path, sources: list[Path]) -> dict[str, Any]:
    """Merge; a task that Spark runs again finds its part made, and only tidies up."""
    if target.exists():
        for source in sources:
            source.unlink(missing_ok=True)
        return _made(target, len(sources), pq.ParquetFile(target).metadata.num_rows, 0)
    before = sum(source.stat().st_size for source in sources)
    hidden = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    events = 0
    schema = pq.ParquetFile(sources[0]).schema_arrow
    with pq.ParquetWriter(hidden, schema, compression="zstd") as writer:
        for source in sources:
            table = pq.ParquetFile(source).read().cast(schema)
            writer.write_table(table, row_group_size=_ROW_GROUP)
            events += table.num_rows
    _fsync(hidden)
    hidden.replace(target)
    _fsync(target.parent)
    for source in sources:
        source.unlink(missing_ok=True)
    return _made(target, len(sources), events, before)


def _made(target: Path, parts: int, events: int, bytes_before: int) -> dict[str, Any]:
    part = part_of(str(target))
    return {
        "date": part.date,
        "broker": part.broker,
        "epoch": part.epoch,
        "parts": parts,
        "events": events,
        "bytes_before": bytes_before,
        "bytes_after": target.stat().st_size,
        "part": target.name,
    }


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
