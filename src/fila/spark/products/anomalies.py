"""Tenants out of their own habit: minutes with far more or less load, or failures, than usual.

Owns what a habit is: mean and variance of a tenant's minutes, each new one counting a thirtieth
once there are so many, so about the last hour decides; minutes without events count as nothing
sent. A minute stands out when it is more than four standard deviations and ten messages from the
mean; the share of failures, when it is a fifth and four deviations above. Nobody is judged in the
first half hour. A minute that stands out counts no more than one at the limit: one outburst does
not hide the next, and what goes on becomes the habit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TENANT: Final = ("broker", "queue", "fairness_key")
HABIT: Final = (
    "broker string, queue string, fairness_key string, minutes bigint, load double, "
    "load_variance double, failing double, failing_variance double, last_minute bigint"
)
MEMORY_MINUTES: Final = 30
MINUTES_MIN: Final = 30
DEVIATIONS: Final = 4.0
LOAD_MIN: Final = 10.0
FAILING_MIN: Final = 0.2
FORGOTTEN_MINUTES: Final = 7 * 1_440  # a tenant that was silent for a week begins anew

# Silent minutes between the last one and this one: the sums of loads and of their squares fade.
_SILENT: Final = "(m.minute - a.last_minute - 1)"
_KNOWN: Final = f"least(greatest(a.minutes, 1), {MEMORY_MINUTES})"
_THEN: Final = f"least(greatest(a.minutes, 1) + {_SILENT}, {MEMORY_MINUTES})"
_FADED: Final = (
    f"({_KNOWN} / {_THEN} * pow({1 - 1 / MEMORY_MINUTES}d, {_SILENT} - {_THEN} + {_KNOWN}))"
)
# What the new minute counts: all at first, then as much as each, and at least a thirtieth.
_NEWER: Final = f"(1d / least(a.minutes + {_SILENT} + 1, {MEMORY_MINUTES}))"
_MEAN: Final = f"(a.load * {_FADED})"
_VARIANCE: Final = (
    f"greatest((a.load_variance + a.load * a.load) * {_FADED} - {_MEAN} * {_MEAN}, 0d)"
)
_OLD: Final = f"(a.minutes + m.minute - a.last_minute - 1 >= {MINUTES_MIN})"
_LOAD_LIMIT: Final = f"greatest({LOAD_MIN}d, {DEVIATIONS}d * sqrt({_VARIANCE}))"
_FAILING_LIMIT: Final = f"greatest({FAILING_MIN}d, {DEVIATIONS}d * sqrt(a.failing_variance))"
_LOUD: Final = f"{_OLD} and abs(m.load - {_MEAN}) > {_LOAD_LIMIT}"
_FAILING: Final = f"{_OLD} and m.ended > 0 and m.failing - a.failing > {_FAILING_LIMIT}"
# How far from the mean a minute is, as far as it counts.
_LOAD_OFF: Final = f"if({_LOUD}, sign(m.load - {_MEAN}) * {_LOAD_LIMIT}, m.load - {_MEAN})"
_FAILING_OFF: Final = f"if({_FAILING}, {_FAILING_LIMIT}, m.failing - a.failing)"


def _mark(what: str, value: str, usual: str, deviation: str) -> str:
    return (
        f"array(named_struct('minute', m.minute, 'what', {what}, 'value', {value}, "
        f"'usual', {usual}, 'deviation', {deviation}))"
    )


_NONE: Final = (
    "cast(array() as array<struct<minute:bigint,what:string,value:double,usual:double,"
    "deviation:double>>)"
)
_MARKS: Final = f"""concat(a.marks,
    if({_LOUD}, {
    _mark(f"if(m.load > {_MEAN}, 'load', 'silence')", "m.load", _MEAN, f"sqrt({_VARIANCE})")
}, {_NONE}),
    if({_FAILING}, {_mark("'failing'", "m.failing", "a.failing", "sqrt(a.failing_variance)")},
       {_NONE}))"""
# The habit after one more minute.
_STEP: Final = f"""named_struct(
  'minutes', a.minutes + m.minute - a.last_minute,
  'load', {_MEAN} + {_NEWER} * {_LOAD_OFF},
  'load_variance', (1 - {_NEWER}) * ({_VARIANCE} + {_NEWER} * pow({_LOAD_OFF}, 2)),
  'failing', if(m.ended = 0, a.failing, a.failing + {_NEWER} * {_FAILING_OFF}),
  'failing_variance', if(m.ended = 0, a.failing_variance,
    (1 - {_NEWER}) * (a.failing_variance + {_NEWER} * pow({_FAILING_OFF}, 2))),
  'last_minute', m.minute,
  'marks', {_MARKS})"""
_BEGIN: Final = f"""named_struct(
  'minutes', coalesce(minutes, 0L), 'load', coalesce(load, 0d),
  'load_variance', coalesce(load_variance, 0d), 'failing', coalesce(failing, 0d),
  'failing_variance', coalesce(failing_variance, 0d),
  'last_minute', coalesce(last_minute, each[0].minute - 1), 'marks', {_NONE})"""


def habits(minutes: DataFrame, before: DataFrame) -> DataFrame:
    """The habit of each tenant after these minutes, and `marks`, those that stood out."""
    each = minutes.groupBy(*TENANT).agg(
        fn.expr("array_sort(collect_list(struct(minute, load, ended, failing))) as each")
    )
    known = each.join(before, [*TENANT], "full")
    after = known.withColumn("_after", fn.expr(f"aggregate(each, {_BEGIN}, (a, m) -> {_STEP})"))
    kept = [name.split()[0] for name in HABIT.split(", ")[len(TENANT) :]]
    return after.selectExpr(
        *TENANT,
        *[f"if(each is null, {name}, _after.{name}) as {name}" for name in kept],
        f"if(each is null, {_NONE}, _after.marks) as marks",
    )


def remembered(found: DataFrame) -> DataFrame:
    """What is kept of habits for the next time."""
    newest = found.agg(fn.max("last_minute").alias("_newest"))
    return (
        found.crossJoin(fn.broadcast(newest))
        .where(f"_newest - last_minute < {FORGOTTEN_MINUTES}")
        .drop("marks", "_newest")
    )


def anomalies(found: DataFrame) -> DataFrame:
    """One row per tenant and minute that stood out."""
    return found.select(*TENANT, fn.explode("marks").alias("_mark")).selectExpr(
        *TENANT,
        "timestamp_micros(_mark.minute * 60000000) as minute",
        "_mark.what as what",
        "round(_mark.value, 4) as value",
        "round(_mark.usual, 4) as usual",
        "round(_mark.deviation, 4) as deviation",
    )


def minutes_of(facts: DataFrame) -> DataFrame:
    """Load and failures of each tenant's minutes."""
    ended = "acked + nacked + expired"
    return (
        facts.where("fairness_key != ''")
        .groupBy(*TENANT, fn.expr("window div 6 as minute"))
        .agg(
            fn.expr("cast(sum(enqueued) as double) as load"),
            fn.expr(f"sum({ended}) as ended"),
            fn.expr(f"coalesce(sum(nacked + expired) / nullif(sum({ended}), 0), 0d) as failing"),
        )
    )
