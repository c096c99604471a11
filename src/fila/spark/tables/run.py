"""Keeps the tables: the stream from the journals into them, until it is told to stop.

Owns which settings of Spark it runs with, that one job at a time writes to a place, and what is
tried again. A batch that fails, because a disk was full or an executor gone, is repeated by a new
query from the same checkpoint; what is wrong with the tables or the options is said at once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from fila.spark import register
from fila.spark.products.slo import DEFAULT, Objective
from fila.spark.tables.commits import Commit, TablesError
from fila.spark.tables.job import CHECKPOINT, TableJob
from fila.spark.tables.lake import store_of
from fila.spark.tables.place import alone
from fila.spark.tables.schemas import schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOCK: Final = "_lock"
_RETRIES: Final = 5  # failures one after the other, without a batch between them
_RETRY_S: Final = 2.0
# What somebody has to mend: said by these, and not tried again.
_SAID: Final = re.compile(r"(?:TablesError|JournalSourceError): (.+)")

# Small plans again and again: what adapting them costs is more than it gains.
CONF: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "50000",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


class Asked(NamedTuple):
    """What `fila pipeline run` was asked for."""

    journals: tuple[str, ...]
    tables: str
    every_s: float = 5.0
    available_now: bool = False
    events_max: int = 1_000_000
    late_s: float = 600.0
    hot_tail: bool = True
    objectives: tuple[Objective, ...] = DEFAULT
    form: str = ""  # of the tables; empty: the one they have, Parquet if they are new


Told = Callable[[Commit], None]


def run(spark: SparkSession, asked: Asked, told: Told = lambda commit: None) -> None:
    """Keep the tables until interrupted, or until all there is was read."""
    with _alone(asked.tables):
        failures = 0

        def done(commit: Commit) -> None:
            nonlocal failures
            failures = 0
            told(commit)

        while True:
            query = None
            try:
                query = start(spark, asked, done)
                query.awaitTermination()
                return
            except KeyboardInterrupt:
                if query is not None:
                    query.stop()
                raise
            except Exception as error:
                said = _SAID.search(str(error))
                if said:
                    raise TablesError(said[1]) from error
                failures += 1
                if failures > _RETRIES:
                    raise
                time.sleep(_RETRY_S * failures)


def start(spark: SparkSession, asked: Asked, told: Told = lambda commit: None) -> StreamingQuery:
    """The stream from the journals into the tables, running."""
    # Spark looks once for sources that are installed; if that fails, it never finds any.
    register(spark)
    store = store_of(spark, asked.tables, schemas(), asked.form)
    source = (
        spark.readStream.format("fila-journal")
        .option("paths", ",".join(asked.journals[1:]))
        .option("maxEventsPerBatch", asked.events_max)
        .option("lateFileSeconds", asked.late_s)
        .option("hotTail", str(asked.hot_tail).lower())
        .load(asked.journals[0])
    )
    writer = (
        source.writeStream.queryName("fila pipeline")
        .foreachBatch(TableJob(store, told, asked.objectives))
        .option("checkpointLocation", store.place.address(CHECKPOINT))
    )
    if asked.available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{asked.every_s} seconds").start()


def local_conf() -> dict[str, str]:
    """For a session in this machine: as many pieces as there are cores."""
    return {**CONF, "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))}


def _alone(tables: str) -> AbstractContextManager[None]:
    """Two jobs in one place would undo each other's batches; of places elsewhere the checkpoint
    takes care, which only one query can write."""
    if "://" in tables:
        return nullcontext()
    return alone(tables, _LOCK, f"another `fila pipeline run` keeps the tables in {tables}")
