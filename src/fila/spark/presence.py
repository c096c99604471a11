"""Who took part, and how much was handed out meanwhile: cells of one key and one window.

Owns the reading of `ring_delta`, `key_eligible` and `queue_delivered` (spec/journal). A key is in
the ring from an event that says so to the next that says it left; nothing has to be guessed, and no
events have to be put in order: a cell is made of sums, and of what its first and last event say.
Cells of the same key and window, made of different events, can be joined to one (`joined`).

    delivered         messages of the key
    joins             how often it came into the ring
    weight_changes    while it had messages
    positions         handed out by the queue while the key was in the ring, but for the ends of the
                      window: add `position_last` if it was in the ring at the end, take away
                      `position_first` if it was at the start
    ready_us          the same for time, from the start of the window
    position_first    messages the queue had handed out before the first event of the window
    position_last     and up to its last, of this key's events
    first_seq, in_before, ready_first    the first event's number; in the ring before it? what may
                                         go after it
    last_seq, in_after, left_ready       the last one's, and after it
    weight_…          of its messages: as enqueued last, lowest, highest; the delivered ones'; as
                      the broker has it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEEDS: Final = ("ring_delta", "queue_delivered")  # that older brokers did not write
RING: Final = ("broker", "epoch", "queue")  # a restart begins another
CELL: Final = (*RING, "fairness_key", "window")
# The weight of the newest message is its key's. A broker's own word for it is not taken: it is what
# the verdict is about.
WEIGHING: Final = ("enqueued", "redriven", "reclassified", "dead_lettered")

SUMS: Final = ("delivered", "joins", "weight_changes", "positions", "ready_us")
MINS: Final = ("position_first", "first_seq", "weight_min")
MAXES: Final = ("position_last", "last_seq", "weight_max")
FIRSTS: Final = {"in_before": "first_seq", "ready_first": "first_seq"}
LASTS: Final = {"in_after": "last_seq", "left_ready": "last_seq", "weight_end": "weight_end_seq",
                "weight_served": "served_seq", "weight_told": "told_seq"}  # fmt: skip
_SEQS: Final = ("weight_end_seq", "served_seq", "told_seq")


def presence(events: DataFrame, window_us: int) -> DataFrame:
    """The cells of these events: one scan, one shuffle, nothing sorted."""
    event = fn.col("event")
    seq = fn.col("seq")
    delta = fn.coalesce("ring_delta", fn.lit(0))
    position = fn.col("queue_delivered")
    delivered = (event == "delivered").cast("long")
    # Null says: at least one.
    in_ring = fn.coalesce(fn.col("key_eligible") > 0, fn.lit(True)).cast("int")
    ready = fn.coalesce("key_eligible", "key_pending")
    ts_us = fn.unix_micros("ts")
    # Never null, and known not to be: joins add no filter of their own to the scan.
    window = fn.coalesce(fn.floor(ts_us / fn.lit(window_us)).cast("long"), fn.lit(0))
    weighing = fn.when(event.isin(*WEIGHING), seq)
    serving = fn.when(event == "delivered", seq)
    telling = fn.when(event == "snapshot", seq)
    weight = fn.col("weight")

    def last(value: Column, number: Column, name: str, of: str) -> list[Column]:
        return [fn.max_by(value, number).alias(name), fn.max(number).alias(of)]

    return (
        events.where((fn.col("fairness_key") != "") & (fn.col("queue") != ""))
        .withColumn("window", window)
        .groupBy(*CELL)
        .agg(
            fn.sum(delivered).alias("delivered"),
            fn.count_if(delta == 1).alias("joins"),
            fn.count_if(event == "weight_changed").alias("weight_changes"),
            fn.sum(-delta * position).alias("positions"),
            fn.sum(-delta * (ts_us - fn.col("window") * window_us)).alias("ready_us"),
            fn.min(position - delivered).alias("position_first"),
            fn.max(position).alias("position_last"),
            fn.min(seq).alias("first_seq"),
            fn.min_by(in_ring - delta, seq).alias("in_before"),
            fn.min_by(ready, seq).alias("ready_first"),
            fn.max(seq).alias("last_seq"),
            fn.max_by(in_ring, seq).alias("in_after"),
            fn.max_by(ready, seq).alias("left_ready"),
            fn.min(fn.when(weighing.isNotNull(), weight)).alias("weight_min"),
            fn.max(fn.when(weighing.isNotNull(), weight)).alias("weight_max"),
            *last(weight, weighing, "weight_end", "weight_end_seq"),
            *last(weight, serving, "weight_served", "served_seq"),
            *last(weight, telling, "weight_told", "told_seq"),
        )
    )


def joined(cells: DataFrame) -> DataFrame:
    """One row for each cell, of rows that were made of different events of it."""
    return cells.groupBy(*CELL).agg(
        *[fn.sum(name).alias(name) for name in SUMS],
        *[fn.min(name).alias(name) for name in MINS],
        *[fn.max(name).alias(name) for name in MAXES],
        *[fn.min_by(name, seq).alias(name) for name, seq in FIRSTS.items()],
        *[fn.max_by(name, seq).alias(name) for name, seq in LASTS.items()],
        *[fn.max(seq).alias(seq) for seq in _SEQS],
    )
