"""Was each tenant served in time? Objectives per queue and key, and how fast error budgets burn.

Owns what an objective is: so many of a tenant's deliveries (`target`) begin within `within_ms` of
being ready. Time before a message was ready (a retry's or an enqueue's delay) does not count. A
limit is rounded up to the edge of its bucket, 3 % at most (`tables.histogram`).

    burn rate       slow deliveries against those the target allows: above 1, the budget shrinks
    error budget    what the target allows over a period; used up at 1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as fn

from fila.spark.tables.histogram import EACH, TIMES, bucket_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MINUTE_US: Final = 60_000_000
_TEXT: Final = re.compile(
    r"(?:(?P<queue>[^/=]*)(?:/(?P<key>[^=]*))?=)?(?P<target>\d+(?:\.\d+)?)%<(?P<time>\d+(?:\.\d+)?)"
    r"(?P<unit>ms|s|m)"
)
_UNIT_MS: Final = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0}
_READY: Final = TIMES.index("ready") * EACH


class Objective(NamedTuple):
    """`queue` and `key` may hold `*`; the first objective that fits a tenant is its own."""

    queue: str = "*"
    key: str = "*"
    target: float = 0.99
    within_ms: float = 1_000.0

    def __str__(self) -> str:
        return f"{self.queue}/{self.key}={self.target * 100:g}%<{self.within_ms:g}ms"


DEFAULT: Final = (Objective(),)


class ObjectiveError(ValueError):
    """Text that is no objective."""


def objective(text: str) -> Objective:
    """`99.9%<500ms` for all, `orders=…` for a queue, `orders/acme=…` for one tenant of it."""
    found = _TEXT.fullmatch(text.replace(" ", ""))
    if found is None or not 0 < float(found["target"]) < 100:
        raise ObjectiveError(
            f"{text!r} is no objective; some are 99%<1s, orders=99.9%<500ms and orders/acme=95%<2s"
        )
    within_ms = float(found["time"]) * _UNIT_MS[found["unit"]]
    return Objective(
        found["queue"] or "*", found["key"] or "*", float(found["target"]) / 100, within_ms
    )


def slo(facts: DataFrame, objectives: Sequence[Objective] = DEFAULT) -> DataFrame:
    """One row per broker, queue, key and minute with deliveries, of tenants with an objective."""
    limits = [bucket_number(round(one.within_ms * 1_000)) for one in objectives]
    judged = (
        facts.where("fairness_key != '' and delivered > 0")
        .withColumn("target", fn.expr(_case(objectives, [one.target for one in objectives])))
        .withColumn("within_ms", fn.expr(_case(objectives, [one.within_ms for one in objectives])))
        .withColumn("_limit", fn.expr(_case(objectives, limits)))
        .where("target is not null")
    )
    late = (
        f"aggregate(filter(map_entries(histogram), one -> one.key > {_READY} + _limit "
        f"and one.key < {_READY + EACH}), cast(0 as bigint), (sum, one) -> sum + one.value)"
    )
    return (
        judged.groupBy(
            "broker",
            "queue",
            "fairness_key",
            fn.expr("timestamp_micros(window div 6 * 60000000) as minute"),
        )
        .agg(
            fn.expr("sum(delivered) as deliveries"),
            fn.expr(f"sum(if(histogram is null, 0, {late})) as slow"),
            fn.expr("first(target) as target"),
            fn.expr("first(within_ms) as within_ms"),
        )
        .selectExpr(
            "broker", "queue", "fairness_key", "minute", "deliveries", "slow", "target",
            "within_ms", "round(slow / deliveries / (1 - target), 6) as burn_rate",
        )
    )  # fmt: skip


def budgets(minutes: DataFrame, period_days: float = 30.0) -> DataFrame:
    """For each tenant: burn rates of the last five minutes, hour and six hours before the newest
    minute there is, and what is left of its budget for the period."""
    newest = minutes.agg(fn.max("minute").alias("_newest"))
    known = minutes.crossJoin(fn.broadcast(newest))
    age_s = "(unix_micros(_newest) - unix_micros(minute)) / 1000000"
    spans = {"5m": 300, "1h": 3_600, "6h": 21_600}

    def burn(name: str, seconds: int) -> str:
        within = f"{age_s} < {seconds}"
        allowed = f"nullif(sum(if({within}, deliveries * (1 - target), 0)), 0)"
        return f"round(sum(if({within}, slow, 0)) / {allowed}, 4) as burn_{name}"

    return (
        known.where(f"{age_s} < {period_days * 86_400}")
        .groupBy("queue", "fairness_key")
        .agg(
            fn.expr("sum(deliveries) as deliveries"),
            fn.expr("sum(slow) as slow"),
            fn.expr("max_by(target, minute) as target"),
            fn.expr("max_by(within_ms, minute) as within_ms"),
            *[fn.expr(burn(name, seconds)) for name, seconds in spans.items()],
            fn.expr("round(1 - sum(slow) / sum(deliveries * (1 - target)), 4) as budget_left"),
        )
        .orderBy("budget_left", "queue", "fairness_key")
    )


def _case(objectives: Sequence[Objective], values: Sequence[float]) -> str:
    """SQL: the value of the first objective that fits."""
    whens = []
    for one, value in zip(objectives, values, strict=True):
        fits = [
            f"{column} {_like(pattern)}"
            for column, pattern in (("queue", one.queue), ("fairness_key", one.key))
            if pattern != "*"
        ]
        whens.append(f"when {' and '.join(fits) or 'true'} then {value!r}")
    # A number as SQL reads it, not as a decimal.
    kind = "int" if all(isinstance(value, int) for value in values) else "double"
    return f"cast(case {' '.join(whens)} end as {kind})"


def _like(pattern: str) -> str:
    text = pattern.replace("\\", "\\\\").replace("'", "\\'")
    if "*" not in text:
        return f"= '{text}'"
    text = text.replace("!", "!!").replace("%", "!%").replace("_", "!_").replace("*", "%")
    return f"like '{text}' escape '!'"
