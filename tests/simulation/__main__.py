"""`python -m tests.simulation --seed N | --seeds N [--from M] [--jobs J] | --faults`"""

from __future__ import annotations

import argparse
import sys

from . import faults
from .run import Outcome, run_seed, summarize


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one seed")
    parser.add_argument("--seeds", type=int, help="run so many seeds", default=200)
    parser.add_argument("--from", type=int, dest="first", help="the first of them", default=0)
    parser.add_argument("--jobs", type=int, help="processes to spread them over", default=1)
    parser.add_argument("--faults", action="store_true", help="plant each fault, show what sees it")
    args = parser.parse_args()
    if args.faults:
        return _show_faults()
    if args.seed is not None:
        outcome = run_seed(args.seed)
        if outcome.promise:
            print(outcome.report)
            return 1
        print(
            f"seed {args.seed}: every promise held; {outcome.events} events, "
            f"{outcome.crashes} crashes, trace {outcome.trace}"
        )
        return 0
    summary = summarize(args.first, args.seeds, args.jobs)
    for outcome in summary.failed[:3]:
        print(outcome.report)
    per_second = summary.events / max(summary.seconds, 1e-9)
    print(
        f"{summary.seeds} seeds, {summary.events} events, {summary.crashes} crashes in "
        f"{summary.seconds:.1f} s ({per_second:.0f} events/s): {len(summary.failed)} failed"
    )
    for outcome in summary.failed:
        print(f"  make simulate SEED={outcome.seed}    # {outcome.promise}")
    return 1 if summary.failed else 0


def _show_faults() -> int:
    """The table of docs/internals/simulation.md."""
    print("| planted fault | caught as | seeds | from outside alone | seeds |")
    print("|---|---|---|---|---|")
    missed = 0
    for one in faults.FAULTS:
        caught = faults.first_caught(one, faults.SEEDS_MAX)
        outside = faults.first_caught(one, faults.SEEDS_MAX, look_inside=False)
        missed += caught is None
        print(f"| {one.name} | {_cell(caught)} | {_cell(outside)} |", flush=True)
    return 1 if missed else 0


def _cell(outcome: Outcome | None) -> str:
    return f"{outcome.promise} | {outcome.seed + 1}" if outcome is not None else "– | –"


if __name__ == "__main__":
    sys.exit(main())
