"""Where the server's time goes, in µs of CPU per message: `python -m bench.system.profile`.

    python -m bench.system.profile [--single] [--keys 10] [--seconds 8] [--py-spy PATH]

Watches a server under the raw load with py-spy, which looks at the stack of the loop's thread many
times a second. What a message costs that thread is measured before, without being watched, and then
shared out by how often each function was seen. Own time is what a function spends itself, calls
into C (RocksDB, sockets) included; whole time adds the Python functions it calls. `Runner.run`
on its own is the event loop: polling and reading sockets.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.system import process
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import SHORT

_SAMPLES_PER_S = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.system.profile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--single", action="store_true", help="one message at a time")
    parser.add_argument("--keys", type=int, default=10, help="tenants; 0: no hook (10)")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--top", type=int, default=30, help="functions to show (30)")
    parser.add_argument("--py-spy", default=shutil.which("py-spy"), metavar="PATH")
    options = parser.parse_args()
    if options.py_spy is None:
        parser.error("py-spy is not on the PATH: pip install py-spy, or say where it is")
    process.end_with_children()
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as name:
        place = Path(name)
        lab = Lab(SHORT, place)
        with lab.broker() as broker:
            queue = lab.queue(broker, TENANT_HOOK if options.keys else None)
            roles = ("single",) if options.single else ("produce", "consume")
            jobs = [raw(broker, queue, role, keys=options.keys) for role in roles]
            with lab.crew(broker, *jobs) as crew:
                crew.resume()
                time.sleep(1)
                before_s = process.main_thread_cpu_s(broker.pid)
                window = crew.window(options.seconds)
                loop_us = process.main_thread_cpu_s(broker.pid) - before_s
                loop_us *= 1e6 / max(window.acked, 1)
                command = [options.py_spy, "record", "--pid", str(broker.pid), "--format", "raw"]
                command += ["--rate", str(_SAMPLES_PER_S), "--duration", str(options.seconds)]
                command += ["--output", str(place / "stacks")]
                watcher = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                )
                _, problem = watcher.communicate(timeout=options.seconds + 60)
                if watcher.returncode:
                    sys.exit(f"py-spy: {problem.decode(errors='replace').strip()}")
        stacks = (place / "stacks").read_text()
    print(
        f"{window.rate:,.0f} msg/s; per message {window.cpu_us:.2f} µs of server CPU, of which "
        f"{loop_us:.2f} on the loop's thread and the rest in RocksDB's own threads\n"
    )
    _show(stacks, loop_us, options.top)
    return 0


def _show(stacks: str, loop_us: float, top: int) -> None:
    """`stacks` has a line per stack: frames separated by semicolons, and how often it was seen."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    total = 0
    for line in stacks.splitlines():
        stack, _, times = line.rpartition(" ")
        frames = [_function(frame) for frame in stack.split(";")]
        count = int(times)
        total += count
        own[frames[-1]] += count
        for frame in set(frames):
            whole[frame] += count
    print("   own µs  whole µs  share  function")
    for frame, count in own.most_common(top):
        share = count / total
        inside = whole[frame] / total * loop_us
        print(f"{share * loop_us:9.2f} {inside:9.2f} {share:6.1%}  {frame}")


def _function(frame: str) -> str:
    """Without the line number, so that a function is one thing."""
    name, _, where = frame.partition(" (")
    return f"{name} ({where.rpartition(':')[0] or where.rstrip(')')})"


if __name__ == "__main__":
    sys.exit(main())
