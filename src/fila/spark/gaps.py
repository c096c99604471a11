"""Where the record has gaps: events that were dropped under a slow disk, or lost with a kill.

Owns what a gap makes doubtful. Counts are short by what was lost. What a key holds is known again
from its own next event, and of all keys from the next snapshot: until then a window is incomplete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FOR_EVER_US: Final = (1 << 62) - 1


class Gap(NamedTuple):
    broker: str
    epoch: int
    start_us: int
    end_us: int  # of the loss itself
    known_us: int  # when every key's counts are known again
    lost: int


def gaps_of(events: DataFrame) -> list[Gap]:
    """The gaps of a record, oldest first."""
    rows = (
        events.where(fn.col("event") == "journal_gap")
        .select(
            "broker",
            "epoch",
            "seq",
            fn.unix_micros(fn.coalesce("since", "ts")).alias("start_us"),
            fn.unix_micros("ts").alias("end_us"),
            "events",
        )
        .orderBy("broker", "epoch", "seq")
        .collect()
    )
    if not rows:
        return []
    snapshots = [
        (row["broker"], row["epoch"], row["at_us"])
        for row in events.where(fn.col("event") == "snapshot")
        .select("broker", "epoch", fn.unix_micros("ts").alias("at_us"))
        .distinct()
        .collect()
    ]
    found = []
    for broker, epoch, _, start_us, end_us, lost in rows:
        later = [at for b, e, at in snapshots if (b, e) == (broker, epoch) and at >= end_us]
        found.append(Gap(broker, epoch, start_us, end_us, min(later, default=_FOR_EVER_US), lost))
    return found


def incomplete(gaps: list[Gap], window_us: int) -> Column:
    """Whether a window of (broker, epoch, window) is touched by a gap."""
    touched = fn.lit(False)
    for gap in gaps:
        mine = (fn.col("broker") == gap.broker) & (fn.col("epoch") == gap.epoch)
        first, last = gap.start_us // window_us, gap.known_us // window_us
        touched = touched | (mine & fn.col("window").between(first, last))
    return touched
