"""Was it fair? Per queue, window and key: what was delivered against the fair share, and a verdict.

Owns the definition of both.

    fair share  weighted max-min: a window's deliveries are dealt out by weight among the keys that
                had messages ready, none getting more than it had, nor more than was handed out
                while it had them
    verdict     Deficit Round Robin visits every key in the ring once a round, for weight × quantum
                messages. So what a key gets, per unit of weight, is at least

                - what any other gets while both are in the ring, less one quantum; and
                - its weight's part of what is handed out while it is in the ring, less one quantum.

                Each stretch in the ring costs another quantum, for a key comes and goes, and
                so does a change of its weight; what was handed out while it was not in the ring
                may all have gone to the other. `behind` is how much less a key got than it
                was to be held against, `allowed` how much less it might get: PASS or FAIL.

                Where getting nothing at all would have been allowed (little was handed out, or it
                had messages for moments only) a key is not judged, and the time it had messages
                ready is counted as such. Nor is it in windows that a gap of the record touches.
                A key that is alone in the ring has nobody to be compared with.

A key that is ready and gets nothing has no events of its own: it stands in every window until its
next event (`presence.py`). Windows in which nothing was handed out are left out.

One scan; the events meet once, aggregated per key and window, and everything after works on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as fn

from fila.spark.gaps import Gap, touched
from fila.spark.presence import RING, presence

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

WINDOW_S: Final = 10.0  # short: ten bad minutes are not lost in a day
_EPSILON: Final = 1e-9
GAP: Final = "gap"
ALONE: Final = "alone"
LITTLE: Final = "little"


def fairness(
    events: DataFrame,
    window_s: float = WINDOW_S,
    quantum: int = 1,
    gaps: list[Gap] | None = None,
) -> DataFrame:
    """One row per queue, window and key that was in the ring."""
    window_us = round(window_s * 1e6)
    return judged(presence(events, window_us), window_us, quantum, gaps)


def judged(
    cells: DataFrame,
    window_us: int,
    quantum: int = 1,
    gaps: list[Gap] | None = None,
    rings: Sequence[str] = RING,
) -> DataFrame:
    """The same of cells that are known already; `rings` may keep more apart than queues."""
    # Always true. Spark leaves out columns nobody asks for, and would then not see that all uses of
    # the cells are of the same rows: it would read the events once for each.
    cells = cells.where(fn.hash(*cells.columns) >= fn.lit(-(1 << 31)))
    handed_out = _handed_out(
        cells, touched(cells.sparkSession, gaps, window_us) if gaps else None, rings
    )
    ring = Window.partitionBy(*rings, "window")
    shares = _present(cells, handed_out, window_us, rings).transform(_fair_share, ring)
    got_most = fn.col("delivered") / fn.col("lightest")
    got_least = fn.col("delivered") / fn.col("heaviest")
    stretches = fn.col("stretches") + fn.col("weight_changes")
    # Whom it is held against: who got most, as far as that can be said of the window as a whole.
    other = fn.struct(
        (got_least - quantum * stretches).alias("surely"),
        fn.col("lightest").alias("weight"),
        got_least.alias("got"),
    )
    as_other = _held_against(
        fn.col("other.got"),
        fn.col("other.got") - fn.col("other.surely")
        + quantum * (stretches - 1) + fn.col("absent") / fn.col("other.weight"),
        got_most,
    )  # fmt: skip
    as_share = _held_against(
        fn.col("in_ring") / fn.sum("heaviest").over(ring), quantum * stretches, got_most
    )
    found = (
        shares.withColumn("ratio", fn.try_divide("delivered", "fair_share"))
        .withColumn("jain", _jain(ring))
        .withColumn("keys", fn.count("*").over(ring))
        .withColumn("other", fn.max(other).over(ring))
        .withColumn("held", fn.greatest(as_other, as_share))
        .withColumn("behind", fn.col("held.behind"))
        .withColumn("allowed", fn.col("held.allowed"))
    )
    unjudged = (
        fn.when(fn.col("incomplete"), GAP)
        .when(fn.col("keys") < 2, ALONE)
        .when(~fn.col("held.tells"), LITTLE)
    )
    return found.withColumn("unjudged", unjudged).select(
        *rings,
        fn.timestamp_micros(fn.col("window") * window_us).alias("window_start"),
        "fairness_key",
        "weight",
        "delivered",
        fn.round("fair_share", 6).alias("fair_share"),
        fn.round("ratio", 6).alias("ratio"),
        "left_ready",
        fn.round(fn.col("ready_us") / 1000, 3).alias("ready_ms"),
        "stretches",
        fn.round("jain", 6).alias("jain"),
        fn.round("behind", 6).alias("behind"),
        fn.round("allowed", 6).alias("allowed"),
        fn.col("unjudged"),
        fn.when(fn.col("unjudged").isNotNull(), "-")
        .when(fn.col("behind") <= fn.col("allowed") + _EPSILON, "PASS")
        .otherwise("FAIL")
        .alias("verdict"),
    )


def _held_against(measure: Column, allowed: Column, got: Column) -> Column:
    """How far behind, how far it might be, and whether getting nothing would have been too far;
    the larger of two says more."""
    tells = measure > allowed + _EPSILON
    behind = measure - got
    return fn.struct(
        tells.alias("tells"), (behind - allowed).alias("excess"), behind.alias("behind"),
        allowed.alias("allowed"),
    )  # fmt: skip


def _jain(ring: WindowSpec) -> Column:
    squares = fn.sum(fn.col("ratio") ** 2).over(ring)
    return fn.try_divide(fn.sum("ratio").over(ring) ** 2, fn.count("ratio").over(ring) * squares)


def by_key(shares: DataFrame, time: Sequence[str] = ()) -> DataFrame:
    """One row per queue and key: what it got, and for how long that could be judged."""
    return (
        shares.groupBy("broker", "queue", "fairness_key", *time)
        .agg(
            fn.sum("delivered").alias("delivered"),
            fn.round(fn.sum("fair_share"), 3).alias("fair_share"),
            fn.count_if(fn.col("verdict") != "-").alias("judged"),
            fn.count_if(fn.col("verdict") == "FAIL").alias("failed"),
            fn.max(fn.col("behind") - fn.col("allowed")).alias("worst"),
            *_times(),
        )
        .withColumn("short", fn.round(fn.col("fair_share") - fn.col("delivered"), 3))
        .withColumn("keys_of_queue", fn.count("*").over(Window.partitionBy("broker", "queue")))
    )


def by_window(shares: DataFrame) -> DataFrame:
    """One row per queue and window: was it judged, did it fail, by how much at worst."""
    failed = fn.col("verdict") == "FAIL"
    return shares.groupBy(*RING, "window_start").agg(
        fn.sum("delivered").alias("delivered"),
        fn.first("jain").alias("jain"),
        fn.max((fn.col("verdict") != "-").cast("int")).alias("judged"),
        fn.max(failed.cast("int")).alias("failed"),
        fn.max(fn.when(failed, fn.col("behind") - fn.col("allowed"))).alias("worst"),
        *_times(),
    )


def summary(shares: DataFrame) -> DataFrame:
    """One row per queue: how many windows were judged, how many failed, how even it was."""
    return (
        by_window(shares)
        .groupBy("broker", "queue")
        .agg(
            fn.sum("delivered").alias("delivered"),
            fn.count("*").alias("windows"),
            fn.sum("judged").alias("judged"),
            fn.sum("failed").alias("failed"),
            fn.round(fn.max("worst"), 3).alias("worst"),
            fn.round(fn.avg("jain"), 4).alias("mean_jain"),
            *[fn.round(fn.sum(name), 3).alias(name) for name in _TIMES],
            fn.min("window_start").alias("first"),
            fn.max("window_start").alias("last"),
        )
        .withColumn("verdict", _verdict())
        .orderBy("broker", "queue")
    )


_TIMES: Final = ("ready_s", "judged_s", "unjudged_s", "gap_s", "alone_s")


def _times() -> list[Column]:
    """How long the keys had messages ready, by what can be said about that."""
    seconds = fn.col("ready_ms") / 1000
    judged = fn.col("verdict") != "-"
    gap, alone = fn.col("unjudged") == GAP, fn.col("unjudged") == ALONE
    rest = fn.col("unjudged").isin(GAP, LITTLE)
    return [
        fn.round(fn.coalesce(fn.sum(fn.when(of, seconds)), fn.lit(0.0)), 3).alias(name)
        for name, of in zip(_TIMES, (fn.lit(True), judged, rest, gap, alone), strict=True)
    ]


def _verdict() -> Column:
    """A queue that could be judged for less than half of the time has no verdict."""
    return (
        fn.when(fn.col("failed") > 0, "FAIL")
        .when((fn.col("judged") == 0) | (fn.col("judged_s") < fn.col("unjudged_s")), "-")
        .otherwise("PASS")
    )


def _handed_out(cells: DataFrame, doubtful: DataFrame | None, rings: Sequence[str]) -> DataFrame:
    """Each queue's windows: what was handed out, and the number of each that is not idle."""
    in_order = Window.partitionBy(*rings).orderBy("window")
    busy = (fn.col("of_window") > 0).cast("int")
    # The queue's own count tells when rows are missing that no gap tells of.
    counted = fn.col("of_window") == fn.col("position_last") - fn.col("position_first")
    found = (
        cells.groupBy(*rings, "window")
        .agg(
            fn.sum("delivered").alias("of_window"),
            fn.min("position_first").alias("position_first"),
            fn.max("position_last").alias("position_last"),
        )
        .withColumn("busy", busy)
        .withColumn("number", fn.sum("busy").over(in_order))
        .withColumn("numbers", fn.sum("busy").over(Window.partitionBy(*rings)))
        .withColumn("incomplete", ~counted)
    )
    if doubtful is None:
        return found
    same_run = [found[name] == doubtful[name] for name in ("broker", "epoch")]
    within = found["window"].between(doubtful["first"], doubtful["last"])
    joined = found.join(fn.broadcast(doubtful), [*same_run, within], "left")
    incomplete = fn.col("incomplete") | doubtful["first"].isNotNull()
    return joined.select(
        *[found[name] for name in found.columns if name != "incomplete"],
        incomplete.alias("incomplete"),
    )


