"""In, then out: enqueues alone for a while, then a consumer that takes as many out again.

Owns the two crews of one queue, so that its depth afterwards is what it was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.system.broker import Broker
from bench.system.crew import Crew, Window
from bench.system.lab import Lab, raw
from bench.system.measure import Metric, cost, rate


class Flow:
    def __init__(self, lab: Lab, fill: Crew, drain: Crew) -> None:
        self._lab = lab
        self._fill = fill
        self._drain = drain
        self._stored: list[Window] = []
        self._taken: list[Window] = []

    def round(self) -> None:
        fill, drain, form = self._fill, self._drain, self._lab.form
        before = fill.stored
        fill.resume()
        self._stored.append(fill.stored_window(form.window_s / 2))
        fill.pause()
        fill.until(lambda: fill.stored == fill.sent, 60, "get their answers")
        goal = drain.acked + fill.stored - before
        drain.resume()
        self._taken.append(drain.until(lambda: drain.acked >= goal, 300, "take it out again"))
        drain.pause()
        drain.rest()

    def metrics(self) -> dict[str, Metric]:
        return {
            "enqueue": rate(one.stored_rate for one in self._stored),
            "enqueue cpu": cost(one.stored_cpu_us for one in self._stored),
            "drain": rate(one.rate for one in self._taken),
            "drain cpu": cost(one.cpu_us for one in self._taken),
        }


@contextmanager
def flow(lab: Lab, broker: Broker, queue: str, **shape: Any) -> Iterator[Flow]:
    producer = raw(broker, queue, "produce", unsettled_max=0, **shape)
    consumer = raw(broker, queue, "consume", waits=True, **shape)
    with lab.crew(broker, producer) as fill, lab.crew(broker, consumer) as drain:
        yield Flow(lab, fill, drain)
