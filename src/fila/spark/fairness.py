"""Was it fair? Per queue, window and key: what was delivered against the fair share of it.

Owns the definition of a fair share and of the verdict.

    fair share  weighted max-min: a window's deliveries are dealt out by weight among the keys that
                had messages ready, none getting more than it had
    verdict     over the keys with messages ready through the whole window, delivered/weight may
                differ by at most one visit of Deficit Round Robin (the quantum): PASS or FAIL;
                with fewer than two such keys there is nothing to compare

A key that is ready and gets nothing has no events of its own: its last count is carried forward.
A lane that parks says so, and takes its messages out of that count. Left out of the verdict are
keys that may not have been ready all the time although they were when last seen (delayed by a
retry), keys whose weight changed, and windows that a gap of the record touches.

One scan; the events meet once, aggregated per key and window, and everything after works on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as fn

from fila.spark.gaps import Gap, incomplete

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

# Events that tell a key's counts, and those of them whose weight becomes the key's.
_COUNTING: Final = (
    "enqueued", "requeued", "delivered", "acked", "nacked", "expired", "dead_lettered", "redriven",
    "released", "parked", "throttled", "snapshot",
)  # fmt: skip
_WEIGHING: Final = ("enqueued", "redriven", "dead_lettered", "snapshot")
_RUN: Final = ("broker", "epoch", "queue")  # one ring: a restart begins another
_EPSILON: Final = 1e-9


def fairness(
    events: DataFrame, window_s: float = 10.0, quantum: int = 1, gaps: list[Gap] | None = None
) -> DataFrame:
    """One row per queue, window and key that had something ready or delivered."""
    window_us = round(window_s * 1e6)
    counted = _per_window(events, window_us)
    carried = _carried(counted)
    ring = Window.partitionBy(*_RUN, "window")
    dealt = (
        carried.withColumn("of_window", fn.sum("delivered").over(ring))
        .where(fn.col("of_window") > 0)
        .transform(_fair_share, ring)
        .where("delivered > 0 or fair_share > 0")
    )
    ratio = fn.col("delivered") / fn.col("fair_share")
    per_weight = fn.when(fn.col("backlogged"), fn.col("delivered") / fn.col("weight"))
    judged = (
        dealt.withColumn("ratio", ratio)
        .withColumn("jain", fn.sum("ratio").over(ring) ** 2
                    / (fn.count("ratio").over(ring) * fn.sum(fn.col("ratio") ** 2).over(ring)))
        .withColumn("incomplete", incomplete(gaps or [], window_us))
        .withColumn("judged_keys", fn.count(per_weight).over(ring))
        .withColumn("spread", fn.max(per_weight).over(ring) - fn.min(per_weight).over(ring))
    )  # fmt: skip
    return judged.select(
        *_RUN,
        fn.timestamp_micros(fn.col("window") * window_us).alias("window_start"),
        "fairness_key",
        "weight",
        "delivered",
        fn.round("fair_share", 6).alias("fair_share"),
        fn.round("ratio", 6).alias("ratio"),
        fn.col("eligible_end").alias("left_ready"),
        "backlogged",
        fn.round("jain", 6).alias("jain"),
        "judged_keys",
        fn.round("spread", 6).alias("spread"),
        fn.lit(quantum).alias("bound"),
        "incomplete",
        fn.when((fn.col("judged_keys") < 2) | fn.col("incomplete"), "-")
        .when(fn.col("spread") <= quantum + _EPSILON, "PASS")
        .otherwise("FAIL")
        .alias("verdict"),
    )


def summary(shares: DataFrame) -> DataFrame:
    """One row per queue: how many windows were judged, how many failed, how even it was."""
    windows = shares.groupBy(*_RUN, "window_start").agg(
        fn.sum("delivered").alias("delivered"),
        fn.first("jain").alias("jain"),
        fn.first("spread").alias("spread"),
        fn.first("verdict").alias("verdict"),
    )
    failed = fn.count_if(fn.col("verdict") == "FAIL")
    judged = fn.count_if(fn.col("verdict") != "-")
    return (
        windows.groupBy("queue")
        .agg(
            fn.sum("delivered").alias("delivered"),
            fn.count("*").alias("windows"),
            judged.alias("judged"),
            failed.alias("failed"),
            fn.max(fn.when(fn.col("verdict") != "-", fn.col("spread"))).alias("worst_spread"),
            fn.round(fn.avg("jain"), 4).alias("mean_jain"),
            fn.when(failed > 0, "FAIL").when(judged > 0, "PASS").otherwise("-").alias("verdict"),
        )
        .orderBy("queue")
    )


def _per_window(events: DataFrame, window_us: int) -> DataFrame:
    """What each key's own events say about each window it had any in."""

    def window_of(time: str) -> Column:
        return fn.floor(fn.unix_micros(fn.col(time)) / fn.lit(window_us)).cast("long")

    event = fn.col("event")
    delivered = event == "delivered"
    delayed = fn.col("ready_at") > fn.col("ts")
    weighs = event.isin(*_WEIGHING)
    return (
        events.where(event.isin(*_COUNTING))
        .groupBy(*_RUN, "fairness_key", window_of("ts").alias("window"))
        .agg(
            fn.sum(fn.when(delivered, 1).otherwise(0)).alias("delivered"),
            fn.min("key_eligible").alias("eligible_min"),
            fn.max_by("key_eligible", "seq").alias("eligible_end"),
            fn.max_by("weight", fn.when(weighs, fn.col("seq"))).alias("weight_end"),
            fn.min(fn.when(weighs, fn.col("weight"))).alias("weight_min"),
            fn.max(fn.when(weighs, fn.col("weight"))).alias("weight_max"),
            fn.max_by("weight", fn.when(delivered, fn.col("seq"))).alias("weight_served"),
            fn.max(fn.when(delayed, window_of("ready_at"))).alias("delayed_to"),
        )
    )


