"""How long did messages wait? Percentiles per queue and key.

Owns what is measured: `wait` is one delivery's, from being stored (again) to being handed out;
`age` is the message's, since it was first enqueued, earlier attempts included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as fn

from fila.spark.tables.histogram import EACH, TIMES, middle_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_ACCURACY: Final = 10_000  # one ten-thousandth of the rank: one scan, no sort
_US_PER_MS: Final = 1_000


def latency(events: DataFrame) -> DataFrame:
    """One row per queue and key, the slowest first; times in milliseconds."""
    waits = events.where(fn.col("event") == "delivered").select(
        "broker",
        "queue",
        "fairness_key",
        _micros("since").alias("wait"),
        _micros("enqueued_at").alias("age"),
    )
    found = waits.groupBy("broker", "queue", "fairness_key").agg(
        fn.count("*").alias("deliveries"),
        fn.avg("wait").alias("wait_mean"),
        fn.percentile_approx("wait", list(PERCENTILES.values()), _ACCURACY).alias("waits"),
        fn.max("wait").alias("wait_max"),
        fn.percentile_approx("age", list(PERCENTILES.values()), _ACCURACY).alias("ages"),
        fn.max("age").alias("age_max"),
    )
    return _told(found)


def latency_of_cells(cells: DataFrame) -> DataFrame:
    """The same of what is known as cells; percentiles are the middles of their buckets, within
    1.6 %."""
    group = ("broker", "queue", "fairness_key")
    own = cells.where("delivered > 0")
    sums = own.groupBy(*group).agg(
        fn.sum("delivered").alias("deliveries"),
        (fn.sum("wait_us") / fn.sum("delivered")).alias("wait_mean"),
        fn.max("wait_max_us").alias("wait_max"),
        fn.max("age_max_us").alias("age_max"),
    )
    first = {name: TIMES.index(name) * EACH for name in ("wait", "age")}
    counted = own.select(*group, fn.explode("histogram").alias("code", "count"))
    for name, code in first.items():
        buckets = (
            counted.where(fn.col("code").between(code, code + EACH - 1))
            .groupBy(*group, (fn.col("code") - code).alias("bucket"))
            .agg(fn.sum("count").alias("count"))
        )
        sums = sums.join(_percentiles(buckets, sums, name), [*group], "left")
    return _told(sums)


def _percentiles(buckets: DataFrame, sums: DataFrame, name: str) -> DataFrame:
    """By key an array of times: of each the first that so many of the deliveries did not exceed.
    What no bucket counts took no time."""
    group = ("broker", "queue", "fairness_key")
    known = buckets.join(sums.select(*group, "deliveries", f"{name}_max"), [*group])
    by_key = Window.partitionBy(*group)
    zeros = fn.col("deliveries") - fn.sum("count").over(by_key)
    so_far = zeros + fn.sum("count").over(by_key.orderBy("bucket"))
    time = fn.least(middle_of(fn.col("bucket")), fn.col(f"{name}_max").cast("double"))
    reached = known.select(
        *group, "deliveries", time.alias("time"), zeros.alias("zeros"), so_far.alias("so_far")
    )
    times = []
    for part in PERCENTILES.values():
        rank = fn.ceil(fn.lit(part) * fn.col("deliveries"))
        found = fn.min(fn.when(fn.col("so_far") >= rank, fn.col("time")))
        times.append(fn.when(fn.max(fn.col("zeros") >= rank), 0.0).otherwise(found))
    return reached.groupBy(*group).agg(fn.array(*times).alias(f"{name}s"))


def _told(found: DataFrame) -> DataFrame:
    """One row per queue and key, from sums and arrays of percentiles in microseconds."""
    nothing = fn.array(*[fn.lit(0.0)] * len(PERCENTILES))
    found = found.withColumns(
        {
            name: fn.coalesce(fn.col(name).cast("array<double>"), nothing)
            for name in ("waits", "ages")
        }
    )
    names = list(enumerate(PERCENTILES))
    return found.select(
        "broker",
        "queue",
        "fairness_key",
        "deliveries",
        _ms(fn.col("wait_mean")).alias("wait_mean_ms"),
        *[_ms(fn.col("waits")[at]).alias(f"wait_{name}_ms") for at, name in names],
        _ms(fn.col("wait_max")).alias("wait_max_ms"),
        *[_ms(fn.col("ages")[at]).alias(f"age_{name}_ms") for at, name in names],
        _ms(fn.col("age_max")).alias("age_max_ms"),
    ).orderBy(fn.desc("wait_p99_ms"), "broker", "queue", "fairness_key")


def _micros(since: str) -> Column:
    return fn.unix_micros("ts") - fn.unix_micros(since)


def _ms(micros: Column) -> Column:
    return fn.round(micros / _US_PER_MS, 3)
