"""The contests as tables, and the targets they are held against. Fila's losses stand in the same
column as its wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.record import Row, Target
from bench.system.measure import Measurement, middle
from bench.system.tables import metric, ratio, spread

OURS = ("Fila", "Fila compiled")
BEST = "Fila compiled"  # what the targets are held against
# Case → (title, the metric that decides, the metrics shown)
CONTESTS = {
    "pipelined": (
        "Produce, consume and acknowledge at the same time, 1 KB, batches of 100",
        "rate",
        ("broker cpu", "clients cpu"),
    ),
    "one at a time": (
        "One message at a time: publish and wait, receive, acknowledge",
        "rate",
        ("broker cpu", "clients cpu"),
    ),
    "latency": (
        "From publishing to a waiting consumer, 200 messages a second",
        "p50",
        ("p95", "p99", "max"),
    ),
    "noisy neighbour": (
        "10,000 messages of one tenant, then 100 each of three others",
        "until the last quiet message",
        (),
    ),
}


def tables(found: Sequence[Measurement]) -> dict[str, list[Row]]:
    made: dict[str, list[Row]] = {}
    for case, (title, deciding, others) in CONTESTS.items():
        rows = [_row(found, one, deciding, others) for one in found if one["case"] == case]
        if rows:
            made[title] = rows
    return made


def standing(found: Sequence[Measurement]) -> list[str]:
    """In words: where Fila is behind, and where it is ahead."""
    if all(one["parameters"]["broker"] != BEST for one in found):
        return [f"{BEST} did not take part: nothing is said of it."]
    behind, ahead = [], []
    for case, (_, deciding, _) in CONTESTS.items():
        for one in found:
            broker = str(one["parameters"]["broker"])
            if one["case"] != case or broker.startswith("Fila"):
                continue
            factor = _ahead_by(found, case, deciding, BEST, broker)
            if factor is None:
                continue
            if factor >= 1:
                ahead.append(f"{case}: {factor:.2f} × {broker}")
            else:
                behind.append(f"{case}: {factor:.2f} × {broker}")
    return [
        "Fila compiled is behind in: " + ("; ".join(behind) if behind else "nothing") + ".",
        "Fila compiled is ahead in: " + ("; ".join(ahead) if ahead else "nothing") + ".",
    ]


def targets(found: Sequence[Measurement]) -> list[Target]:
    wanted = [
        ("pipelined", "Redis Streams", 1.2),
        ("pipelined", "NATS JetStream", 3.0),
        ("pipelined", "RabbitMQ quorum", 3.0),
        ("pipelined", "Beanstalkd", 1.0),
        ("pipelined", "Postgres SKIP LOCKED", 1.0),
        ("one at a time", "Redis Streams", 1.0),
        ("one at a time", "NATS JetStream", 1.0),
        ("latency", "Redis Streams", 1.0),
    ]
    made = []
    for case, broker, limit in wanted:
        factor = _ahead_by(found, case, CONTESTS[case][1], BEST, broker)
        if factor is not None:
            made.append(
                Target(
                    f"{case}: {BEST} against {broker}",
                    f"≥ {limit:g} ×",
                    f"{factor:.2f} ×",
                    factor >= limit,
                )
            )
    p50 = metric(found, "latency", "p50", broker=BEST)
    if p50 is not None:
        value = middle(p50)
        made.append(Target(f"latency: {BEST}'s p50", "< 1 ms", f"{value:.2f} ms", value < 1))
    return made


def _row(
    found: Sequence[Measurement], one: Measurement, deciding: str, others: tuple[str, ...]
) -> Row:
    broker = str(one["parameters"]["broker"])
    figures = one["metrics"][deciding]
    value = middle(figures)
    row: Row = {
        "broker": broker,
        f"{deciding} {figures['unit']}": round(value) if value >= 1_000 else round(value, 3),
    }
    if len(figures["rounds"]) > 1:
        row["± %"] = round(spread(figures) * 100)
    for ours in OURS:
        row[f"{ours} is"] = ""
        factor = _ahead_by(found, one["case"], deciding, ours, broker)
        if factor is not None and not broker.startswith("Fila"):
            row[f"{ours} is"] = f"{factor:.2f} ×" if factor >= 1 else f"BEHIND, {factor:.2f} ×"
    for name in others:
        other = one["metrics"][name]
        row[f"{name} {other['unit']}"] = round(middle(other), 2)
    return row


def _ahead_by(
    found: Sequence[Measurement], case: str, deciding: str, fila: str, broker: str
) -> float | None:
    """Above 1: Fila is better by that factor."""
    ours = metric(found, case, deciding, broker=fila)
    theirs = metric(found, case, deciding, broker=broker)
    if ours is None or theirs is None:
        return None
    higher = ours["better"] == "higher"
    return ratio(ours, theirs) if higher else ratio(theirs, ours)
