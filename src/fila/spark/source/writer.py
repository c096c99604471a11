"""Write: rows to messages, as fast as the broker takes them; the same for batches and streams.

Spark repeats a task that failed, and a stream repeats a batch after a crash. With a column
`idempotency_key` the queue stores each key once; without it rows may be stored twice, and the
driver says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from fila.client.bulk import NewMessage
from fila.client.errors import BatchError, OverloadedError
from fila.client.sync import FilaClient
from fila.spark.source.connection import connect, waiting
from fila.spark.source.options import Options, SourceError
from fila.spark.source.schema import check_write

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
    started_at = time.monotonic()
    with connect(options) as client:
        for batch in batches:
            for part in _paced(batch, options.rows_per_second_max):
                duplicates += _store(client, list(_messages(part, options.queue, rows)), rows)
                rows += part.num_rows
                if options.rows_per_second_max:
                    due_at = started_at + rows / options.rows_per_second_max
                    time.sleep(max(0.0, due_at - time.monotonic()))
    return Written(rows, duplicates)


def _paced(batch: Any, rows_per_second: int) -> Iterator[Any]:
    """A batch in pieces of a tenth of a second; whole when nobody minds."""
    size = max(1, rows_per_second // 10) if rows_per_second else batch.num_rows
    for at in range(0, batch.num_rows, max(1, size)):
        yield batch.slice(at, size)


def _messages(batch: Any, queue: str, first: int) -> Iterator[NewMessage]:
    names = batch.schema.names
    count = batch.num_rows

    def column(name: str, missing: Any, made: Any = None) -> Iterable[Any]:
        if name not in names:
            return repeat(missing, count)
        found = batch.column(name)
        values: list[Any] = found.to_pylist()
        if made is not None:
            return [missing if value is None else made(value) for value in values]
        if found.null_count:
            return [missing if value is None else value for value in values]
        return values

    body = batch.column("payload")
    if body.null_count:
        at = body.to_pylist().index(None)
        raise SourceError(f"row {first + at} of this task has no payload; nothing of it was stored")
    queues = column("queue", queue)
    if not queue:
        queues = list(queues)
        if "" in queues:
            at = queues.index("")
            raise SourceError(f"row {first + at} of this task names no queue; nothing was stored")
    # A cast from text costs nothing for a column, but an encode for every string.
    payloads = body.cast(pa.binary()).to_pylist()
    return map(
        NewMessage,
        queues,
        payloads,
        column("headers", None, dict),
        column("delay_ms", 0),
        column("idempotency_key", ""),
        column("fairness_key", ""),
        column("weight", 0),
        column("throttle_keys", (), tuple),
    )


def _store(client: FilaClient, messages: list[NewMessage], first: int) -> int:
    """How many were there already. What the broker has no room for now is sent again."""
    duplicates = 0
    for _ in range(_OVERLOADS_MAX):
        try:
            stored: list[Any] = client.enqueue_messages(messages)
            refused: dict[int, Any] = {}
        except BatchError as error:
            stored, refused = error.results, error.errors
        duplicates += sum(1 for one in stored if getattr(one, "duplicate", False))
        if not refused:
            return duplicates
        for at, why in refused.items():
            if not isinstance(why, OverloadedError):
                raise SourceError(f"the broker refused row {first + at} of this task: {why}")
        messages = [messages[at] for at in refused]
        time.sleep(_OVERLOAD_PAUSE_S)
    raise SourceError(f"the broker has no room for {len(messages)} rows; try again later")
