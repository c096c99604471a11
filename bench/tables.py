"""From the journal into tables and out again, in local[2]: rates, and what a report takes.

    python -m bench.tables [--full]

A day of one queue in which one tenant has 99 % of the events, in a part for each minute: the tables
made of it (`fila pipeline run --available-now`), every report from them and from the raw journal,
each a command of its own with the start of Spark in it. A queue of 200,000 tenants judged from the
raw journal. And a broker under load with the pipeline beside it: how old the newest event in the
tables is. `whatif` replays the scheduler message by message, and is not among the reports here.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import command
from bench.made_journal import Shape, write_journal
from bench.record import Findings, Row, Target
from bench.system.broker import Broker
from fila.client.sync import FilaClient

EVENTS, SHORT_EVENTS = 20_000_000, 1_000_000
PARTS, SHORT_PARTS = 1_440, 144
MANY_EVENTS, SHORT_MANY_EVENTS = 3_000_000, 300_000
TENANTS, SHORT_TENANTS = 200_000, 20_000
LIVE_S, SHORT_LIVE_S = 120, 40
LIVE_EVENTS_PER_S = 20_000
DAY_US = 86_400 * 1_000_000
REPORTS = ("fairness", "delays", "latency", "funnel", "errors")
BUILT_PER_S = 150_000
FROM_TABLES_S, FROM_RAW_S, MANY_S, LAG_S = 6.0, 30.0, 40.0, 15.0
_MASTER = ("--master", "local[2]")


def run(full: bool) -> Findings:
    home = Path(tempfile.mkdtemp(prefix="fila-bench-tables-"))
    events, parts = (EVENTS, PARTS) if full else (SHORT_EVENTS, SHORT_PARTS)
    many, tenants = (MANY_EVENTS, TENANTS) if full else (SHORT_MANY_EVENTS, SHORT_TENANTS)
    try:
        skewed = Shape(queues=1, tenants=1_000, hot_share=0.99, span_us=DAY_US)
        write_journal(home / "journal", skewed, events, -(-events // parts))
        size = sum(path.stat().st_size for path in (home / "journal").rglob("*.parquet"))
        built = fila("run", home, "tables", "--available-now")
        commits = [json.loads(path.read_text()) for path in (home / "tables/_commits").iterdir()]
        busy_s = sum(one["took_ms"] for one in commits) / 1e3
        rows: list[Row] = []
        for report in REPORTS:
            row: Row = {"report": report}
            for source in ("tables", ""):
                took = fila(report, home, source, "--json")
                row[f"from {source or 'raw'}, s"] = took.seconds
                row[f"CPU from {source or 'raw'}, s"] = took.cpu_s
            rows.append(row)
            print(row, flush=True)
        write_journal(home / "many" / "journal",
                      Shape(queues=1, tenants=tenants, hot_share=0.0), many, 200_000)  # fmt: skip
        judged = fila("fairness", home / "many", "", "--json")
        lags = live(home / "live", LIVE_S if full else SHORT_LIVE_S)
    finally:
        shutil.rmtree(home)
    rate = events / busy_s
    slow = {
        source: max(float(row[f"from {source}, s"]) for row in rows) for source in ("tables", "raw")
    }
    lag_p99 = float(np.percentile(lags, 99))
    tables: list[Row] = [
        {
            "events": events, "bytes an event": round(size / events, 1), "batches": len(commits),
            "seconds in batches": round(busy_s, 1), "seconds in all": built.seconds,
            "CPU seconds": built.cpu_s, "events/s": round(rate),
        }
    ]  # fmt: skip
    return Findings(
        f"{events:,} events of one queue in {parts:,} parts, 99 % of one tenant and 999 others; "
        f"{many:,} events of {tenants:,} tenants; a broker with the pipeline beside it. Seconds of "
        "reports include the start of Python and of Spark.",
        {
            "Tables": tables,
            "Reports": rows,
            "Many tenants": [
                {"tenants": tenants, "events": many, "seconds": judged.seconds,
                 "CPU seconds": judged.cpu_s}
            ],
            "Lag beside a broker, s": [
                {"batches": len(lags), "p50": round(float(np.percentile(lags, 50)), 1),
                 "p99": round(lag_p99, 1)}
            ],
        },
        [
            Target("tables built", f">= {BUILT_PER_S:,} events/s", f"{rate:,.0f} events/s",
                   rate >= BUILT_PER_S),
            Target("the slowest report from tables", f"< {FROM_TABLES_S:g} s",
                   f"{slow['tables']:.1f} s", slow["tables"] < FROM_TABLES_S),
            Target("the slowest report from raw", f"< {FROM_RAW_S:g} s", f"{slow['raw']:.1f} s",
                   slow["raw"] < FROM_RAW_S),
            Target(f"fairness of {tenants:,} tenants from raw", f"< {MANY_S:g} s",
                   f"{judged.seconds:.1f} s", judged.seconds < MANY_S),
            Target(f"live lag p99 at {LIVE_EVENTS_PER_S:,} events/s", f"< {LAG_S:g} s",
                   f"{lag_p99:.1f} s", lag_p99 < LAG_S),
        ],
        ["The short form has a twentieth of the events: starting Spark weighs more in it."]
        if not full
        else [],
    )  # fmt: skip


class Took(NamedTuple):
    seconds: float
    cpu_s: float  # of the command and all it started: says more where others share the cores


def fila(verb: str, home: Path, tables: str, *words: str) -> Took:
    """What `fila pipeline …` took; a report may have a verdict of its own."""
    place = str(home / tables) if tables else ""
    began, cpu_s = time.monotonic(), _cpu_s()
    done = subprocess.run(
        [sys.executable, "-m", "fila.cli.main", "pipeline", verb, "--journal",
         str(home / "journal"), "--tables", place, *_MASTER, *words],
        capture_output=True, text=True,
    )  # fmt: skip
    took = Took(round(time.monotonic() - began, 1), round(_cpu_s() - cpu_s, 1))
    if done.returncode not in (0, 1, 3) or "Traceback" in done.stderr:
        raise RuntimeError(f"{verb}: {done.stderr[-2_000:]}")
    print(f"{verb:<10} {tables or 'raw':<8} {took.seconds:6.1f} s, CPU {took.cpu_s} s", flush=True)
    return took


def _cpu_s() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def live(home: Path, seconds: float) -> list[float]:
    """How old the newest event in the tables was when each batch was committed."""
    home.mkdir(parents=True)
    settings = {"journal.enabled": "true", "journal.path": str(home / "journal")}
    with Broker(home / "broker", settings) as broker:
        over = threading.Event()
        load = threading.Thread(target=_load, args=(broker.address, over))
        load.start()
        pipeline = subprocess.Popen(
            [sys.executable, "-m", "fila.cli.main", "pipeline", "run", "--journal",
             str(home / "journal"), "--tables", str(home / "tables"), *_MASTER],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            time.sleep(seconds)
        finally:
            pipeline.terminate()
            pipeline.wait(60)
            over.set()
            load.join()
    found = []
    for path in sorted((home / "tables" / "_commits").glob("batch-*.json"))[2:]:  # warm by then
        commit = json.loads(path.read_text())
        reached_us = max(us for us, _ in commit["reached"].values())
        found.append(commit["at_ms"] / 1e3 - reached_us / 1e6)
    return found


def _load(address: str, over: threading.Event) -> None:
    """Messages through the broker, three events each, at the rate that is asked for."""
    per_round = LIVE_EVENTS_PER_S // 3 // 10
    with FilaClient(address) as client:
        client.create_queue("q")
        consumer = client.consume("q", prefetch=per_round)
        next_s = time.monotonic()
        while not over.is_set():
            client.enqueue_many(("q", {}, b"x" * 100) for _ in range(per_round))
            left = per_round
            while left > 0 and not over.is_set():
                messages = consumer.receive_many(left, 1.0)
                client.ack_many("q", [one.id for one in messages])
                left -= len(messages)
            next_s += 0.1
            time.sleep(max(0.0, next_s - time.monotonic()))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", os.getcwd())
    sys.exit(0 if command.main("tables", run) else 1)
