"""What a synchronous client hands out: consumers, their messages, and receipts.

Owns waiting for what the exchange brings. Never touches sockets.
"""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fila.client.message import Message
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire.hot import ReceivedItem

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

T = TypeVar("T")


class SyncMessage(Message):
    """A message of a synchronous consumer."""

    __slots__ = ("_client",)

    def __init__(self, received: ReceivedItem, client: "FilaClient") -> None:
        super().__init__(received)
        self._client = client

    def ack(self, *, timeout: float | None = None) -> None:
        """Settle: done and gone."""
        self._client.ack(self.queue, self.id, timeout=timeout)

    def nack(self, error: str = "", *, timeout: float | None = None) -> None:
        """Give back as failed; the queue's on_failure hook sees `error`."""
        self._client.nack(self.queue, self.id, error, timeout=timeout)


class Consumer:
    """A subscription: iterate, or ask with `receive`. Ends when it or the client is closed.

    After a lost connection it subscribes again by itself.
    """

    def __init__(self, client: "FilaClient", stream: Stream) -> None:
        self._client = client
        self._stream = stream
        self._arrival = threading.Condition(client._link.lock)
        stream.wake = client._link.waker(self._arrival)

    @property
    def queue(self) -> str:
        return self._stream.queue

    def __iter__(self) -> "Consumer":
        return self

    def __next__(self) -> SyncMessage:
        received = self._take(None)
        if received is None:
            raise StopIteration
        return SyncMessage(received, self._client)

    def receive(self, timeout: float | None = None) -> SyncMessage | None:
        """The next message; None when none came in time, or the consumer was closed."""
        received = self._take(timeout)
        return None if received is None else SyncMessage(received, self._client)

    def receive_many(self, limit: int, timeout: float | None = None) -> list[SyncMessage]:
        """Waits like `receive` for the first message and adds what else is here already."""
        first = self._take(timeout)
        if first is None:
            return []
        messages = [SyncMessage(first, self._client)]
        buffer = self._stream.buffer
        try:
            while len(messages) < limit:
                messages.append(SyncMessage(buffer.popleft(), self._client))
        except IndexError:
            pass
        return messages

    def close(self) -> None:
        """Stop. Messages already handed out can still be settled."""
        link = self._client._link
        with link.lock:
            link.exchange.cancel(self._stream)
            link.push(monotonic())

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None and not stream.closed and stream.error is None:
            # No lock here: the collector may be running inside a thread that holds it.
            link = self._client._link
            link.orphans.append(stream)
            link.nudge()

    def _take(self, timeout: float | None) -> ReceivedItem | None:
        stream = self._stream
        try:
            return stream.buffer.popleft()  # atomic: no lock needed while messages are here
        except IndexError:
            pass
        deadline = None if timeout is None else monotonic() + timeout
        link = self._client._link
        with link.lock:
            while not stream.buffer:
                if stream.error is not None:
                    raise stream.error.again()
                if stream.closed:
                    return None
                remaining = None if deadline is None else deadline - monotonic()
                if remaining is not None and remaining <= 0:
                    return None
                link.rest(self._arrival, self._stirred, remaining)
            return stream.buffer.popleft()

    def _stirred(self) -> bool:
        stream = self._stream
        return bool(stream.buffer) or stream.closed or stream.error is not None


class Receipt(Generic[T]):
    """What became of a call that nobody waited for."""

    __slots__ = ("_answer", "_client", "_ticket")

    def __init__(self, client: "FilaClient", ticket: Ticket, answer: Callable[[Ticket], T]) -> None:
        self._client = client
        self._ticket = ticket
        self._answer = answer

    @property
    def done(self) -> bool:
        return self._ticket.done

    def result(self, timeout: float | None = None) -> T:
        """What the call would have returned or raised; waits for it."""
        ticket = self._ticket
        link = self._client._link
        deadline = self._client._deadline(timeout)
        with link.lock:
            link.wait(ticket, lambda: ticket.done, "receipt", deadline)
        return self._answer(ticket)
