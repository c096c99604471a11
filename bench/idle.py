"""What a backlog nobody consumes costs the other queues: server CPU per message with and without.

    python -m bench.idle [--full]

Three brokers run the same lifecycles in turns, a moment each: one has nothing else, one has 250 MB
idle in another queue under one fairness key, one the same under a thousand. The queue that works is
measured twice: with a backlog its lanes can hold in memory, and with a deeper one, which is read
from the store page by page. The same is done with the core and RocksDB alone, in one process, where
reads are counted: a count does not depend on what else the machine has to do.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench import command
from bench.lifecycle import BATCH, Lifecycle
from bench.record import Findings, Row, Target
from bench.system import process
from bench.system.crew import Crew, race
from bench.system.lab import KIB, Lab, raw
from bench.system.measure import FULL, SHORT
from fila.core.rows import MESSAGES
from fila.server.collector import collect_little
from fila.storage.rocks import RocksStore

IDLE_BYTES = 250_000_000
IDLE = {"nothing": 0, "250 MB, 1 key": 1, "250 MB, 1,000 keys": 1_000}
LIMIT = 1.2
KEYS = 10
BACKLOGS = {"shallow": 0, "deep": 60_000}  # messages that stand in the queue that works


def run(full: bool) -> Findings:
    rows: list[Row] = []
    core: list[Row] = []
    targets = []
    for backlog, standing in BACKLOGS.items():
        with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
            core += _in_the_core(place, backlog, standing, 200 if full else 40)
        with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
            lab = Lab(FULL if full else SHORT, Path(place))
            costs, memory = _compare(lab, standing)
        base = costs["nothing"]
        for name, found in costs.items():
            ratios = [one / other for one, other in zip(found, base, strict=True)]
            rows.append(
                {
                    "backlog of the queue that works": backlog,
                    "idle beside it": name,
                    "server CPU µs per message": round(statistics.median(found), 2),
                    "against nothing idle": round(statistics.median(ratios), 3),
                    "range": f"{min(ratios):.2f} to {max(ratios):.2f}",
                    "memory MiB": round(memory[name] / 2**20),
                }
            )
    for what, table in (("server", rows), ("core", core)):
        for row in table:
            if row["idle beside it"] != "nothing":
                ratio = float(row["against nothing idle"])
                targets.append(
                    Target(
                        f"{what}, {row['backlog of the queue that works']} backlog, "
                        f"{row['idle beside it']} idle: CPU per message against nothing idle",
                        f"<= {LIMIT}",
                        f"{ratio:.3f}",
                        ratio <= LIMIT,
                    )
                )
    return Findings(
        f"Lifecycles (batches of 100 × 1 KB, {KEYS} fairness keys, one producer, one consumer), "
        f"beside {IDLE_BYTES // 1_000_000} MB in a queue without a consumer.",
        {"Over FIBP": rows, "Core and RocksDB": core},
        targets,
        [
            "Ratios are medians of the ratios of neighbouring windows; the range is all of them, "
            "of the core their middle half. Server CPU is that of the whole process, the store's "
            "own threads included; the core's is that of its thread.",
        ],
    )


def _in_the_core(place: str, backlog: str, standing: int, rounds: int) -> list[Row]:
    variants: dict[str, Lifecycle] = {}
    reads: dict[str, CountedReads] = {}
    for name, keys in IDLE.items():
        store = reads[name] = CountedReads(tempfile.mkdtemp(dir=place))
        one = Lifecycle(store, KEYS, max(standing, 2_000), beside=(IDLE_BYTES // KIB, keys))
        one.turns(20)
        store.reads = store.rows = 0
        variants[name] = one
    gc.collect()
    gc.freeze()  # as the server does after its start
    spent: dict[str, list[int]] = {name: [] for name in variants}
    names = list(variants)
    for at in range(rounds):
        first = at % len(names)
        for name in names[first:] + names[:first]:
            spent[name].append(variants[name].turns(4))
    gc.unfreeze()
    messages = rounds * 4 * BATCH
    rows: list[Row] = []
    for name, found in spent.items():
        ratios = [one / other for one, other in zip(found, spent["nothing"], strict=True)]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        rows.append(
            {
                "backlog of the queue that works": backlog,
                "idle beside it": name,
                "CPU µs per message": round(statistics.median(found) / 4 / BATCH / 1_000, 2),
                "against nothing idle": round(ratio, 3),
                "range": f"{low:.2f} to {high:.2f}",
                "reads per 1,000 messages": round(reads[name].reads * 1_000 / messages, 1),
                "rows read per message": round(reads[name].rows / messages, 2),
            }
        )
        variants[name].store.close()
    return rows


class CountedReads(RocksStore):
    """How often messages are read, and how many."""

    reads = 0
    rows = 0

    def get(self, family: int, key: bytes) -> bytes | None:
        self.reads += family == MESSAGES
        return super().get(family, key)

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        found = super().scan(family, start, end, rows_max, bytes_max)
        if family == MESSAGES:
            self.reads += 1
            self.rows += len(found)
        return found


def _compare(lab: Lab, standing: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    form = lab.form
    with ExitStack() as stack:
        crews: dict[str, Crew] = {}
        for name, keys in IDLE.items():
            broker = stack.enter_context(lab.broker())
            if keys:
                lab.fill(broker, lab.queue(broker), IDLE_BYTES // KIB, keys, named=True)
                _settle(broker.pid)
            queue = lab.queue(broker)
            shape = {"keys": KEYS, "named": True, "unsettled_max": 2_000}
            if standing:
                lab.fill(broker, queue, standing, KEYS, named=True)
            crews[name] = stack.enter_context(
                lab.crew(
                    broker,
                    raw(broker, queue, "produce", **shape),
                    raw(broker, queue, "consume", **shape, waits=bool(standing)),
                )
            )
        windows = race(crews, 2 * form.rounds, form.window_s, form.settle_s, drain=not standing)
        memory = {name: process.rss_bytes(crew.pid) for name, crew in crews.items()}
    costs = {name: [one.cpu_us for one in found] for name, found in windows.items()}
    return costs, memory


def _settle(pid: int) -> None:
    """Wait until the store has put in order what it was given, which is no part of the question."""
    before = -1.0
    while process.cpu_s(pid) - before > 0.05:
        before = process.cpu_s(pid)
        time.sleep(1)


if __name__ == "__main__":
    collect_little()
    sys.exit(0 if command.main("idle", run) else 1)
