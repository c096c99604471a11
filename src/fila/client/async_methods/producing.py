"""The producing half of the asynchronous client: enqueues of every kind.

Owns the shape of these methods; what is sent and what comes back is in `outgoing`, `new_message`
and `columns`.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from fila.client import columns, new_message
from fila.client.async_methods.receipt import AsyncReceipt
from fila.client.async_methods.shell import AsyncShell
from fila.client.calls import Call
from fila.client.columns import Columns, Stored
from fila.client.deadline import Deadline, milliseconds
from fila.client.errors import raise_refused
from fila.client.new_message import FRAMES_AHEAD, Enqueued, NewMessage
from fila.client.outgoing import Headers, Payload, chunks, outgoing
from fila.client.ticket import Ticket
from fila.client.trace import present, traced


class AsyncProducing(AsyncShell):
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
        trace = present(self._options.traceparent)
        if delay or idempotency_key or fairness_key or weight or throttle_keys:
            delay_ms = milliseconds(delay, "delay")
            keys = tuple(throttle_keys)
            wanted = NewMessage(
                queue, payload, headers, delay_ms, idempotency_key, fairness_key, weight, keys
            )
            ((call, _),) = new_message.enqueue_frames([wanted], trace)
            return new_message.one_id(await self._call(call, timeout))
        deadline = self._deadline(timeout)
        ticket = self._link.enqueue(outgoing(queue, traced(headers, trace), payload))
        await self._complete(ticket, "enqueue", deadline)
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
        await self._complete(ticket, "enqueue_many", deadline)
        return ticket.all()

    async def enqueue_many_soon(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        *,
        timeout: float | None = None,
    ) -> AsyncReceipt[list[str]]:
        """Hand (queue, headers, payload) triples over without waiting for the broker; waits only
        while too much is under way. `flush` or the receipt tells how it went."""
        deadline = self._deadline(timeout)
        ticket = self._link.counted_ticket()
        await self._hand_over(messages, ticket, "enqueue_many_soon", deadline)
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
        headers = traced(headers, present(self._options.traceparent))
        ticket = self._link.enqueue(outgoing(queue, headers, payload), counted=True)
        if not ticket.admitted:
            await self._admitted(ticket, "enqueue_soon", self._deadline(timeout))
        return AsyncReceipt(self, ticket, Ticket.one)

    async def enqueue_messages(
        self, messages: Iterable[NewMessage], *, timeout: float | None = None
    ) -> list[Enqueued]:
        """Store messages with options; returns id and `duplicate` of each, in order.

        If some are refused, raises BatchError: its `results` hold an `Enqueued` or an exception for
        each. Several frames are under way at once.
        """
        results: list[Any] = []
        waiting: deque[tuple[Call[list[Any]], Ticket]] = deque()
        trace = present(self._options.traceparent)
        for call, _ in new_message.enqueue_frames(messages, trace):
            waiting.append((call, self._link.ask(call)))
            if len(waiting) > FRAMES_AHEAD:
                answer: list[Any] = await self._answer(*waiting.popleft(), timeout)
                results += answer
        while waiting:
            answer = await self._answer(*waiting.popleft(), timeout)
            results += answer
        raise_refused(results)
        return results

    async def enqueue_columns(
        self, parts: Iterable[Columns], *, timeout: float | None = None
    ) -> AsyncGenerator[Stored, None]:
        """Store messages given by columns, and tell what came of each frame of them, in order;
        what was refused is told, not raised. Several frames are under way at once, while the next
        ones are made."""
        waiting: deque[tuple[Call[Stored], Ticket]] = deque()
        trace = present(self._options.traceparent)
        for part in parts:
            for call in columns.frames(part, trace):
                waiting.append((call, self._link.ask(call)))
                if len(waiting) > FRAMES_AHEAD:
                    yield await self._answer(*waiting.popleft(), timeout)
        while waiting:
            yield await self._answer(*waiting.popleft(), timeout)

    async def _hand_over(
        self,
        messages: Iterable[tuple[str, Headers, Payload]],
        ticket: Ticket,
        what: str,
        deadline: Deadline,
    ) -> None:
        """Enqueue piece by piece, waiting for room; the ticket is sealed whatever happens."""
        trace = present(self._options.traceparent)
        try:
            for chunk in chunks(messages, trace):
                self._link.enqueue_some(chunk, ticket)
                await self._admitted(ticket, what, deadline)
        finally:
            self._link.seal(ticket)
