"""What became of the messages: enqueued, delivered, acked, retried, dead-lettered.

Owns the totals of the journal. A message that moves between queues is counted where it came from:
dead letters with the queue that gave them up, redriven ones with the dead-letter queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STEPS: Final = (
    "enqueued",
    "delivered",
    "acked",
    "nacked",
    "expired",
    "requeued",
    "released",
    "dead_lettered",
    "redriven",
)


def totals(events: DataFrame) -> DataFrame:
    """Events per broker, queue, key and kind."""
    return (
        events.where(fn.col("event").isin(*STEPS))
        .groupBy("broker", _counted_in().alias("queue"), "fairness_key", "event")
        .agg(fn.sum("events").alias("count"))
    )


def funnel(events: DataFrame, by_key: bool = True, queue: str = "") -> DataFrame:
    """One row per queue (and key): how many took each step, and what part of the deliveries.

    For one queue alone, `events` must have what moved away from it as well, which is told by
    another's rows (`read_events` with `moved`)."""
    group = ["broker", "queue", "fairness_key"] if by_key else ["broker", "queue"]
    steps = [_count(fn.col("event") == step).alias(step) for step in STEPS]
    first = (fn.col("event") == "delivered") & (fn.col("attempt") == 0)
    found = (
        events.where(fn.col("event").isin(*STEPS))
        .withColumn("queue", _counted_in())
        .where(fn.col("queue") == queue if queue else fn.lit(True))
        .groupBy(*group)
        .agg(*steps, _count(first).alias("first_deliveries"))
    )
    return _told(found, group)


def funnel_of_cells(cells: DataFrame, by_key: bool = True) -> DataFrame:
    """The same of what is known as cells, which count where a message came from already."""
    group = ["broker", "queue", "fairness_key"] if by_key else ["broker", "queue"]
    counted = (*STEPS, "first_deliveries")
    found = (
        cells.where("queue != ''")
        .groupBy(*group)
        .agg(*[fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in counted])
        .where(" + ".join(STEPS) + " > 0")
    )
    return _told(found, group)


def _told(found: DataFrame, group: list[str]) -> DataFrame:
    failed = fn.col("nacked") + fn.col("expired")
    return found.select(
        *group,
        *STEPS,
        "first_deliveries",
        _percent(fn.col("acked"), fn.col("delivered")).alias("acked_percent"),
        _percent(failed, fn.col("delivered")).alias("failed_percent"),
        _percent(fn.col("dead_lettered"), fn.col("first_deliveries")).alias("dead_percent"),
    ).orderBy(*group)


def _counted_in() -> Column:
    moved = fn.col("event").isin("dead_lettered", "redriven") & (fn.col("source_queue") != "")
    return fn.when(moved, fn.col("source_queue")).otherwise(fn.col("queue"))


def _count(condition: Column) -> Column:
    return fn.sum(fn.when(condition, fn.col("events")).otherwise(0))


def _percent(part: Column, whole: Column) -> Column:
    return fn.when(whole > 0, fn.round(100.0 * part / whole, 2))
