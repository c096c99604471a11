"""How a benchmark is run from the command line: short by default, `--full` for the whole of it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from bench import record
from bench.record import Findings


def main(name: str, run: Callable[[bool], Findings]) -> bool:
    """Parse the options, run, write the results down. Returns whether every target was met."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}")
    parser.add_argument("--full", action="store_true", help="the full form; takes minutes")
    parser.add_argument("--date", default="", help="the date to write down (default: now)")
    options = parser.parse_args()
    return measure(name, run, options.full, options.date)


def measure(name: str, run: Callable[[bool], Findings], full: bool, date: str) -> bool:
    start = time.monotonic()
    findings = run(full)
    path = record.write(name, full, findings, time.monotonic() - start, date)
    record.show(findings)
    print(f"written to {path.relative_to(record.ROOT)}", flush=True)
    return all(target.met for target in findings.targets)
