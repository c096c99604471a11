"""The journal as one DataFrame: sealed parts and the hot tail, every event exactly once.

Owns which files are read. A row can lie in several files for a moment: hot and sealed while a seal
is under way, small and compacted while a compaction is. Their names say which numbers they hold, so
what is read twice is left out by name, and no event has to be shuffled to be unique.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fila.journal import files, manifest, versions
from fila.journal.files import Stream
from fila.journal.places import ShippedPlace
from fila.journal.schema import arrow_schema, fitted, specification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES: Final[dict[str, DataType]] = {
    "int32": IntegerType(),
    "int64": LongType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "list<string>": ArrayType(StringType()),
}


class JournalMissing(Exception):  # noqa: N818
    """There is no journal at that place."""


class Part(NamedTuple):
    """One sealed file, by its name: events `first` to `last` of one run of one broker."""

    broker: str
    epoch: int
    first: int
    last: int
    date: str
    path: str
    hour: int = -1  # of the day; -1: a part of the whole day, as brokers before wrote them


def read_events(
    spark: SparkSession,
    root: str,
    start: datetime | None = None,
    end: datetime | None = None,
    queue: str = "",
    moved: bool = False,
    needs: Collection[str] = (),
    after: Mapping[str, tuple[int, int]] | None = None,
) -> DataFrame:
    """Events with start <= ts < end, of one queue or of all; those of the broker as a whole too.

    `moved`: of one queue also what left it for another, told by the other's rows (dead letters).
    `needs`: columns that parts of older brokers lack, and without which nothing can be said.
    `after`: by broker a run (epoch) and a number; only events behind that.
    """
    hot = _hot(root)  # before the parts: what is sealed meanwhile is then seen there
    parts = covering(list_parts(spark, root))
    if not parts and not hot:
        raise JournalMissing(
            f"no journal in {root}: there are no events; is this the broker's journal.path, and "
            "was it started with journal.enabled = true?"
        )
    after = after or {}
    read = [
        part
        for part in parts
        if _within(part, start, end) and (part.epoch, part.last) > after.get(part.broker, (0, 0))
    ]
    found: DataFrame | None = None
    _check_versions(spark, read, needs)
    if read:
        found = spark.read.schema(events_schema()).parquet(*[part.path for part in read])
    if hot:
        tail = _unsealed(hot, parts)
        if tail.num_rows or found is None:
            frame = spark.createDataFrame(tail).to(events_schema())
            found = frame if found is None else found.unionByName(frame)
    if found is None:
        found = spark.createDataFrame([], events_schema())
    for broker, (epoch, seq) in after.items():
        before = (fn.col("epoch") < epoch) | ((fn.col("epoch") == epoch) & (fn.col("seq") <= seq))
        found = found.where(~((fn.col("broker") == broker) & before))
    return narrowed(found, start, end, queue, moved)


def narrowed(
    found: DataFrame, start: datetime | None, end: datetime | None, queue: str, moved: bool
) -> DataFrame:
    """Events of a time and of a queue."""
    if start is not None:
        found = found.where(fn.col("ts") >= fn.lit(start))
    if end is not None:
        found = found.where(fn.col("ts") < fn.lit(end))
    if not queue:
        return found
    own = fn.col("queue").isin(queue, "")
    return found.where(own | (fn.col("source_queue") == queue) if moved else own)


def events_schema() -> StructType:
    """The events table as Spark knows it, from the one schema source."""
    columns = specification()["tables"]["events"]["columns"]
    return StructType([StructField(one["name"], _TYPES[one["type"]], True) for one in columns])


def list_parts(spark: SparkSession, root: str) -> list[Part]:
    """Every sealed part; hidden files, which may be half written, are none."""
    if "://" not in root:
        return sorted(part_of(str(path)) for path in files.parts_of(Path(root), "events"))
    return sorted(_shipped(root)) or sorted(_listed(spark, root))


def _shipped(root: str) -> list[Part]:
    """The parts a shipped journal's manifest names; none, if it has no manifest."""
    try:
        place = ShippedPlace(root)
        return [
            part_of(f"{place.address}/{part.path}")
            for broker in manifest.brokers(place)
            for hour in manifest.read_broker(place, broker).hours
            for part in manifest.read_hour(place, broker, hour.hour)
        ]
    except (OSError, ValueError, ImportError):
        return []  # Spark may know the place where pyarrow does not


def _listed(spark: SparkSession, root: str) -> list[Part]:
    rows = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "part-*.parquet")
        .load(f"{root.rstrip('/')}/events")
        .select("path")
        .collect()
    )
    return [part_of(row["path"]) for row in rows]


def part_of(path: str) -> Part:
    folder, _, name = path.rpartition("/")
    date, _, hour = folder.rpartition("date=")[2].partition("/hour=")
    return Part(*files.range_of(name), date, path, int(hour or -1))


def covering(parts: list[Part]) -> list[Part]:
    """The parts without those whose events another one holds as well."""
    kept: list[Part] = []
    for part in sorted(parts, key=lambda one: (one.broker, one.epoch, one.first, -one.last)):
        before = kept[-1] if kept else None
        if before is not None and before[:2] == part[:2] and part.last <= before.last:
            continue
        kept.append(part)
    return kept


def _check_versions(spark: SparkSession, parts: list[Part], needs: Collection[str]) -> None:
    """One part of each run tells what all of them are."""
    runs = {part[:2]: part.path for part in parts}
    for path in runs.values():
        name = path.rpartition("/")[2]
        if "://" not in path:
            versions.check(Path(path), needs)
        elif needs:
            versions.check_columns(name, spark.read.parquet(path).columns, needs)


def _within(part: Part, start: datetime | None, end: datetime | None) -> bool:
    """Whether a part of this hour, or day, can hold events of the time asked for."""
    first = datetime.fromisoformat(part.date).replace(tzinfo=UTC)
    length = timedelta(days=1)
    if part.hour >= 0:
        first, length = first + timedelta(hours=part.hour), timedelta(hours=1)
    return (start is None or first + length > start) and (end is None or first < end)


def _hot(root: str) -> list[tuple[Stream, list[Any]]]:
    """The batches of every hot file; a journal on a remote disk has no hot tail."""
    if "://" in root:
        return []
    found = [(files.stream_of(path), files.read_hot(path)) for path in files.hot_files(Path(root))]
    return [(stream, batches) for stream, batches in found if stream.table == "events" and batches]


def _unsealed(hot: list[tuple[Stream, list[Any]]], parts: list[Part]) -> Any:
    """Hot rows that no sealed part holds."""
    sealed = files.Sealed([part[:4] for part in parts])
    tables = [arrow_schema("events").empty_table()]
    for stream, batches in hot:
        fresh = sealed.without(stream.broker, stream.epoch, batches)
        if fresh:
            tables.append(fitted(pa.Table.from_batches(fresh), "events"))
    return pa.concat_tables(tables)
