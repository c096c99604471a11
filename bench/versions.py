"""Several builds of the broker under the same load, in turns: did a change cost anything?

    python -m bench.versions before=../before/src after=src [--rounds 40]

Each NAME=DIRECTORY says where to import `fila` from: `src` of a checkout, or the site-packages of a
compiled build. The load is this checkout's, in raw frames: batches of 100 with keys by name and
with a hook, and one message at a time. Ratios are to the first build; the machine's noise falls on
all alike, since they take turns of a second.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.system.broker import Broker
from bench.system.crew import Crew, Window, race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import Form

_WINDOW_S = 1.0
_SETTLE_S = 0.2
LOADS = {
    "batches of 100, keys by name": (None, {"batch": 100, "keys": 10, "named": True}),
    "batches of 100, a hook": (TENANT_HOOK, {"batch": 100, "keys": 10}),
    "frames of one message": (None, {"batch": 1, "unsettled_max": 1_000}),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.versions", description=__doc__)
    parser.add_argument("builds", metavar="NAME=DIRECTORY", nargs="+", type=_build)
    parser.add_argument("--rounds", type=int, default=40, help="windows of each build (40)")
    args = parser.parse_args()
    builds: dict[str, Path] = dict(args.builds)
    for title, (hook, shape) in LOADS.items():
        with tempfile.TemporaryDirectory(prefix="fila-bench-") as place, ExitStack() as stack:
            lab = Lab(Form("versions", args.rounds, _WINDOW_S, _SETTLE_S), Path(place))
            crews: dict[str, Crew] = {}
            for name, package in builds.items():
                broker = stack.enter_context(Broker(Path(place) / name, package=package))
                queue = lab.queue(broker, hook)
                crews[name] = stack.enter_context(
                    lab.crew(
                        broker,
                        raw(broker, queue, "produce", **shape),
                        raw(broker, queue, "consume", **shape),
                    )
                )
            _tell(title, race(crews, args.rounds, _WINDOW_S, _SETTLE_S))


def _tell(title: str, found: dict[str, list[Window]]) -> None:
    print(title)
    first = next(iter(found.values()))
    for name, windows in found.items():
        # Of each round by itself: what slows the machine down for a minute slows both.
        pairs = list(zip(windows, first, strict=True))
        rate = statistics.median(one.rate / other.rate for one, other in pairs)
        cpu = statistics.median(one.cpu_us / other.cpu_us for one, other in pairs)
        rates = statistics.median(one.rate for one in windows)
        cpu_us = statistics.median(one.cpu_us for one in windows)
        print(
            f"  {name:<20} {rates:>9,.0f} msg/s ({rate:.3f})   {cpu_us:6.2f} µs of CPU ({cpu:.3f})",
            flush=True,
        )


def _build(text: str) -> tuple[str, Path]:
    name, _, directory = text.partition("=")
    path = Path(directory).resolve()
    if not (path / "fila").is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no package fila in {path}")
    return name, path


if __name__ == "__main__":
    main()
