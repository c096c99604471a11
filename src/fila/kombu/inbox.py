"""Messages on their way from the SDK's threads to the one thread that runs the worker's loop.

Owns the queue between them and a socket that is readable while something waits, for Celery's event
loop and for `drain_events`. A subscription is a thread that does nothing but wait for the broker.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from fila.client.errors import FilaError

if TYPE_CHECKING:
    from fila.client.sync import Consumer
    from fila.client.sync_methods.consumer import SyncMessage

_AT_ONCE: Final = 100

T = TypeVar("T")


class Inbox(Generic[T]):
    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)

    def fileno(self) -> int:
        return self._here.fileno()

    def put(self, item: T) -> None:
        self._items.append(item)
        self.wake()

    def wake(self) -> None:
        """Make the socket readable. One byte is enough: a full socket is readable as well."""
        with suppress(OSError):
            self._there.send(b"\0")

    def quiet(self) -> None:
        """Make it unreadable, before looking at what is there."""
        with suppress(OSError):
            while self._here.recv(4_096):
                pass

    def wait(self, timeout_s: float | None) -> bool:
        ready, _, _ = select.select([self._here], [], [], timeout_s)
        return bool(ready)

    def take_all(self) -> list[T]:
        taken = []
        with suppress(IndexError):
            while True:
                taken.append(self._items.popleft())
        return taken

    def close(self) -> None:
        self._here.close()
        self._there.close()


class Subscription:
    """Brings what one consumer receives to `each`, in order; an error is the last it brings."""

    def __init__(self, consumer: Consumer, each: Callable[[SyncMessage | FilaError], None]) -> None:
        self.consumer = consumer
        self._each = each
        self._thread = threading.Thread(
            target=self._receive, name=f"fila-kombu {consumer.queue}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End it. What was brought is settled by whoever has it; the rest goes back by itself."""
        self.consumer.close()
        self._thread.join()

    def _receive(self) -> None:
        try:
            while messages := self.consumer.receive_many(_AT_ONCE):
                for message in messages:
                    self._each(message)
        except FilaError as error:
            self._each(error)
