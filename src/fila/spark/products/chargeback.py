"""What each tenant used, by the hour: messages, bytes, and how long consumers held its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.tables.cells import WINDOW_S, WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR: Final = 3_600 // WINDOW_S  # in windows
USED: Final = (
    "enqueued", "delivered", "acked", "nacked", "expired", "dead_lettered", "redriven",
    "enqueued_bytes", "delivered_bytes", "processing_us",
)  # fmt: skip


def chargeback(facts: DataFrame, windows: int = HOUR, name: str = "hour_start") -> DataFrame:
    """One row per broker, queue, key and hour, or another number of whole windows."""
    return (
        facts.where("fairness_key != ''")
        .groupBy(
            "broker",
            "queue",
            "fairness_key",
            fn.expr(f"timestamp_micros(window div {windows} * {windows * WINDOW_US}) as {name}"),
        )
        .agg(*[fn.expr(f"sum({name}) as {name}") for name in USED])
    )
