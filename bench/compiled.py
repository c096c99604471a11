"""The hot modules compiled with mypyc: do they compile, do they behave, and what is gained?

    python -m bench.compiled [--full]

Copies the package into a temporary directory, compiles `core` and `wire` there, and runs the same
work in two processes in turns: one imports the sources, one the compiled modules. The full form
also runs the tests of both packages on the compiled modules. Nothing in the checkout changes.
"""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bench import command
from bench.record import ROOT, Findings, Row, Target

PACKAGES = ("core", "wire")
WORK = {
    "core alone, 1 key": "alone 1",
    "core alone, 10 keys": "alone 10",
    "core alone, 10,000 keys": "alone 10000",
    "core and RocksDB, 10 keys": "rocks 10",
    "core and RocksDB, 10,000 keys": "rocks 10000",
    "wire: read an Enqueue, write a Delivery, read an Ack": "wire",
}


def run(full: bool) -> Findings:
    rounds = 100 if full else 20
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        start = time.monotonic()
        fault = _compile(place)
        notes.append(f"Compiling took {time.monotonic() - start:.0f} s.")
        compiles = Target(
            "mypyc compiles core and wire", "no errors", fault or "no errors", not fault
        )
        if fault:
            return Findings(_ABOUT, {}, [compiles], [fault])
        targets = [compiles]
        if full:
            said = _test(place)
            targets.append(
                Target("their tests pass when compiled", "all", said, not said.startswith("failed"))
            )
        rows = [_compare(name, work, place, rounds) for name, work in WORK.items()]
    return Findings(_ABOUT, {"CPU µs per message, batches of 100 × 1 KB": rows}, targets, notes)


_ABOUT = (
    "The same lifecycles (enqueue, deliver, ack) with `fila.core` and `fila.wire` as sources and "
    "compiled with mypyc, in two processes that work in turns; medians over the rounds."
)


def _compile(place: str) -> str:
    """Compile a copy; gives the compiler's complaint back, if there is one."""
    shutil.copytree(
        ROOT / "src" / "fila", Path(place) / "fila", ignore=shutil.ignore_patterns("__pycache__")
    )
    modules = [
        str(path.relative_to(place))
        for package in PACKAGES
        for path in sorted((Path(place) / "fila" / package).glob("*.py"))
        if path.name != "__init__.py"
    ]
    mypyc = Path(sys.executable).with_name("mypyc")
    done = subprocess.run(
        [str(mypyc), *modules], cwd=place, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2_000:]


def _test(place: str) -> str:
    """The last line of the tests' output, run on the compiled modules."""
    paths = [f"tests/{package}" for package in PACKAGES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *paths],
        cwd=ROOT,
        env=_environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    return last[0] if done.returncode == 0 and last else f"failed: {done.stdout[-500:]}"


def _compare(name: str, work: str, place: str, rounds: int) -> Row:
    spent: dict[str, list[float]] = {"pure": [], "compiled": []}
    with _Worker(str(ROOT / "src"), work) as pure, _Worker(place, work) as compiled:
        assert not pure.compiled and compiled.compiled, "the wrong modules were imported"
        for at in range(rounds):
            pair = [("pure", pure), ("compiled", compiled)]
            for which, worker in pair if at % 2 else pair[::-1]:
                spent[which].append(worker.work())
    ratios = [a / b for a, b in zip(spent["pure"], spent["compiled"], strict=True)]
    return {
        "work": name,
        "pure": round(statistics.median(spent["pure"]), 2),
        "compiled": round(statistics.median(spent["compiled"]), 2),
        "pure / compiled": round(statistics.median(ratios), 2),
    }


def _environment(path: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([path, str(ROOT)])}


class _Worker:
    """A process that does a round of its work whenever it gets a line, and tells µs per message."""

    def __init__(self, path: str, work: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.compiled", "child", *work.split()],
            cwd=ROOT,
            env=_environment(path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout
        self.compiled = self._out.readline().strip() == "compiled"

    def work(self) -> float:
        self._in.write("go\n")
        self._in.flush()
        return float(self._out.readline())

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._process.wait()


# --- in the child


def _work(what: str, keys: int) -> None:
    from bench.lifecycle import ALL_IN_MEMORY, BATCH, Lifecycle, NullStore
    from fila.core import delivery
    from fila.server.collector import collect_little

    collect_little()
    backlog = max(2 * keys, 2_000)
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        if what == "wire":
            step: Callable[[int], int] = _wire_step
            turns = 100
        else:
            if what == "alone":
                lifecycle = Lifecycle(NullStore(), keys, backlog, ALL_IN_MEMORY)
            else:
                from fila.storage.rocks import RocksStore

                lifecycle = Lifecycle(RocksStore(place), keys, backlog)
            step = lifecycle.turns
            turns = 20
        gc.collect()
        gc.freeze()
        step(turns)
        print("compiled" if delivery.__file__.endswith(".so") else "pure", flush=True)
        for _ in sys.stdin:
            print(step(turns) / turns / BATCH / 1_000, flush=True)


def _wire_step(turns: int) -> int:
    from fila.wire import message_codec

    queue = message_codec.queue_field(b"orders")
    body = b"\0\0" + (1024).to_bytes(4, "big") + b"x" * 1024
    enqueue = message_codec.encode_enqueue([(queue, body)] * 100)
    lane = message_codec.lane_field(b"tenant-1", 1, ())
    ids = [number.to_bytes(16, "big") for number in range(100)]
    delivered = [(id, queue, body, lane, 0, 1, 2) for id in ids]
    ack = message_codec.encode_acks([(queue, id) for id in ids])
    start = time.thread_time_ns()
    for _ in range(turns):
        message_codec.decode_enqueue(enqueue)
        message_codec.encode_delivery(delivered)
        message_codec.decode_acks(ack)
    return time.thread_time_ns() - start


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _work(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    else:
        sys.exit(0 if command.main("compiled", run) else 1)
