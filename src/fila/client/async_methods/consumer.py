"""What an asynchronous client's `consume` hands out: the consumer and its messages.

Owns waiting for what the exchange brings. Never touches the connection.
"""

from typing import Any

from fila.client.async_methods.settling import AsyncSettling
from fila.client.message import Message
from fila.client.stream import Stream
from fila.wire.message_codec import ReceivedItem


class AsyncMessage(Message):
    """A message of an asynchronous consumer."""

    __slots__ = ("_client",)

    def __init__(self, received: ReceivedItem, client: AsyncSettling) -> None:
        super().__init__(received)
        self._client = client

    async def ack(self, *, timeout: float | None = None) -> None:
        """Settle: done and gone."""
        await self._client.ack(self.queue, self.id, timeout=timeout)

    async def nack(self, error: str = "", *, timeout: float | None = None) -> None:
        """Give back as failed; the queue's on_failure hook sees `error`."""
        await self._client.nack(self.queue, self.id, error, timeout=timeout)

    async def release(self, *, timeout: float | None = None) -> None:
        """Hand back at once: to its old place, without counting an attempt."""
        await self._client.release(self.queue, self.id, timeout=timeout)

    async def extend(
        self, visibility: float | None = None, *, timeout: float | None = None
    ) -> None:
        """Let the lease end `visibility` seconds from now; None means the queue's timeout."""
        await self._client.extend(self.queue, self.id, visibility, timeout=timeout)


class AsyncConsumer:
    """A subscription: iterate with `async for`, or ask with `receive`. Ends when it or the client
    is closed. After a lost connection it subscribes again by itself."""

    def __init__(self, client: AsyncSettling, stream: Stream) -> None:
        self._client = client
        self._stream = stream

    @property
    def queue(self) -> str:
        return self._stream.queue

    @property
    def closed(self) -> bool:
        """Whether it has ended: it or its client was closed, or drained."""
        return self._stream.closed

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
        try:
            while len(messages) < limit:
                messages.append(AsyncMessage(buffer.popleft(), self._client))
        except IndexError:
            pass
        return messages

    async def close(self) -> None:
        """Stop. What nobody has read is handed back at once; messages already handed out can still
        be settled."""
        self._client._link.cancel(self._stream)

    async def __aenter__(self) -> "AsyncConsumer":
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.close()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None and not stream.closed and stream.error is None:
            self._client._link.orphan(stream)

    async def _take(self, timeout: float | None) -> ReceivedItem | None:
        stream = self._stream
        link = self._client._link
        until: float | None = None
        while True:
            try:
                return stream.buffer.popleft()  # atomic: needs no lock
            except IndexError:
                pass
            if stream.error is not None:
                raise stream.error.again()
            if stream.closed:
                return None
            if timeout is not None and until is None:
                until = link.now() + timeout
            if not await link.sleep(stream, stream.stirred, until):
                return None
