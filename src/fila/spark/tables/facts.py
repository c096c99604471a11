"""Facts: a cell whose window is over, with what only the order of cells tells.

Owns what is carried from one window of a key to the next: how many of its messages are leased and
pending. All else of a fact is the cell's own. A fact is written once and never changes.

    pending         messages waiting when the window ends; `pending_change`: and how many more
                    than at the end of the fact before
    in_flight       messages leased when the window ends
    processing_us   how long its messages were held by consumers since the end of its fact before:
                    summed over any time, the time all leases lasted
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.tables.cells import CELL, COLUMNS, ENDS, KEY, RUN, SUMS, WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDS_SCHEMA: Final = "broker string, epoch bigint, open_from bigint"
NEVER: Final = 1 << 60  # a window that does not come
CARRIED: Final = ("in_flight", "pending", "until_us")
FACT: Final = (
    *CELL, "window_start", *COLUMNS[len(CELL) :], "in_flight", "processing_us", "pending_change",
)  # fmt: skip
_BY_KEY: Final = f"over (partition by {', '.join(KEY)} order by window)"
_BY_SEGMENT: Final = f"over (partition by {', '.join(KEY)}, _segment order by window)"


def facts(cells: DataFrame, carry: DataFrame) -> DataFrame:
    """Facts of cells that are over, one for each, in the order of time after those in `carry`."""
    before = carry.selectExpr(
        *KEY, "in_flight as _carried", "pending as _pending", "until_us as _until"
    )
    found = cells.join(before, [*KEY], "left")
    for step in _steps():
        found = found.selectExpr("*", *step)
    return found.selectExpr(*_finished())


@cache
def _steps() -> list[list[str]]:
    """Columns that need those of the step before."""
    ended = " + ".join(f"coalesce({name}, 0)" for name in ENDS)
    moved = f"coalesce(delivered, 0) - ({ended})"
    still = f"coalesce(delivered, 0) + {ended} = 0"
    end = f"(window + 1) * {WINDOW_US}"
    # A key that the record begins with a snapshot had so many leased; any other one had none.
    base = (
        f"if(lag(window) {_BY_KEY} is null, "
        "coalesce(_carried, if(leased_seq = first_seq, leased, null), 0), 0)"
    )
    return [
        [
            # Nothing moved in a window with a snapshot: its count is exact, whatever was missed.
            f"leased is not null and {still} as _exact",
            f"{base} as _base",
            f"coalesce(last(pending, true) {_BY_KEY}, _pending, 0) as _held",
            f"coalesce(lag({end}) {_BY_KEY}, _until, {end} - {WINDOW_US}) as _since",
        ],
        [
            f"sum(cast(_exact as int)) {_BY_KEY} as _segment",
            f"if(_exact, leased, {moved} + _base) as _change",
        ],
        [
            f"greatest(sum(_change) {_BY_SEGMENT}, 0) as in_flight",
            f"_held - coalesce(lag(_held) {_BY_KEY}, _pending, 0) as pending_change",
        ],
        [f"coalesce(lag(in_flight) {_BY_KEY}, _base) * ({end} - _since) as _held_us"],
    ]


@cache
def _finished() -> list[str]:
    made = {
        **{name: f"coalesce({name}, 0)" for name in SUMS},
        "window_start": f"timestamp_micros(window * {WINDOW_US})",
        "processing_us": "_held_us + coalesce(leased_us, 0)",
        "pending": "_held",
    }
    return [f"{made.get(name, name)} as {name}" for name in FACT]


def carried(found: DataFrame, carry: DataFrame, ends: DataFrame) -> DataFrame:
    """What the next facts need of these: a row for each key that holds something, of runs that go
    on."""
    # The newest of the two; a fact is newer than what was carried to it.
    end = f"(window + 1) * {WINDOW_US} as until_us"
    both = found.selectExpr(*KEY, "in_flight", "pending", end).unionByName(carry)
    last = both.groupBy(*KEY).agg(
        fn.expr("max_by(in_flight, until_us) as in_flight"),
        fn.expr("max_by(pending, until_us) as pending"),
        fn.expr("max(until_us) as until_us"),
    )
    living = fn.broadcast(ends.where(f"open_from < {NEVER}").select(*RUN))
    return (
        last.where("in_flight > 0 or pending > 0")
        .join(living, [*RUN], "left_semi")
        .select(*KEY, *CARRIED)
    )


def parted(cells: DataFrame, ends: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The cells whose windows are over, and the others. `ends` has for each run the first window
    that is not; of a run without a row nothing is over."""
    # Joined, not compared with literals: those would make new code of every batch's plan.
    known = cells.join(fn.broadcast(ends), [*RUN], "left")
    is_over = "window < coalesce(open_from, 0)"
    return known.where(is_over).select(*COLUMNS), known.where(f"not {is_over}").select(*COLUMNS)


def closing(reached: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """By run the first window that is not over: of a broker's newest run the one its last event
    lies in; its older runs are over altogether. Of one broker events come in order, so nothing
    can come after for what is over."""
    newest: dict[str, int] = {}
    for run in reached:
        broker, _, epoch = run.rpartition("/")
        newest[broker] = max(int(epoch), newest.get(broker, 0))
    found = {}
    for run, (last_us, _) in reached.items():
        broker, _, epoch = run.rpartition("/")
        found[run] = NEVER if int(epoch) < newest[broker] else last_us // WINDOW_US
    return found
