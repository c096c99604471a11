"""The settling half of the asynchronous client: acks, nacks, releases and extensions.

Owns the shape of these methods and nothing else.
"""

from collections.abc import Iterable

from fila.client import leases
from fila.client.async_methods.receipt import AsyncReceipt
from fila.client.async_methods.shell import AsyncShell
from fila.client.deadline import milliseconds
from fila.client.errors import FilaError, raise_refused
from fila.client.heartbeat import IDS_MAX
from fila.client.ticket import Ticket


class AsyncSettling(AsyncShell):
    async def ack(self, queue: str, message_id: str, *, timeout: float | None = None) -> None:
        """Settle a message: it is done and gone."""
        ticket = await self._ack(queue, [message_id], timeout)
        ticket.one()

    async def ack_many(
        self, queue: str, message_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Settle many messages of a queue; BatchError if some were not leased any more."""
        ticket = await self._ack(queue, list(message_ids), timeout)
        ticket.all()

    async def ack_soon(self, queue: str, message_id: str) -> AsyncReceipt[None]:
        """Settle without waiting for the broker's answer; see `flush`."""
        ticket = self._link.ack(queue, [message_id], counted=True)
        return AsyncReceipt(self, ticket, Ticket.one)

    async def ack_many_soon(self, queue: str, message_ids: Iterable[str]) -> AsyncReceipt[None]:
        """Settle many messages of a queue without waiting for the broker's answer; see `flush`."""
        ticket = self._link.ack(queue, list(message_ids), counted=True)
        return AsyncReceipt(self, ticket, Ticket.none)

    async def nack(
        self, queue: str, message_id: str, error: str = "", *, timeout: float | None = None
    ) -> None:
        """Give a message back as failed; the queue's on_failure hook sees `error`."""
        ticket = await self._nack(queue, [message_id], error, timeout)
        ticket.one()

    async def nack_many(
        self,
        queue: str,
        message_ids: Iterable[str],
        error: str = "",
        *,
        timeout: float | None = None,
    ) -> None:
        """Give many messages of a queue back; BatchError if some were not leased any more."""
        ticket = await self._nack(queue, list(message_ids), error, timeout)
        ticket.all()

    async def release(self, queue: str, message_id: str, *, timeout: float | None = None) -> None:
        """Hand a leased message back at once: to its old place, without counting an attempt."""
        (refused,) = await self._call(leases.release(queue, [message_id]), timeout)
        if refused is not None:
            raise refused

    async def release_many(
        self, queue: str, message_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Hand many back; BatchError if some were not leased any more."""
        results = await self._call(leases.release(queue, list(message_ids)), timeout)
        raise_refused(results)

    async def extend(
        self,
        queue: str,
        message_id: str,
        visibility: float | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Let a message's lease end `visibility` seconds from now; None means the queue's
        timeout."""
        await self._extend(queue, [message_id], visibility, timeout, one=True)

    async def extend_many(
        self,
        queue: str,
        message_ids: Iterable[str],
        visibility: float | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """The same for many messages of a queue; BatchError if some were not leased any more."""
        await self._extend(queue, list(message_ids), visibility, timeout, one=False)

    async def _extend(
        self, queue: str, ids: list[str], visibility: float | None, timeout: float | None, one: bool
    ) -> None:
        visibility_ms = milliseconds(visibility, "visibility")
        results: list[FilaError | None] = []
        for at in range(0, len(ids), IDS_MAX):
            some = ids[at : at + IDS_MAX]
            found = await self._call(leases.extend(queue, some, visibility_ms), timeout)
            results += found
        if one and results[0] is not None:
            raise results[0]
        raise_refused(results)

    async def _ack(self, queue: str, ids: list[str], timeout: float | None) -> Ticket:
        deadline = self._deadline(timeout)
        ticket = self._link.ack(queue, ids)
        await self._complete(ticket, "ack", deadline)
        return ticket

    async def _nack(self, queue: str, ids: list[str], error: str, timeout: float | None) -> Ticket:
        deadline = self._deadline(timeout)
        ticket = self._link.nack(queue, ids, error)
        await self._complete(ticket, "nack", deadline)
        return ticket
