"""`archive`: a queue to Parquet, by day; each message is in the files exactly once.

The stream's checkpoint lies beside the files, in `_checkpoint`, which readers of the files do not
see: the next run goes on where the last one stood, also after a kill.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 0.2
_DAY_US: Final = 86_400 * 1_000_000


class Archived(NamedTuple):
    rows: int
    batches: int


def archive(
    spark: SparkSession,
    options: Mapping[str, str],
    path: str,
    every_s: float = 0.0,
    told: Callable[[Archived], None] = lambda so_far: None,
) -> Archived:
    """Once, what is waiting now; or continuously, every so many seconds, until interrupted."""
    frame = spark.readStream.format("fila").options(**options).load()
    writer = (
        dated(frame)
        .writeStream.format("parquet")
        .partitionBy("date")
        .option("path", path)
        .option("checkpointLocation", f"{path.rstrip('/')}/_checkpoint")
    )
    if every_s:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    else:
        writer = writer.trigger(availableNow=True)
    return _watch(writer.start(), told)


def dated(frame: DataFrame) -> DataFrame:
    """What is worth keeping of a message, and the day it was enqueued (UTC)."""
    kept = frame.drop("ready_at", "state")
    # Of the moment itself, so that the session's time zone does not matter.
    day = fn.floor(fn.unix_micros("enqueued_at") / fn.lit(_DAY_US)).cast("int")
    return kept.withColumn("date", fn.date_from_unix_date(day))


def _watch(query: StreamingQuery, told: Callable[[Archived], None]) -> Archived:
    """Count rows while the query runs: Spark itself keeps the last hundred batches only."""
    rows: dict[int, int] = {}
    try:
        while query.isActive:
            time.sleep(_LOOK_S)
            _count(query, rows)
            told(Archived(sum(rows.values()), len(rows)))
    except KeyboardInterrupt:
        query.stop()
    query.awaitTermination()  # raises what went wrong
    _count(query, rows)  # over Spark Connect the last batches are told only now
    return Archived(sum(rows.values()), len(rows))


def _count(query: StreamingQuery, rows: dict[int, int]) -> None:
    for progress in query.recentProgress:
        # Over Spark Connect the sum is not filled in, only what each source gave.
        count = sum(source.numInputRows for source in progress.sources)
        if count:
            rows[progress.batchId] = count
