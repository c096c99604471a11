"""The lease batches of the asynchronous client.

Owns the shape of these methods and nothing else; what is sent and what comes back is in `leases`.
"""

from typing import Final

from fila.client import leases
from fila.client.async_methods.consumer import AsyncMessage
from fila.client.async_methods.settling import AsyncSettling
from fila.client.deadline import milliseconds
from fila.client.leases import BatchCount, LeasedBatch
from fila.wire.bodies import OpenBatch

_WAIT_MARGIN_S: Final = 10.0  # a long poll's answer may take this much longer than the poll


class AsyncLeaseMethods(AsyncSettling):
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
        call = leases.lease_batch(
            queue,
            name,
            max_messages,
            max_bytes,
            milliseconds(visibility, "visibility"),
            milliseconds(wait, "wait"),
            count_attempt,
            arrow,
            count_only,
        )
        if timeout is None and self._options.timeout is not None:
            timeout = max(self._options.timeout, wait + _WAIT_MARGIN_S)
        found, received = await self._call(call, timeout)
        messages = [AsyncMessage(one, self) for one in received]
        return LeasedBatch(*found[:4], messages, found.arrow)

    async def ack_batch(
        self, queue: str, name: str, *, below: int | None = None, timeout: float | None = None
    ) -> BatchCount:
        """Finish the batch of this name; with `below` every batch of the stream `name` whose number
        is less (stream "s" has the batches "s/0", "s/1/part-2", …)."""
        return await self._call(leases.ack_batch(queue, name, below), timeout)

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
        visibility_ms = milliseconds(visibility, "visibility")
        return await self._call(leases.extend_batch(queue, name, visibility_ms, below), timeout)

    async def release_batch(
        self, queue: str, name: str, *, below: int | None = None, timeout: float | None = None
    ) -> BatchCount:
        """Hand batches back at once, without counting an attempt."""
        return await self._call(leases.release_batch(queue, name, below), timeout)

    async def list_batches(self, queue: str, *, timeout: float | None = None) -> list[OpenBatch]:
        """The open batches of a queue, oldest first."""
        return await self._call(leases.list_batches(queue), timeout)
