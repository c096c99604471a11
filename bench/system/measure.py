"""Figures with their rounds: what a case found, kept for the report and for comparison.

A measurement is a case, its parameters and its metrics. A metric is the list of what was measured
in each round; its median is the figure, its rounds tell how far to trust it.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypedDict

Better = Literal["higher", "lower"]
Parameters = dict[str, str | int | float]


class Metric(TypedDict):
    unit: str
    better: Better
    rounds: list[float]


class Measurement(TypedDict):
    case: str
    parameters: Parameters
    metrics: dict[str, Metric]


class Form(NamedTuple):
    """How long things are measured."""

    name: str
    rounds: int
    window_s: float
    settle_s: float  # load before the first window counts

    @property
    def full(self) -> bool:
        return self.name == "full"


SHORT = Form("short", 3, 0.5, 0.25)
FULL = Form("full", 5, 2.0, 0.5)


def rate(rounds: Iterable[float]) -> Metric:
    return {"unit": "msg/s", "better": "higher", "rounds": [round(one, 1) for one in rounds]}


def cost(rounds: Iterable[float]) -> Metric:
    return {"unit": "µs/msg", "better": "lower", "rounds": [round(one, 2) for one in rounds]}


def lower(unit: str, rounds: Iterable[float], digits: int = 3) -> Metric:
    return {"unit": unit, "better": "lower", "rounds": [round(one, digits) for one in rounds]}


def middle(metric: Metric) -> float:
    return statistics.median(metric["rounds"])


def latency_metrics(samples: dict[int, array[int]]) -> dict[str, Metric]:
    """Percentiles of each round in milliseconds. Round 0 is the time before the first."""
    rounds = [sorted(found) for number, found in sorted(samples.items()) if number and found]
    assert rounds, "no message arrived in time"
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    metrics = {
        name: lower("ms", [percentile(found, share) / 1e6 for found in rounds])
        for name, share in shares.items()
    }
    metrics["max"] = lower("ms", [found[-1] / 1e6 for found in rounds])
    return metrics


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
