"""Bytes of messages that have not arrived whole, or are being carried out in steps, on all
connections together.

Beyond the limit the one goes whose message has made no progress for the longest time: who sends a
little of a large message and stops cannot keep the room from others, whose messages arrive.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

LARGE_BYTES: Final = 16 * 1024  # of an unfinished message, from which on its connection counts
TOO_MUCH: Final = "too many large messages are arriving at once; try again later"


class Sender(Protocol):
    """A connection that sends a message."""

    def make_room(self) -> None:
        """Forget what has not arrived whole, and say so."""
        ...


class Inbound:
    def __init__(self, bytes_max: int = 128 * 1024 * 1024) -> None:
        self.bytes_max = bytes_max
        self.buffered_bytes = 0  # those of requests that are carried out in steps included
        self.refused = 0  # connections, since the start
        self._large: OrderedDict[Sender, None] = OrderedDict()  # who sent something last, last

    def count(self, one: Sender, before_bytes: int, now_bytes: int) -> None:
        """A connection holds so much now."""
        self.buffered_bytes += now_bytes - before_bytes
        if now_bytes > LARGE_BYTES:
            self._large[one] = None
            self._large.move_to_end(one)
        elif before_bytes > LARGE_BYTES:
            self._large.pop(one, None)
        self._make_room()

    def keep(self, change_bytes: int) -> None:
        """A request that has arrived whole is carried out in steps, or no longer is: it takes room
        as well, and stays."""
        self.buffered_bytes += change_bytes
        self._make_room()

    def _make_room(self) -> None:
        while self.buffered_bytes > self.bytes_max and self._large:
            stalest, _ = self._large.popitem(last=False)
            self.refused += 1
            stalest.make_room()
