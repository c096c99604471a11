"""A drained queue: are reads at its head as fast as on a store that never held anything?

    python -m bench.drain [--full]

Two stores get the same messages at the end. From one of them a deep backlog was consumed and
acknowledged before. Then the time of every read of the next window (a page of up to 512 messages)
is taken while the queue is drained, and the time of a load in a fresh process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import command
from bench.lifecycle import Lifecycle
from bench.record import ROOT, Findings, Row, Target
from fila.core.load import load
from fila.core.row_batch import RowBatch
from fila.core.rows import MESSAGES
from fila.core.settings import Settings
from fila.storage.rocks import RocksStore

PREFETCH = 1_000
LIMIT = 3.0
LAYOUTS = {"one key": 1, "100 keys": 100}


def run(full: bool) -> Findings:
    drained = 1_000_000 if full else 100_000
    measured = 200_000 if full else 50_000  # messages whose pages are timed
    rows: list[Row] = []
    targets: list[Target] = []
    for layout, keys in LAYOUTS.items():
        found = {}
        with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
            for name, before in (("fresh", 0), ("drained", drained)):
                path = str(Path(place) / name)
                one = _child("drain", path, str(keys), str(before), str(measured))
                loads = [_child("load", path)["load ms"] for _ in range(5)]
                one["load ms"] = statistics.median(loads)
                found[name] = one
                numbers = {what: round(value, 2) for what, value in one.items()}
                rows.append({"layout": layout, "store": name, **numbers})
        for what in ("page p50 ms", "page p95 ms", "load ms"):
            ratio = found["drained"][what] / found["fresh"][what]
            targets.append(
                Target(
                    f"{layout}: {what}, {drained:,} drained / fresh",
                    f"<= {LIMIT}",
                    f"{ratio:.2f}",
                    ratio <= LIMIT,
                )
            )
    return Findings(
        f"Reads of the next page of messages (1 KB each) while {measured:,} are consumed, "
        f"on a fresh store and on one from which {drained:,} messages were consumed first. Load: "
        "reopening the drained queue's rows in a fresh process, with 1,000 messages left.",
        {"Head reads": rows},
        targets,
        [],
    )


def _child(*arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.drain", "child", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout, f"the child said nothing: {done.stderr}"
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- in the child


class TimedStore:
    """A store that notes how long each scan of messages takes."""

    def __init__(self, store: RocksStore) -> None:
        self._store = store
        self.get = store.get
        self.get_many = store.get_many
        self.snapshot = store.snapshot
        self.sync = store.sync
        self.close = store.close
        self.pages_ns: list[int] = []

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        began = time.thread_time_ns()
        found = self._store.scan(family, start, end, rows_max, bytes_max)
        if family == MESSAGES:
            self.pages_ns.append(time.thread_time_ns() - began)
        return found

    def write(self, batches: list[RowBatch]) -> None:
        self._store.write(batches)


def _drain(path: str, keys: int, before: int, measured: int) -> dict[str, float]:
    store = TimedStore(RocksStore(path))
    lifecycle = Lifecycle(store, keys, before, batch=PREFETCH)
    _consume(lifecycle, before)
    for _ in range((measured + 1_000) // 1_000):
        lifecycle.fill(1_000)
    store.pages_ns.clear()
    start = time.thread_time()
    _consume(lifecycle, measured)
    seconds = time.thread_time() - start
    pages_ms = sorted(one / 1e6 for one in store.pages_ns)
    assert len(pages_ms) >= 50, "the queue must be deep enough to be paged"
    store.close()
    return {
        "pages": len(pages_ms),
        "page p50 ms": statistics.median(pages_ms),
        "page p95 ms": pages_ms[len(pages_ms) * 95 // 100],
        "page max ms": pages_ms[-1],
        "µs per message": seconds * 1e6 / measured,
    }


def _consume(lifecycle: Lifecycle, messages: int) -> None:
    """Deliver and acknowledge that many, and leave nothing of them leased."""
    from fila.core.command import Ack, Consume, Leave

    ids = lifecycle.do(Leave("q", "c", release=True))
    done = 0
    if messages:
        ids = lifecycle.do(Consume("q", "c", 1, PREFETCH, 1 << 40))
    while done < messages:
        assert ids, "the queue ran dry"
        done += len(ids)
        ack = Ack("q", ids, 1)
        ids = lifecycle.do(*([Leave("q", "c")] if done >= messages else []), ack)


def _load(path: str) -> dict[str, float]:
    store = RocksStore(path)
    start = time.thread_time()
    machine = load(store, Settings(), 1_800_000_000_000_000_000)
    seconds = time.thread_time() - start
    assert machine.state.queues["q"].pending == 1_000
    store.close()
    return {"load ms": seconds * 1_000}


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        if sys.argv[2] == "drain":
            keys, before, measured = map(int, sys.argv[4:7])
            print(json.dumps(_drain(sys.argv[3], keys, before, measured)))
        else:
            print(json.dumps(_load(sys.argv[3])))
    else:
        sys.exit(0 if command.main("drain", run) else 1)