def _present(
    cells: DataFrame, handed_out: DataFrame, window_us: int, rings: Sequence[str]
) -> DataFrame:
    """A row for every window a key was in the ring, those without events of its own included."""
    in_order = Window.partitionBy(*rings, "fairness_key").orderBy("window")
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)

    def latest(name: str, frame: WindowSpec) -> Column:
        return fn.last(name, ignorenulls=True).over(frame)

    weight = fn.coalesce(
        latest("weight_end", until_now), latest("weight_told", until_now),
        latest("weight_served", until_now), fn.lit(1),
    )  # fmt: skip
    of_ring = handed_out.select(*rings, "window", "busy", "number", "numbers")
    known = (
        cells.join(fn.broadcast(of_ring), [*rings, "window"])
        .withColumn("is_first", fn.row_number().over(in_order) == 1)
        .withColumn("weight", fn.greatest(weight, fn.lit(1)))
        .withColumn("weight_start", fn.coalesce(latest("weight_end", before), fn.col("weight")))
        .withColumn("silent_to", fn.lead(fn.col("number") - fn.col("busy")).over(in_order))
        .withColumn("silent_to", fn.coalesce("silent_to", "numbers"))
        .withColumnRenamed("number", "own_number")
    )
    busy_ones = handed_out.where("busy = 1").drop("busy", "numbers")
    number, nothing = fn.col("own_number"), fn.array().cast("array<bigint>")
    own = fn.when(fn.col("busy") == 1, fn.array(number)).otherwise(nothing)
    after = fn.when(
        (fn.col("in_after") == 1) & (fn.col("silent_to") > number),
        fn.sequence(number + 1, "silent_to"),
    ).otherwise(nothing)
    first_before = number - fn.col("busy")
    earlier = fn.when(
        fn.col("is_first") & (fn.col("in_before") == 1) & (first_before >= 1),
        fn.sequence(fn.lit(1).cast("long"), first_before),
    ).otherwise(nothing)
    spread = (
        known.drop("window", "position_first", "position_last", "numbers")
        .withColumn("number", fn.explode(fn.concat(own, after, earlier)))
        .join(fn.broadcast(busy_ones), [*rings, "number"])
    )
    is_own = (fn.col("number") == number) & (fn.col("busy") == 1)
    earlier_than = fn.col("number") < number
    first, last = fn.col("position_first"), fn.col("position_last")
    positions = fn.when(
        is_own, fn.col("positions") + fn.col("in_after") * last - fn.col("in_before") * first
    ).otherwise(last - first)
    ready_us = fn.when(is_own, fn.col("ready_us") + fn.col("in_after") * window_us)
    left = fn.when(earlier_than, fn.col("ready_first")).otherwise(fn.col("left_ready"))
    in_after = fn.when(is_own, fn.col("in_after")).otherwise(1)
    return (
        spread.withColumn("stretches", fn.when(is_own, fn.col("in_before") + fn.col("joins")))
        .withColumn("stretches", fn.coalesce("stretches", fn.lit(1)))
        .where("stretches > 0")
        .withColumn("in_ring", fn.greatest(positions, fn.lit(0)))
        .withColumn("absent", fn.greatest(last - first - fn.col("in_ring"), fn.lit(0)))
        .withColumn("ready_us", fn.coalesce(ready_us, fn.lit(window_us)))
        .withColumn("left_ready", fn.when(in_after == 1, fn.greatest(left, fn.lit(1))))
        .withColumn("left_ready", fn.coalesce("left_ready", fn.lit(0)))
        .withColumn("weight_changes", fn.when(is_own, fn.col("weight_changes")).otherwise(0))
        .withColumn("lightest", _extreme(fn.least, "weight_min", is_own))
        .withColumn("heaviest", _extreme(fn.greatest, "weight_max", is_own))
        .withColumn("delivered", fn.when(is_own, fn.col("delivered")).otherwise(0))
    )


