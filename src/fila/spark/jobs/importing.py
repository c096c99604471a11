"""`import`: rows of CSV, JSON or Parquet files as messages of a queue.

What goes where is said in SQL expressions over the columns of the files. Without one for the
payload it is the column `payload`, or else the whole row as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Mapped(NamedTuple):
    """SQL expressions; the empty string means: not given."""

    payload: str = ""
    fairness_key: str = ""
    weight: str = ""
    delay_ms: str = ""
    idempotency_key: str = ""
    headers: Mapping[str, str] = {}
    throttle_keys: Sequence[str] = ()


def read_files(spark: SparkSession, path: str, form: str, where: str = "") -> DataFrame:
    """A CSV file has its names in the first line; everything in it is text."""
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.option("header", "true")
    frame = reader.load(path)
    return frame.where(where) if where else frame


def as_messages(frame: DataFrame, mapped: Mapped) -> DataFrame:
    """Pure: the columns of a message from the columns there are."""
    payload = mapped.payload or ("payload" if "payload" in frame.columns else "")
    body = fn.expr(payload) if payload else fn.to_json(fn.struct(*frame.columns))
    columns = [body.alias("payload")]
    for name, kind in (("fairness_key", "string"), ("weight", "bigint"), ("delay_ms", "bigint"),
                       ("idempotency_key", "string")):  # fmt: skip
        expression = getattr(mapped, name)
        if expression:
            columns.append(fn.expr(expression).cast(kind).alias(name))
    if mapped.headers:
        pairs = []
        for name, expression in mapped.headers.items():
            pairs += [fn.lit(name), fn.coalesce(fn.expr(expression).cast("string"), fn.lit(""))]
        columns.append(fn.create_map(*pairs).alias("headers"))
    if mapped.throttle_keys:
        keys = [fn.expr(one).cast("string") for one in mapped.throttle_keys]
        columns.append(fn.array_compact(fn.array(*keys)).alias("throttle_keys"))
    return frame.select(*columns)
