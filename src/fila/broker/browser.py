"""Snapshots that are being browsed: opened, read page by page, closed when their time is up.

Owns how many there are and how long they live. Who reads on keeps a snapshot; one that was read to
its end, or that nobody has asked for a while, makes room for the next. A page is read on the loop,
so its size is bounded; nothing of the machine is touched by it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from fila.broker.broker import Broker
from fila.broker.stepping import counted
from fila.core import browse, rejection
from fila.core.browse import Page, Range, StoredPage
from fila.core.rejection import Rejection, invalid_value
from fila.core.view import Browsing

_TOKEN_BYTES = 16


class BrowseLimits(NamedTuple):
    snapshots_max: int = 16
    ttl_ms: int = 600_000
    ttl_ms_max: int = 3_600_000
    life_ms_max: int = 6 * 3_600_000  # however eagerly it is read: it keeps old rows on disk
    read_ms: int = 60_000  # how long one lives that was read to its end
    idle_ms: int = 10_000  # not asked for so long, it makes room when none is left
    parts_max: int = 1_024
    page_messages_max: int = 2_048  # rows a page looks at: a few milliseconds
    page_bytes_max: int = 2 * 1024 * 1024


class Opened(NamedTuple):
    token: str
    expires_ms: int
    messages: int
    ranges: list[Range]


class Browsed:
    """A snapshot and its time. `unread` are the ends of the ranges that nobody has reached yet."""

    __slots__ = ("asked_ms", "expires_ms", "opened_ms", "queue", "ranges", "snapshot", "ttl_ms",
                 "unread")  # fmt: skip

    def __init__(
        self, queue: str, snapshot: browse.Snapshot, ranges: list[Range], ttl_ms: int, now_ms: int
    ) -> None:
        self.queue = queue
        self.snapshot = snapshot
        self.ranges = ranges
        self.ttl_ms = ttl_ms
        self.opened_ms = self.asked_ms = now_ms
        self.expires_ms = now_ms + ttl_ms
        self.unread = {end for _, end in ranges}

    def asked(self, end: bytes, at_end: bool, now_ms: int, limits: BrowseLimits) -> None:
        """A page was read: it lives on."""
        if at_end:
            self.unread.discard(end)
        elif not self.unread:
            self.unread = {end for _, end in self.ranges}  # somebody reads it once more
        self.asked_ms = now_ms
        ttl_ms = self.ttl_ms if self.unread else min(self.ttl_ms, limits.read_ms)
        self.expires_ms = min(now_ms + ttl_ms, self.opened_ms + limits.life_ms_max)

    def in_use(self, now_ms: int, limits: BrowseLimits) -> bool:
        return bool(self.unread) and now_ms - self.asked_ms < limits.idle_ms


class Browser:
    def __init__(
        self,
        broker: Broker,
        limits: BrowseLimits,
        random_hex: Callable[[int], str],
        now_ms: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._limits = limits
        self._random_hex = random_hex
        self._now_ms = now_ms
        self._open: dict[str, Browsed] = {}
        self._opening = 0  # snapshots whose parts are still being found
        self._sweeps_ms = 0  # when the next look at what is over is due

    def open(
        self, queue: str, fairness_key: bytes | None, parts: int, ttl_ms: int
    ) -> Generator[None, None, Opened | Rejection] | Rejection:
        """Take a snapshot of a queue; its parts are found in steps."""
        limits = self._limits
        if not 1 <= parts <= limits.parts_max:
            return invalid_value("parts", f"{parts} is not within 1 to {limits.parts_max}")
        if ttl_ms > limits.ttl_ms_max:
            return invalid_value("ttl_ms", f"{ttl_ms} is more than {limits.ttl_ms_max}")
        view = self._broker.machine.view
        if not view.has_queue(queue):
            return view.no_queue(queue)
        self._sweep()
        if self._taken() >= limits.snapshots_max:
            self._make_room()
        if self._taken() >= limits.snapshots_max:
            return Rejection(
                rejection.CHANNEL_FULL,
                f"{self._taken()} snapshots are being browsed, as many as may be; close one, "
                "or try again later",
            )
        steps = view.browse(queue, fairness_key, parts)
        return steps if isinstance(steps, Rejection) else self._opened(queue, steps, ttl_ms)

    def _taken(self) -> int:
        return len(self._open) + self._opening

    def _opened(
        self, queue: str, steps: Generator[int, None, Browsing | Rejection], ttl_ms: int
    ) -> Generator[None, None, Opened | Rejection]:
        self._opening += 1
        try:
            found = yield from counted(self._broker.work, steps)
        finally:
            self._opening -= 1
        if isinstance(found, Rejection):
            return found
        ttl_ms = ttl_ms or self._limits.ttl_ms
        token = self._random_hex(_TOKEN_BYTES)
        opened = Browsed(queue, found.snapshot, found.ranges, ttl_ms, self._now_ms())
        self._open[token] = opened
        self._sweep_later()
        return Opened(token, opened.expires_ms, found.messages, found.ranges)

    def queue_of(self, token: str) -> str | Rejection:
        """Whose snapshot it is, so that permission can be asked."""
        found = self._open.get(token)
        if found is None or found.expires_ms <= self._now_ms():
            return Rejection(
                rejection.SNAPSHOT_EXPIRED,
                "the snapshot was closed or its time is up; browse again for a new one",
            )
        return found.queue

    def ranges_of(self, token: str) -> list[Range] | Rejection:
        """Where it is to be read, as was told when it was opened."""
        queue = self.queue_of(token)
        return queue if isinstance(queue, Rejection) else self._open[token].ranges

    def page(
        self, token: str, start: bytes, end: bytes, states: int, rows_max: int, bytes_max: int
    ) -> Page:
        """After `queue_of` found it."""
        opened = self._open[token]
        bounds = self._bounds(rows_max, bytes_max)
        found = opened.snapshot.page(start, end, states, *bounds)
        opened.asked(end, not found.next and start < end, self._now_ms(), self._limits)
        return found

    def stored_page(
        self, token: str, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> StoredPage:
        """After `queue_of` found it."""
        opened = self._open[token]
        bounds = self._bounds(rows_max, bytes_max)
        found = opened.snapshot.stored_page(start, end, *bounds)
        opened.asked(end, not found.next and start < end, self._now_ms(), self._limits)
        return found

    def close(self, token: str) -> None:
        self._open.pop(token, None)

    def close_all(self) -> None:
        """The store is about to close."""
        self._open.clear()

    def _bounds(self, rows_max: int, bytes_max: int) -> tuple[int, int]:
        limits = self._limits
        return (
            min(rows_max or limits.page_messages_max, limits.page_messages_max),
            min(bytes_max or limits.page_bytes_max, limits.page_bytes_max),
        )

    def _make_room(self) -> None:
        """Close the one that was asked for last the longest ago, if nobody seems to read it."""
        now_ms = self._now_ms()
        if not self._open:
            return
        token, oldest = min(
            self._open.items(), key=lambda one: (bool(one[1].unread), one[1].asked_ms)
        )
        if not oldest.in_use(now_ms, self._limits):
            del self._open[token]

    def _sweep(self) -> None:
        now_ms = self._now_ms()
        for token in [one for one, found in self._open.items() if found.expires_ms <= now_ms]:
            del self._open[token]

    def _sweep_later(self) -> None:
        """When the first of them may be over; whoever is read on until then is looked at again."""
        if not self._open:
            return
        now_ms = self._now_ms()
        due_ms = max(now_ms, min([found.expires_ms for found in self._open.values()])) + 1
        if self._sweeps_ms and self._sweeps_ms <= due_ms:
            return
        self._sweeps_ms = due_ms

        def due() -> None:
            if self._sweeps_ms == due_ms:  # else another one was needed earlier
                self._sweeps_ms = 0
                self._sweep()
                self._sweep_later()

        self._broker.call_later((due_ms - now_ms) / 1000, due)
