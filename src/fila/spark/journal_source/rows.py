"""A slice of the journal as Arrow batches, in exactly the schema Spark asked for.

A slice names events, its path is only where they were when it was planned. If the file is gone by
then (sealed, compacted), the events are looked for again; if they are nowhere, one journal_gap row
stands for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructField, StructType, TimestampType

from fila.journal.columns import events_batch
from fila.journal.places import filesystem
from fila.journal.recovery import gap_event
from fila.spark.arrow import arrow_schema
from fila.spark.journal_source.frontier import Slice, slices
from fila.spark.journal_source.inventory import hot_batches, pieces
from fila.spark.journal_source.offsets import Position

BATCH_ROWS: Final = 32_768
MISSING: Final = "missing"
_LOOKS: Final = 4  # for files that moved, some time apart
_BETWEEN_S: Final = 0.25
_NS_PER_US: Final = 1_000
_TIMES: Final = StructType([StructField("ts", TimestampType())])


class Rows:
    """Reads slices of the journals in `roots`, with the columns of `schema`."""

    def __init__(self, roots: tuple[str, ...], schema: StructType) -> None:
        self._roots = roots
        self._schema = schema

    def read(self, one: Slice) -> Iterator[Any]:
        """The events of a slice in their order."""
        last = one.first - 1  # read so far
        for look in range(_LOOKS):
            if look:
                time.sleep(_BETWEEN_S * (look - 1))
            for here in [one] if not look else self._found(one, last + 1):
                try:
                    for batch in self._in_file(here) if here.path else ():
                        last = batch.column("seq")[-1].as_py()
                        yield self._fitting(batch)
                except FileNotFoundError:
                    pass
                if last != here.last:
                    break  # it is not where it was
            if last == one.last:
                return
        yield from self._gap(one, last + 1)

    @cached_property
    def _arrow(self) -> Any:
        return arrow_schema(self._schema)

    @cached_property
    def _columns(self) -> list[str]:
        """What is read of a file: numbers in any case."""
        return list(dict.fromkeys(["seq", *self._schema.names]))

    def _found(self, one: Slice, first: int) -> list[Slice]:
        """Where the rest of a slice lies now."""
        run = (one.broker, one.epoch)
        start, end = Position({run: first - 1}), Position({run: one.last})
        return slices(start, end, pieces(self._roots))

    def _in_file(self, here: Slice) -> Iterator[Any]:
        for batch in self._hot(here) if here.hot else self._sealed(here):
            seqs = batch.column("seq")
            low, high = seqs[0].as_py(), seqs[-1].as_py()
            if high < here.first or low > here.last:
                continue
            # Numbers of a file have no holes: where a row stands follows from its number.
            start = max(0, here.first - low)
            yield batch.slice(start, min(high, here.last) - low + 1 - start)

    def _hot(self, here: Slice) -> Iterator[Any]:
        for batch in hot_batches(here.path):
            if batch.num_rows and batch["seq"][-1].as_py() >= here.first:
                if batch["seq"][0].as_py() > here.last:
                    return
                yield batch

    def _sealed(self, here: Slice) -> Iterator[Any]:
        system, path = filesystem(here.path)
        with system.open_input_file(path) as source, pq.ParquetFile(source) as file:
            groups = [at for at in range(file.num_row_groups) if _within(file, at, here)]
            known = set(file.schema_arrow.names)
            columns = [name for name in self._columns if name in known]
            if groups:
                yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns)

    def _fitting(self, batch: Any) -> Any:
        """A batch as Spark wants it: these columns, plain, null where an older file has none."""
        known = set(batch.schema.names)
        columns = []
        for field in self._arrow:
            if field.name not in known:
                columns.append(pa.nulls(batch.num_rows, field.type))
                continue
            column = batch.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow)

    def _gap(self, one: Slice, first: int) -> Iterator[Any]:
        """One row for events that are nowhere; it has the number of the last of them."""
        count = one.last - first + 1
        times = [self._time_of(one, seq) for seq in (one.last + 1, first - 1)]
        known = [ts for ts in times if ts is not None]
        if not known:
            return  # nothing is left of that run: there is no time to tell it of
        event = gap_event(known[0] * _NS_PER_US, known[-1] * _NS_PER_US, count, MISSING)
        batch = events_batch([event], one.last, one.broker, one.epoch, [count])
        yield self._fitting(batch)

    def _time_of(self, one: Slice, seq: int) -> int | None:
        """When a neighbour of a hole happened, in microseconds."""
        reader = Rows(self._roots, _TIMES)
        wanted = one._replace(first=seq, last=seq)
        for here in reader._found(wanted, seq) if seq else []:
            try:
                for batch in reader._in_file(here) if here.path else ():
                    return int(pc.cast(batch.column("ts"), pa.int64())[0].as_py())
            except FileNotFoundError:
                return None
        return None


def _within(file: Any, group: int, here: Slice) -> bool:
    """Whether a row group can hold events of the slice; what tells nothing may."""
    at = file.schema_arrow.get_field_index("seq")
    known = file.metadata.row_group(group).column(at).statistics
    if known is None or not known.has_min_max:
        return True
    return bool(known.max >= here.first and known.min <= here.last)
