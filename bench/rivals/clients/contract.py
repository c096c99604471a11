"""What a load process asks of a client. Blocking calls; what a client needs an event loop for, it
runs inside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

# (tenant, payload), both ways
Message = tuple[str, bytes]

WINDOW = 1_000  # messages under way, for clients that can publish without waiting
PREFETCH = 1_000


class Client(Protocol):
    def declare(self) -> None:
        """Create the queue if it is not there. Several processes do this at the same time."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Hand messages over. May return before they are confirmed, with a bounded number under
        way."""

    def flush(self) -> None:
        """Wait until everything published is confirmed."""

    def subscribe(self, prefetch: int) -> None: ...

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        """Up to `limit` messages, as soon as there is one; none when none came in time."""

    def settle(self, wait: bool = True) -> None:
        """Acknowledge everything received since the last call. Without `wait` it may return before
        the broker has confirmed that, where the client can; the acks leave with the next receive
        at the latest."""

    def close(self) -> None: ...
