"""A consumer's stream: what was delivered and not yet read.

Owns the bounded buffer between the connection and the reader, and outlives connections: after a
reconnect the exchange subscribes it again. Knows nothing of threads or event loops.
"""

from collections import deque
from math import inf
from typing import Final

from fila.client.errors import ClientClosedError, FilaError
from fila.client.heartbeat import Heartbeat
from fila.client.request import Request
from fila.client.ticket import Ticket, Watched
from fila.wire.message_codec import ReceivedItem

_ATTEMPTS: Final = 6  # in a ReceivedItem


class Stream(Watched):
    """`buffer` is read from the left by the shell; `error` or `closed` says why no more comes."""

    __slots__ = (
        "again",
        "buffer",
        "closed",
        "error",
        "heartbeat",
        "opened",
        "prefetch",
        "queue",
        "request_id",
        "resubscribe_at",
    )

    def __init__(self, queue: str, prefetch: int, opened: Ticket, heartbeat: bool = False) -> None:
        super().__init__()
        self.queue = queue
        self.prefetch = prefetch
        self.buffer: deque[ReceivedItem] = deque()
        self.again: dict[bytes, ReceivedItem] = {}  # redelivered, perhaps unread: by id
        self.opened = opened  # settled by the first ConsumeOk, or by what came instead
        self.error: FilaError | None = None
        self.closed = False
        self.request_id: int | None = None  # on the present connection
        self.resubscribe_at: float | None = None
        self.heartbeat = Heartbeat(queue, self.doom) if heartbeat else None

    def due_at(self) -> float:
        """When it next wants something sent by itself."""
        due_at = inf if self.resubscribe_at is None else self.resubscribe_at
        if self.heartbeat is not None and self.request_id is not None:
            due_at = min(due_at, self.heartbeat.due_at)
        return due_at

    def beat(self, now: float) -> list[Request]:
        """Requests for more time, when it is time for them."""
        if self.heartbeat is None or self.request_id is None:
            return []
        return self.heartbeat.beat(now)

    def push(self, items: list[ReceivedItem]) -> None:
        buffer = self.buffer
        buffer.extend(items)
        if self.heartbeat is not None:
            self.heartbeat.held.update(dict.fromkeys([item[0] for item in items]))
        for item in items:
            if item[_ATTEMPTS]:
                self.again[item[0]] = item
        if len(self.again) > self.prefetch:  # most of them have been read since
            unread = [item for item in buffer.copy() if item[_ATTEMPTS]]
            self.again = {item[0]: item for item in unread}
        # The broker sends more than the credit only when leases ran out, and the oldest unread
        # messages are those: they belong to somebody else by now.
        while len(buffer) > self.prefetch:
            buffer.popleft()
        self.notify()

    def settled(self, message_id: bytes) -> None:
        """The reader has settled a message. If its lease had run out before, the message may have
        come a second time and be unread: with the answer, that copy is nobody's."""
        if self.heartbeat is not None:
            self.heartbeat.held.pop(message_id, None)
        item = self.again.pop(message_id, None)
        if item is not None:
            try:
                self.buffer.remove(item)
            except (ValueError, IndexError):  # a reader in another thread has it
                pass

    def take_unread(self) -> list[ReceivedItem]:
        """What was delivered and not read; a reader in another thread may still take some
        of it meanwhile."""
        unread = []
        try:
            while True:
                unread.append(self.buffer.popleft())
        except IndexError:
            return unread

    def connection_lost(self) -> None:
        # What was delivered over the old connection cannot be acknowledged over a new one that
        # consumes the same queue, so it waits for its redelivery.
        self.buffer.clear()
        self.again.clear()
        if self.heartbeat is not None:
            self.heartbeat.connection_lost()
        self.request_id = None
        self.resubscribe_at = None

    def fail(self, error: FilaError) -> None:
        if isinstance(error, ClientClosedError):
            self.closed = True  # the user's own doing: readers stop, nothing is raised
        else:
            self.error = error
        self.buffer.clear()
        self.request_id = None
        if not self.opened.done:
            self.opened.fail(error)
        self.notify()

    def doom(self, error: FilaError) -> None:
        """The reader is told at once; the exchange cancels it with its next tick."""
        self.error = error
        self.notify()

    def close(self) -> None:
        self.closed = True
        self.buffer.clear()
        self.request_id = None
        self.notify()

    def stirred(self) -> bool:
        """Whether a reader finds something: a message, or why none will come."""
        return bool(self.buffer) or self.closed or self.error is not None


class Leaving:
    """A consumer that was closed while deliveries may be on their way to it."""

    __slots__ = ("consume_id", "queue")

    def __init__(self, queue: str, consume_id: int) -> None:
        self.queue = queue
        self.consume_id = consume_id  # its Consume's request id
