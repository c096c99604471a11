"""Bytes that were written and not taken: of every connection that is slow, and of all together.

One connection that does not read is held back by its own limits. Thousands of them are not: so
there is a limit on what all of them keep unread, and beyond it those go that have taken nothing for
the longest time. A client that is slow but reads is not among them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Final, Protocol

log = logging.getLogger("fila.edges")

SLOW_BYTES: Final = 32 * 1024  # unsent, from which on a connection counts as slow
JOINED_BYTES: Final = 2 * 1024 * 1024  # written in one piece


def write(transport: asyncio.Transport, out: list[bytes | memoryview]) -> None:
    """Small pieces at once; large ones without another copy of them."""
    if len(out) == 1:
        transport.write(out[0])
        return
    if sum(map(len, out)) <= JOINED_BYTES:
        transport.write(b"".join(out))
        return
    small: list[bytes | memoryview] = []
    for piece in out:
        if len(piece) < JOINED_BYTES:
            small.append(piece)
            continue
        if small:
            transport.write(b"".join(small))
            small = []
        transport.write(piece)
    if small:
        transport.write(b"".join(small))


class Slow(Protocol):
    """A connection that may have unsent bytes."""

    def unsent_bytes(self) -> int:
        """What it holds now."""
        ...

    def give_up(self) -> None:
        """Close at once: what is unsent is lost."""
        ...


class Outbound:
    def __init__(self, bytes_max: int = 128 * 1024 * 1024) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self.given_up = 0  # connections, since the start
        self._held: OrderedDict[Slow, int] = OrderedDict()  # who took something last, last

    def hold(self, one: Slow, unsent_bytes: int) -> None:
        """Something was written to a connection that is slow, or it caught up (0)."""
        before = self._held.get(one, 0)
        if unsent_bytes:
            self._held[one] = unsent_bytes
        elif before:
            del self._held[one]
        self.bytes += unsent_bytes - before
        if self.bytes > self.bytes_max:
            self._make_room()

    def _make_room(self) -> None:
        """Whoever took something since it was looked at last goes to the end of the line."""
        for one in list(self._held):
            before = self._held[one]
            now = one.unsent_bytes()
            self._held[one] = now
            self.bytes += now - before
            if now < before:
                self._held.move_to_end(one)
        for one in list(self._held):
            if self.bytes <= self.bytes_max:
                return
            self._give_up(one)

    def _give_up(self, one: Slow) -> None:
        self.given_up += 1
        self.bytes -= self._held.pop(one)
        one.give_up()
