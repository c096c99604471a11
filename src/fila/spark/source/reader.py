"""Batch read: a snapshot of a queue, taken once when Spark plans the DataFrame, read in partitions.

Nothing is taken from the queue. Owns the partitions and the walk over pages. The snapshot lives as
long as tasks read it; the broker closes it a minute after its last range was read, or earlier when
somebody needs its place. `pushFilters` is left out on purpose: Spark refuses a source that has it
unless a setting is on, and then keeps what one query of a DataFrame pushed for the next one, too. A
query is narrowed by options and by `.schema(...)`: without payload and headers neither travels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fila.client.browsing import Snapshot
from fila.client.errors import (
    ConnectionLostError,
    FilaError,
    OverloadedError,
    SnapshotExpiredError,
)
from fila.client.sync import FilaClient
from fila.spark.source.connection import connect, waiting
from fila.spark.source.options import Options, SourceError
from fila.spark.source.schema import Shape, check_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_FIRST_ROWS: Final = 128  # of a task; then pages grow, so that a limit reads little
_BEAT_S_MAX: Final = 3.0  # the broker holds a snapshot for unused after ten
_PAUSE_S: Final = 0.5


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
            snapshot = self._opened(client)
        return [SnapshotPart(snapshot.token, *one) for one in snapshot.ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a range; on a worker, as often as Spark likes."""
        if not isinstance(partition, SnapshotPart):
            return  # Spark's own stand-in for no partition at all
        shape = Shape(self._schema)
        place = (partition.token, partition.start, partition.end)
        bodies = not {"payload", "headers"}.isdisjoint(self._schema.names)
        beat_s = min(_BEAT_S_MAX, self._options.snapshot_ttl_s / 3)
        with connect(self._options) as client, _kept(client, partition, beat_s):
            try:
                for page in client.browse_pages(
                    *place,
                    states=self._options.states,
                    arrow=True,
                    bodies=bodies,
                    first=_FIRST_ROWS,
                ):
                    yield from shape.batches(page.arrow)
            except SnapshotExpiredError as error:
                raise SourceError(
                    "the snapshot behind this DataFrame is gone: it was not read for "
                    f"{self._options.snapshot_ttl_s:g} s (snapshotTtlSeconds), or for a minute "
                    "after it had been read to its end, others needed its place, or the broker was "
                    "restarted. Read the queue again; .cache() keeps what is looked at often"
                ) from error

    def _opened(self, client: FilaClient) -> Snapshot:
        """Others may have all the snapshots there are for a moment, or the broker may be away."""
        options = self._options
        until = time.monotonic() + options.timeout_s
        while True:
            try:
                return client.browse_open(
                    options.queue,
                    fairness_key=options.fairness_key,
                    parts=options.partitions,
                    ttl=options.snapshot_ttl_s,
                )
            except (OverloadedError, ConnectionLostError) as error:
                if time.monotonic() >= until:
                    raise SourceError(
                        f"{error}; tried for {options.timeout_s:g} s (option timeoutSeconds)"
                    ) from error
                time.sleep(_PAUSE_S)
            except FilaError as error:
                raise SourceError(f'cannot browse queue "{options.queue}": {error}') from error


@contextmanager
def _kept(client: FilaClient, part: SnapshotPart, beat_s: float) -> Iterator[None]:
    """While a task takes its time between two pages, the broker hears that it goes on."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(beat_s):
            try:
                client.browse_page(part.token, part.end, part.end)  # an empty page
            except FilaError:
                return  # the reader itself will say what is wrong

    threading.Thread(target=beat, name="fila-snapshot", daemon=True).start()
    try:
        yield
    finally:
        done.set()
