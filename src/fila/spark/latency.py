"""How long did messages wait? Percentiles per queue and key.

Owns what is measured: `wait` is one delivery's, from being stored (again) to being handed out;
`age` is the message's, since it was first enqueued, earlier attempts included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

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
