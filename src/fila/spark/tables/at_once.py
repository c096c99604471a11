"""Facts and products of a whole record, for notebooks and jobs of your own.

Owns how the tables' functions are put together without a job that carries state from batch to
batch. The rows are those of the tables that `fila pipeline run` keeps of the same record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.fairness import by_key, judged
from fila.spark.gaps import gaps_of
from fila.spark.products import anomalies as habits
from fila.spark.products import capacity as backlogs
from fila.spark.tables.cells import RUN, WINDOW_US, cells
from fila.spark.tables.facts import NEVER, facts, parted
from fila.spark.tables.known import presence_of
from fila.spark.tables.schemas import carry_schema, habit_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERIOD_S: Final = 300


def facts_of(events: DataFrame) -> DataFrame:
    """The facts of the windows that are over: of each broker all before its last event's."""
    found = cells(events)
    runs = found.groupBy(*RUN).agg(fn.max("last_us").alias("_last_us"))
    older = "epoch < max(epoch) over (partition by broker)"
    ends = runs.selectExpr(*RUN, f"if({older}, {NEVER}, _last_us div {WINDOW_US}) as open_from")
    return facts(parted(found, ends)[0], _nothing_carried(events))


def fairness(facts: DataFrame, events: DataFrame, period_s: int = PERIOD_S) -> DataFrame:
    """Per queue, key and period: received and entitled share, judged and failed windows. The events
    tell where the record has gaps."""
    shares = judged(presence_of(facts), WINDOW_US, gaps=gaps_of(events))
    start = f"timestamp_seconds(unix_seconds(window_start) div {period_s} * {period_s})"
    told = by_key(shares.withColumn("period_start", fn.expr(start)), ["period_start"])
    return told.drop("keys_of_queue")


def capacity(facts: DataFrame) -> DataFrame:
    """Arrivals, service, backlog, and the limit that binds, by queue and window."""
    return backlogs.capacity(facts, _nothing_carried(facts))


def anomalies(facts: DataFrame) -> DataFrame:
    """Minutes out of a tenant's own habit."""
    nobody = facts.sparkSession.createDataFrame([], habit_schema())
    return habits.anomalies(habits.habits(habits.minutes_of(facts), nobody))


def _nothing_carried(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.createDataFrame([], carry_schema())
