"""`format("fila")` in local[2] with the broker on the same cores: snapshot, write, stream.

    python -m bench.spark_source [--full]

Rows of 1 KB of ten tenants, one run after a short one that warms Spark up. Starting Spark does not
count, planning a query does: about a second each, so the short form shows less than the full one.
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
from fila.client.sync import FilaClient
from fila.spark.demo import running_broker
from fila.spark.session import get_spark

ROWS = 300_000
PAYLOAD_BYTES = 1_024
RUNS = 1
TARGETS = {"write": 60_000, "snapshot": 100_000, "stream": 30_000}


def run(full: bool) -> Findings:
    rows = ROWS if full else ROWS // 3
    home = Path(tempfile.mkdtemp(prefix="fila-bench-source-"))
    try:
        with running_broker(home, home / "journal", journal__enabled="false") as address:
            spark = get_spark("local[2]", app="fila bench")
            found = measure(spark, address, rows, home)
            spark.stop()
    finally:
        shutil.rmtree(home)
    table: list[Row] = [
        {
            "what": what,
            "rows": rows,
            "seconds": round(seconds, 2),
            "rows_per_s": round(rows / seconds),
        }
        for what, seconds in found.items()
    ]
    return Findings(
        f"Rows of {PAYLOAD_BYTES} bytes between Spark in local[2] and a broker on the same cores: "
        "written without idempotency keys unless it says so, read as a snapshot into nothing, and "
        "followed as a stream (availableNow) into nothing and into Parquet.",
        {"Rates": table},
        [
            Target(
                what,
                f">= {limit:,} rows/s",
                f"{rows / found[what]:,.0f} rows/s",
                rows / found[what] >= limit,
            )
            for what, limit in TARGETS.items()
        ],
        [],
    )


def measure(spark: Any, address: str, rows: int, home: Path) -> dict[str, float]:
    """Seconds for each, the better of some runs."""
    client = FilaClient(address)
    best: dict[str, float] = {}

    def timed(what: str, work: Callable[[], None]) -> None:
        began = time.monotonic()
        work()
        seconds = time.monotonic() - began
        best[what] = min(best.get(what, seconds), seconds)

    for attempt in range(RUNS + 1):
        count = rows if attempt else rows // 20
        queue, keyed, lake = f"q{attempt}", f"keyed{attempt}", home / f"lake{attempt}"
        client.create_queue(queue)
        client.create_queue(keyed)
        messages = spark.range(count, numPartitions=2).selectExpr(
            f"repeat('x', {PAYLOAD_BYTES}) as payload", "concat('tenant-', id % 10) as fairness_key"
        )
        with_keys = messages.selectExpr("*", "uuid() as idempotency_key")
        if attempt == 1:
            best.clear()
        timed("write", lambda: write(messages, address, queue))  # noqa: B023
        timed("write with keys", lambda: write(with_keys, address, keyed))  # noqa: B023
        timed("snapshot", lambda: snapshot(spark, address, queue))  # noqa: B023
        timed("stream", lambda: stream(spark, address, queue, lake, "noop"))  # noqa: B023
        timed("stream to Parquet", lambda: stream(spark, address, keyed, lake, "parquet"))  # noqa: B023
        assert all(one.depth + one.in_flight == 0 for one in client.list_queues())
    client.close()
    return best


def write(messages: Any, address: str, queue: str) -> None:
    messages.write.format("fila").option("address", address).mode("append").save(queue)


def snapshot(spark: Any, address: str, queue: str) -> None:
    frame = spark.read.format("fila").option("address", address).load(queue)
    frame.write.format("noop").mode("overwrite").save()


def stream(spark: Any, address: str, queue: str, lake: Path, form: str) -> None:
    frame = spark.readStream.format("fila").option("address", address).load(queue)
    writer = frame.writeStream.format(form).option(
        "checkpointLocation", f"{lake}-{form}-checkpoint"
    )
    if form != "noop":
        writer = writer.option("path", str(lake))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    sys.exit(0 if command.main("spark_source", run) else 1)
