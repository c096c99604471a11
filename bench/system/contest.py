"""Contestants side by side: full lifecycles under different settings, run in turns.

Owns bringing up a broker and a crew for each, and taking their windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from bench.system.crew import Crew, race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import Metric, cost, rate


class Entry(NamedTuple):
    """What differs: the queue's hook, the server's settings, the load."""

    on_enqueue: str | None = TENANT_HOOK
    settings: Mapping[str, str] | None = None
    produce: Mapping[str, Any] = {}
    consume: Mapping[str, Any] = {}
    tls_ca: str = ""
    role: str = ""  # "single": one message at a time instead of batches


def lifecycles(lab: Lab, entries: Mapping[str, Entry]) -> dict[str, dict[str, Metric]]:
    """The metrics of each entry. Loads have ten tenants unless an entry says otherwise."""
    form = lab.form
    with ExitStack() as stack:
        crews: dict[str, Crew] = {}
        for name, entry in entries.items():
            broker = stack.enter_context(lab.broker(entry.settings))
            queue = lab.queue(broker, entry.on_enqueue, entry.tls_ca)
            always = {"keys": 10, "tls_ca": entry.tls_ca}
            if entry.role:
                jobs = [raw(broker, queue, entry.role, **(always | dict(entry.produce)))]
            else:
                jobs = [
                    raw(broker, queue, "produce", **(always | dict(entry.produce))),
                    raw(broker, queue, "consume", **(always | dict(entry.consume))),
                ]
            crews[name] = stack.enter_context(lab.crew(broker, *jobs))
        found = race(crews, form.rounds, form.window_s, form.settle_s)
    return {
        name: {
            "rate": rate(one.rate for one in windows),
            "cpu": cost(one.cpu_us for one in windows),
        }
        for name, windows in found.items()
    }
