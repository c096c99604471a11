"""A deep backlog: what it costs in memory, and how long a restart takes with it.

    python -m bench.backlog [--full]

Each measurement is a process of its own. One fills a queue with pending messages of 1 KB through
the core and RocksDB and tells how its resident memory grew; it then ends in one of two ways, closed
or killed. Others open a copy of what it left, up to the first messages delivered. A last group
works on queues with a shallow and with a deep backlog: depth must not make a message dearer.
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
    repeats = 7 if full else 3
    filled: list[Row] = []
    opened: list[Row] = []
    ready: dict[tuple[int, str], float] = {}
    grown: list[float] = []
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        empty = _child("fill", str(Path(place) / "empty"), "0", "close")["rss MiB"]
        empty_opened = _open_copy(str(Path(place) / "empty"), "warm")["rss MiB"]
        for messages, end in ((SMALL, "close"), (SMALL, "kill"), (depth, "close"), (depth, "kill")):
            path = str(Path(place) / f"{messages}-{end}")
            found = _child("fill", path, str(messages), end)
            found["rss growth MiB"] = found["rss MiB"] - empty
            numbers = {name: round(value, 1) for name, value in found.items()}
            filled.append({"pending": messages, "then": end, **numbers})
            cold = [_open_copy(path, "cold") for _ in range(repeats)]
            warm = [_open_copy(path, "warm") for _ in range(repeats)]
            shutil.rmtree(path)
            best = min(cold, key=lambda one: one["ready s"])
            ready[messages, end] = best["ready s"]
            row: Row = {"pending": messages, "after": end}
            for name in ("store s", "load s", "first delivery s", "ready s"):
                row[name] = round(best[name], 3)
            row["median"] = round(statistics.median(one["ready s"] for one in cold), 3)
            row["files cached"] = round(min(one["ready s"] for one in warm), 3)
            row["CPU s"] = round(min(one["cpu s"] for one in cold), 3)
            row["rss growth MiB"] = round(best["rss MiB"] - empty_opened, 1)
            opened.append(row)
            if messages == depth:
                grown += [found["rss growth MiB"], best["rss MiB"] - empty_opened]
        worked = [_work_at_depth(place, keys, depth // 4) for keys in (1, 100, 1_000, 10_000)]
    slowest = max(ready[depth, "close"], ready[depth, "kill"])
    targets = [
        Target(
            f"memory grown by {depth:,} pending messages, filled or opened",
            f"< {RSS_GROWTH_MIB} MiB",
            f"{max(grown):.1f} MiB",
            max(grown) < RSS_GROWTH_MIB,
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
        f"One queue, {KEYS:,} fairness keys, incompressible messages of 1 KB, core and RocksDB at "
        "default settings, a fresh process for each measurement. A killed process leaves its "
        "write-ahead log to be read again; a closed one does not.",
        {
            "Filling": filled,
            "Opening, files not in the page cache, best of several": opened,
            "Lifecycles (batches of 100) on a standing backlog, CPU µs per message": worked,
        },
        targets,
        [
            "Ready: from opening the store to the first 100 messages delivered; the start of "
            "Python is not in it. Best of several, because the machine is shared; the median is "
            "beside it.",
            f"With an empty queue: {empty:.1f} MiB resident after filling, {empty_opened:.1f} MiB "
            "after opening.",
        ],
    )


def _work_at_depth(place: str, keys: int, deep: int) -> Row:
    row: Row = {"keys": keys, "deep": deep}
    for name, messages in (("shallow µs", max(2 * keys, 2_000)), ("deep µs", deep)):
        path = str(Path(place) / f"work-{keys}-{messages}")
        row[name] = round(_child("work", path, str(keys), str(messages))["µs per message"], 2)
        shutil.rmtree(path)
    row["deep / shallow"] = round(float(row["deep µs"]) / float(row["shallow µs"]), 2)
    return row


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
    from bench.lifecycle import Deliveries
    from fila.core.command import Consume
    from fila.core.load import load
    from fila.core.policy import Defaults
    from fila.core.settings import Settings
    from fila.core.turn import Turn
    from fila.storage.committer import OsCommitter
    from fila.storage.rocks import RocksStore

    if how == "cold":
        _forget_files(path)
    start, cpu = time.perf_counter(), time.process_time()
    store = RocksStore(path)
    store_opened = time.perf_counter()
    machine = load(store, Settings(), 1_800_000_000_000_000_000)
    loaded = time.perf_counter()
    pending = machine.state.queues["q"].pending
    first = Deliveries()
    turn = Turn(machine, Defaults(), OsCommitter(store), first)
    turn.begin(machine.state.now)
    turn.apply(Consume("q", "c", 1, 100))
    turn.end()
    delivered = time.perf_counter()
    assert len(first.ids()) == min(100, pending)
    found = {
        "store s": store_opened - start,
        "load s": loaded - store_opened,
        "first delivery s": delivered - loaded,
        "ready s": delivered - start,
        "cpu s": time.process_time() - cpu,
        "rss MiB": _memory_mib("VmRSS"),
    }
    _tell(found)
    store.close()


def _work(path: str, keys: int, messages: int) -> None:
    from fila.storage.rocks import RocksStore

    lifecycle = Lifecycle(RocksStore(path), keys, messages)
    lifecycle.turns(200)  # past what the filling left in memory
    turns = 300
    _tell({"µs per message": lifecycle.turns(turns) / turns / lifecycle.batch / 1_000})
    lifecycle.store.close()


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
        elif sys.argv[2] == "work":
            _work(sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        else:
            _open(sys.argv[3], sys.argv[4])
    else:
        sys.exit(0 if command.main("backlog", run) else 1)
