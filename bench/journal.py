"""What the journal costs the broker: the same load with and without it, in turns.

    python -m bench.journal [--full]

A lifecycle is three events: enqueued, delivered, acked. The cost of an event is the CPU time the
whole broker process spends more per message, its journal thread included, divided by three.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import command
from bench.record import Findings, Row, Target
from bench.system.crew import Window, race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import FULL, SHORT

RATE_MIN = 0.85
EVENT_US_MAX = 2.0
EVENTS_PER_MESSAGE = 3
TENANTS = 10
ON = {"journal.enabled": "true"}


def run(full: bool) -> Findings:
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        lab = Lab(FULL if full else SHORT, Path(place))
        off, on = _lifecycles(lab)
    # Neighbouring windows: the machine's noise falls on both.
    rate = statistics.median([one.rate / other.rate for one, other in zip(on, off, strict=True)])
    event_us = (_cpu_us(on) - _cpu_us(off)) / EVENTS_PER_MESSAGE
    rows = [_row("off", off), _row("on", on)]
    return Findings(
        "Lifecycles in batches of 100 × 1 KB over ten tenants with a hook, against one broker "
        "without and one with the journal, in turns; raw frames.",
        {"Lifecycles": rows},
        [
            Target(
                "throughput with the journal on",
                f">= {RATE_MIN:.0%} of off",
                f"{rate:.1%}",
                rate >= RATE_MIN,
            ),
            Target(
                "cost of an event, CPU time of the whole process",
                f"<= {EVENT_US_MAX:g} µs",
                f"{event_us:.2f} µs",
                event_us <= EVENT_US_MAX,
            ),
        ],
        [
            "The share is the median over neighbouring windows; CPU time is that of all windows "
            "together."
        ],
    )


def _lifecycles(lab: Lab) -> tuple[list[Window], list[Window]]:
    with lab.broker() as plain, lab.broker(ON) as journaled:
        crews = {}
        for name, broker in (("off", plain), ("on", journaled)):
            queue = lab.queue(broker, TENANT_HOOK)
            jobs = [raw(broker, queue, role, keys=TENANTS) for role in ("produce", "consume")]
            crews[name] = lab.crew(broker, *jobs)
        with crews["off"], crews["on"]:
            form = lab.form
            found = race(crews, 6 * form.rounds, form.window_s, form.settle_s)
    return found["off"], found["on"]


def _cpu_us(windows: Sequence[Window]) -> float:
    return sum(one.cpu_s for one in windows) * 1e6 / sum(one.acked for one in windows)


def _row(name: str, windows: Sequence[Window]) -> Row:
    return {
        "journal": name,
        "msg/s": round(statistics.median([one.rate for one in windows])),
        "broker CPU µs/msg": round(_cpu_us(windows), 2),
        "best round msg/s": round(max(one.rate for one in windows)),
    }


if __name__ == "__main__":
    sys.exit(0 if command.main("journal", run) else 1)
