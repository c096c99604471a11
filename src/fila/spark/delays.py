"""Why was a tenant delayed? Its waits by cause, and who was served meanwhile.

Owns the reading of the parts of a wait, which the broker measured and which add up to the wait:

    retry        not ready yet: a retry's or an enqueue's delay
    throttled    a bucket of its own was short
    no_consumer  no consumer was connected, or all were held
    own          older messages of the same key stood before it
    turn         it was next of its key, and other keys had their turns
    paused       its queue or its key was paused
    busy_own     consumers had no credit left: the part that messages of its own key held
    busy_others  and the part that messages of other keys held

Journals before version 3 have all time without credit in `no_consumer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PIECE_US: Final = 10_000_000
_BITS: Final = 62
PARTS: Final = (
    *("retry", "throttled", "no_consumer", "own", "turn", "paused"),
    *("busy_own", "busy_others", "capped"),
)
_US_PER_MS: Final = 1_000


def delays(events: DataFrame, top: int = 20, key: str = "") -> DataFrame:
    """The keys that waited longest in all, with where the time went; or one key alone."""
    # A part that an older journal does not know is null there.
    waits = [fn.sum(fn.coalesce(f"wait_{part}_us", fn.lit(0))).alias(part) for part in PARTS]
    wait = fn.unix_micros("ts") - fn.unix_micros("since")
    found = (
        _deliveries(events, key)
        .groupBy("broker", "queue", "fairness_key")
        .agg(
            fn.count("*").alias("deliveries"),
            fn.sum(wait).alias("wait"),
            fn.max(wait).alias("longest"),
            *waits,
        )
    )
    return _longest(found, top)


def delays_of_cells(cells: DataFrame, top: int = 20, key: str = "") -> DataFrame:
    """The same of what is known as cells."""
    waits = [
        fn.sum(fn.coalesce(f"wait_{part}_us", fn.lit(0))).alias(part)
        for part in PARTS
        if part != "capped"  # cells count it with what was throttled
    ]
    own = cells.where("delivered > 0")
    found = (
        (own.where(fn.col("fairness_key") == key) if key else own)
        .groupBy("broker", "queue", "fairness_key")
        .agg(
            fn.sum("delivered").alias("deliveries"),
            fn.sum("wait_us").alias("wait"),
            fn.max("wait_max_us").alias("longest"),
            *waits,
            fn.lit(0).cast("bigint").alias("capped"),
        )
    )
    return _longest(found, top)


def _longest(found: DataFrame, top: int) -> DataFrame:
    largest = fn.greatest(*PARTS)
    reason: Column = fn.lit(None)
    for part in reversed(PARTS):
        reason = fn.when(fn.col(part) == largest, part).otherwise(reason)
    return (
        found.select(
            "broker",
            "queue",
            "fairness_key",
            "deliveries",
            _ms(fn.col("wait") / fn.col("deliveries")).alias("wait_mean_ms"),
            _ms(fn.col("longest")).alias("wait_max_ms"),
            _ms(fn.col("wait")).alias("wait_ms"),
            *[_ms(fn.col(part)).alias(f"{part}_ms") for part in PARTS],
            fn.when(fn.col("wait") > 0, reason).otherwise("-").alias("mostly"),
        )
        .orderBy(fn.desc("wait_ms"), "broker", "queue", "fairness_key")
        .limit(top)
    )


def served_meanwhile(events: DataFrame, delayed: DataFrame, top: int = 5) -> DataFrame:
    """Which other keys were served, and how often, while those of `delayed` waited for a turn.

    A key waits for a turn while it is in the ring: from an event that says it joined to the one
    that says it left, to the event, whatever the clock's resolution. The waiting keys are bits of
    one number: each joining adds a bit and each leaving takes it away, so that the sum up to a
    delivery tells who waited then. Sums are made within pieces of time, and between them; so
    neither long waits nor busy hours cost more than their events.
    """
    ring = ["broker", "epoch", "queue"]
    asked = _numbered(delayed)
    bit = fn.expr("shiftleft(1L, number)")
    piece = fn.floor(fn.unix_micros("ts") / fn.lit(_PIECE_US)).cast("long")
    own = events.where((fn.col("fairness_key") != "") & (fn.col("queue") != "")).join(
        fn.broadcast(asked), ["broker", "queue", "fairness_key"]
    )
    turns = own.where(fn.coalesce("ring_delta", fn.lit(0)) != 0).select(
        *ring, "seq", piece.alias("piece"), (fn.col("ring_delta") * bit).alias("change"),
        fn.lit(None).cast("string").alias("served_key"),
    )  # fmt: skip
    in_ring = fn.coalesce(fn.col("key_eligible") > 0, fn.lit(True)).cast("long")
    before = in_ring - fn.coalesce("ring_delta", fn.lit(0))
    at_first = (
        own.groupBy(*ring, "fairness_key", "number")
        .agg(fn.min_by(before, "seq").alias("before"))
        .groupBy(*ring)
        .agg(fn.sum(fn.col("before") * bit).alias("at_first"))
    )
    served = (
        _deliveries(events)
        .join(fn.broadcast(asked.select("broker", "queue").distinct()), ["broker", "queue"])
        .select(
            *ring, "seq", piece.alias("piece"), fn.lit(0).cast("long").alias("change"),
            fn.col("fairness_key").alias("served_key"),
        )
    )  # fmt: skip
    earlier = Window.partitionBy(*ring).orderBy("piece").rowsBetween(Window.unboundedPreceding, -1)
    carried = (
        turns.groupBy(*ring, "piece")
        .agg(fn.sum("change").alias("of_piece"))
        .unionByName(served.select(*ring, "piece").distinct().withColumn("of_piece", fn.lit(0)))
        .groupBy(*ring, "piece")
        .agg(fn.sum("of_piece").alias("of_piece"))
        .withColumn("carried", fn.coalesce(fn.sum("of_piece").over(earlier), fn.lit(0)))
        .drop("of_piece")
    )
    so_far = Window.partitionBy(*ring, "piece").orderBy("seq")
    waiting = fn.col("at_first") + fn.col("carried") + fn.col("within")
    counted = (
        turns.unionByName(served)
        .withColumn("within", fn.sum("change").over(so_far))
        .where("served_key is not null")
        .join(fn.broadcast(carried), [*ring, "piece"])
        .join(fn.broadcast(at_first), ring)
        .groupBy("broker", "queue", waiting.alias("waiting"), "served_key")
        .agg(fn.count("*").alias("served"))
    )
    others = (
        counted.join(fn.broadcast(asked), ["broker", "queue"])
        .where(fn.col("waiting").bitwiseAND(bit) != 0)
        .where("served_key != fairness_key")
        .groupBy("broker", "queue", "fairness_key", "served_key")
        .agg(fn.sum("served").alias("served"))
    )
    most = Window.partitionBy("broker", "queue", "fairness_key").orderBy(
        fn.desc("served"), "served_key"
    )
    return (
        others.withColumn("place", fn.row_number().over(most))
        .where(fn.col("place") <= top)
        .drop("place")
    )


def _numbered(delayed: DataFrame) -> DataFrame:
    """The keys asked for, each with a bit: as many as a number has."""
    names = delayed.select("broker", "queue", "fairness_key").limit(_BITS).collect()
    rows = [(*name, number) for number, name in enumerate(names)]
    return delayed.sparkSession.createDataFrame(
        rows, "broker string, queue string, fairness_key string, number int"
    )


def _deliveries(events: DataFrame, key: str = "") -> DataFrame:
    found = events.where(fn.col("event") == "delivered")
    return found.where(fn.col("fairness_key") == key) if key else found


def _ms(micros: Column) -> Column:
    return fn.round(micros / _US_PER_MS, 3)
