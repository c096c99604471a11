"""Many consumers and many producers: full lifecycles with 1, 10 and 100 consumers, with 1, 3 and 10
producers. A connection each; the prefetch of all consumers together stays the same.
"""

from __future__ import annotations

from bench.system.contest import Entry, lifecycles
from bench.system.lab import Lab

CONSUMERS = (1, 10, 100)
PRODUCERS = (1, 3, 10)


def run(lab: Lab) -> None:
    entries = {str(count): Entry(consume={"connections": count}) for count in CONSUMERS}
    for count, metrics in lifecycles(lab, entries).items():
        lab.add("consumers", {"consumers": int(count)}, metrics)
    entries = {str(count): Entry(produce={"connections": count}) for count in PRODUCERS}
    for count, metrics in lifecycles(lab, entries).items():
        lab.add("producers", {"producers": int(count)}, metrics)