def _carried(counted: DataFrame) -> DataFrame:
    """A row for every window a key was ready in, those without events of its own included."""
    by_key = Window.partitionBy(*_RUN, "fairness_key").orderBy("window")
    until_now = by_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = by_key.rowsBetween(Window.unboundedPreceding, -1)
    last_window = fn.max("window").over(Window.partitionBy(*_RUN))
    served = fn.last("weight_served", ignorenulls=True)
    known = (
        counted.withColumn("last_window", last_window)
        .withColumn("next_window", fn.lead("window").over(by_key))
        .withColumn("eligible_end", fn.last("eligible_end", ignorenulls=True).over(until_now))
        .withColumn("eligible_start", fn.last("eligible_end", ignorenulls=True).over(before))
        .withColumn("weight_start", fn.last("weight_end", ignorenulls=True).over(before))
        .withColumn("weight_key", fn.last("weight_end", ignorenulls=True).over(until_now))
        .withColumn("weight", fn.coalesce("weight_key", served.over(until_now), fn.lit(1)))
        .withColumn("delayed_to", fn.max("delayed_to").over(until_now))
        .withColumn("own_window", fn.col("window"))
    )
    silent_to = fn.coalesce(fn.col("next_window") - 1, fn.col("last_window"))
    covered = fn.when(fn.col("eligible_end") > 0, fn.sequence("window", silent_to)).otherwise(
        fn.array("window")
    )
    silent = fn.col("window") != fn.col("own_window")
    steady = silent | (
        (fn.coalesce("weight_start", "weight") == fn.col("weight"))
        & (fn.coalesce("weight_min", "weight") == fn.coalesce("weight_max", "weight"))
    )
    held = fn.coalesce(fn.col("delayed_to") >= fn.col("window"), fn.lit(False))
    ready = silent | (
        (fn.coalesce("eligible_start", fn.lit(0)) > 0)
        & (fn.coalesce("eligible_min", fn.lit(1)) > 0)
    )
    return (
        known.withColumn("window", fn.explode(covered))
        .withColumn("delivered", fn.when(silent, 0).otherwise(fn.col("delivered")))
        .withColumn("held", held)
        .withColumn("backlogged", ready & steady & ~fn.col("held"))
        .withColumn("weight", fn.greatest("weight", fn.lit(1)))
        .withColumn("eligible_end", fn.coalesce("eligible_end", fn.lit(0)))
    )


def _fair_share(carried: DataFrame, ring: WindowSpec) -> DataFrame:
    """Weighted max-min by its water level.

    With keys sorted by what they could use per unit of weight, the level after satisfying the
    first ones is (what is left) / (the weight that is left). It rises until the first key that
    cannot be satisfied and falls after it, so the highest one is the level.
    """
    could_use = fn.col("delivered") + fn.when(fn.col("held"), 0).otherwise(fn.col("eligible_end"))
    order = ring.orderBy(fn.col("could_use") / fn.col("weight"), "fairness_key")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    later = order.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    left = fn.col("of_window") - fn.coalesce(fn.sum("could_use").over(earlier), fn.lit(0))
    return (
        carried.withColumn("could_use", could_use)
        .withColumn("level_here", left / fn.sum("weight").over(later))
        .withColumn("level", fn.max("level_here").over(ring))
        .withColumn("fair_share", fn.least(fn.col("could_use"), fn.col("weight") * fn.col("level")))
    )
