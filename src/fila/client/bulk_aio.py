"""The bulk half of the asynchronous client: options, lease batches, browsing.

Owns the shape of these methods and nothing else; what is sent and what comes back is in `bulk`.
The twin of `bulk_sync`; keep them alike.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fila.client import bulk, columns
from fila.client.aio_consumer import AsyncMessage
from fila.client.bulk import (
    BatchCount,
    BrowsedMessage,
    Enqueued,
    LeasedBatch,
    NewMessage,
    Page,
    Snapshot,
)
from fila.client.calls import Call
from fila.client.columns import Columns, Stored
from fila.client.errors import BatchError, FilaError
from fila.client.ticket import Ticket
from fila.wire.bodies import OpenBatch

if TYPE_CHECKING:
    from fila.client.aio import AsyncFilaClient

T = TypeVar("T")
_WAIT_MARGIN_S = 10.0  # a long poll's answer may take this much longer than the poll


class AsyncBulkMethods:
    """Mixed into `AsyncFilaClient`."""

    async def enqueue_messages(
        self, messages: Iterable[NewMessage], *, timeout: float | None = None
    ) -> list[Enqueued]:
        """Store messages with options; returns id and `duplicate` of each, in order.

        If some are refused, raises BatchError: its `results` hold an `Enqueued` or an exception for
        each. Several frames are under way at once.
        """
        client = cast("AsyncFilaClient", self)
        results: list[Any] = []
        waiting: deque[tuple[Call[list[Any]], Ticket]] = deque()
        for call, _ in bulk.enqueue_frames(messages):
            waiting.append((call, client._ask(call)))
            if len(waiting) > bulk.FRAMES_AHEAD:
                call, ticket = waiting.popleft()
                answer: list[Any] = await client._answer(call, ticket, timeout)
                results += answer
        while waiting:
            call, ticket = waiting.popleft()
            answer = await client._answer(call, ticket, timeout)
            results += answer
        _raise_refused(results)
        return results

    async def enqueue_columns(
        self, parts: Iterable[Columns], *, timeout: float | None = None
    ) -> AsyncGenerator[Stored, None]:
        """Store messages given by columns, and tell what came of each frame of them, in order;
        what was refused is told, not raised. Several frames are under way at once, while the next
        ones are made."""
        client = cast("AsyncFilaClient", self)
        waiting: deque[tuple[Call[Stored], Ticket]] = deque()
        for part in parts:
            for call in columns.frames(part):
                waiting.append((call, client._ask(call)))
                if len(waiting) > bulk.FRAMES_AHEAD:
                    yield await client._answer(*waiting.popleft(), timeout)
        while waiting:
            yield await client._answer(*waiting.popleft(), timeout)

    async def release(self, queue: str, message_id: str, *, timeout: float | None = None) -> None:
        """Hand a leased message back at once: to its old place, without counting an attempt."""
        (refused,) = await self._bulk(bulk.release(queue, [message_id]), timeout)
        if refused is not None:
            raise refused

    async def release_many(
        self, queue: str, message_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Hand many back; BatchError if some were not leased any more."""
        _raise_refused(await self._bulk(bulk.release(queue, list(message_ids)), timeout))

    # Lease batches.

    async def lease_batch(
        self,
        queue: str,
        name: str,
        max_messages: int = 0,
        *,
        max_bytes: int = 0,
        visibility: float | None = None,
        wait: float = 0.0,
        count_attempt: bool = False,
        arrow: bool = False,
        count_only: bool = False,
        timeout: float | None = None,
    ) -> LeasedBatch[AsyncMessage]:
        """Lease up to `max_messages` under a name, or get again what is leased under it.

        With `max_messages` 0 only a batch that is open: BatchNotFoundError if there is none. `wait`
        seconds for a first message, else the answer may be empty. `visibility` seconds until the
        batch ends by itself, then without an attempt counted unless `count_attempt`. `arrow` puts
        the messages into `.arrow` as an Arrow IPC stream; `count_only` leaves them out, for one
        who leases what others read.
        """
        client = cast("AsyncFilaClient", self)
        call = bulk.lease_batch(
            queue,
            name,
            max_messages,
            max_bytes,
            bulk.milliseconds(visibility, "visibility"),
            bulk.milliseconds(wait, "wait"),
            count_attempt,
            arrow,
            count_only,
        )
        if timeout is None and client._options.timeout is not None:
            timeout = max(client._options.timeout, wait + _WAIT_MARGIN_S)
        found, received = await self._bulk(call, timeout)
        messages = [AsyncMessage(one, client) for one in received]
        return LeasedBatch(*found[:4], messages, found.arrow)

    async def ack_batch(
        self, queue: str, name: str, *, below: int | None = None, timeout: float | None = None
    ) -> BatchCount:
        """Finish the batch of this name; with `below` every batch of the stream `name` whose number
        is less (stream "s" has the batches "s/0", "s/1/part-2", …)."""
        return await self._bulk(bulk.ack_batch(queue, name, below), timeout)

    async def extend_batch(
        self,
        queue: str,
        name: str,
        visibility: float | None = None,
        *,
        below: int | None = None,
        timeout: float | None = None,
    ) -> BatchCount:
        """Let batches end `visibility` seconds from now; None means the queue's timeout."""
        visibility_ms = bulk.milliseconds(visibility, "visibility")
        return await self._bulk(bulk.extend_batch(queue, name, visibility_ms, below), timeout)

    async def release_batch(
        self, queue: str, name: str, *, below: int | None = None, timeout: float | None = None
    ) -> BatchCount:
        """Hand batches back at once, without counting an attempt."""
        return await self._bulk(bulk.release_batch(queue, name, below), timeout)

    async def list_batches(self, queue: str, *, timeout: float | None = None) -> list[OpenBatch]:
        """The open batches of a queue, oldest first."""
        return await self._bulk(bulk.list_batches(queue), timeout)

    # Browsing.

    async def browse(
        self,
        queue: str,
        *,
        states: Iterable[str] = (),
        fairness_key: str | None = None,
        page_messages: int = 1_000,
        ttl: float | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[BrowsedMessage, None]:
        """Look at a queue's messages as they are now, without taking any. `states` are some of
        "ready", "delayed" and "leased"; none means all."""
        states = tuple(states)
        bulk.state_bits(states)
        snapshot = await self.browse_open(
            queue, fairness_key=fairness_key, ttl=ttl, timeout=timeout
        )
        try:
            for start, end in snapshot.ranges:
                while start:
                    page = await self.browse_page(
                        snapshot.token,
                        start,
                        end,
                        states=states,
                        max_messages=page_messages,
                        timeout=timeout,
                    )
                    for message in page.messages:
                        yield message
                    start = page.next
        finally:
            await self.browse_close(snapshot.token, timeout=timeout)

    async def browse_open(
        self,
        queue: str,
        *,
        fairness_key: str | None = None,
        parts: int = 1,
        ttl: float | None = None,
        timeout: float | None = None,
    ) -> Snapshot:
        """Take a snapshot in at most `parts` ranges that may be read in parallel, also by other
        clients, for `ttl` seconds (None: ten minutes). Close it when done."""
        ttl_ms = bulk.milliseconds(ttl, "ttl")
        return await self._bulk(bulk.browse_open(queue, fairness_key, parts, ttl_ms), timeout)

    async def browse_page(
        self,
        token: str,
        start: bytes,
        end: bytes,
        *,
        states: Iterable[str] = (),
        max_messages: int = 0,
        max_bytes: int = 0,
        arrow: bool = False,
        timeout: float | None = None,
    ) -> Page:
        """Read on from `start`; the page's `next` is where to go on, empty at the range's end.
        SnapshotExpiredError when the snapshot's time is up."""
        call = bulk.browse_page(token, start, end, states, max_messages, max_bytes, arrow)
        return await self._bulk(call, timeout)

    async def browse_pages(
        self,
        token: str,
        start: bytes,
        end: bytes,
        *,
        states: Iterable[str] = (),
        arrow: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[Page, None]:
        """All pages of a range; the next one is under way while this one is looked at."""
        client = cast("AsyncFilaClient", self)
        states = tuple(states)
        call = bulk.browse_page(token, start, end, states, 0, 0, arrow)
        ticket = client._ask(call)
        while True:
            page = await client._answer(call, ticket, timeout)
            if not page.next:
                yield page
                return
            call = bulk.browse_page(token, page.next, end, states, 0, 0, arrow)
            ticket = client._ask(call)
            yield page

    async def browse_close(self, token: str, *, timeout: float | None = None) -> None:
        """Let go of a snapshot; one that is gone already is fine."""
        await self._bulk(bulk.browse_close(token), timeout)

    async def _bulk(self, call: Call[T], timeout: float | None) -> T:
        client = cast("AsyncFilaClient", self)
        return await client._answer(call, client._ask(call), timeout)


def _raise_refused(results: list[Any]) -> None:
    if any(isinstance(result, FilaError) for result in results):
        raise BatchError(results)
