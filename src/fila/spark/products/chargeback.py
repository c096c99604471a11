"""What each tenant used in an hour: messages, bytes, and how long consumers held its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

USED: Final = (
    "enqueued", "delivered", "acked", "nacked", "expired", "dead_lettered", "redriven",
    "enqueued_bytes", "delivered_bytes", "processing_us",
)  # fmt: skip


def chargeback(facts: DataFrame) -> DataFrame:
    """One row per broker, queue, key and hour."""
    return (
        facts.where("fairness_key != ''")
        .groupBy(
            "broker",
            "queue",
            "fairness_key",
            fn.expr("timestamp_micros(window div 360 * 3600000000) as hour_start"),
        )
        .agg(*[fn.expr(f"sum({name}) as {name}") for name in USED])
    )
