"""`replay`: messages from an archive or a queue, chosen by SQL, as new messages of a queue.

Every run has a name, and a message is enqueued once per run: the name and the message's id are its
idempotency key. The header `replay_of` says which message it repeats. Nothing is removed where the
messages come from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REPLAY_OF: Final = "replay_of"


def run_name(source: str, where: str, queue: str) -> str:
    """The same question has the same name, so a command that is repeated repeats nothing."""
    return hashlib.sha256("\0".join((source, where, queue)).encode()).hexdigest()[:12]


def chosen(
    spark: SparkSession, archive: str, options: Mapping[str, str] | None, where: str
) -> DataFrame:
    """Messages of Parquet files, or, with options, of a queue. `text` is the payload as text."""
    if options is None:
        frame = spark.read.parquet(archive)
    else:
        frame = spark.read.format("fila").options(**options).load()
    frame = frame.withColumn("text", fn.expr("try_cast(payload as string)"))
    return frame.where(where) if where else frame


def as_messages(frame: DataFrame, run: str) -> DataFrame:
    """The rows to write: as they were, marked, and each with a key of its own for this run."""
    headers = fn.coalesce(fn.col("headers"), fn.create_map().cast("map<string,string>"))
    return frame.select(
        "payload",
        _marked(headers).alias("headers"),
        "fairness_key",
        "weight",
        "throttle_keys",
        fn.concat(fn.lit(f"replay/{run}/"), fn.col("message_id")).alias("idempotency_key"),
    )


def send(messages: DataFrame, options: Mapping[str, str], rows_per_second: int = 0) -> None:
    """Enqueue them; with a rate in one task, so that it is the rate of all."""
    writer_options = dict(options)
    if rows_per_second:
        messages = messages.coalesce(1)
        writer_options["maxRowsPerSecond"] = str(rows_per_second)
    messages.write.format("fila").options(**writer_options).mode("append").save()


def _marked(headers: Column) -> Column:
    others = fn.map_filter(headers, lambda name, value: name != fn.lit(REPLAY_OF))
    return fn.map_concat(others, fn.create_map(fn.lit(REPLAY_OF), fn.col("message_id")))
