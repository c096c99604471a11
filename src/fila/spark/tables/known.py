"""The record as cells of ten seconds: from facts and open cells, and of events only what is newer.

Owns what of a time asked for comes from where. Windows that lie within it altogether are read as
facts, those that are open as the cells of the job's state. Events are read for the windows the time
cuts in two, and for what the tables do not have yet. Whoever adds up cells gets the same numbers as
from the journal alone, for the price of a row per key and window.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from fila.spark.events import JournalMissing, read_events
from fila.spark.presence import RING, joined
from fila.spark.tables.cells import COLUMNS, WINDOW_US, cells
from fila.spark.tables.commits import TablesError
from fila.spark.tables.recorded import reached, recorded
from fila.spark.tables.schemas import FACTS, cells_schema, schemas
from fila.spark.tables.store import ParquetStore

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

_LAST: Final = 1 << 60
# A cell as the verdict needs it (`spark.presence`).
_PRESENT: Final = (
    "coalesce(delivered, 0) as delivered", "coalesce(joins, 0) as joins",
    "coalesce(weight_changes, 0) as weight_changes", "coalesce(positions, 0) as positions",
    "coalesce(ready_us, 0) as ready_us", "position_first", "position_last", "ring_seq as first_seq",
    "in_before", "ready_first", "pending_seq as last_seq",
    "cast(coalesce(eligible > 0, true) as int) as in_after",
    "coalesce(eligible, pending) as left_ready", "weight_min", "weight_max", "weight_end",
    "weight_end_seq", "weight_served", "weight_served_seq as served_seq", "weight_told",
    "weight_told_seq as told_seq",
)  # fmt: skip


def known(
    spark: SparkSession,
    tables: str,
    journal: str,
    start: datetime | None = None,
    end: datetime | None = None,
    queue: str = "",
    needs: Collection[str] = (),
) -> DataFrame:
    """Cells of the events with start <= ts < end, of one queue or of all."""
    store = ParquetStore(spark, tables, schemas())
    contents = store.contents()
    last = contents.last
    if last is None:
        raise TablesError(f"no tables in {tables}: has `fila pipeline run` been started?")
    first = -(-_micros(start) // WINDOW_US) if start is not None else 0
    stop = _micros(end) // WINDOW_US if end is not None else _LAST
    files = contents.of(FACTS, first * WINDOW_US, stop * WINDOW_US)
    within = f"window >= {first} and window < {stop}"
    facts = store.read(FACTS, files).where(within).select(*COLUMNS)
    still_open = []
    if last.state:
        state = store.read_state(f"{last.state}/cells", cells_schema())
        still_open.append(state.where(within))
    events = []
    if first < stop:
        bounds = (_moment(first) if first else None, _moment(stop) if stop < _LAST else None)
        try:
            newer = read_events(spark, journal, *bounds, queue, True, needs, reached(last))
            events.append(newer)
        except JournalMissing:
            pass  # its days are over; the tables have them
    cut = [(start, _earlier(end, _moment(first)))] if start and _micros(start) % WINDOW_US else []
    if end is not None and _micros(end) % WINDOW_US and stop >= first:
        cut.append((_moment(stop), end))
    events += [recorded(spark, tables, journal, *span, queue, True, needs) for span in cut]
    if events:
        every = reduce(lambda one, other: one.unionByName(other), events)
        found = facts.unionByName(cells(every, *still_open))
    else:
        found = facts.unionByName(still_open[0]) if still_open else facts
    return found.where(found["queue"].isin(queue, "")) if queue else found


def presence_of(
    known: DataFrame, window_us: int = WINDOW_US, kept: Collection[str] = ()
) -> DataFrame:
    """Cells for the verdict, of ten seconds or of a multiple of it, with columns to be `kept`."""
    found = known.where("fairness_key != '' and queue != '' and ring_seq is not null").selectExpr(
        *RING, "fairness_key", "window", *_PRESENT, *kept
    )
    if window_us == WINDOW_US:
        return found
    assert window_us % WINDOW_US == 0, "a window is made of whole ones"
    count = window_us // WINDOW_US
    # Times are told from the start of the window, which is another one now.
    later = f"(window % {count}) * {WINDOW_US}"
    moved = found.selectExpr(
        "* except (ready_us, window)",
        f"ready_us + (in_before - in_after) * {later} as ready_us",
        f"window div {count} as window",
    )
    return joined(moved)


def _moment(window: int) -> datetime:
    return datetime.fromtimestamp(window * WINDOW_US / 1e6, UTC)


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
