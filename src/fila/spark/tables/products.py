"""Products as tables: answers made of facts, written once when five minutes of a broker are over.

Owns when they are made and of which facts. A period of a broker is over when its newest run has
come beyond it; then nothing of it can come any more, of older runs neither. Each period is made
by itself, with the same look back before it, so the rows do not depend on how the record was cut
into batches.

    fairness     per queue, key and period: received and entitled share, judged and failed windows
    slo          per queue, key and minute: slow deliveries against the objective, burn rate
    chargeback   per queue, key and period: messages, bytes, processing time
    capacity     per queue and window, as soon as its facts are: backlog, the limit that binds
    anomalies    minutes out of a tenant's own habit
    blame        per queue, minute and key: who was served while it waited
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as fn

from fila.spark.fairness import by_key, judged
from fila.spark.gaps import gaps_of
from fila.spark.presence import RING
from fila.spark.products.anomalies import anomalies, habits, minutes_of
from fila.spark.products.blame import blame
from fila.spark.products.chargeback import chargeback
from fila.spark.products.slo import DEFAULT, Objective, slo
from fila.spark.tables.cells import WINDOW_US
from fila.spark.tables.facts import NEVER
from fila.spark.tables.known import presence_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERIOD: Final = 30  # windows: five minutes
LOOK_BACK: Final = 18  # windows before it: what keys held then; snapshots come once a minute
_BLAME_BACK: Final = 6
_MINUTE: Final = 6
_SPANS: Final = "broker string, first bigint, stop bigint"


class Span(NamedTuple):
    """Windows of a broker that are to be made: whole periods."""

    broker: str
    first: int
    stop: int


def due(made: Mapping[str, int], ends: Mapping[str, int]) -> list[Span]:
    """What can be made: `made` has by broker the first window that is not yet, `ends` by run the
    first window that is not over."""
    found = []
    for run, window in sorted(ends.items()):
        if window < NEVER:
            broker = run.rpartition("/")[0]
            stop = window // PERIOD * PERIOD
            if stop > made.get(broker, 0):
                found.append(Span(broker, made.get(broker, 0), stop))
    return found


def bounds_us(spans: Sequence[Span], first_us: int) -> tuple[int, int]:
    """The time of facts and events that the products of these spans are made of."""
    first = min(max(one.first - LOOK_BACK, 0) for one in spans) * WINDOW_US
    return max(first, first_us), max(one.stop for one in spans) * WINDOW_US


def made_of(
    facts: DataFrame,
    events: DataFrame,
    before: DataFrame,
    spans: Sequence[Span],
    objectives: Sequence[Objective] = DEFAULT,
) -> tuple[dict[str, DataFrame], DataFrame]:
    """The products of these spans, by table; and the habits after them. `facts` and `events` have
    the look back, too; `before` is what `habits` were."""
    limits = fn.broadcast(facts.sparkSession.createDataFrame([tuple(one) for one in spans], _SPANS))
    known = facts.join(limits, "broker").where(f"window >= first - {LOOK_BACK} and window < stop")
    own = known.where("window >= first").drop("first", "stop")
    after = habits(minutes_of(own), before)
    made = {
        "fairness": _fairness(known, events),
        "slo": slo(own, objectives),
        "chargeback": chargeback(own, PERIOD, "period_start"),
        "anomalies": anomalies(after),
        "blame": _blame(events, spans, limits),
    }
    return made, after


def _fairness(known: DataFrame, events: DataFrame) -> DataFrame:
    """Periods kept apart: each sees its own look back, and nothing more."""
    lost = not known.where("lost > 0").isEmpty()
    gaps = gaps_of(events) if lost else []
    of_next = f"if(window % {PERIOD} >= {PERIOD - LOOK_BACK}, window div {PERIOD} + 1, null)"
    # Of keys that were there before their broker was read the first periods know nothing.
    present = (
        presence_of(known, kept=("first", "stop"))
        .withColumn("period", fn.explode(fn.expr(f"array(window div {PERIOD}, {of_next})")))
        .where(f"period * {PERIOD} >= first and period * {PERIOD} < stop")
        .drop("first", "stop")
    )
    shares = judged(present, WINDOW_US, gaps=gaps, rings=(*RING, "period"))
    own = shares.where(f"unix_micros(window_start) div {PERIOD * WINDOW_US} = period")
    told = by_key(own.withColumn("period_start", fn.expr(_start_of("period"))), ["period_start"])
    return told.drop("keys_of_queue")


def _blame(events: DataFrame, spans: Sequence[Span], limits: DataFrame) -> DataFrame:
    near = f"unix_micros(ts) div {WINDOW_US}"
    own = (
        events.join(limits, "broker")
        .where(f"{near} >= first - {_BLAME_BACK} and {near} < stop")
        .drop("first", "stop")
    )
    judged_minutes = " or ".join(
        f"(broker = {_text(one.broker)} and minute >= {one.first // _MINUTE} "
        f"and minute < {one.stop // _MINUTE})"
        for one in spans
    )
    return blame(own, judged_minutes)


def _start_of(period: str) -> str:
    return f"timestamp_micros({period} * {PERIOD * WINDOW_US})"


def _text(value: str) -> str:
    """As SQL has it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
