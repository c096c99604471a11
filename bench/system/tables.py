"""Measurements as tables, and the targets they are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.record import Row, Target
from bench.system.measure import Measurement, Metric, Parameters, middle

# Case → what its table is called.
TITLES = {
    "lifecycle": "Lifecycles: producers and consumers at the same time",
    "one at a time": "One message at a time: enqueue, delivery, ack",
    "throughput": "Enqueues alone, then draining what was enqueued, by raw frames",
    "latency": "From producer to waiting consumer, by load in messages a second",
    "keys": "Fairness keys: one key is what a FIFO does, same hook for all",
    "fairness": "Accuracy of the shares",
    "noisy neighbour": "One noisy tenant, three quiet ones",
    "consumers": "Consumers",
    "producers": "Producers",
    "hooks": "Hooks",
    "durability": "Durability",
    "tls": "TLS",
    "backlog": "Depth of the backlog",
    "memory": "Memory",
    "steady load": "Steady load",
}


def tables(found: Sequence[Measurement]) -> dict[str, list[Row]]:
    """One table per case, the cases in the order of `TITLES`."""
    return {
        title: [_row(one) for one in found if one["case"] == case]
        for case, title in TITLES.items()
        if any(one["case"] == case for one in found)
    }


def metric(found: Sequence[Measurement], case: str, name: str, **wanted: object) -> Metric | None:
    """The metric of the first measurement with these parameters."""
    for one in found:
        if one["case"] == case and wanted.items() <= one["parameters"].items():
            return one["metrics"].get(name)
    return None


def ratio(ours: Metric | None, theirs: Metric | None) -> float | None:
    """The median of the ratios of neighbouring rounds: noise that fell on both cancels out."""
    if ours is None or theirs is None:
        return None
    pairs = zip(ours["rounds"], theirs["rounds"], strict=False)
    found = [one / other for one, other in pairs if other]
    return statistics.median(found) if found else None


def spread(figures: Metric) -> float:
    """Half of what lies between the lowest and the highest round, as a share of the median."""
    rounds = figures["rounds"]
    return (max(rounds) - min(rounds)) / 2 / (middle(figures) or 1.0)


def targets(found: Sequence[Measurement], full: bool) -> list[Target]:
    """What is promised, and what was measured; what was not measured is left out."""
    batched: Parameters = {"via": "raw", "bytes": 1_024, "batch": 100, "keys": 10}
    named: Parameters = batched | {"via": "raw, keys named"}
    idle = _middle(metric(found, "memory", "memory", state="idle"))
    promises = [
        Promise(
            "lifecycle, 1 KB, batches of 100, 10 keys by name, raw frames: msg/s",
            _middle(metric(found, "lifecycle", "rate", **named)),
            at_least=100_000,
        ),
        Promise(
            "its server CPU: µs/msg",
            _middle(metric(found, "lifecycle", "cpu", **named)),
            at_most=10,
        ),
        Promise(
            "the same, 10 keys by a hook: msg/s",
            _middle(metric(found, "lifecycle", "rate", **batched)),
            at_least=100_000,
        ),
        Promise(
            "its server CPU: µs/msg",
            _middle(metric(found, "lifecycle", "cpu", **batched)),
            at_most=10,
        ),
        Promise("10,000 keys against 10, same backlog: rate", _many_keys(found), at_least=0.85),
        *(
            Promise(f"{keys:,} keys against one: server CPU", _fair_cost(found, keys), at_most=1.05)
            for keys in (10, 100, 1_000)
        ),
        Promise(
            "largest error of a share: %",
            _middle(metric(found, "fairness", "largest error")),
            at_most=1,
        ),
        Promise(
            "100 consumers against one: rate",
            ratio(
                metric(found, "consumers", "rate", consumers=100),
                metric(found, "consumers", "rate", consumers=1),
            ),
            at_least=0.95,
        ),
        Promise("draining the deepest backlog against an empty queue", _deep(found), at_least=0.8),
        Promise(
            "p50 through the SDK at 200 msg/s: ms",
            _middle(metric(found, "latency", "p50", via="SDK", load=200)),
            at_most=1,
        ),
        Promise("idle memory: MB", None if idle is None else idle * 2**20 / 1e6, at_most=120),
    ]
    if full:  # a shorter time says nothing about growth
        growth = _middle(metric(found, "steady load", "growth"))
        promises.append(Promise("growth under steady load: MiB/min", growth, at_most=0.5))
    return [promise.target(promise.value) for promise in promises if promise.value is not None]


class Promise(NamedTuple):
    what: str
    value: float | None
    at_least: float | None = None
    at_most: float | None = None

    def target(self, value: float) -> Target:
        shown = f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
        if self.at_least is not None:
            return Target(self.what, f"≥ {self.at_least:,g}", shown, value >= self.at_least)
        assert self.at_most is not None, "a promise has a limit"
        return Target(self.what, f"≤ {self.at_most:,g}", shown, value <= self.at_most)


def _row(one: Measurement) -> Row:
    row: Row = dict(one["parameters"])
    for name, figures in one["metrics"].items():
        row[f"{name} {figures['unit']}"] = _rounded(middle(figures))
        if figures["unit"] == "msg/s" and len(figures["rounds"]) > 1:
            row[f"± % {name}"] = round(spread(figures) * 100)
    return row


def _rounded(value: float) -> int | float:
    """Three digits that mean something."""
    if abs(value) >= 1_000:
        return round(value)
    if abs(value) >= 10:
        return round(value, 1)
    return round(value, 3)


def _middle(figures: Metric | None) -> float | None:
    return None if figures is None else middle(figures)


def _many_keys(found: Sequence[Measurement]) -> float | None:
    standing = [
        one["parameters"]["standing backlog"]
        for one in found
        if one["case"] == "keys" and one["parameters"]["keys"] == 10_000
    ]
    if not standing:
        return None
    backlog = {"standing backlog": standing[0]}
    return ratio(
        metric(found, "keys", "rate", keys=10_000, **backlog),
        metric(found, "keys", "rate", keys=10, **backlog),
    )


def _fair_cost(found: Sequence[Measurement], keys: int) -> float | None:
    small = {"standing backlog": 0}
    return ratio(
        metric(found, "keys", "cpu", keys=keys, **small),
        metric(found, "keys", "cpu", keys=1, **small),
    )


def _deep(found: Sequence[Measurement]) -> float | None:
    by_depth = {
        int(one["parameters"]["depth"]): one["metrics"]["drain"]
        for one in found
        if one["case"] == "backlog"
    }
    return ratio(by_depth[max(by_depth)], by_depth.get(0)) if by_depth else None
