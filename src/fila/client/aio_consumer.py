"""What an asynchronous client hands out: consumers, their messages, and receipts.

Owns waiting for what the exchange brings. Never touches transports.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fila.client.aio_link import AioLink
from fila.client.message import Message
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire.hot import ReceivedItem

if TYPE_CHECKING:
    from fila.client.aio import AsyncFilaClient

T = TypeVar("T")


class AsyncMessage(Message):
    """A message of an asynchronous consumer."""

    __slots__ = ("_client",)

    def __init__(self, received: ReceivedItem, client: "AsyncFilaClient") -> None:
        super().__init__(received)
        self._client = client

    async def ack(self, *, timeout: float | None = None) -> None:
        """Settle: done and gone."""
        await self._client.ack(self.queue, self.id, timeout=timeout)

    async def nack(self, error: str = "", *, timeout: float | None = None) -> None:
        """Give back as failed; the queue's on_failure hook sees `error`."""
        await self._client.nack(self.queue, self.id, error, timeout=timeout)


class AsyncConsumer:
    """A subscription: iterate with `async for`, or ask with `receive`. Ends when it or the client
    is closed. After a lost connection it subscribes again by itself."""

    def __init__(self, client: "AsyncFilaClient", stream: Stream) -> None:
        self._client = client
        self._stream = stream
        self._arrivals: list[asyncio.Future[None]] = []
        arrivals = self._arrivals  # the stream must not keep the consumer alive

        def wake() -> None:
            for arrival in arrivals:
                if not arrival.done():
                    arrival.set_result(None)
            arrivals.clear()

        stream.wake = wake

    @property
    def queue(self) -> str:
        return self._stream.queue

    def __aiter__(self) -> "AsyncConsumer":
        return self

    async def __anext__(self) -> AsyncMessage:
        received = await self._take(None)
        if received is None:
            raise StopAsyncIteration
        return AsyncMessage(received, self._client)

    async def receive(self, timeout: float | None = None) -> AsyncMessage | None:
        """The next message; None when none came in time, or the consumer was closed."""
        received = await self._take(timeout)
        return None if received is None else AsyncMessage(received, self._client)

    async def receive_many(self, limit: int, timeout: float | None = None) -> list[AsyncMessage]:
        """Waits like `receive` for the first message and adds what else is here already."""
        first = await self._take(timeout)
        if first is None:
            return []
        messages = [AsyncMessage(first, self._client)]
        buffer = self._stream.buffer
        while buffer and len(messages) < limit:
            messages.append(AsyncMessage(buffer.popleft(), self._client))
        return messages

    async def close(self) -> None:
        """Stop. Messages already handed out can still be settled."""
        self._cancel()

    async def __aenter__(self) -> "AsyncConsumer":
        return self

    async def __aexit__(self, *exception: Any) -> None:
        self._cancel()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is None or stream.closed or stream.error is not None:
            return
        loop = self._client._link.loop
        if not loop.is_closed():
            # Not here: the collector may be running inside the exchange.
            loop.call_soon_threadsafe(_cancel_orphan, self._client._link, stream)

    def _cancel(self) -> None:
        _cancel_orphan(self._client._link, self._stream)

    async def _take(self, timeout: float | None) -> ReceivedItem | None:
        stream = self._stream
        if stream.buffer:
            return stream.buffer.popleft()
        loop = self._client._link.loop
        timer: asyncio.TimerHandle | None = None
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            stream.notify()

        try:
            while not stream.buffer:
                if stream.error is not None:
                    raise stream.error.again()
                if stream.closed or late:
                    return None
                if timeout is not None and timer is None:
                    timer = loop.call_later(timeout, expire)
                arrival: asyncio.Future[None] = loop.create_future()
                self._arrivals.append(arrival)
                await arrival
            return stream.buffer.popleft()
        finally:
            if timer is not None:
                timer.cancel()


class AsyncReceipt(Generic[T]):
    """What became of a call that nobody waited for. Can be awaited."""

    __slots__ = ("_answer", "_client", "_ticket")

    def __init__(
        self, client: "AsyncFilaClient", ticket: Ticket, answer: Callable[[Ticket], T]
    ) -> None:
        self._client = client
        self._ticket = ticket
        self._answer = answer

    @property
    def done(self) -> bool:
        return self._ticket.done

    async def result(self, timeout: float | None = None) -> T:
        """What the call would have returned or raised; waits for it."""
        ticket = self._ticket
        deadline = self._client._deadline(timeout)
        await self._client._link.wait(ticket, lambda: ticket.done, "receipt", deadline)
        return self._answer(ticket)

    def __await__(self) -> Generator[Any, None, T]:
        return self.result().__await__()


def _cancel_orphan(link: AioLink, stream: Stream) -> None:
    link.exchange.cancel(stream)
    link.push()
