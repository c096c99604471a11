"""`format("fila")` in local[2] with the broker on the same cores: snapshot, write, stream.

    python -m bench.spark_source [--full]

Rows of 1 KB of ten tenants, one run after a smaller one that warms Spark up: its JVM compiles what
runs often, and its Python workers have imported what they need. Starting Spark does not count,
planning a query and starting its tasks does: 0.2 to 0.5 s each, 1.5 s for a stream, so the short
form shows less than the full one. The full form measures the compiled broker too.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import command
from bench.record import Findings, Row, Target
from bench.system import form
from bench.system.broker import Broker
from fila.client.sync import FilaClient
from fila.spark.session import get_spark

ROWS = 500_000
SHORT_ROWS = 300_000
WARM_UP_ROWS = 60_000
PAYLOAD_BYTES = 1_024
PURE, COMPILED = "pure", "compiled"
TARGETS = {"write": 60_000, "snapshot": 100_000, "stream": 30_000}


def run(full: bool) -> Findings:
    rows = ROWS if full else SHORT_ROWS
    found: dict[str, dict[str, float]] = {}
    if full:
        form.build()
    spark = get_spark("local[2]", app="fila bench")
    for name in (PURE, COMPILED) if full else (PURE,):
        home = Path(tempfile.mkdtemp(prefix="fila-bench-source-"))
        try:
            # Not a part of what is measured: the first Arrow body would wait for the import.
            settings = {"browse.preload_arrow": "true"}
            with Broker(home / "broker", settings, compiled=name == COMPILED) as broker:
                found[name] = measure(spark, broker.address, rows, home)
        finally:
            shutil.rmtree(home)
    spark.stop()
    table: list[Row] = [
        {
            "what": what,
            "broker": name,
            "rows": rows,
            "seconds": round(seconds, 2),
            "rows_per_s": round(rows / seconds),
        }
        for what in found[PURE]
        for name, seconds in ((name, found[name][what]) for name in found)
    ]
    return Findings(
        f"Rows of {PAYLOAD_BYTES} bytes between Spark in local[2] and a broker on the same cores: "
        "written without idempotency keys unless it says so, read as a snapshot into nothing, and "
        "followed as a stream (availableNow) into nothing and into Parquet. Whole jobs, planning "
        f"included, after a run of {WARM_UP_ROWS:,} rows to warm Spark up. Targets are judged by "
        "the pure form of the broker; Spark's Python workers run the pure form of the package in "
        "every case.",
        {"Rates": table},
        [
            Target(
                what,
                f">= {limit:,} rows/s",
                f"{rows / found[PURE][what]:,.0f} rows/s",
                rows / found[PURE][what] >= limit,
            )
            for what, limit in TARGETS.items()
        ],
        [],
    )


def measure(spark: Any, address: str, rows: int, home: Path) -> dict[str, float]:
    """Seconds for each, the second time."""
    client = FilaClient(address)
    took: dict[str, float] = {}

    def timed(what: str, work: Callable[[], None]) -> None:
        began = time.monotonic()
        work()
        took[what] = time.monotonic() - began

    for attempt, count in enumerate((WARM_UP_ROWS, rows)):
        queue, keyed, lake = f"q{attempt}", f"keyed{attempt}", home / f"lake{attempt}"
        client.create_queue(queue)
        client.create_queue(keyed)
        messages = spark.range(count, numPartitions=2).selectExpr(
            f"repeat('x', {PAYLOAD_BYTES}) as payload", "concat('tenant-', id % 10) as fairness_key"
        )
        with_keys = messages.selectExpr("*", "uuid() as idempotency_key")
        timed("write", lambda: write(messages, address, queue))  # noqa: B023
        timed("write with keys", lambda: write(with_keys, address, keyed))  # noqa: B023
        timed("snapshot", lambda: snapshot(spark, address, queue))  # noqa: B023
        timed("stream", lambda: stream(spark, address, queue, lake, "noop"))  # noqa: B023
        timed("stream to Parquet", lambda: stream(spark, address, keyed, lake, "parquet"))  # noqa: B023
        assert all(one.depth + one.in_flight == 0 for one in client.list_queues())
    client.close()
    return took


def write(messages: Any, address: str, queue: str) -> None:
    messages.write.format("fila").option("address", address).mode("append").save(queue)


def snapshot(spark: Any, address: str, queue: str) -> None:
    frame = spark.read.format("fila").option("address", address).load(queue)
    frame.write.format("noop").mode("overwrite").save()


def stream(spark: Any, address: str, queue: str, lake: Path, sink: str) -> None:
    frame = spark.readStream.format("fila").option("address", address).load(queue)
    writer = frame.writeStream.format(sink).option(
        "checkpointLocation", f"{lake}-{sink}-checkpoint"
    )
    if sink != "noop":
        writer = writer.option("path", str(lake))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    sys.exit(0 if command.main("spark_source", run) else 1)
