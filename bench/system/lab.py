"""Where a case works: brokers, queues and crews by one call each, and the list of what was found.

Owns the names and places of what a run creates; all of it is gone when the run is over.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from bench.system.broker import Broker
from bench.system.crew import Crew, Job
from bench.system.frames import Wire
from bench.system.measure import Form, Measurement, Metric, Parameters, middle

KIB = 1024

# What a load does unless a case says otherwise.
_TOLD: dict[str, Any] = {
    "bytes": KIB,
    "batch": 100,
    "keys": 0,  # tenants the messages go round; needs a hook on the queue, unless
    "named": False,  # the messages name their fairness keys
    "connections": 1,
    "in_flight": 2_000,  # messages under way to the broker
    "unsettled_max": 10_000,  # messages sent and not acknowledged: the standing backlog
    "prefetch": 2_000,
    "stamped": False,
    "waits": False,
    "tls_ca": "",
}


class Lab:
    def __init__(self, form: Form, place: Path) -> None:
        self.form = form
        self.found: list[Measurement] = []
        self._place = place
        self._numbers = count(1)
        self._start = time.monotonic()

    def broker(self, settings: Mapping[str, str] | None = None) -> Broker:
        return Broker(self._place / f"broker-{next(self._numbers)}", settings)

    def queue(self, broker: Broker, on_enqueue: str | None = None, tls_ca: str = "") -> str:
        """A new queue."""
        name = f"queue-{next(self._numbers):04d}"
        wire = Wire(broker.address, tls_ca)
        wire.create_queue(name, on_enqueue)
        wire.close()
        return name

    def crew(self, broker: Broker, *jobs: Job) -> Crew:
        return Crew(jobs, self.place(), broker.pid)

    def fill(
        self,
        broker: Broker,
        queue: str,
        count: int,
        keys: int = 0,
        size: int = KIB,
        named: bool = False,
    ) -> None:
        """Put so many messages (or a few more) into a queue."""
        told = {"keys": keys, "named": named, "bytes": size, "unsettled_max": 0}
        producer = raw(broker, queue, "produce", **told)
        with self.crew(broker, producer) as crew:
            crew.resume()
            crew.until(lambda: crew.sent >= count, 600, f"send {count} messages")
            crew.pause()
            crew.until(lambda: crew.stored == crew.sent, 60, "get their answers")

    def place(self) -> Path:
        """A directory that does not exist yet."""
        return self._place / f"crew-{next(self._numbers)}"

    def add(self, case: str, parameters: Parameters, metrics: dict[str, Metric]) -> None:
        self.found.append({"case": case, "parameters": parameters, "metrics": metrics})
        about = " ".join(f"{name}={value}" for name, value in parameters.items())
        figures = ", ".join(
            f"{name} {middle(metric):,.6g} {metric['unit']}" for name, metric in metrics.items()
        )
        elapsed_s = time.monotonic() - self._start
        sys.stdout.write(f"{elapsed_s:6.1f} s  {case:<12} {about}: {figures}\n")
        sys.stdout.flush()


def raw(broker: Broker, queue: str, role: str, **told: Any) -> Job:
    """A process of the raw load."""
    return _job("bench.system.raw", broker, queue, role, told)


def sdk(broker: Broker, queue: str, role: str, **told: Any) -> Job:
    """A process that uses the Python SDK."""
    return _job("bench.system.sdk", broker, queue, role, told)


def _job(module: str, broker: Broker, queue: str, role: str, told: dict[str, Any]) -> Job:
    unknown = told.keys() - _TOLD.keys() - {"rate"}
    assert not unknown, f"no load knows {unknown}"
    return Job(module, {**_TOLD, **told, "address": broker.address, "queue": queue, "role": role})
