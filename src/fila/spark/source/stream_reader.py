"""Stream read: a queue as a replayable source, by named lease batches.

`latestOffset` leases a batch under a name made from the offset, so who asks again gets the same
messages: a retried task, a second action, the next run after a crash. Only a batch that Spark has
committed is acknowledged.

What Spark does, and why things are where they are:
- `start` of `latestOffset` is what the commit log holds, so everything below it is acknowledged
  there. `commit(end)` is of no use: it is called for a batch only when the next one has data, and
  an idle queue would keep its last batch for ever.
- Leasing happens on the driver, before the offset is logged; tasks only read what is leased. A task
  that leased could find messages its twin did not see, and they would be acknowledged unread.
- `initialOffset` and `partitions` may be called several times; `stop` usually is not.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from fila.client.errors import BatchNotFoundError
from fila.client.sync import FilaClient
from fila.spark.source.connection import connect, waiting
from fila.spark.source.heartbeat import Heartbeat
from fila.spark.source.offsets import Offset, from_json, number_of, piece_name, piece_of
from fila.spark.source.options import Options, SourceError
from fila.spark.source.schema import Shape, check_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# What the broker leases under one name.
_PIECE_ROWS_MAX: Final = 65_535
_PIECE_BYTES_MAX: Final = 16 * 1024 * 1024


class LeasedPart(InputPartition):
    """One piece of a batch."""

    def __init__(self, name: str) -> None:
        self.name = name


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: StructType) -> None:
        check_read(schema)
        self._options = options
        self._schema = schema
        self._client: FilaClient | None = None
        self._heartbeat: Heartbeat | None = None
        self._initial: Offset | None = None
        self._reached: Offset | None = None
        # A query that is to end reads so many rows more.
        self._ending = False
        self._available = 0
        self._counted = False

    # On the driver.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  the names are Spark's
        if self._initial is None:
            waiting(self._connected(), self._options.queue)
            self._initial = Offset(f"{self._options.stream_name}-{uuid.uuid4().hex[:12]}", 0)
        return self._initial.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query is to end when it has read as many messages as wait now."""
        self._ending = True
        self._available = waiting(self._connected(), self._options.queue)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Acknowledge what is committed, lease what is next, wait a little if there is nothing."""
        offset = from_json(start)
        if isinstance(limit, ReadAllAvailable):
            raise SourceError(
                "trigger(once=True) cannot read a queue: Spark ends it without saying whether its "
                "batch is committed, so nothing would ever be acknowledged. "
                "Use trigger(availableNow=True)"
            )
        client = self._connected()
        queue = self._options.queue
        if self._options.heartbeat:
            self._beat(client, offset.stream)
        client.ack_batch(queue, offset.stream, below=offset.number)
        self._reached = offset
        rows, size = self._limits(limit)
        if self._ending:
            rows = min(rows, self._left(client, offset))
        leased = self._lease(client, offset, rows, size)
        self._available -= leased
        if leased:
            self._reached = offset.after()
        return self._reached.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The pieces that are leased between the offsets. A batch that ran out while nobody
        extended it has none: its messages went back to the queue and come again."""
        first, last = from_json(start), from_json(end)
        client = self._connected()
        if self._options.heartbeat:
            self._beat(client, last.stream)
        names = []
        for batch in client.list_batches(self._options.queue):
            number = number_of(batch.name, last.stream)
            if number is not None and first.number <= number < last.number:
                names.append((number, piece_of(batch.name), batch.name))
        if not names:
            self._warn(f"batch {first.number} of stream {first.stream}")
        return [LeasedPart(name) for _, _, name in sorted(names)]

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """For the query's progress: where it is, and how many messages wait behind that."""
        if self._reached is None:
            return None
        behind = waiting(self._connected(), self._options.queue)
        return {**self._reached.as_json(), "waiting": behind}

    def commit(self, end: dict[str, Any]) -> None:
        """Too late for an idle queue; see `latestOffset`."""

    def stop(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._client is not None:
            self._client.close()

    # On a worker.

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a piece: the same ones each time."""
        assert isinstance(partition, LeasedPart)
        with connect(self._options) as client:
            try:
                batch = client.lease_batch(self._options.queue, partition.name, 0, arrow=True)
            except BatchNotFoundError:
                self._warn(partition.name)
                return
        yield from Shape(self._schema).batches(batch.arrow)

    # Inside.

    def _lease(self, client: FilaClient, offset: Offset, rows: int, size: int) -> int:
        """Lease a batch in pieces; how many messages it has. After a crash the pieces that are
        leased already are found again."""
        options = self._options
        pieces = max(options.partitions, -(-rows // _PIECE_ROWS_MAX), -(-size // _PIECE_BYTES_MAX))
        piece_rows = -(-rows // pieces)
        piece_bytes = max(1, size // pieces)
        total = 0
        for piece in range(pieces):
            wanted = min(piece_rows, rows - total)
            first = piece == 0
            try:
                batch = client.lease_batch(
                    options.queue,
                    piece_name(offset, piece),
                    max(0, wanted),
                    max_bytes=piece_bytes,
                    visibility=options.visibility_s,
                    wait=0.0 if self._ending or not first else options.idle_wait_s,
                    count_attempt=options.count_attempt,
                    count_only=True,
                )
            except BatchNotFoundError:
                break  # nothing more is wanted, and nothing is left of a run before
            total += batch.message_count
            if not batch.message_count:
                break
        return total

    def _left(self, client: FilaClient, offset: Offset) -> int:
        """What a query that is to end has yet to read: with what a run before it had leased, but
        could not log."""
        if not self._counted:
            self._counted = True
            for batch in client.list_batches(self._options.queue):
                number = number_of(batch.name, offset.stream)
                if number is not None and number >= offset.number:
                    self._available += batch.messages
        return max(0, self._available)

    def _limits(self, limit: ReadLimit) -> tuple[int, int]:
        """Most rows and bytes of the next batch."""
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows, self._options.bytes_max
        if isinstance(limit, ReadMaxBytes):
            return self._options.rows_max, limit.max_bytes
        return self._options.rows_max, self._options.bytes_max

    def _connected(self) -> FilaClient:
        if self._client is None:
            self._client = connect(self._options)
        return self._client

    def _beat(self, client: FilaClient, stream: str) -> None:
        if self._heartbeat is None or self._heartbeat.stream != stream:
            if self._heartbeat is not None:
                self._heartbeat.stop()
            visibility_s = self._options.visibility_s
            self._heartbeat = Heartbeat(client, self._options.queue, stream, visibility_s)

    def _warn(self, what: str) -> None:
        sys.stderr.write(
            f"fila: {what} is not open any more: it ran out before it was read, and its messages "
            "went back to the queue; they come again in a later batch. A longer "
            "visibilityTimeoutSeconds covers longer pauses\n"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Workers get the options and the schema; clients and threads stay here."""
        return {**self.__dict__, "_client": None, "_heartbeat": None}
