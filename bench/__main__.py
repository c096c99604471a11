"""`python -m bench`: the short form of every benchmark of the foundation, or with --full all of it.

Benchmarks of the whole system (sockets, hooks) are programs of their own beside this one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench.record import ROOT

BENCHMARKS = ("drr", "backlog", "drain", "compiled")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--full", action="store_true", help="the full forms; takes many minutes")
    parser.add_argument("--date", default="", help="the date to write down (default: now)")
    options = parser.parse_args()
    missed = []
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        arguments = [sys.executable, "-m", f"bench.{name}", "--date", options.date]
        if options.full:
            arguments.append("--full")
        # Each in a process of its own: what one leaves in memory must not slow the next.
        if subprocess.run(arguments, cwd=ROOT, check=False).returncode:
            missed.append(name)
    if missed:
        print(f"not every target was met: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
