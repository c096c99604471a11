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

from bench import command
from bench.made_journal import Shape, write_journal
from bench.record import Findings, Row, Target
from fila.spark import reports
from fila.spark.events import read_events
from fila.spark.fairness import WINDOW_S, fairness
from fila.spark.fairness_report import fairness_report
from fila.spark.funnel import funnel
from fila.spark.gaps import gaps_of
from fila.spark.latency import latency
from fila.spark.replay import Changes
from fila.spark.session import get_spark

EVENTS = 5_000_000
LIMIT_S = 30.0
PART = 200_000
QUEUES = 10
TENANTS = 100  # in each queue


def run(full: bool) -> Findings:
    events = EVENTS if full else EVENTS // 10
    root = Path(tempfile.mkdtemp(prefix="fila-bench-pipeline-"))
    try:
        write_journal(root, Shape(QUEUES, TENANTS), events, PART)
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
        "fairness": lambda: fairness_report(
            fairness(found, WINDOW_S, 1, gaps_of(found)), WINDOW_S, 1
        ),
        "delays": lambda: reports.delays_report(found, 20, ""),
        "latency": lambda: reports.latency_report(latency(found)),
        "funnel": lambda: reports.funnel_report(funnel(found)),
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


if __name__ == "__main__":
    sys.exit(0 if command.main("pipeline", run) else 1)
