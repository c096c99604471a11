"""The synchronous client: blocking methods over a link.

Owns the shape of the blocking API and nothing else; logic is in the exchange, calls in `calls`,
bytes in the link. A client may be shared by threads.
"""

from collections.abc import Iterable
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from weakref import finalize

from fila.client import bulk, calls
from fila.client.address import parse_address
from fila.client.bulk_sync import BulkMethods
from fila.client.calls import Acl, ApiKey, Call, QueueList, QueueStats
from fila.client.consumer import Consumer as Consumer
from fila.client.consumer import Receipt as Receipt
from fila.client.consumer import SyncMessage as SyncMessage
from fila.client.deadline import Deadline
from fila.client.exchange import Request
from fila.client.link import Link
from fila.client.options import PREFETCH_DEFAULT, ClientOptions, Options, check_prefetch
from fila.client.outgoing import Headers, Payload, chunks, outgoing, queue_field
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire.bodies import ApiKeySummary

if TYPE_CHECKING:
    from fila.client.aio import AsyncFilaClient

T = TypeVar("T")
_CLOSE_S = 5.0


class FilaClient(BulkMethods):
    """A connection to a broker. `await FilaClient.connect(...)` gives the asynchronous one."""

    def __init__(
        self, address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> None:
        where = parse_address(address)
        if where.tls:
            options.setdefault("tls", True)
        self._options = Options(options)
        self._link = link = Link(where, self._options)
        finalize(self, link.close_soon)
        opened = link.exchange.opened
        try:
            with link.lock:
                link.wait(opened, lambda: opened.done, "connect", Deadline(None, 0))
            opened.one()
        except BaseException:
            link.close()
            raise

    @staticmethod
    async def connect(
        address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> "AsyncFilaClient":
        """Open an asynchronous client with the same methods."""
        from fila.client.aio import AsyncFilaClient

        return await AsyncFilaClient.connect(address, **options)

    # Messages.

    def enqueue(
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
            return bulk.one_id(self._call(call, timeout))
        message = outgoing(queue, headers, payload)
        ticket = Ticket()
        with self._link.lock:
            self._link.exchange.enqueue([message], ticket, monotonic())
            self._complete(ticket, "enqueue", timeout)
        return str(ticket.one())

    def enqueue_many(
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
        self._hand_over(messages, ticket, "enqueue_many", deadline)
        with self._link.lock:
            self._link.complete(ticket, lambda: ticket.done, "enqueue_many", deadline)
        return ticket.all()

    def enqueue_many_soon(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        *,
        timeout: float | None = None,
    ) -> Receipt[list[str]]:
        """Hand (queue, headers, payload) triples over without waiting for the broker; waits only
        while too much is under way. `flush` or the receipt tells how it went."""
        with self._link.lock:
            ticket = self._link.exchange.tally.open()
        self._hand_over(messages, ticket, "enqueue_many_soon", self._deadline(timeout))
        return Receipt(self, ticket, Ticket.all)

    def enqueue_soon(
        self,
        queue: str,
        headers: Headers = None,
        payload: Payload = b"",
        *,
        timeout: float | None = None,
    ) -> Receipt[str]:
        """Hand a message over without waiting for the broker; waits only while too much is under
        way. `flush` or the receipt tells how it went."""
        message = outgoing(queue, headers, payload)
        link = self._link
        with link.lock:
            ticket = link.exchange.tally.open()
            now = monotonic()
            link.exchange.enqueue([message], ticket, now)
            ticket.seal()
            link.push(now)
            if not ticket.admitted:
                deadline = self._deadline(timeout)
                link.complete(ticket, lambda: ticket.admitted, "enqueue_soon", deadline)
        return Receipt(self, ticket, Ticket.one)

    def consume(
        self, queue: str, *, prefetch: int = PREFETCH_DEFAULT, timeout: float | None = None
    ) -> Consumer:
        """Subscribe to a queue; iterate over the result. At most `prefetch` messages are held
        here unsettled at a time."""
        stream = Stream(queue, check_prefetch(prefetch), Ticket())
        opened = stream.opened
        link = self._link
        with link.lock:
            link.exchange.subscribe(stream)
            link.push(monotonic())
            try:
                deadline = self._deadline(timeout)
                link.wait(opened, lambda: opened.done, f'consume "{queue}"', deadline)
            except BaseException:
                link.exchange.cancel(stream)
                link.push(monotonic())
                raise
        opened.one()
        return Consumer(self, stream)

    def ack(self, queue: str, message_id: str, *, timeout: float | None = None) -> None:
        """Settle a message: it is done and gone."""
        self._ack(queue, [message_id], timeout).one()

    def ack_many(
        self, queue: str, message_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Settle many messages of a queue; BatchError if some were not leased any more."""
        self._ack(queue, list(message_ids), timeout).all()

    def ack_soon(self, queue: str, message_id: str) -> Receipt[None]:
        """Settle without waiting for the broker's answer; see `flush`."""
        return Receipt(self, self._ack_soon(queue, [message_id]), Ticket.one)

    def ack_many_soon(self, queue: str, message_ids: Iterable[str]) -> Receipt[None]:
        """Settle many messages of a queue without waiting for the broker's answer; see `flush`."""
        return Receipt(self, self._ack_soon(queue, list(message_ids)), Ticket.none)

    def nack(
        self, queue: str, message_id: str, error: str = "", *, timeout: float | None = None
    ) -> None:
        """Give a message back as failed; the queue's on_failure hook sees `error`."""
        self._nack(queue, [message_id], error, timeout).one()

    def nack_many(
        self,
        queue: str,
        message_ids: Iterable[str],
        error: str = "",
        *,
        timeout: float | None = None,
    ) -> None:
        """Give many messages of a queue back; BatchError if some were not leased any more."""
        self._nack(queue, list(message_ids), error, timeout).all()

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait for everything handed over with `*_soon`; raises the first failure since the last
        flush."""
        link = self._link
        tally = link.exchange.tally
        with link.lock:
            if tally.outstanding:
                ticket = Ticket()
                tally.wakes.append(ticket.notify)
                deadline = self._deadline(timeout)
                link.wait(ticket, lambda: not tally.outstanding, "flush", deadline)
            error = tally.take_error()
        if error is not None:
            raise error.again()

    # Administration.

    def create_queue(
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
        return self._call(call, timeout)

    def delete_queue(self, queue: str, *, timeout: float | None = None) -> None:
        self._call(calls.delete_queue(queue), timeout)

    def list_queues(self, *, timeout: float | None = None) -> QueueList:
        return self._call(calls.list_queues(), timeout)

    def get_stats(self, queue: str, *, timeout: float | None = None) -> QueueStats:
        return self._call(calls.get_stats(queue), timeout)

    def set_config(self, key: str, value: str | None, *, timeout: float | None = None) -> None:
        """Set a runtime setting; None or an empty value removes it."""
        self._call(calls.set_config(key, value), timeout)

    def get_config(self, key: str, *, timeout: float | None = None) -> str | None:
        """A runtime setting, or None when it is not set."""
        return self._call(calls.get_config(key), timeout)

    def list_config(self, prefix: str = "", *, timeout: float | None = None) -> dict[str, str]:
        return self._call(calls.list_config(prefix), timeout)

    def redrive(self, dlq_queue: str, count: int = 0, *, timeout: float | None = None) -> int:
        """Move messages of a dead letter queue back to where they came from; 0 means all."""
        return self._call(calls.redrive(dlq_queue, count), timeout)

    def explain(
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
        return self._call(calls.explain(queue, key, message_id, keys_max), timeout)

    def pause_queue(self, queue: str, reason: str = "", *, timeout: float | None = None) -> None:
        """Hand out nothing of this queue until it is resumed; it still takes messages in."""
        self._call(calls.pause_queue(queue, reason), timeout)

    def resume_queue(self, queue: str, *, timeout: float | None = None) -> None:
        self._call(calls.resume_queue(queue), timeout)

    def pause_key(
        self, queue: str, key: str, reason: str = "", *, timeout: float | None = None
    ) -> None:
        """Give a fairness key no turns until it is resumed."""
        self._call(calls.pause_key(queue, key, reason), timeout)

    def resume_key(self, queue: str, key: str, *, timeout: float | None = None) -> None:
        self._call(calls.resume_key(queue, key), timeout)

    def purge(self, queue: str, *, key: str | None = None, timeout: float | None = None) -> int:
        """Drop what is pending, of one key or of all; what is leased stays. Returns how many."""
        return self._call(calls.purge(queue, key), timeout)

    def create_api_key(
        self,
        name: str,
        *,
        expires_at_ms: int = 0,
        is_superadmin: bool = False,
        timeout: float | None = None,
    ) -> ApiKey:
        return self._call(calls.create_api_key(name, expires_at_ms, is_superadmin), timeout)

    def revoke_api_key(self, key_id: str, *, timeout: float | None = None) -> None:
        self._call(calls.revoke_api_key(key_id), timeout)

    def list_api_keys(self, *, timeout: float | None = None) -> list[ApiKeySummary]:
        return self._call(calls.list_api_keys(), timeout)

    def set_acl(
        self,
        key_id: str,
        permissions: Iterable[tuple[str, str]],
        *,
        timeout: float | None = None,
    ) -> None:
        """Replace a key's permissions, (kind, pattern) pairs such as ("produce", "orders.*")."""
        self._call(calls.set_acl(key_id, permissions), timeout)

    def get_acl(self, key_id: str, *, timeout: float | None = None) -> Acl:
        return self._call(calls.get_acl(key_id), timeout)

    # The end.

    def close(self) -> None:
        """Flush, say goodbye and hand unsettled messages back; raises what `flush` would."""
        try:
            self.flush(timeout=_CLOSE_S)
        finally:
            self._link.close()

    def __enter__(self) -> "FilaClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._link.close()  # the error on its way says more than a failed flush would

    def __repr__(self) -> str:
        return f"<FilaClient {self._link.exchange.address}>"

    def _ack(self, queue: str, ids: list[str], timeout: float | None) -> Ticket:
        ticket = Ticket()
        with self._link.lock:
            self._link.exchange.ack(queue, queue_field(queue), ids, ticket, monotonic())
            self._complete(ticket, "ack", timeout)
        return ticket

    def _ack_soon(self, queue: str, ids: list[str]) -> Ticket:
        link = self._link
        field = queue_field(queue)
        with link.lock:
            ticket = link.exchange.tally.open()
            now = monotonic()
            link.exchange.ack(queue, field, ids, ticket, now)
            ticket.seal()
            link.push(now)
        return ticket

    def _hand_over(
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
                with link.lock:
                    link.exchange.enqueue(chunk, ticket, monotonic())
                    link.push(monotonic())
                    link.complete(ticket, lambda: ticket.admitted, what, deadline)
        finally:
            with link.lock:
                ticket.seal()

    def _nack(self, queue: str, ids: list[str], error: str, timeout: float | None) -> Ticket:
        ticket = Ticket()
        with self._link.lock:
            self._link.exchange.nack(queue, queue_field(queue), ids, error, ticket, monotonic())
            self._complete(ticket, "nack", timeout)
        return ticket

    def _call(self, call: Call[T], timeout: float | None) -> T:
        return self._answer(call, self._ask(call), timeout)

    def _ask(self, call: Call[T]) -> Ticket:
        ticket = Ticket()
        request = Request(call.body, call.reply_type, call.repeatable, ticket)
        with self._link.lock:
            self._link.exchange.request(request)
            ticket.seal()
            self._link.push(monotonic())
        return ticket

    def _answer(self, call: Call[T], ticket: Ticket, timeout: float | None) -> T:
        link = self._link
        with link.lock:
            link.complete(ticket, lambda: ticket.done, call.what, self._deadline(timeout))
        return call.answer(ticket.one())

    def _complete(self, ticket: Ticket, what: str, timeout: float | None) -> None:
        ticket.seal()
        self._link.push(monotonic())
        self._link.complete(ticket, lambda: ticket.done, what, self._deadline(timeout))

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._options.timeout if timeout is None else timeout, monotonic())
