"""Batch read: a snapshot of a queue, taken once when Spark plans the DataFrame, read in partitions.

Nothing is taken from the queue. Owns the partitions and the walk over pages. `pushFilters` is left
out on purpose: Spark refuses a source that has it unless a setting is on, and then trusts it where
it should not. A query is narrowed by options and by `.schema(...)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fila.client.errors import FilaError, OverloadedError, SnapshotExpiredError
from fila.spark.source.connection import connect, waiting
from fila.spark.source.options import Options, SourceError
from fila.spark.source.schema import Shape, check_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class SnapshotPart(InputPartition):
    """One range of a snapshot."""

    def __init__(self, token: str, start: bytes, end: bytes) -> None:
        self.token = token
        self.start = start
        self.end = end


class SnapshotReader(DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        check_read(schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Take the snapshot; on the driver, once per DataFrame."""
        options = self._options
        with connect(options) as client:
            waiting(client, options.queue)
            try:
                snapshot = client.browse_open(
                    options.queue,
                    fairness_key=options.fairness_key,
                    parts=options.partitions,
                    ttl=options.snapshot_ttl_s,
                )
            except OverloadedError as error:
                raise SourceError(
                    f"{error}. Each DataFrame that was read keeps its snapshot for "
                    "snapshotTtlSeconds: lower it, or cache what is read often"
                ) from error
            except FilaError as error:
                raise SourceError(f'cannot browse queue "{options.queue}": {error}') from error
        return [SnapshotPart(snapshot.token, *one) for one in snapshot.ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a range; on a worker, as often as Spark likes."""
        if not isinstance(partition, SnapshotPart):
            return  # Spark's own stand-in for no partition at all
        shape = Shape(self._schema)
        place = (partition.token, partition.start, partition.end)
        with connect(self._options) as client:
            try:
                for page in client.browse_pages(*place, states=self._options.states, arrow=True):
                    yield from shape.batches(page.arrow)
            except SnapshotExpiredError as error:
                raise SourceError(
                    "the snapshot behind this DataFrame is gone: it was planned more than "
                    f"{self._options.snapshot_ttl_s:g} s ago (snapshotTtlSeconds), or the "
                    "broker was restarted. Read the queue again"
                ) from error
