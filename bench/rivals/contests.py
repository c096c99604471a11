"""The workloads, each for all brokers in turns.

    pipelined    a producer and a consumer process, batches of 100 × 1 KB, all at the same time
    single       one message at a time, in one process
    latency      a message every few milliseconds to a consumer that waits, in two processes
    fairness     one noisy tenant before three quiet ones

The order of each round begins with another broker, so that none always follows the same one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from bench.rivals import install
from bench.rivals.servers.running import Running
from bench.system.crew import Crew, Job, race
from bench.system.measure import (
    Form,
    Measurement,
    Metric,
    cost,
    latency_metrics,
    lower,
    middle,
    rate,
)
from bench.system.process import ProcessError

LATENCY_RATE = 200
FAIR_S = 120.0


class Contests:
    """`brokers` by name; a name's first word says which client it takes."""

    def __init__(self, form: Form, place: Path, brokers: Mapping[str, Running]) -> None:
        self.found: list[Measurement] = []
        self.failures: list[str] = []
        self._form = form
        self._place = place
        self._brokers = dict(brokers)
        self._numbers = count(1)

    def pipelined(self) -> None:
        self._race("pipelined", [{"role": "produce"}, {"role": "consume", "stamped": False}])

    def single(self) -> None:
        self._race("one at a time", [{"role": "single"}])

    def latency(self) -> None:
        roles = [{"role": "pace", "rate": LATENCY_RATE}, {"role": "consume", "stamped": True}]
        self._race("latency", roles)

    def fairness(self) -> None:
        for name, broker in self._brokers.items():
            try:
                with self._crew(name, broker, [{"role": "fair"}]) as crew:
                    crew.resume()
                    crew.until(lambda crew=crew: crew.acked > 0, FAIR_S, "deliver")  # type: ignore[misc]
                    deliveries = crew.acked
            except ProcessError as error:
                self._fail("noisy neighbour", name, error)
                continue
            metric = lower("deliveries", [deliveries], 0)
            self._add("noisy neighbour", name, {"until the last quiet message": metric})

    def _race(self, case: str, roles: list[dict[str, Any]]) -> None:
        form = self._form
        with ExitStack() as stack:
            crews: dict[str, Crew] = {}
            for name, broker in self._brokers.items():
                try:
                    crews[name] = stack.enter_context(self._crew(name, broker, roles))
                except ProcessError as error:
                    self._fail(case, name, error)
            found = race(
                crews,
                form.rounds,
                form.window_s,
                form.settle_s,
                failed=lambda name, error: self._fail(case, name, error),
            )
            for name in found:
                crews[name].stop()
        for name, windows in found.items():
            metrics = {
                "rate": rate(one.rate for one in windows),
                "broker cpu": cost(one.cpu_us for one in windows),
                "clients cpu": cost(one.load_cpu_us for one in windows),
            }
            if case == "latency":
                metrics = latency_metrics(crews[name].samples())
            self._add(case, name, metrics)

    def _crew(self, name: str, broker: Running, roles: list[dict[str, Any]]) -> Crew:
        number = next(self._numbers)
        told = {
            "client": name.split()[0].lower(),
            "address": broker.address,
            "queue": f"bench{number}",
        }
        compiled = "compiled" in name
        jobs = [
            Job("bench.rivals.worker", told | role, str(install.PYTHON), compiled) for role in roles
        ]
        return Crew(jobs, self._place / f"crew-{number}", broker.pid)

    def _add(self, case: str, name: str, metrics: dict[str, Metric]) -> None:
        self.found.append({"case": case, "parameters": {"broker": name}, "metrics": metrics})
        figures = ", ".join(
            f"{what} {middle(metric):,.6g} {metric['unit']}" for what, metric in metrics.items()
        )
        sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {case:<15} {name:<14} {figures}\n")
        sys.stdout.flush()

    def _fail(self, case: str, name: str, error: Exception) -> None:
        self.failures.append(f"{name} could not do {case}: {error}")
        sys.stdout.write(self.failures[-1] + "\n")
