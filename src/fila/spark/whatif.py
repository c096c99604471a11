"""What if weights, rates, the quantum or the consumers had been others?

Owns the comparison, and the right to make it: first the record is replayed as it was, and if that
does not give the recorded waits the record is not understood and nothing is compared.

Each queue of each broker is replayed by itself, with that broker's settings, where Spark likes: a
bucket that several queues share is taken for each one's own, which the calibration notices where it
matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from fila.spark.replay import Changes, replay
from fila.spark.trace import COLUMNS, Setting, trace_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUANTUM: Final = "scheduler.quantum"
RECORDED: Final = "recorded"
REPLAYED: Final = "replayed"
CHANGED: Final = "changed"
TOLERANCE: Final = 0.10  # of the mean wait
TOLERANCE_MS: Final = 5.0  # below this, differences are noise: a turn of the loop, a timer's delay
SCHEMA: Final = (
    "broker string, queue string, fairness_key string, scenario string, deliveries long, "
    "wait_mean_ms double, "
    "wait_p50_ms double, wait_p95_ms double, wait_p99_ms double, wait_max_ms double"
)


def whatif(
    events: DataFrame,
    settings: DataFrame,
    changes: Changes,
    quantum: int = 0,
) -> DataFrame:
    """Waits per queue, key and scenario: recorded, replayed, and replayed with the changes.

    `settings` are events too: the config_changed ones, which may lie before the record. They tell
    the quantum the broker ran with, unless it is given.
    """
    known: dict[str, list[Setting]] = {}
    for row in (
        settings.where(fn.col("event") == "config_changed")
        .select("broker", fn.unix_micros("ts").alias("at_us"), "reason", "epoch", "seq")
        .orderBy("broker", "epoch", "seq")
        .collect()
    ):
        setting = Setting(int(row["at_us"]), *row["reason"].split("=", 1))
        known.setdefault(row["broker"], []).append(setting)
    of_queues = events.where((fn.col("queue") != "") & ~fn.col("queue").endswith(".dlq"))
    return (
        of_queues.select("broker", *COLUMNS)
        .groupBy("broker", "queue")
        .applyInArrow(_replayed(known, changes, quantum), SCHEMA)
    )


def quantum_of(settings: list[Setting]) -> int:
    """The quantum of the newest run; that of a broker that says nothing is 1."""
    told = [int(one.value) for one in settings if one.key == QUANTUM]
    return told[-1] if told else 1


def calibration(waits: DataFrame) -> DataFrame:
    """Per queue: how far the replay is from the record, and whether it may be built upon."""
    pairs = (
        waits.groupBy("broker", "queue", "fairness_key")
        .pivot("scenario", [RECORDED, REPLAYED])
        .agg(fn.first("wait_mean_ms").alias("mean"), fn.first("deliveries").alias("deliveries"))
    )
    recorded, replayed = fn.col(f"{RECORDED}_mean"), fn.col(f"{REPLAYED}_mean")
    count = fn.coalesce(f"{RECORDED}_deliveries", fn.lit(0))
    other = fn.coalesce(f"{REPLAYED}_deliveries", fn.lit(0))
    apart = fn.abs(fn.coalesce(recorded, fn.lit(0)) - fn.coalesce(replayed, fn.lit(0)))
    by_queue = pairs.groupBy("broker", "queue").agg(
        fn.sum(count).alias("recorded_deliveries"),
        fn.sum(other).alias("replayed_deliveries"),
        (fn.sum(recorded * count) / fn.sum(count)).alias("recorded_ms"),
        (fn.sum(replayed * other) / fn.sum(other)).alias("replayed_ms"),
        (fn.sum(apart * count) / fn.sum(count)).alias("apart_ms"),
    )
    allowed = fn.greatest(fn.lit(TOLERANCE_MS), TOLERANCE * fn.col("recorded_ms"))
    missing = fn.abs(fn.col("recorded_deliveries") - fn.col("replayed_deliveries"))
    trusted = (fn.col("apart_ms") <= allowed) & (
        missing <= TOLERANCE * fn.col("recorded_deliveries")
    )
    return by_queue.select(
        "broker",
        "queue",
        "recorded_deliveries",
        "replayed_deliveries",
        fn.round("recorded_ms", 3).alias("recorded_ms"),
        fn.round("replayed_ms", 3).alias("replayed_ms"),
        fn.round("apart_ms", 3).alias("apart_ms"),
        fn.round(allowed, 3).alias("allowed_ms"),
        fn.coalesce(trusted, fn.lit(False)).alias("trusted"),
    ).orderBy("broker", "queue")


def _replayed(
    settings: dict[str, list[Setting]], changes: Changes, quantum: int
) -> Callable[[pa.Table], pa.Table]:
    def of_queue(table: Any) -> Any:
        broker, queue = table["broker"][0].as_py(), table["queue"][0].as_py()
        told = settings.get(broker, [])
        ran_with = quantum or quantum_of(told)
        trace = trace_of(queue, table, [one for one in told if one.key != QUANTUM])
        place = (broker, queue)
        rows = _rows(place, RECORDED, trace.waits_us)
        rows += _rows(place, REPLAYED, replay(trace, ran_with))
        if changes != Changes():
            rows += _rows(place, CHANGED, replay(trace, ran_with, changes))
        return pa.Table.from_pylist(rows, schema=_ARROW)

    return of_queue


def _rows(
    place: tuple[str, str], scenario: str, waits_us: dict[str, list[int]]
) -> list[dict[str, Any]]:
    found = []
    for key, waits in sorted(waits_us.items()):
        ms = np.array(waits) / 1000
        p50, p95, p99 = np.percentile(ms, (50, 95, 99))
        row = (*place, key, scenario, len(waits), ms.mean(), p50, p95, p99, ms.max())
        found.append(dict(zip(_ARROW.names, row, strict=True)))
    return found


_ARROW: Final = pa.schema(
    [
        (name, {"string": pa.string(), "long": pa.int64(), "double": pa.float64()}[kind])
        for name, kind in (column.split() for column in SCHEMA.split(", "))
    ]
)
