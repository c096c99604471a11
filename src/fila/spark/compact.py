"""Closed days in few large parts instead of many small ones.

Owns when parts may be merged and in which order that is safe. A merged part appears by rename; the
small ones stay until it is older than a grace, so that readers who planned before it go on, and are
removed by a later run. A reader in between finds by their names that the merged one holds them all.
Doing it again, or after a crash in the middle, changes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from fila.journal.files import encoding, sync, write_groups
from fila.spark.events import Part, covering, list_parts, part_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS_MAX: Final = 5_000_000  # in one merged part
GRACE_S: Final = 3_600.0  # longer than any report runs
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
    """What can be merged: neighbours of one run and one hour, of days that are over."""
    closed = [part for part in parts if part.date < today.isoformat()]
    found: list[Merge] = []
    for _, same in groupby(covering(closed), key=_together):
        group: list[Part] = []
        for part in same:
            full = group and part.last - group[0].first >= events_max
            if group and (full or part.first != group[-1].last + 1):
                found.append(_merge(group))
                group = []
            group.append(part)
        found.append(_merge(group))
    return [merge for merge in found if len(merge.parts) > 1]


def compact(
    spark: SparkSession,
    root: str,
    today: date,
    events_max: int = EVENTS_MAX,
    grace_s: float = GRACE_S,
) -> DataFrame:
    """Merge what can be merged, a task per part; one row for each part made. Of parts merged more
    than `grace_s` ago the small ones are removed; with 0 those merged now as well."""
    if "://" in root:
        raise Unsupported(f"{root}: parts are merged by rename, which needs a file system")
    every = [part for part in list_parts(spark, root) if part.date < today.isoformat()]
    remove_merged(every, grace_s)
    found = merges(every, today, events_max)
    plan = [(merge.target, [part.path for part in merge.parts]) for merge in found]
    frame = spark.createDataFrame(plan, "target string, sources array<string>")
    # Collected here: looking at a lazy result twice would merge twice.
    made = frame.repartition(max(1, len(plan))).mapInArrow(_merge_all, _SCHEMA).collect()
    if not grace_s:
        remove_merged([*every, *(part_of(merge.target) for merge in found)], 0)
    return spark.createDataFrame(made, _SCHEMA)


def remove_merged(parts: list[Part], grace_s: float) -> None:
    """Remove the parts that another one has held for the length of the grace."""
    until_s = time.time() - grace_s
    kept = covering(parts)
    at = 0
    for part in sorted(parts, key=lambda one: (one.broker, one.epoch, one.first, -one.last)):
        if at < len(kept) and part == kept[at]:
            at += 1
            continue
        holder = Path(kept[at - 1].path)  # in this order nothing but its holder comes before it
        if holder.stat().st_mtime <= until_s:
            Path(part.path).unlink(missing_ok=True)


def _together(part: Part) -> tuple[str, int, str, int]:
    return part.broker, part.epoch, part.date, part.hour


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
    """Merge; a task that Spark runs again finds its part made."""
    before = sum(source.stat().st_size for source in sources)
    if target.exists():
        return _made(target, len(sources), pq.ParquetFile(target).metadata.num_rows, before)
    hidden = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    schema = pq.ParquetFile(sources[0]).schema_arrow  # of one run: all parts have it
    events = 0
    waiting: list[Any] = []
    with pq.ParquetWriter(hidden, schema, **encoding(schema)) as writer:
        for source in sources:
            waiting.append(pq.ParquetFile(source).read().cast(schema))
            events += waiting[-1].num_rows
            waiting = write_groups(writer, waiting)
        write_groups(writer, waiting, every=True)
        writer.add_key_value_metadata(schema.metadata)
    sync(hidden)
    hidden.replace(target)
    sync(target.parent)
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
