"""What fair order costs end to end, and what it costs with more and more fairness keys.

Every contestant runs the same hook on messages of the same shape, and keeps the same backlog; only
the number of different tenants differs. One key is what a FIFO would do. They run in turns. With
10,000 keys and more the backlog must be larger for all keys to be active, so those are compared
with ten keys under the same backlog: three messages for each of 10,000 keys, which the lanes'
windows can hold, and one or two for each of 100,000, most of which have to be read from the store.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.system import process
from bench.system.crew import Crew, race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import cost, lower, rate

FEW = (1, 10, 100, 1_000)
MANY, MANY_STANDING = (10, 10_000), 30_000
MOST, MOST_STANDING_SHORT, MOST_STANDING_FULL = (10, 10_000, 100_000), 100_000, 200_000


def run(lab: Lab) -> None:
    _compare(lab, FEW, 0)
    _compare(lab, MANY, MANY_STANDING)
    _compare(lab, MOST, MOST_STANDING_FULL if lab.form.full else MOST_STANDING_SHORT)


def _compare(lab: Lab, numbers: tuple[int, ...], standing: int) -> None:
    form = lab.form
    with ExitStack() as stack:
        crews: dict[str, Crew] = {}
        for keys in numbers:
            broker = stack.enter_context(lab.broker())
            queue = lab.queue(broker, TENANT_HOOK)
            if standing:
                lab.fill(broker, queue, standing, keys=keys)
            crews[str(keys)] = stack.enter_context(
                lab.crew(
                    broker,
                    raw(broker, queue, "produce", keys=keys),
                    raw(broker, queue, "consume", keys=keys, waits=bool(standing)),
                )
            )
        found = race(crews, form.rounds, form.window_s, form.settle_s, drain=not standing)
        memory = {name: process.rss_bytes(crew.pid) for name, crew in crews.items()}
    for keys in numbers:
        windows = found[str(keys)]
        lab.add(
            "keys",
            {"keys": keys, "standing backlog": standing},
            {
                "rate": rate(one.rate for one in windows),
                "cpu": cost(one.cpu_us for one in windows),
                "memory": lower("MiB", [memory[str(keys)] / 2**20], 1),
            },
        )
