"""Stream read of the journal: what Spark asks a source for, over the frontier's arithmetic.

Nothing is kept between calls but what a restart can do without. Spark 4.1 asks for the latest
offset without saying where it stands: then a batch holds all there is. From 4.2 on batches are
limited, and `availableNow` ends at what there was when it began.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fila.spark.journal_source.frontier import advance, behind, slices, tasks
from fila.spark.journal_source.inventory import Piece, pieces
from fila.spark.journal_source.offsets import NOTHING, Position, Run, from_json
from fila.spark.journal_source.options import EARLIEST, LATEST, Options
from fila.spark.journal_source.reader import Share
from fila.spark.journal_source.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import (
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    LIMITS = True
except ImportError:  # Spark 4.1
    LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


_LOOKS: Final = 4
_BETWEEN_S: Final = 0.25


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._ends: dict[Run, int] | None = None  # where a query that is to end does
        self._reached: Position | None = None

    # On the driver.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  the names are Spark's
        starting = self._options.starting
        if starting == EARLIEST:
            return NOTHING.as_json()
        if starting == LATEST:
            return self._latest(NOTHING, None, late_s=0).as_json()
        return from_json(json.loads(starting)).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.events_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        ends: dict[Run, int] = {}
        for piece in self._pieces():
            ends[piece.run] = max(piece.last, ends.get(piece.run, 0))
        self._ends = ends

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        position = NOTHING if start is None else from_json(start)
        events = limit.max_rows if LIMITS and isinstance(limit, ReadMaxRows) else None
        self._reached = self._latest(position, events, self._options.late_s)
        return self._reached.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Where the events between the offsets lie now. What seems to be missing is looked for
        again: a directory that is read while parts are merged in it may show neither."""
        first, last = from_json(start), from_json(end)
        for look in range(_LOOKS):
            if look:
                time.sleep(_BETWEEN_S)
            found = slices(first, last, self._pieces())
            if all(one.path for one in found):
                break
        return [Share(one) for one in tasks(found, self._options.task_events)]

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """For the query's progress: where the journal ends, and how many events are not read."""
        if self._reached is None:
            return None
        found = self._pieces()
        newest = advance(self._reached, found, None, time.time(), self._options.late_s)
        return {"journal": newest.as_json(), "behind": behind(self._reached, found)}

    def commit(self, end: dict[str, Any]) -> None:
        """The journal is not the stream's: nothing is to be done."""

    # On a worker.

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Share)
        rows = Rows(self._options.roots, self._schema)
        for one in partition.slices:
            yield from rows.read(one)

    # Inside.

    def _latest(self, position: Position, limit: int | None, late_s: float) -> Position:
        found = self._pieces()
        if self._ends is not None:
            found = [cut for piece in found if (cut := _until(piece, self._ends)) is not None]
        return advance(position, found, limit, time.time(), late_s)

    def _pieces(self) -> list[Piece]:
        return pieces(self._options.roots, self._options.hot_tail)


def _until(piece: Piece, ends: dict[Run, int]) -> Piece | None:
    """A piece as far as the end of its run; None if it lies behind it."""
    last = ends.get(piece.run, 0)
    if piece.first > last:
        return None
    return piece if piece.last <= last else piece._replace(last=last)
