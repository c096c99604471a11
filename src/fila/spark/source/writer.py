"""Write: rows to messages, as fast as the broker takes them; the same for batches and streams.

Spark repeats a task that failed, and a stream repeats a batch after a crash. With a column
`idempotency_key` the queue stores each key once; without it rows may be stored twice, and the
driver says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from fila.client.columns import Columns, Stored
from fila.client.errors import OverloadedError
from fila.client.sync import FilaClient
from fila.spark.source.buffers import slices, words
from fila.spark.source.connection import connect, waiting
from fila.spark.source.options import Options, SourceError
from fila.spark.source.schema import GIVEN, check_write

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OVERLOAD_PAUSE_S: Final = 0.05
_OVERLOADS_MAX: Final = 200
AT_LEAST_ONCE: Final = (
    "fila: without a column idempotency_key a task that Spark repeats stores its rows again: this "
    "write is at least once. With the key, each row is stored once\n"
)


class Written(WriterCommitMessage):
    """What a task stored; `duplicates` were there already."""

    def __init__(self, rows: int, duplicates: int) -> None:
        self.rows = rows
        self.duplicates = duplicates


class QueueWriter(DataSourceArrowWriter):
    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        check(options, schema, overwrite)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        return write_rows(self._options, iterator)


class QueueStreamWriter(DataSourceStreamArrowWriter):
    """Spark makes a new one for every micro-batch."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        check(options, schema, overwrite)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        return write_rows(self._options, iterator)


def check(options: Options, schema: StructType, overwrite: bool) -> None:
    """On the driver, before any task: may these rows go there?"""
    if overwrite:
        raise SourceError(
            'a queue cannot be overwritten, only added to: use .mode("append") '
            "(a stream: output mode append)"
        )
    check_write(schema, options.queue)
    with connect(options) as client:
        if options.queue:
            waiting(client, options.queue)
    if "idempotency_key" not in schema.fieldNames():
        sys.stderr.write(AT_LEAST_ONCE)


def write_rows(options: Options, batches: Iterator[Any]) -> Written:
    """On a worker: store the rows of a partition."""
    rows = duplicates = 0
    with connect(options) as client:
        for stored in client.enqueue_columns(_parts(options, batches)):
            duplicates += stored.duplicates
            if stored.refused:
                duplicates += _store_again(client, stored, rows)
            rows += stored.messages
    return Written(rows, duplicates)


def _parts(options: Options, batches: Iterator[Any]) -> Iterator[Columns]:
    """The rows of a partition, no faster than they may be sent."""
    rows = 0
    started_at = time.monotonic()
    for batch in batches:
        for part in _paced(batch, options.rows_per_second_max):
            yield _columns(part, options.queue, rows)
            rows += part.num_rows
            if options.rows_per_second_max:
                due_at = started_at + rows / options.rows_per_second_max
                time.sleep(max(0.0, due_at - time.monotonic()))


def _paced(batch: Any, rows_per_second: int) -> Iterator[Any]:
    """A batch in pieces of a tenth of a second; in one piece without a limit."""
    size = max(1, rows_per_second // 10) if rows_per_second else batch.num_rows
    for at in range(0, batch.num_rows, max(1, size)):
        yield batch.slice(at, size)


def _columns(batch: Any, queue: str, first: int) -> Columns:
    names = batch.schema.names

    def column(name: str, read: Callable[[Any], Any]) -> Any:
        return read(batch.column(name)) if name in names else None

    body = batch.column("payload")
    if body.null_count:
        at = body.is_null().index(True).as_py()
        raise SourceError(f"row {first + at} of this task has no payload; nothing of it was stored")
    for name in GIVEN:
        if name in names and batch.column(name).null_count < batch.num_rows:
            raise SourceError(
                f"rows with a {name} cannot be written: the broker gives each message its own; "
                f"drop the columns {', '.join(GIVEN)}"
            )
    queues = column("queue", words)
    if queues is not None and queue:
        queues = [one or queue for one in queues]
    if queues is not None and "" in queues:
        at = queues.index("")
        raise SourceError(f"row {first + at} of this task names no queue; nothing was stored")
    return Columns(
        queue if queues is None else queues,
        slices(body),
        column("headers", lambda found: [dict(one or ()) for one in found.to_pylist()]),
        column("delay_ms", _numbers),
        column("idempotency_key", lambda found: [bytes(one) for one in slices(found)]),
        column("fairness_key", words),
        column("weight", _numbers),
        column("throttle_keys", lambda found: [one or () for one in found.to_pylist()]),
    )


def _numbers(found: Any) -> list[int]:
    return [one or 0 for one in found.to_pylist()]


def _store_again(client: FilaClient, stored: Stored, first: int) -> int:
    """Send again what the broker had no room for; how much of it was there already. `first` is the
    row of the task the frame began with."""
    duplicates = 0
    rows = {at: first + at - stored.first for at in stored.refused}
    for _ in range(_OVERLOADS_MAX):
        for at, why in stored.refused.items():
            if not isinstance(why, OverloadedError):
                raise SourceError(f"the broker refused row {rows[at]} of this task: {why}")
        time.sleep(_OVERLOAD_PAUSE_S)
        # Fewer than a frame: one answer, whose positions start at 0.
        places = list(stored.refused)
        (stored,) = client.enqueue_columns([stored.columns.take(places)])
        rows = {at: rows[place] for at, place in enumerate(places)}
        duplicates += stored.duplicates
        if not stored.refused:
            return duplicates
    raise SourceError(f"the broker has no room for {len(rows)} rows; try again later")
