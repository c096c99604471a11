"""Cells: what happened to one key of one queue in ten seconds, as sums that can be added up.

Owns which columns there are and how two cells of the same key and window become one. A cell is made
of whatever events a batch holds of it; cells of several batches are merged, and the result is the
same however the events were cut into batches. When its window is over, a fact is made of it.

    cell    broker, epoch, queue, fairness_key, window     a key's; with an empty key the queue's,
                                                           with an empty queue the broker's own

The text of a query is made once: building its hundreds of columns one by one for every batch would
cost more than a batch of a few seconds.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.presence import WEIGHING
from fila.spark.tables.counted_times import count_times
from fila.spark.tables.histogram import TYPE, added

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_S: Final = 10
WINDOW_US: Final = WINDOW_S * 1_000_000
RUN: Final = ("broker", "epoch")
KEY: Final = (*RUN, "queue", "fairness_key")
CELL: Final = (*KEY, "window")
_CELL_SCHEMA: Final = (
    "broker string, epoch bigint, queue string, fairness_key string, window bigint"
)
PARTS: Final = (
    *("retry", "throttled", "no_consumer", "own", "turn", "paused"),
    *("busy_own", "busy_others"),
)

# A cell tells of both gates together: a bucket that was short, a cap that was full.
_PART: Final = {"throttled": "wait_throttled_us + coalesce(wait_capped_us, 0)"}
_READ: Final = [f"{_PART.get(one, f'wait_{one}_us')} as wait_{one}_us" for one in PARTS]

# Events that are counted, by their names.
COUNTED: Final = (
    "enqueued", "requeued", "delivered", "acked", "nacked", "expired", "released", "dead_lettered",
    "redriven", "parked",
)  # fmt: skip
# A message that moves is counted in the queue it comes from; its row tells of the one it goes to.
MOVES: Final = ("dead_lettered", "redriven")
ENDS: Final = ("acked", "nacked", "expired", "released")  # of a lease

SUMS: Final = (
    *COUNTED,
    "first_deliveries",
    "enqueued_bytes",
    "delivered_bytes",
    "wait_us",
    *[f"wait_{part}_us" for part in PARTS],
    "age_us",
    "throttled_us",  # of waits for a bucket that ended here
    "stalled_us",  # of times without a consumer that ended here
    "leased_us",  # of leases that began or ended here: how much of the window they were held
    "joined",
    "left",
    "lost",
    # Who was in the ring, for the verdict (`spark.presence`).
    "joins",
    "weight_changes",
    "positions",
    "ready_us",
)
MAXES: Final = ("wait_max_us", "age_max_us", "last_us", "last_seq", "position_last", "weight_max")
MINS: Final = ("first_seq", "ring_seq", "position_first", "weight_min")
# What the first event of the key itself says; `ring_seq` is its number.
FIRSTS: Final = ("in_before", "ready_first")
# What the last event of its kind says: a value and the event's number.
LASTS: Final = (
    "pending", "eligible", "weight", "leased", "delivered_at", "weight_end", "weight_served",
    "weight_told",
)  # fmt: skip

COLUMNS: Final = (
    *CELL,
    *SUMS,
    *MAXES,
    *MINS,
    *FIRSTS,
    *[name for last in LASTS for name in (last, f"{last}_seq")],
    "histogram",
)


def cells(events: DataFrame, *others: DataFrame) -> DataFrame:
    """The cells of these events, merged with others. One scan for the sums, one of the deliveries
    for the times."""
    return merged(_sums(events), _times(events), *others)


def merged(*parts: DataFrame) -> DataFrame:
    """One row for each cell, of rows that tell parts of it."""
    rows = parts[0]
    for other in parts[1:]:
        rows = rows.unionByName(other, allowMissingColumns=True)
    sums = rows.groupBy(*CELL).agg(
        *[fn.expr(one) for one in _merging()], fn.collect_list("histogram").alias("histograms")
    )
    return sums.withColumn("histogram", added(fn.col("histograms"))).select(*COLUMNS)


@cache
def _merging() -> list[str]:
    lasts = [f"max_by({one}, {one}_seq) as {one}" for one in LASTS]
    return [
        *[f"sum({one}) as {one}" for one in SUMS],
        *[f"max({one}) as {one}" for one in (*MAXES, *[f"{one}_seq" for one in LASTS])],
        *[f"min({one}) as {one}" for one in MINS],
        *[f"min_by({one}, ring_seq) as {one}" for one in FIRSTS],
        *lasts,
    ]


def _sums(events: DataFrame) -> DataFrame:
    key = "coalesce(fairness_key, '')"
    grouped = (
        events.selectExpr(
            *RUN, "queue", f"{key} as fairness_key", "event", "events", "seq", "attempt",
            "payload_bytes", *_READ, "key_pending", "key_eligible", "weight", "key_leased",
            "queue_delivered", "coalesce(ring_delta, 0) as ring_delta",
            "unix_micros(ts) as us", f"{window_of('ts')} as window",
            "unix_micros(ts) - unix_micros(since) as wait_us",
            "unix_micros(ts) - unix_micros(enqueued_at) as age_us",
            f"if(event in {MOVES}, coalesce(source_queue, ''), '') as moved_from",
        )
        .groupBy(*CELL, "moved_from")
        .agg(*[fn.expr(one) for one in _summing()])
    )  # fmt: skip
    # Few rows from here on. What moved counts where it came from; all else is of where it is.
    both = fn.expr(
        "explode(if(moved_from = '', array(struct(queue as queue, true as here)), "
        "array(struct(queue as queue, true as here), struct(moved_from as queue, false as here))))"
    )
    split = grouped.withColumn("_at", both)
    return split.selectExpr(*_splitting())


@cache
def _summing() -> list[str]:
    delivered = "event = 'delivered'"
    end = f"(window + 1) * {WINDOW_US}"
    of_key = "fairness_key != ''"
    weighing = f"event in {(*WEIGHING, 'weight_changed', 'snapshot')}"
    # As `spark.presence` has it.
    of_ring = "(fairness_key != '' and queue != '')"
    arriving = f"({of_ring} and event in {WEIGHING})"
    in_ring = "cast(coalesce(key_eligible > 0, true) as int)"
    ring_seq = f"if({of_ring}, seq, null)"
    sums = {
        **{name: f"if(event = '{name}', events, null)" for name in COUNTED},
        "first_deliveries": f"if({delivered} and attempt = 0, events, null)",
        "enqueued_bytes": "if(event = 'enqueued', payload_bytes, null)",
        "delivered_bytes": f"if({delivered}, payload_bytes, null)",
        "wait_us": f"if({delivered}, wait_us, null)",
        **{f"wait_{part}_us": f"if({delivered}, wait_{part}_us, null)" for part in PARTS},
        "age_us": f"if({delivered}, age_us, null)",
        "throttled_us": "if(event = 'throttled', wait_us, null)",
        "stalled_us": "if(event = 'stalled', wait_us, null)",
        "leased_us": f"if({delivered}, {end} - us, if(event in {ENDS}, us - {end}, null))",
        "joined": "if(event = 'consumer_joined', events, null)",
        "left": "if(event = 'consumer_left', events, null)",
        "lost": "if(event = 'journal_gap', events, null)",
        "joins": f"if({of_ring} and ring_delta = 1, 1, null)",
        "weight_changes": f"if({of_ring} and event = 'weight_changed', 1, null)",
        "positions": f"if({of_ring}, -ring_delta * queue_delivered, null)",
        "ready_us": f"if({of_ring}, -ring_delta * (us - window * {WINDOW_US}), null)",
    }  # fmt: skip
    lasts = {
        "pending": ("key_pending", of_key),
        "eligible": ("key_eligible", of_key),
        "weight": ("weight", f"{of_key} and {weighing}"),
        "leased": ("key_leased", "event = 'snapshot'"),
        "delivered_at": ("us", delivered),
        "weight_end": ("weight", arriving),
        "weight_served": ("weight", f"{of_ring} and {delivered}"),
        "weight_told": ("weight", f"{of_ring} and event = 'snapshot'"),
    }
    return [
        *[f"sum({value}) as {name}" for name, value in sums.items()],
        f"max(if({delivered}, wait_us, null)) as wait_max_us",
        f"max(if({delivered}, age_us, null)) as age_max_us",
        "max(us) as last_us",
        "max(seq) as last_seq",
        "min(seq) as first_seq",
        f"max(if({of_ring}, queue_delivered, null)) as position_last",
        f"min(if({of_ring}, queue_delivered - cast({delivered} as int), null)) as position_first",
        f"min(if({arriving}, weight, null)) as weight_min",
        f"max(if({arriving}, weight, null)) as weight_max",
        f"min({ring_seq}) as ring_seq",
        f"min_by({in_ring} - ring_delta, {ring_seq}) as in_before",
        f"min_by(coalesce(key_eligible, key_pending), {ring_seq}) as ready_first",
        *[f"max_by({one}, if({when}, seq, null)) as {name}" for name, (one, when) in lasts.items()],
        *[f"max(if({when}, seq, null)) as {name}_seq" for name, (_, when) in lasts.items()],
    ]


@cache
def _splitting() -> list[str]:
    found = []
    for name in COLUMNS[:-1]:
        if name == "queue":
            found.append("_at.queue as queue")
        elif name in MOVES:
            found.append(f"if(moved_from = '' or not _at.here, {name}, null) as {name}")
        elif name in CELL or name in ("last_us", "last_seq", "first_seq"):
            found.append(name)
        else:
            found.append(f"if(_at.here, {name}, null) as {name}")
    return found


def _times(events: DataFrame) -> DataFrame:
    """For each cell how often which time came; times of 0 are what is left of the deliveries."""
    deliveries = events.where("event = 'delivered'").selectExpr(
        "broker",
        "epoch",
        "queue",
        "coalesce(fairness_key, '') as fairness_key",
        f"{window_of('ts')} as window",
        "unix_micros(ts) - unix_micros(since) as wait",
        "unix_micros(ts) - unix_micros(enqueued_at) as age",
        "unix_micros(ts) - unix_micros(since) - wait_retry_us as ready",
        *[f"wait_{part}_us as {part}" for part in PARTS],
    )
    return deliveries.mapInArrow(count_times, f"{_CELL_SCHEMA}, histogram {TYPE}")


def window_of(time: str) -> str:
    """The number of the window a time lies in, as SQL."""
    return f"unix_micros({time}) div {WINDOW_US}"
