"""Run seeds, one after the other or on several processes, and say what came out."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from .turn import Violation
from .world import World


class Outcome(NamedTuple):
    seed: int
    events: int
    crashes: int
    trace: str
    promise: str = ""  # which promise was broken; empty: none
    report: str = ""


class Summary(NamedTuple):
    seeds: int
    events: int
    crashes: int
    seconds: float
    failed: list[Outcome]


def run_seed(seed: int, look_inside: bool = True) -> Outcome:
    """One seed from its beginning to its end, or to the first promise that does not hold."""
    world = World(seed, look_inside)
    promise = report = ""
    try:
        world.run()
    except Violation as violation:
        promise = violation.promise
        report = _report(world, seed, str(violation))
    except Exception as error:
        promise = f"{type(error).__name__} in the core"
        trace = "".join(traceback.format_exception(error))
        report = _report(world, seed, f"{promise}\n{trace}")
    return Outcome(seed, world.events, world.crashes, world.trace.hexdigest(), promise, report)


def run_seeds(first: int, count: int, jobs: int = 1) -> Iterator[Outcome]:
    seeds = range(first, first + count)
    if jobs <= 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_seed, seeds, chunksize=8)


def summarize(first: int, count: int, jobs: int) -> Summary:
    started = time.monotonic()
    events = crashes = 0
    failed = []
    for outcome in run_seeds(first, count, jobs):
        events += outcome.events
        crashes += outcome.crashes
        if outcome.promise:
            failed.append(outcome)
    return Summary(count, events, crashes, time.monotonic() - started, failed)


def _report(world: World, seed: int, what: str) -> str:
    turns = "\n".join(turn.text() for turn in world.recent)
    audited = world.auditor.turn
    if audited is not world.recent[-1]:
        turns += f"\n\nand the auditor was at:\n{audited.text()}"
    durability = "fsync" if world.profile.fsync else "os"
    return (
        f"seed {seed} broke a promise after {world.events} events and {world.crashes} crashes "
        f"(durability {durability})\n\n{world.settings}\n\n{turns}\n\n{what}\n\n"
        f"again: make simulate SEED={seed}\n"
    )
