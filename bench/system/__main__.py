"""python -m bench.system [--short | --full] [case …]"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.system import form, process
from bench.system.lab import Lab
from bench.system.measure import FULL, SHORT

CASES = (
    "throughput",
    "lifecycle",
    "latency",
    "fairness",
    "keys",
    "clients",
    "hooks",
    "durability",
    "tls",
    "backlog",
    "memory",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.system",
        description="Benchmarks of the whole server, over sockets. A run of all cases is written "
        "to bench/results/ and to docs/benchmarks.md; a run of some is only printed, unless --out "
        "says where it goes.",
    )
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--full", action="store_true", help="the full form; takes about 40 minutes")
    parser.add_argument("--short", action="store_true", help="the short form (default)")
    parser.add_argument("--compiled", action="store_true", help="measure the compiled form")
    parser.add_argument("--out", type=Path, help="write the JSON here and nowhere else")
    parser.add_argument("--note", action="append", default=[], help="goes into the results")
    options = parser.parse_args()
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    if options.compiled:
        form.choose_compiled()
    process.end_with_children()
    begin = time.monotonic()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        lab = Lab(FULL if options.full else SHORT, Path(place))
        for case in options.cases or CASES:
            importlib.import_module(f"bench.system.cases.{case}").run(lab)
    return report.finish(
        "system",
        lab.form.name,
        lab.found,
        seconds=time.monotonic() - begin,
        load_before=load_before,
        notes=options.note,
        out=options.out,
        complete=not options.cases,
    )


if __name__ == "__main__":
    sys.exit(main())
