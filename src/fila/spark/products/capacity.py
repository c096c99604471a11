"""Does a queue keep up? Arrivals, service and backlog per ten seconds, and which limit binds.

Owns which limit is named: the part of the wait of what was delivered in a window that was largest.

    consumers    none was connected or all were busy: more of them, or more credit, would help
    throttle     a bucket was short of tokens: the provider's limit
    paused       the queue or keys of it were paused
    turns        consumers were there, and keys had their turns: the broker itself
    -            nothing waited

`clears_s` is how long the backlog lasts at the pace of this window, null while it grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.tables.cells import WINDOW_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIMITS: Final = {
    "consumers": "sum(wait_no_consumer_us + wait_busy_own_us + wait_busy_others_us)",
    "throttle": "sum(wait_throttled_us)",
    "paused": "sum(wait_paused_us)",
    "turns": "sum(wait_turn_us + wait_own_us)",
}


def capacity(facts: DataFrame, carry: DataFrame) -> DataFrame:
    """One row per broker, epoch, queue and window in which anything happened; `carry` has what keys
    held before the facts."""
    group = ("broker", "epoch", "queue")
    order = "over (partition by broker, epoch, queue order by window)"
    before = carry.groupBy(*group).agg(fn.expr("sum(pending) as _backlog"))
    sums = (
        facts.where("queue != ''")
        .groupBy(*group, "window")
        .agg(
            fn.expr("first(window_start) as window_start"),
            fn.expr("sum(enqueued + requeued + released) as arrived"),
            fn.expr("sum(delivered) as delivered"),
            fn.expr("sum(acked) as acked"),
            fn.expr("sum(nacked + expired) as failed"),
            fn.expr("sum(pending_change) as _change"),
            fn.expr("sum(processing_us) as processing_us"),
            fn.expr("sum(stalled_us) as stalled_us"),
            fn.expr("sum(joined) as joined"),
            fn.expr("sum(left) as left"),
            *[fn.expr(f"{sql} as _{name}") for name, sql in _LIMITS.items()],
        )
        .join(before, [*group], "left")
    )
    largest = f"greatest({', '.join(f'_{name}' for name in _LIMITS)})"
    binding = " ".join(f"when _{name} = {largest} then '{name}'" for name in _LIMITS)
    backlog = f"greatest(coalesce(_backlog, 0) + sum(_change) {order}, 0)"
    drained = f"nullif(greatest(-_change, 0), 0) / {WINDOW_S}"
    return sums.withColumn("backlog", fn.expr(backlog)).selectExpr(
        *group,
        "window",
        "window_start",
        "arrived",
        "delivered",
        "acked",
        "failed",
        "backlog",
        "processing_us",
        "stalled_us",
        "joined",
        "left",
        f"case when {largest} = 0 then '-' {binding} end as binding",
        f"round(backlog / ({drained}), 1) as clears_s",
    )
