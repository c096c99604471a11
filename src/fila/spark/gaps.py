"""Where the record has gaps: events that were dropped under a slow disk, or lost with a kill.

Owns what a gap makes doubtful. Counts are short by what was lost. What a key holds is known again
from its own next event, and of all keys from the next snapshot: until then a window is incomplete.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOR_EVER_US: Final = (1 << 62) - 1
_PAUSE_US: Final = 900_000  # between two snapshots there is a second at least


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
    snapshots: dict[tuple[str, int], list[int]] = {}
    for row in (
        events.where(fn.col("event") == "snapshot")
        .select("broker", "epoch", fn.unix_micros("ts").alias("at_us"))
        .distinct()
        .orderBy("at_us")
        .collect()
    ):
        snapshots.setdefault((row["broker"], row["epoch"]), []).append(row["at_us"])
    runs = {place: _runs(times) for place, times in snapshots.items()}
    found = []
    for broker, epoch, _, start_us, end_us, lost in rows:
        taken = runs.get((broker, epoch), [])
        at = bisect_left(taken, (end_us,))
        known_us = taken[at][1] if at < len(taken) else _FOR_EVER_US
        found.append(Gap(broker, epoch, start_us, end_us, known_us, lost))
    return found


def _runs(times: list[int]) -> list[tuple[int, ...]]:
    """When each snapshot began and ended: its keys are told of some at a time."""
    runs: list[tuple[int, ...]] = []
    for at_us in times:
        if runs and at_us - runs[-1][1] < _PAUSE_US:
            runs[-1] = (runs[-1][0], at_us)
        else:
            runs.append((at_us, at_us))
    return runs


def touched(spark: SparkSession, gaps: list[Gap], window_us: int) -> DataFrame:
    """Runs of windows that gaps touch, `first` to `last`; none of a broker's epoch overlap.

    A table to join with, not a condition for each gap: a record may have thousands.
    """
    runs: list[tuple[str, int, int, int]] = []
    for gap in sorted(gaps):
        first, last = gap.start_us // window_us, gap.known_us // window_us
        before = runs[-1] if runs else None
        if before is not None and before[:2] == (gap.broker, gap.epoch) and first <= before[3] + 1:
            first, last = before[2], max(before[3], last)
            runs.pop()
        runs.append((gap.broker, gap.epoch, first, last))
    return spark.createDataFrame(runs, "broker string, epoch long, first long, last long")
