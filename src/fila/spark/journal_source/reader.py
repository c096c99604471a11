"""Batch read of the journal: everything there is when it is planned, each event once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fila.spark.journal_source.frontier import Slice, advance, slices, tasks
from fila.spark.journal_source.inventory import pieces
from fila.spark.journal_source.offsets import NOTHING
from fila.spark.journal_source.options import Options
from fila.spark.journal_source.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, slices: list[Slice]) -> None:
        self.slices = slices


class JournalReader(DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        found = pieces(self._options.roots, self._options.hot_tail)
        end = advance(NOTHING, found, None, time.time(), late_s=0)
        return [Share(one) for one in tasks(slices(NOTHING, end, found), self._options.task_events)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Share)
        rows = Rows(self._options.roots, self._schema)
        for one in partition.slices:
            yield from rows.read(one)
