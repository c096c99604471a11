"""The settling half of the asynchronous client: acks, nacks and releases.

Owns the shape of these methods and nothing else.
"""

from collections.abc import Iterable

from fila.client import leases
from fila.client.async_methods.receipt import AsyncReceipt
from fila.client.async_methods.shell import AsyncShell
from fila.client.errors import raise_refused
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
