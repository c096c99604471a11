"""`python -m tests.isolation.memory`: the peak of the broker's memory in every abuse, as a table.

Takes about ten minutes and fails above the ceiling. `--only NAME …` measures some, `--scale 0.2` a
fifth of each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.isolation.memory.abuses import ABUSES
from tests.isolation.memory.victim import CEILING_BYTES, measure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.isolation.memory")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    over = []
    print("| abuse | peak MB | other client: rounds | slowest ms | took s |\n|---|---|---|---|---|")
    for abuse in ABUSES:
        if args.only and abuse.name not in args.only:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="fila-memory-") as directory:
            found = measure(Path(directory), abuse.run, abuse.settings, args.scale)
        took_s = time.monotonic() - began
        print(
            f"| {abuse.what} (`{abuse.name}`) | {found.peak_bytes / 1e6:.0f} | {found.rounds} "
            f"| {found.slowest_s * 1000:.0f} | {took_s:.0f} |",
            flush=True,
        )
        if found.peak_bytes > CEILING_BYTES or found.fault:
            over.append(f"{abuse.name}: {found.peak_bytes / 1e6:.0f} MB {found.fault}")
    for text in over:
        print("over the ceiling, or another client was hurt:", text)
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
