"""What fair order costs: the core's Deficit Round Robin against a plain FIFO in the same core.

    python -m bench.drr [--full]

Full lifecycles (enqueue, deliver under a lease, ack; batches of 100 messages of 1 KB) with 1 to
100,000 active fairness keys, all of weight 1: the worst case, a visit for every message. Three
variants run in turns in one process, a few milliseconds each, and the ratios are medians over the
rounds: the machine's noise falls on all of them alike.
"""

from __future__ import annotations

import gc
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from bench import command, instructions
from bench.fifo import FifoLifecycle
from bench.lifecycle import ALL_IN_MEMORY, BATCH, Lifecycle, NullStore
from bench.record import Findings, Row, Target
from fila.core.settings import Settings
from fila.server.collector import collect_little
from fila.storage.contract import Store
from fila.storage.rocks import RocksStore

KEYS = (1, 10, 1_000, 10_000, 100_000)
LIMIT = 1.05
BACKLOG_PER_KEY = 2


def run(full: bool) -> Findings:
    rounds = 400 if full else 60
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        stored = [_compare(keys, _rocks_at(place), None, rounds, 4) for keys in KEYS]
    alone = [_compare(keys, NullStore, ALL_IN_MEMORY, rounds, 6) for keys in KEYS]
    counted = [_count(keys) for keys in (1, 10, 1_000)]
    targets = [
        Target(
            f"{what}, {row['active keys']:,} keys: DRR / FIFO",
            f"< {LIMIT}",
            f"{row['DRR / FIFO']:.3f}",
            float(row["DRR / FIFO"]) < LIMIT,
        )
        for what, rows in (("with RocksDB", stored), ("core alone", alone))
        for row in rows
    ]
    return Findings(
        "Full lifecycles in batches of 100 × 1 KB. FIFO: the same messages in the same lanes, "
        "handed out in order of arrival. One key: the same messages under a single fairness key. "
        f"Every key keeps a backlog of {BACKLOG_PER_KEY} messages or more while it is measured.",
        {
            "Core, committer and RocksDB (default settings), µs per message": stored,
            "Core alone (a store that forgets, everything in memory), µs per message": alone,
            "Core alone, bytecode instructions per message": counted,
        },
        targets,
        [
            "Ratios are medians of the ratios of neighbouring measurements; the range is their "
            "middle half. Time is CPU time of the thread that runs the core.",
            "Instructions are counted, not timed: the same on a busy machine and on an idle one.",
        ],
    )


def _rocks_at(place: str) -> Callable[[], Store]:
    return lambda: RocksStore(tempfile.mkdtemp(dir=place))


def _compare(
    keys: int, open_store: Callable[[], Store], settings: Settings | None, rounds: int, turns: int
) -> Row:
    backlog = max(keys * BACKLOG_PER_KEY, 2_000)
    variants = {
        "DRR": Lifecycle(open_store(), keys, backlog, settings),
        "FIFO": FifoLifecycle(open_store(), keys, backlog, settings),
        "one key": Lifecycle(open_store(), 1, backlog, settings),
    }
    gc.collect()
    gc.freeze()  # as the server does after its start
    for one in variants.values():
        one.turns(20)
    spent: dict[str, list[int]] = {name: [] for name in variants}
    for at in range(rounds):
        names = list(variants)
        for name in names[at % 3 :] + names[: at % 3]:
            spent[name].append(variants[name].turns(turns))
            _check_active(name, variants[name], keys)
    for one in variants.values():
        one.store.close()
        if isinstance(one.store, RocksStore):
            shutil.rmtree(Path(one.store.path), ignore_errors=True)
    gc.unfreeze()
    per_message = {
        name: statistics.median(found) / turns / BATCH / 1_000 for name, found in spent.items()
    }
    ratio, low, high = _ratio(spent["DRR"], spent["FIFO"])
    return {
        "active keys": keys,
        **{name: round(microseconds, 2) for name, microseconds in per_message.items()},
        "DRR / FIFO": round(ratio, 3),
        "range": f"{low:.3f} to {high:.3f}",
        "DRR / one key": round(_ratio(spent["DRR"], spent["one key"])[0], 3),
    }


def _count(keys: int) -> Row:
    """The same comparison in executed instructions: coarse, but without any noise."""
    backlog = max(keys * BACKLOG_PER_KEY, 2_000)
    turns = 10
    counts = {}
    for name, kind in (("DRR", Lifecycle), ("FIFO", FifoLifecycle)):
        one = kind(NullStore(), keys, backlog, ALL_IN_MEMORY)
        one.turns(20)
        executed = instructions.count(lambda: one.turns(turns), _is_core)  # noqa: B023
        counts[name] = executed / turns / BATCH
    return {
        "active keys": keys,
        **{name: round(count, 1) for name, count in counts.items()},
        "DRR / FIFO": round(counts["DRR"] / counts["FIFO"], 3),
    }


def _is_core(code: CodeType) -> bool:
    """The core's functions, the FIFO's `fill` among them, and how a FIFO notes what arrived."""
    if "fila/core/" in code.co_filename:
        return True
    return code.co_filename.endswith("bench/fifo.py") and code.co_name == "arrived"


def _check_active(name: str, one: Lifecycle, keys: int) -> None:
    expected = 1 if name == "one key" else keys
    assert one.keys_active == expected, f"{one.keys_active} of {expected} keys are active"


def _ratio(ours: list[int], theirs: list[int]) -> tuple[float, float, float]:
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, low, high


if __name__ == "__main__":
    collect_little()
    sys.exit(0 if command.main("drr", run) else 1)
