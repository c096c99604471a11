"""Bytes that were written and not taken: of every connection that is slow, and of all together.

One connection that does not read is held back by its own limits. Thousands of them are not: so
there is a limit on what all of them keep unread. From half of it on, a connection that is slow gets
nothing more until it has caught up, and those that have taken nothing for a second are closed, the
longest stuck first; beyond the limit those go that have taken nothing for the longest time, however
short that is. A client that is slow but reads is not among them: what counts is what its end has
taken, also while as much is written to it again, and also of what the kernel holds. (A socket with
megabytes in the kernel is not writable again before a third of them is read.)
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import termios
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

log = logging.getLogger("fila.edges")

SLOW_BYTES: Final = 32 * 1024  # unsent, from which on a connection counts as slow
JOINED_BYTES: Final = 2 * 1024 * 1024  # written in one piece
SECURED_BYTES: Final = 64 * 1024  # the same over TLS
STUCK_S: Final = 1.0  # without taking anything; nobody who reads is that slow
LOOK_S: Final = 0.1  # between two looks at all that are slow, while there is room


def write(transport: asyncio.Transport, out: list[bytes | memoryview]) -> None:
    """Small pieces at once; large ones without another copy of them, but over TLS in parts."""
    size = sum(map(len, out))
    if size > SECURED_BYTES and transport.get_extra_info("ssl_object") is not None:
        _write_secured(transport, out)
    elif len(out) == 1:
        transport.write(out[0])
    elif size <= JOINED_BYTES:
        transport.write(b"".join(out))
    else:
        _write_large(transport, out)


def _write_large(transport: asyncio.Transport, out: list[bytes | memoryview]) -> None:
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


def _write_secured(transport: asyncio.Transport, out: list[bytes | memoryview]) -> None:
    """What is encrypted at once is handed to the socket's own transport, where nobody counts it:
    what follows, when that has enough, is counted."""
    small: list[bytes | memoryview] = []
    size = 0
    for piece in out:
        if len(piece) + size <= SECURED_BYTES:
            small.append(piece)
            size += len(piece)
            continue
        if small:
            transport.write(b"".join(small))
        small, size = [], 0
        parts = memoryview(piece)
        for start in range(0, len(parts), SECURED_BYTES):
            transport.write(parts[start : start + SECURED_BYTES])
    if small:
        transport.write(b"".join(small))


def unread_bytes(transport: asyncio.Transport | None) -> int:
    """Written and not taken by the other end: what the transport holds, and the kernel."""
    if transport is None or transport.is_closing():
        return 0
    sock = transport.get_extra_info("socket")
    if sock is None:
        return transport.get_write_buffer_size()
    queued = array.array("i", (0,))
    try:
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, queued)
    except OSError:
        pass  # this system does not tell: then only what the transport holds counts
    return transport.get_write_buffer_size() + queued[0]


class Slow(Protocol):
    """A connection that may have unsent bytes."""

    def unsent_bytes(self) -> int:
        """What it holds now."""
        ...

    def taken_bytes(self) -> int:
        """What its other end has taken, since any moment before it was slow; that this grows is
        what counts."""
        ...

    def give_up(self) -> None:
        """Close at once: what is unsent is lost."""
        ...


def _call_later(delay_s: float, what: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(delay_s, what)


class Outbound:
    def __init__(
        self,
        bytes_max: int = 128 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], object] = _call_later,
    ) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self.given_up = 0  # connections, since the start
        self._clock = clock
        self._later = later
        self._looks_again = False
        self._looked = -LOOK_S
        self._held: OrderedDict[Slow, _Held] = OrderedDict()  # who was seen to read last is last

    def hold(self, one: Slow, unsent_bytes: int) -> None:
        """Something was written to a connection that is slow, or it caught up (0)."""
        held = self._held.get(one)
        if unsent_bytes == 0:
            if held is not None:
                self.bytes -= held.bytes
                del self._held[one]
            return
        if held is None:
            held = self._held[one] = _Held(self._clock(), one.taken_bytes())
        self.bytes += unsent_bytes - held.bytes
        held.bytes = unsent_bytes
        self._save_room()

    def _save_room(self) -> None:
        if self.is_crowded():
            self._make_room()
            if self.is_crowded() and not self._looks_again:
                self._looks_again = True
                self._later(STUCK_S, self._look_again)

    def _look_again(self) -> None:
        """Who is stuck goes even if nothing more is written to anybody."""
        self._looks_again = False
        self._save_room()

    def is_crowded(self) -> bool:
        """Whether it is time to save room: whoever is slow gets nothing more."""
        return self.bytes > self.bytes_max // 2

    def _make_room(self) -> None:
        """The first in the line that has taken nothing since it was looked at last goes; who has
        taken something goes to the end of the line."""
        now = self._clock()
        full = self.bytes > self.bytes_max
        if not full and now < self._looked + LOOK_S:
            return
        self._looked = now
        for one, held in self._held.items():
            unsent_bytes = one.unsent_bytes()
            self.bytes += unsent_bytes - held.bytes
            held.bytes = unsent_bytes
        while self._held:
            one, held = next(iter(self._held.items()))
            stuck = now - held.since >= STUCK_S
            if not (self.bytes > self.bytes_max or (stuck and self.is_crowded())):
                return
            taken_bytes = one.taken_bytes()
            if taken_bytes > held.taken_bytes:
                held.taken_bytes = taken_bytes
                held.since = now
                self._held.move_to_end(one)
            else:
                self._give_up(one)

    def _give_up(self, one: Slow) -> None:
        self.given_up += 1
        self.bytes -= self._held.pop(one).bytes
        one.give_up()


class _Held:
    """What a connection has not taken, and since when it was not seen to take anything."""

    __slots__ = ("bytes", "since", "taken_bytes")

    def __init__(self, since: float, taken_bytes: int) -> None:
        self.bytes = 0
        self.since = since
        self.taken_bytes = taken_bytes
