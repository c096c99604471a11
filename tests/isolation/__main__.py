"""The worst pause another client sees while one client does each operation at its limit.

`python -m tests.isolation [CASE …] [--limit-ms 50] [--write]`: the table, and a failure where a
ping took longer than the limit. On a machine that is busy otherwise compare `held`: processor
time of the broker's loop between ping and pong. With `--keep FILE` what was measured is kept there
at once, and cases that are in it are not measured again: so a run may be cut off and gone on with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import date
from pathlib import Path

from tests.e2e.peer import Closed, Quiet, Refused
from tests.isolation import connections, grpc_calls, leases, messages, queues, watching
from tests.isolation.prober import Pause
from tests.isolation.scene import CASES, Case, measure

PAGE = Path(__file__).parents[2] / "docs" / "isolation.md"
BEGIN, END = "<!-- table: python -m tests.isolation --write -->", "<!-- end of the table -->"
PARTS = (messages, leases, queues, watching, connections, grpc_calls)

Row = tuple[Case, Pause, float, float]  # with how long it took, and the load before


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.isolation", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="those whose names begin so")
    parser.add_argument("--list", action="store_true", help="name the cases and exit")
    parser.add_argument("--limit-ms", type=float, default=50.0, help="fail above (default: 50)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="go on with what it holds")
    args = parser.parse_args()
    order = [part.__name__ for part in PARTS]
    cases = sorted(CASES, key=lambda one: order.index(one.acting.__module__))
    chosen = [one for one in cases if not args.cases or one.name.startswith(tuple(args.cases))]
    if args.list or not chosen:
        print("\n".join([one.name for one in cases]))
        return 0 if args.list else 2
    kept = read(args.keep)
    rows: list[Row] = []
    broken = []
    for one in chosen:
        if one.name in kept:
            rows.append((one, *kept[one.name]))
            continue
        load = os.getloadavg()[0]
        try:
            seen, took_s = measure(one)
        except (AssertionError, OSError, Closed, Quiet, Refused) as error:
            broken.append(one.name)
            print(f"{one.name:28} failed: {error!r}", flush=True)
            continue
        rows.append((one, seen, took_s, load))
        if args.keep:
            with args.keep.open("a") as file:
                print(json.dumps([one.name, seen, took_s, load]), file=file)
        print(
            f"{one.name:28} {one.size:44} worst {seen.worst_ms:8.1f} ms   held "
            f"{seen.held_ms:8.1f} ms   of {took_s * 1_000:8.0f} ms",
            flush=True,
        )
    if args.write:
        write(rows)
    late = [one.name for one, seen, *_ in rows if seen.worst_ms > args.limit_ms]
    if late:
        print(f"above {args.limit_ms:g} ms: {', '.join(late)}")
    if broken:
        print(f"not measured: {', '.join(broken)}")
    return 1 if late or broken else 0


def read(file: Path | None) -> dict[str, tuple[Pause, float, float]]:
    """What a run before has kept, by the case's name."""
    if file is None or not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {name: (Pause(*seen), took_s, load) for name, seen, took_s, load in lines}


def machine() -> str:
    """The processor, as the system names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write(rows: list[Row]) -> None:
    """Put the table between the page's two marks."""
    load = sum([before for *_, before in rows]) / len(rows)
    lines = [
        f"Measured on {date.today():%d %B %Y}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores of {machine()}, with a load of {load:.1f} on average: with more "
        "than one busy process per core read *held*, which is what the broker did; *worst ping* "
        "then shows how long the machine let it wait, too.",
        "",
        "| operation | size | worst ping (ms) | held (ms) | took (ms) |",
        "|---|---|--:|--:|--:|",
    ]
    for one, seen, took_s, _ in rows:
        lines.append(
            f"| {one.operation} | {one.size} | {seen.worst_ms:.0f} | {seen.held_ms:.0f} "
            f"| {took_s * 1_000:,.0f} |"
        )
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + after)


if __name__ == "__main__":
    sys.exit(main())
