"""The asynchronous client: the methods of the synchronous one, awaited.

Owns the shape of the asynchronous API and nothing else; logic is in the exchange, calls in `calls`,
bytes in the link. A client belongs to the event loop it was opened on.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, TypeVar, Unpack

from fila.client import bulk, calls
from fila.client.address import parse_address
from fila.client.aio_consumer import AsyncConsumer as AsyncConsumer
from fila.client.aio_consumer import AsyncMessage as AsyncMessage
from fila.client.aio_consumer import AsyncReceipt as AsyncReceipt
from fila.client.aio_link import AioLink
from fila.client.bulk_aio import AsyncBulkMethods
from fila.client.calls import Acl, ApiKey, Call, QueueList, QueueStats
from fila.client.deadline import Deadline
from fila.client.exchange import Request
from fila.client.options import PREFETCH_DEFAULT, ClientOptions, Options, check_prefetch
from fila.client.outgoing import Headers, Payload, chunks, outgoing, queue_field
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire.bodies import ApiKeySummary

T = TypeVar("T")
_CLOSE_S = 5.0


class AsyncFilaClient(AsyncBulkMethods):
    """A connection to a broker; made by `await FilaClient.connect(...)`."""

    def __init__(self, link: AioLink, options: Options) -> None:
        self._link = link
        self._options = options

    @staticmethod
    async def connect(
        address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> "AsyncFilaClient":
        where = parse_address(address)
        if where.tls:
            options.setdefault("tls", True)
        validated = Options(options)
        link = AioLink(where, validated)
        opened = link.exchange.opened
        try:
            await link.wait(opened, lambda: opened.done, "connect", Deadline(None, 0))
            opened.one()
        except BaseException:
            await link.close()
            raise
        return AsyncFilaClient(link, validated)

    # Messages.

    async def enqueue(
        self,
        queue: str,
        headers: Headers = None,
        payload: Payload = b"",
        *,
        delay: float = 0.0,
        idempotency_key: str = "",
        fairness_key: str = "",
        weight: int = 0,
        throttle_keys: Iterable[str] = (),
        timeout: float | None = None,
    ) -> str:
        """Store a message; returns its id once the broker has it.

        `delay` seconds until it becomes ready. A queue that remembers the `idempotency_key` stores
        nothing and gives the first message's id. The last three count where the queue has no
        on_enqueue hook.
        """
        if delay or idempotency_key or fairness_key or weight or throttle_keys:
            delay_ms = bulk.milliseconds(delay, "delay")
            keys = tuple(throttle_keys)
            wanted = bulk.NewMessage(
                queue, payload, headers, delay_ms, idempotency_key, fairness_key, weight, keys
            )
            ((call, _),) = bulk.enqueue_frames([wanted])
            return bulk.one_id(await self._call(call, timeout))
        ticket = Ticket()
        message = outgoing(queue, headers, payload)
        self._link.exchange.enqueue([message], ticket, self._link.loop.time())
        await self._complete(ticket, "enqueue", timeout)
        return str(ticket.one())

    async def enqueue_many(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        *,
        timeout: float | None = None,
    ) -> list[str]:
        """Store (queue, headers, payload) triples; returns their ids in order.

        If some are refused, raises BatchError: its `results` hold an id or an exception for each.
        """
        ticket = Ticket()
        deadline = self._deadline(timeout)
        await self._hand_over(messages, ticket, "enqueue_many", deadline)
        await self._link.complete(ticket, lambda: ticket.done, "enqueue_many", deadline)
        return ticket.all()

    async def enqueue_many_soon(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        *,
        timeout: float | None = None,
    ) -> AsyncReceipt[list[str]]:
        """Hand (queue, headers, payload) triples over without waiting for the broker; waits only
        while too much is under way. `flush` or the receipt tells how it went."""
        ticket = self._link.exchange.tally.open()
        await self._hand_over(messages, ticket, "enqueue_many_soon", self._deadline(timeout))
        return AsyncReceipt(self, ticket, Ticket.all)

    async def enqueue_soon(
        self,
        queue: str,
        headers: Headers = None,
        payload: Payload = b"",
        *,
        timeout: float | None = None,
    ) -> AsyncReceipt[str]:
        """Hand a message over without waiting for the broker; waits only while too much is under
        way. `flush` or the receipt tells how it went."""
        message = outgoing(queue, headers, payload)
        link = self._link
        ticket = link.exchange.tally.open()
        link.exchange.enqueue([message], ticket, link.loop.time())
        ticket.seal()
        link.push()
        if not ticket.admitted:
            deadline = self._deadline(timeout)
            await link.complete(ticket, lambda: ticket.admitted, "enqueue_soon", deadline)
        return AsyncReceipt(self, ticket, Ticket.one)

    def consume(self, queue: str, *, prefetch: int = PREFETCH_DEFAULT) -> AsyncConsumer:
        """Subscribe to a queue; iterate over the result with `async for`. At most `prefetch`
        messages are held here unsettled at a time. A refusal is raised by the first step."""
        stream = Stream(queue, check_prefetch(prefetch), Ticket())
        self._link.exchange.subscribe(stream)
        if stream.opened.done:
            stream.opened.one()  # refused on the spot: the client is closed
        self._link.push()
        return AsyncConsumer(self, stream)

    async def ack(self, queue: str, message_id: str, *, timeout: float | None = None) -> None:
        """Settle a message: it is done and gone."""
        (await self._ack(queue, [message_id], timeout)).one()

    async def ack_many(
        self, queue: str, message_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Settle many messages of a queue; BatchError if some were not leased any more."""
        (await self._ack(queue, list(message_ids), timeout)).all()

    async def ack_soon(self, queue: str, message_id: str) -> AsyncReceipt[None]:
        """Settle without waiting for the broker's answer; see `flush`."""
        return AsyncReceipt(self, self._ack_soon(queue, [message_id]), Ticket.one)

    async def ack_many_soon(self, queue: str, message_ids: Iterable[str]) -> AsyncReceipt[None]:
        """Settle many messages of a queue without waiting for the broker's answer; see `flush`."""
        return AsyncReceipt(self, self._ack_soon(queue, list(message_ids)), Ticket.none)

    async def nack(
        self, queue: str, message_id: str, error: str = "", *, timeout: float | None = None
    ) -> None:
        """Give a message back as failed; the queue's on_failure hook sees `error`."""
        (await self._nack(queue, [message_id], error, timeout)).one()

    async def nack_many(
        self,
        queue: str,
        message_ids: Iterable[str],
        error: str = "",
        *,
        timeout: float | None = None,
    ) -> None:
        """Give many messages of a queue back; BatchError if some were not leased any more."""
        (await self._nack(queue, list(message_ids), error, timeout)).all()

    async def flush(self, *, timeout: float | None = None) -> None:
        """Wait for everything handed over with `*_soon`; raises the first failure since the last
        flush."""
        link = self._link
        tally = link.exchange.tally
        if tally.outstanding:
            ticket = Ticket()
            tally.wakes.append(ticket.notify)
            deadline = self._deadline(timeout)
            await link.wait(ticket, lambda: not tally.outstanding, "flush", deadline)
        error = tally.take_error()
        if error is not None:
            raise error.again()

    # Administration.

    async def create_queue(
        self,
        name: str,
        *,
        on_enqueue: str | None = None,
        on_failure: str | None = None,
        visibility_timeout_ms: int = 0,
        timeout: float | None = None,
    ) -> str:
        """Create a queue and its dead letter queue; returns the queue's id."""
        call = calls.create_queue(name, on_enqueue, on_failure, visibility_timeout_ms)
        return await self._call(call, timeout)

    async def delete_queue(self, queue: str, *, timeout: float | None = None) -> None:
        await self._call(calls.delete_queue(queue), timeout)

    async def list_queues(self, *, timeout: float | None = None) -> QueueList:
        return await self._call(calls.list_queues(), timeout)

    async def get_stats(self, queue: str, *, timeout: float | None = None) -> QueueStats:
        return await self._call(calls.get_stats(queue), timeout)

    async def set_config(
        self, key: str, value: str | None, *, timeout: float | None = None
    ) -> None:
        """Set a runtime setting; None or an empty value removes it."""
        await self._call(calls.set_config(key, value), timeout)

    async def get_config(self, key: str, *, timeout: float | None = None) -> str | None:
        """A runtime setting, or None when it is not set."""
        return await self._call(calls.get_config(key), timeout)

    async def list_config(
        self, prefix: str = "", *, timeout: float | None = None
    ) -> dict[str, str]:
        return await self._call(calls.list_config(prefix), timeout)

    async def redrive(self, dlq_queue: str, count: int = 0, *, timeout: float | None = None) -> int:
        """Move messages of a dead letter queue back to where they came from; 0 means all."""
        return await self._call(calls.redrive(dlq_queue, count), timeout)

    async def explain(
        self,
        queue: str = "",
        *,
        key: str | None = None,
        message_id: str | None = None,
        keys_max: int = 10,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Why a message, the next one of a key, or a queue's keys wait (spec/explain.md).

        Without a queue: every queue the key may see, in short.
        """
        return await self._call(calls.explain(queue, key, message_id, keys_max), timeout)

    async def pause_queue(
        self, queue: str, reason: str = "", *, timeout: float | None = None
    ) -> None:
        """Hand out nothing of this queue until it is resumed; it still takes messages in."""
        await self._call(calls.pause_queue(queue, reason), timeout)

    async def resume_queue(self, queue: str, *, timeout: float | None = None) -> None:
        await self._call(calls.resume_queue(queue), timeout)

    async def pause_key(
        self, queue: str, key: str, reason: str = "", *, timeout: float | None = None
    ) -> None:
        """Give a fairness key no turns until it is resumed."""
        await self._call(calls.pause_key(queue, key, reason), timeout)

    async def resume_key(self, queue: str, key: str, *, timeout: float | None = None) -> None:
        await self._call(calls.resume_key(queue, key), timeout)

    async def purge(
        self, queue: str, *, key: str | None = None, timeout: float | None = None
    ) -> int:
        """Drop what is pending, of one key or of all; what is leased stays. Returns how many."""
        return await self._call(calls.purge(queue, key), timeout)

    async def create_api_key(
        self,
        name: str,
        *,
        expires_at_ms: int = 0,
        is_superadmin: bool = False,
        timeout: float | None = None,
    ) -> ApiKey:
        return await self._call(calls.create_api_key(name, expires_at_ms, is_superadmin), timeout)

    async def revoke_api_key(self, key_id: str, *, timeout: float | None = None) -> None:
        await self._call(calls.revoke_api_key(key_id), timeout)

    async def list_api_keys(self, *, timeout: float | None = None) -> list[ApiKeySummary]:
        return await self._call(calls.list_api_keys(), timeout)

    async def set_acl(
        self,
        key_id: str,
        permissions: Iterable[tuple[str, str]],
        *,
        timeout: float | None = None,
    ) -> None:
        """Replace a key's permissions, (kind, pattern) pairs such as ("produce", "orders.*")."""
        await self._call(calls.set_acl(key_id, permissions), timeout)

    async def get_acl(self, key_id: str, *, timeout: float | None = None) -> Acl:
        return await self._call(calls.get_acl(key_id), timeout)

    # The end.

    async def close(self) -> None:
        """Flush, say goodbye and hand unsettled messages back; raises what `flush` would."""
        try:
            await self.flush(timeout=_CLOSE_S)
        finally:
            await self._link.close()

    async def __aenter__(self) -> "AsyncFilaClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self._link.close()  # the error on its way says more than a failed flush would

    def __repr__(self) -> str:
        return f"<AsyncFilaClient {self._link.exchange.address}>"

    async def _ack(self, queue: str, ids: list[str], timeout: float | None) -> Ticket:
        ticket = Ticket()
        link = self._link
        link.exchange.ack(queue, queue_field(queue), ids, ticket, link.loop.time())
        await self._complete(ticket, "ack", timeout)
        return ticket

    def _ack_soon(self, queue: str, ids: list[str]) -> Ticket:
        link = self._link
        field = queue_field(queue)
        ticket = link.exchange.tally.open()
        link.exchange.ack(queue, field, ids, ticket, link.loop.time())
        ticket.seal()
        link.push()
        return ticket

    async def _hand_over(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        ticket: Ticket,
        what: str,
        deadline: Deadline,
    ) -> None:
        """Give all of them to the exchange, as it finds room for them, and seal the ticket."""
        link = self._link
        try:
            for chunk in chunks(messages):
                link.exchange.enqueue(chunk, ticket, link.loop.time())
                link.push()
                await link.complete(ticket, lambda: ticket.admitted, what, deadline)
        finally:
            ticket.seal()

    async def _nack(self, queue: str, ids: list[str], error: str, timeout: float | None) -> Ticket:
        ticket = Ticket()
        link = self._link
        link.exchange.nack(queue, queue_field(queue), ids, error, ticket, link.loop.time())
        await self._complete(ticket, "nack", timeout)
        return ticket

    async def _call(self, call: Call[T], timeout: float | None) -> T:
        return await self._answer(call, self._ask(call), timeout)

    def _ask(self, call: Call[T]) -> Ticket:
        ticket = Ticket()
        self._link.exchange.request(Request(call.body, call.reply_type, call.repeatable, ticket))
        ticket.seal()
        self._link.push()
        return ticket

    async def _answer(self, call: Call[T], ticket: Ticket, timeout: float | None) -> T:
        await self._link.complete(ticket, lambda: ticket.done, call.what, self._deadline(timeout))
        return call.answer(ticket.one())

    async def _complete(self, ticket: Ticket, what: str, timeout: float | None) -> None:
        ticket.seal()
        self._link.push()
        await self._link.complete(ticket, lambda: ticket.done, what, self._deadline(timeout))

    def _deadline(self, timeout: float | None) -> Deadline:
        timeout_s = self._options.timeout if timeout is None else timeout
        return Deadline(timeout_s, self._link.loop.time())
