"""Why was a tenant delayed? Its waits by cause, and who was served meanwhile.

Owns the reading of the five wait parts, which the broker measured and which add up to the wait:

    retry        not ready yet: a retry's or an enqueue's delay
    throttled    a bucket of its own was short
    no_consumer  no consumer had credit to take it
    own          older messages of the same key stood before it
    turn         it was next of its key, and other keys had their turns
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARTS: Final = ("retry", "throttled", "no_consumer", "own", "turn", "paused")
_US_PER_MS: Final = 1_000


def delays(events: DataFrame, top: int = 20, key: str = "") -> DataFrame:
    """The keys that waited longest in all, with where the time went; or one key alone."""
    # A part that an older journal does not know is null there.
    waits = [fn.sum(fn.coalesce(f"wait_{part}_us", fn.lit(0))).alias(part) for part in PARTS]
    wait = fn.unix_micros("ts") - fn.unix_micros("since")
    found = (
        _deliveries(events, key)
        .groupBy("queue", "fairness_key")
        .agg(
            fn.count("*").alias("deliveries"),
            fn.sum(wait).alias("wait"),
            fn.max(wait).alias("longest"),
            *waits,
        )
    )
    largest = fn.greatest(*PARTS)
    reason: Column = fn.lit(None)
    for part in reversed(PARTS):
        reason = fn.when(fn.col(part) == largest, part).otherwise(reason)
    return (
        found.select(
            "queue",
            "fairness_key",
            "deliveries",
            _ms(fn.col("wait") / fn.col("deliveries")).alias("wait_mean_ms"),
            _ms(fn.col("longest")).alias("wait_max_ms"),
            _ms(fn.col("wait")).alias("wait_ms"),
            *[_ms(fn.col(part)).alias(f"{part}_ms") for part in PARTS],
            fn.when(fn.col("wait") > 0, reason).otherwise("-").alias("mostly"),
        )
        .orderBy(fn.desc("wait_ms"), "queue", "fairness_key")
        .limit(top)
    )


def served_meanwhile(
    events: DataFrame, delayed: DataFrame, top: int = 5, step_s: float = 1.0
) -> DataFrame:
    """Which other keys were served, and how often, while those of `delayed` had something waiting.

    Time is cut into steps; a key waits in a step if any of its messages did. The waits of one step
    are put together before they are spread over time, so long waits cost no more than short ones.
    """
    step_us = round(step_s * 1e6)

    def step_of(time: str) -> Column:
        return fn.floor(fn.unix_micros(fn.col(time)) / fn.lit(step_us)).cast("long")

    served = (
        _deliveries(events)
        .groupBy("queue", "fairness_key", step_of("ts").alias("step"))
        .agg(fn.count("*").alias("deliveries"), fn.min(step_of("ready_at")).alias("from_step"))
    )
    # A message that came with its delivery's own step has not waited.
    asked = delayed.select("queue", fn.col("fairness_key").alias("waiting"))
    waiting = (
        served.withColumnRenamed("fairness_key", "waiting")
        .join(fn.broadcast(asked), ["queue", "waiting"])
        .select("queue", "waiting", fn.explode(fn.sequence("from_step", "step")).alias("step"))
        .distinct()
    )
    others = (
        waiting.join(served, ["queue", "step"])
        .where(fn.col("fairness_key") != fn.col("waiting"))
        .groupBy("queue", "waiting", "fairness_key")
        .agg(fn.sum("deliveries").alias("served"))
    )
    ranked = others.groupBy("queue", "waiting").agg(
        fn.slice(
            fn.sort_array(fn.collect_list(fn.struct("served", "fairness_key")), asc=False), 1, top
        ).alias("others")
    )
    return ranked.select(
        "queue",
        fn.col("waiting").alias("fairness_key"),
        fn.explode("others").alias("other"),
    ).select(
        "queue",
        "fairness_key",
        fn.col("other.fairness_key").alias("served_key"),
        fn.col("other.served").alias("served"),
    )


def _deliveries(events: DataFrame, key: str = "") -> DataFrame:
    found = events.where(fn.col("event") == "delivered")
    return found.where(fn.col("fairness_key") == key) if key else found


def _ms(micros: Column) -> Column:
    return fn.round(micros / _US_PER_MS, 3)