def _extreme(choose: Column | object, name: str, is_own: Column) -> Column:
    """The lowest or the highest weight the key had in the window."""
    chosen = choose("weight", "weight_start", fn.coalesce(name, "weight"))  # type: ignore[operator]
    return fn.when(is_own, fn.greatest(chosen, fn.lit(1))).otherwise(fn.col("weight"))


def _fair_share(present: DataFrame, ring: WindowSpec) -> DataFrame:
    """Weighted max-min by its water level.

    With keys sorted by what they could use per unit of weight, the level after satisfying the
    first ones is (what is left) / (the weight that is left). It rises until the first key that
    cannot be satisfied and falls after it, so the highest one is the level.
    """
    could_use = fn.least(fn.col("delivered") + fn.col("left_ready"), fn.col("in_ring"))
    order = ring.orderBy(fn.col("could_use") / fn.col("weight"), "fairness_key")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    # Not as a frame to the end: that would be gone through again for every row.
    used = fn.coalesce(fn.sum("could_use").over(earlier), fn.lit(0))
    weight_left = fn.sum("weight").over(ring) - fn.coalesce(
        fn.sum("weight").over(earlier), fn.lit(0)
    )
    return (
        present.withColumn("could_use", fn.greatest(could_use, "delivered"))
        .withColumn("level_here", (fn.col("of_window") - used) / weight_left)
        .withColumn("level", fn.max("level_here").over(ring))
        .withColumn("fair_share", fn.least(fn.col("could_use"), fn.col("weight") * fn.col("level")))
    )
