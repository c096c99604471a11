"""What each stage of a message's way costs, in µs of CPU: `python -m bench.system.stages`.

    python -m bench.system.stages [--seconds 8] [--single]

Watches the compiled server under the raw load with `perf`, which sees into RocksDB, Lua and the
kernel as well; compiled functions have names of their own there. What a message costs is measured
before, without being watched, and shared out by how often each function was on the stack. Prints a
Markdown table, for docs/internals/performance.md. Needs perf (Debian: linux-perf).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.system import form, process
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import SHORT

# Stage → functions whose time (with all they call) it is, and those whose time it is not.
STAGES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("read sockets, frames", ("uv__io_poll",), ("FibpConnection____work",)),
    ("decode Enqueue", ("hot___decode_enqueue",), ()),
    ("on_enqueue hook (Lua)", ("Broker____assign",), ()),
    ("store in lanes", ("machine____enqueue",), ()),
    (
        "ids, and their texts in EnqueueResult",
        ("Ids___take", "ids___id_text", "hot___encode_enqueue_results"),
        (),
    ),
    ("acknowledge", ("FibpConnection____ack",), ()),
    ("fair delivery", ("Machine___deliver",), ()),
    ("RocksDB: hand the rows over", ("RocksStore___write",), ("rocksdb_write",)),
    ("RocksDB: log and memtable", ("rocksdb_write",), ()),
    ("Delivery frames", ("FibpConnection___deliver",), ()),
    ("write sockets", ("FibpConnection___flush",), ()),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.system.stages", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--single", action="store_true", help="one message at a time")
    parser.add_argument("--seconds", type=int, default=8)
    options = parser.parse_args()
    if shutil.which("perf") is None:
        parser.error("perf is not on the PATH: apt-get install linux-perf")
    form.choose_compiled()
    process.end_with_children()
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as name:
        place = Path(name)
        lab = Lab(SHORT, place)
        with lab.broker() as broker:
            keys = 0 if options.single else 10
            queue = lab.queue(broker, TENANT_HOOK if keys else None)
            roles = ("single",) if options.single else ("produce", "consume")
            jobs = [raw(broker, queue, role, keys=keys) for role in roles]
            with lab.crew(broker, *jobs) as crew:
                crew.resume()
                time.sleep(1)
                window = crew.window(options.seconds)
                command = ["perf", "record", "--call-graph", "dwarf,16384", "-F", "299"]
                command += ["-p", str(broker.pid), "-o", str(place / "perf"), "--", "sleep"]
                with subprocess.Popen(
                    [*command, str(options.seconds)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ):
                    crew.window(options.seconds + 1)
        _show(window.rate, window.cpu_us, _shares(place / "perf"))
    return 0


def _shares(recorded: Path) -> dict[str, float]:
    """Function → the part of all samples in which it, or what it called, was running."""
    report = ["perf", "report", "-i", str(recorded), "--children", "-g", "none", "--sort", "sym"]
    said = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = {}
    for line in said.splitlines():
        match = re.match(r"\s*([\d.]+)%\s+[\d.]+%\s+\[.\] (\S+)", line)
        if match is not None:
            found.setdefault(match[2], float(match[1]) / 100)
    background = [*report, "--comms", "rocksdb:high,rocksdb:low", "--no-children"]
    said = subprocess.run(background, capture_output=True, text=True, check=True).stdout
    parts = re.findall(r"^\s*([\d.]+)%", said, re.MULTILINE)
    found["background"] = sum(map(float, parts)) / 100
    return found


def _show(rate: float, cpu_us: float, shares: dict[str, float]) -> None:
    def of(names: tuple[str, ...]) -> float:
        return sum(
            max((part for found, part in shares.items() if found.endswith(name)), default=0.0)
            for name in names
        )

    rows = [(stage, of(plus) - of(minus)) for stage, plus, minus in STAGES]
    rows.append(("RocksDB: flushes and compactions, own threads", shares["background"]))
    rows.append(("the rest: sessions, event loop, timers", 1 - sum(part for _, part in rows)))
    sys.stdout.write(f"{rate:,.0f} msg/s, {cpu_us:.1f} µs of server CPU a message\n\n")
    sys.stdout.write("| stage | µs a message | part |\n|---|---|---|\n")
    for stage, part in rows:
        sys.stdout.write(f"| {stage} | {part * cpu_us:.2f} | {part:.0%} |\n")


if __name__ == "__main__":
    sys.exit(main())
