"""A deep backlog: what it costs in memory, and how long a restart takes with it.

    python -m bench.backlog [--full]

Each measurement is a process of its own. One fills a queue with pending messages of 1 KB through
the core and RocksDB and tells how its resident memory grew; it then ends in one of two ways, closed
or killed. Others open a copy of what it left, up to the first messages delivered.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import command
from bench.lifecycle import Lifecycle
from bench.record import ROOT, Findings, Row, Target

MIB = 1 << 20
KEYS = 1_000
SMALL = 10_000
RSS_GROWTH_MIB = 150
READY_SECONDS = 2.0


def run(full: bool) -> Findings:
    depth = 1_000_000 if full else 100_000
    repeats = 5 if full else 3
    filled: list[Row] = []
    opened: list[Row] = []
    ready: dict[tuple[int, str], float] = {}
    growth = 0.0
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        empty = _child("fill", str(Path(place) / "empty"), "0", "close")
        for messages, end in ((SMALL, "close"), (SMALL, "kill"), (depth, "close"), (depth, "kill")):
            path = str(Path(place) / f"{messages}-{end}")
            found = _child("fill", path, str(messages), end)
            found["rss growth MiB"] = round(found["rss MiB"] - empty["rss MiB"], 1)
            if messages == depth:
                growth = max(growth, found["rss growth MiB"])
            filled.append({"pending": messages, "end": end, **_rounded(found)})
            cold = [_open_copy(path, "cold") for _ in range(repeats)]
            warm = [_open_copy(path, "warm") for _ in range(repeats)]
            shutil.rmtree(path)
            ready[messages, end] = _median(cold, "ready s")
            row: Row = {"pending": messages, "after": end}
            for name in ("store s", "load s", "first delivery s", "ready s", "rss MiB"):
                row[name] = round(_median(cold, name), 3)
            row["ready s, files cached"] = round(_median(warm, "ready s"), 3)
            opened.append(row)
    slowest = max(ready[depth, "close"], ready[depth, "kill"])
    targets = [
        Target(
            f"memory grown by {depth:,} pending messages",
            f"< {RSS_GROWTH_MIB} MiB",
            f"{growth:.1f} MiB",
            growth < RSS_GROWTH_MIB,
        ),
        Target(
            f"open to ready with {depth:,} pending messages",
            f"< {READY_SECONDS} s",
            f"{slowest:.3f} s",
            slowest < READY_SECONDS,
        ),
    ]
    for end in ("close", "kill"):
        small, deep = ready[SMALL, end], ready[depth, end]
        targets.append(
            Target(
                f"{depth:,} against {SMALL:,} messages, after {end}",
                f"<= 1.5 × {small:.3f} s + 0.5 s",
                f"{deep:.3f} s",
                deep <= 1.5 * small + 0.5,
            )
        )
    return Findings(
        f"One queue, {KEYS:,} fairness keys, messages of 1 KB, core and RocksDB at default "
        "settings, a fresh process for each measurement. A killed process leaves its write-ahead "
        "log to be read again; a closed one does not.",
        {"Filling": filled, "Opening (files not in the page cache, medians)": opened},
        targets,
        [f"Resident memory of the same process with an empty queue: {empty['rss MiB']:.1f} MiB."],
    )


def _median(found: list[dict[str, float]], name: str) -> float:
    return statistics.median(one[name] for one in found)


def _rounded(found: dict[str, float]) -> Row:
    return {name: round(value, 1) for name, value in found.items()}


def _open_copy(path: str, how: str) -> dict[str, float]:
    """Opening changes a store: it takes in the log. So each measurement gets a copy."""
    copy = path + "-copy"
    Path(copy).mkdir()
    for one in Path(path).iterdir():
        if one.suffix == ".sst":
            os.link(one, Path(copy) / one.name)  # never written to again
        else:
            shutil.copy(one, copy)
    try:
        return _child("open", copy, how)
    finally:
        shutil.rmtree(copy)


def _child(*arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.backlog", "child", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout, f"the child said nothing: {done.stderr}"
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- in the child


def _tell(found: dict[str, float]) -> None:
    print(json.dumps(found), flush=True)


def _memory_mib(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no {name} in /proc/self/status")


def _fill(path: str, messages: int, end: str) -> None:
    from fila.storage.rocks import RocksStore

    store = RocksStore(path)
    start = time.perf_counter()
    lifecycle = Lifecycle(store, KEYS if messages else 1, messages)
    lifecycle.machine.take()
    seconds = time.perf_counter() - start
    found = {
        "seconds": seconds,
        "rss MiB": _memory_mib("VmRSS"),
        "peak MiB": _memory_mib("VmHWM"),
        "disk MiB": sum(one.stat().st_size for one in Path(path).iterdir()) / MIB,
    }
    assert lifecycle.machine.state.queues["q"].pending == messages
    _tell(found)
    if end == "kill":
        os._exit(9)  # as a kill would: nothing is closed or flushed
    store.close()


def _open(path: str, how: str) -> None:
    from fila.core.command import Consume
    from fila.core.load import load
    from fila.core.settings import Settings
    from fila.storage.rocks import RocksStore

    if how == "cold":
        _forget_files(path)
    start = time.perf_counter()
    store = RocksStore(path)
    store_opened = time.perf_counter()
    machine = load(store, Settings(), 1_800_000_000_000_000_000)
    loaded = time.perf_counter()
    machine.apply(Consume("q", "c", 1, 100))
    machine.deliver()
    (delivery,) = machine.take().deliveries
    delivered = time.perf_counter()
    assert len(delivery.entries) == 100
    found = {
        "store s": store_opened - start,
        "load s": loaded - store_opened,
        "first delivery s": delivered - loaded,
        "ready s": delivered - start,
        "rss MiB": _memory_mib("VmRSS"),
    }
    _tell(found)
    store.close()


def _forget_files(path: str) -> None:
    """Drop the store's files from the page cache, as after a reboot."""
    for one in Path(path).iterdir():
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        if sys.argv[2] == "fill":
            _fill(sys.argv[3], int(sys.argv[4]), sys.argv[5])
        else:
            _open(sys.argv[3], sys.argv[4])
    else:
        sys.exit(0 if command.main("backlog", run) else 1)
