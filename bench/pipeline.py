"""Spark's reports over a journal of five million events: each under thirty seconds in local[2].

    python -m bench.pipeline [--full]

Owns a journal made for the purpose: whole lifecycles (enqueued, delivered, acked) of a thousand
tenants in ten queues over an hour, served in turn. Times include reading, not starting Spark.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench import command
from bench.record import Findings, Row, Target
from fila.journal.files import Stream, seal
from fila.journal.schema import arrow_schema
from fila.spark import reports
from fila.spark.events import read_events
from fila.spark.fairness import WINDOW_S
from fila.spark.fairness_report import fairness_report
from fila.spark.gaps import gaps_of
from fila.spark.replay import Changes
from fila.spark.session import get_spark

EVENTS = 5_000_000
LIMIT_S = 30.0
PART = 200_000
QUEUES = 10
TENANTS = 100  # in each queue
SPAN_US = 3_600 * 1_000_000
START_US = 1_790_000_000 * 1_000_000


def run(full: bool) -> Findings:
    events = EVENTS if full else EVENTS // 10
    root = Path(tempfile.mkdtemp(prefix="fila-bench-pipeline-"))
    try:
        write_journal(root, events)
        size = sum(path.stat().st_size for path in root.rglob("*.parquet"))
        spark = get_spark("local[2]", app="fila bench")
        found = read_events(spark, str(root))
        rows: list[Row] = []
        for name, job in jobs(found).items():
            seconds = timed(job)
            rows.append({"report": name, "seconds": seconds})
            print(f"{name:<10} {seconds:6.1f} s", flush=True)
        spark.stop()
    finally:
        shutil.rmtree(root)
    slowest = max(rows, key=lambda row: float(row["seconds"]))
    # The limit is for five million events; starting a job costs the same for fewer.
    return Findings(
        f"Spark's reports in local[2] over {events:,} events ({size / 1e6:.0f} MB of Parquet): "
        f"{QUEUES} queues, {TENANTS} tenants each, an hour. Times include reading, not starting "
        "Spark.",
        {"Reports": rows},
        [
            Target(
                f"the slowest report over {events:,} events",
                f"< {LIMIT_S:g} s",
                f"{slowest['report']}, {slowest['seconds']} s",
                float(slowest["seconds"]) < LIMIT_S,
            )
        ],
        [],
    )


def jobs(found: Any) -> dict[str, Callable[[], Any]]:
    """Each report as it is made for a reader, with everything it collects."""
    return {
        "fairness": lambda: fairness_report(found, WINDOW_S, 1, gaps=gaps_of(found)),
        "delays": lambda: reports.delays_report(found, 20, ""),
        "latency": lambda: reports.latency_report(found),
        "funnel": lambda: reports.funnel_report(found, by_key=True),
        "errors": lambda: reports.errors_report(found, 20),
        "whatif": lambda: reports.whatif_report(
            found.where("queue in ('queue-0', '')"),
            found,
            Changes(weights={"tenant-1": 5}),
            0,
        ),
    }


def timed(job: Callable[[], Any]) -> float:
    began = time.monotonic()
    job()
    return round(time.monotonic() - began, 2)


def write_journal(root: Path, events: int) -> None:
    """Sealed parts, as a broker would leave them."""
    stream = Stream("events", "bench", 1)
    rng = np.random.default_rng(1)
    for first in range(0, events, PART):
        seal(root, stream, [_part(first, min(PART, events - first), events, rng)])


def _part(first: int, size: int, events: int, rng: np.random.Generator) -> Any:
    """Message n is enqueued, delivered and acked by events 3n, 3n + 1 and 3n + 2."""
    number = np.arange(first, first + size)
    message, step = number // 3, number % 3
    queue, tenant = message % QUEUES, (message // QUEUES) % TENANTS
    ts = START_US + number * SPAN_US // events
    delivered = step == 1
    wait = rng.integers(1_000, 4_000_000, size)
    eligible = np.where(delivered, 40, 41)
    kinds = np.array(["enqueued", "delivered", "acked"])[step]
    failed = (step == 2) & (message % 50 == 0)
    kinds[failed] = "nacked"
    text = pa.string()

    def strings(values: Any) -> Any:
        return pa.array(values, text)

    def micros(values: Any, mask: Any = None) -> Any:
        return pa.array(values, pa.timestamp("us", "UTC"), mask=mask)

    columns: dict[str, Any] = {
        "seq": number + 1,
        "ts": micros(ts),
        "event": strings(kinds),
        "queue": strings(np.char.add("queue-", queue.astype(str))),
        "broker": strings(["bench"] * size),
        "epoch": np.ones(size, np.int64),
        "message_id": strings([f"00000000-0000-7000-8000-{one:012d}" for one in message]),
        "attempt": np.zeros(size, np.int32),
        "fairness_key": strings(np.char.add("tenant-", tenant.astype(str))),
        "weight": np.where(step == 2, 0, 1),
        "throttle_keys": pa.array([[]] * size, pa.list_(text)),
        "key_pending": eligible,
        "key_eligible": eligible,
        "ring_delta": np.zeros(size, np.int32),
        "queue_delivered": message // QUEUES + (step >= 1),
        "active_weight_before": np.where(delivered, TENANTS, 0),
        "active_keys": np.full(size, TENANTS),
        "since": micros(ts - wait, ~delivered),
        "ready_at": micros(ts - wait, ~delivered),
        "wait_own_us": pa.array(wait // 2, pa.int64(), mask=~delivered),
        "wait_turn_us": pa.array(wait - wait // 2, pa.int64(), mask=~delivered),
        "error": strings(np.where(failed, np.char.add("timeout after ", wait.astype(str)), "")),
        "enqueued_at": micros(ts - wait, ~delivered),
        "payload_bytes": np.full(size, 1_024),
        "events": np.ones(size, np.int64),
    }
    for part in ("retry", "throttled", "no_consumer"):
        columns[f"wait_{part}_us"] = pa.array(np.zeros(size, np.int64), mask=~delivered)
    arrays = []
    for field in arrow_schema("events"):
        values = columns.get(field.name)
        made = pa.nulls(size, field.type) if values is None else pa.array(values)
        arrays.append(made.cast(field.type))
    return pa.record_batch(arrays, schema=arrow_schema("events"))


if __name__ == "__main__":
    sys.exit(0 if command.main("pipeline", run) else 1)
