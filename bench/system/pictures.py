"""Which charts the report shows, and what is on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.system.chart import Bar, bars, lines
from bench.system.measure import Measurement, middle

# (file, SVG, what it shows)
Picture = tuple[str, str, str]


def of(name: str, found: Sequence[Measurement]) -> list[Picture]:
    make = _rivals if name == "rivals" else _system
    return list(make(found))


def _rivals(found: Sequence[Measurement]) -> Iterator[Picture]:
    contests = (
        ("pipelined", "rate", "Produce, consume, acknowledge: pipelined", "messages per second"),
        ("one at a time", "rate", "One message at a time", "lifecycles per second"),
        ("latency", "p50", "Publish to receive, median", "milliseconds; less is better"),
        (
            "noisy neighbour",
            "until the last quiet message",
            "Deliveries until the last message of the quiet tenants",
            "deliveries; less is better",
        ),
    )
    for case, metric, title, unit in contests:
        values = [
            _bar(one, metric, str(one["parameters"]["broker"]))
            for one in found
            if one["case"] == case
        ]
        if values:
            digits = 2 if metric == "p50" else 0
            file = f"rivals-{case.replace(' ', '-')}.svg"
            yield file, bars(title, unit, values, digits), title


def _system(found: Sequence[Measurement]) -> Iterator[Picture]:
    groups = (
        ("lifecycle", "Lifecycles: enqueue, fair delivery, ack", _lifecycle_label),
        ("hooks", "Lifecycles by hook", lambda one: str(one["parameters"]["hook"])),
        (
            "consumers",
            "Lifecycles by number of consumers",
            lambda one: f"{one['parameters']['consumers']} consumers",
        ),
    )
    for case, title, label in groups:
        values = [_bar(one, "rate", label(one)) for one in found if one["case"] == case]
        if values:
            yield f"{case}.svg", bars(title, "messages per second", values), title
    curves = (
        # file, title, case, x, what the x axis says, metrics, what the y axis says, log x, log y
        (
            "throughput-enqueue",
            "Enqueues alone, by batch",
            "throughput",
            "batch",
            "messages per frame",
            ("enqueue",),
            "messages per second",
            True,
            True,
        ),
        (
            "latency",
            "Latency by load, raw frames",
            "latency",
            "load",
            "messages per second",
            ("p50", "p95", "p99", "p99.9"),
            "milliseconds",
            True,
            True,
        ),
        (
            "keys",
            "Lifecycles by number of fairness keys",
            "keys",
            "keys",
            "active fairness keys",
            ("rate",),
            "messages per second",
            True,
            False,
        ),
        (
            "keys-cpu",
            "Server CPU by number of fairness keys",
            "keys",
            "keys",
            "active fairness keys",
            ("cpu",),
            "µs per message",
            True,
            False,
        ),
        (
            "backlog-rates",
            "Rates by depth of the backlog",
            "backlog",
            "depth",
            "pending messages",
            ("enqueue", "drain"),
            "messages per second",
            False,
            False,
        ),
        (
            "backlog-memory",
            "Memory by depth of the backlog",
            "backlog",
            "depth",
            "pending messages",
            ("memory filled", "memory loaded", "memory restarted"),
            "MiB",
            False,
            False,
        ),
    )
    for file, title, case, x, x_label, metrics, y_label, log_x, log_y in curves:
        series = _series([one for one in found if one["case"] == case], x, metrics)
        if series:
            yield f"{file}.svg", lines(title, x_label, y_label, series, log_x, log_y), title


def _series(
    found: Sequence[Measurement], x: str, metrics: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """A line per metric, or per value of the parameter that tells lines of one metric apart."""
    series: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        parameters = one["parameters"]
        if parameters.get("via") == "SDK":
            continue
        for name in metrics:
            label = name
            if "standing backlog" in parameters:
                waiting = parameters["standing backlog"]
                label = f"{waiting:,} waiting" if waiting else "short queue"
            elif "bytes" in parameters:
                label = f"{parameters['bytes']:,} bytes"
            point = (float(parameters[x]), middle(one["metrics"][name]))
            series.setdefault(label, []).append(point)
    return series


def _bar(one: Measurement, metric: str, label: str) -> Bar:
    figures = one["metrics"][metric]
    ours = not label or "broker" not in one["parameters"] or label.startswith("Fila")
    return Bar(label, middle(figures), min(figures["rounds"]), max(figures["rounds"]), ours)


def _lifecycle_label(one: Measurement) -> str:
    parameters = one["parameters"]
    size = int(parameters["bytes"])
    shown = f"{size // 1024} KB" if size >= 1024 else f"{size} B"
    keys = f", {parameters['keys']} keys" if parameters["keys"] else ""
    via = str(parameters["via"])
    if via.startswith("SDK"):
        producers = f" × {parameters['producers']}" if parameters["producers"] != 1 else ""
        how = via.removeprefix("SDK ") if "soon" in via else parameters["batch"]
        return f"SDK {how}{producers}{keys}"
    by_name = " by name" if via != "raw" else ""
    return f"raw {shown} × {parameters['batch']}{keys}{by_name}"
