"""What surviving a loss of power costs: `os` against `fsync`, in batches and one at a time."""

from __future__ import annotations

from bench.system.contest import Entry, lifecycles
from bench.system.lab import Lab

LEVELS = ("os", "fsync")


def run(lab: Lab) -> None:
    for how, role in (("batches of 100", ""), ("one at a time", "single")):
        entries = {
            level: Entry(settings={"storage.durability": level}, role=role) for level in LEVELS
        }
        for level, metrics in lifecycles(lab, entries).items():
            lab.add("durability", {"load": how, "durability": level}, metrics)
