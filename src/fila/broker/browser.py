"""Snapshots that are being browsed: opened, read page by page, closed when their time is up.

Owns how many there are and how long they live. A page is read on the loop, so its size is bounded;
nothing of the machine is touched by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fila.broker.broker import Broker
from fila.core import browse, rejection
from fila.core.browse import Page, Range, StoredPage
from fila.core.rejection import Rejection, invalid_value

_TOKEN_BYTES = 16


class BrowseLimits(NamedTuple):
    snapshots_max: int = 16
    ttl_ms: int = 600_000
    ttl_ms_max: int = 3_600_000
    parts_max: int = 1_024
    page_messages_max: int = 2_048  # rows a page looks at: a few milliseconds
    page_bytes_max: int = 2 * 1024 * 1024


class Opened(NamedTuple):
    token: str
    expires_ms: int
    messages: int
    ranges: list[Range]


class Browsed(NamedTuple):
    queue: str
    snapshot: browse.Snapshot
    expires_ms: int


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

    def open(
        self, queue: str, fairness_key: bytes | None, parts: int, ttl_ms: int
    ) -> Opened | Rejection:
        """Take a snapshot of a queue."""
        limits = self._limits
        if not 1 <= parts <= limits.parts_max:
            return invalid_value("parts", f"{parts} is not within 1 to {limits.parts_max}")
        if ttl_ms > limits.ttl_ms_max:
            return invalid_value("ttl_ms", f"{ttl_ms} is more than {limits.ttl_ms_max}")
        view = self._broker.machine.view
        if not view.has_queue(queue):
            return view.no_queue(queue)
        self._sweep()
        if len(self._open) >= limits.snapshots_max:
            return Rejection(
                rejection.CHANNEL_FULL,
                f"{len(self._open)} snapshots are being browsed, as many as may be; close one, "
                "or try again later",
            )
        found = view.browse(queue, fairness_key, parts)
        if isinstance(found, Rejection):
            return found
        ttl_ms = ttl_ms or limits.ttl_ms
        token = self._random_hex(_TOKEN_BYTES)
        expires_ms = self._now_ms() + ttl_ms
        self._open[token] = Browsed(queue, found.snapshot, expires_ms)
        self._broker.call_later(ttl_ms / 1000 + 0.001, self._sweep)
        return Opened(token, expires_ms, found.messages, found.ranges)

    def queue_of(self, token: str) -> str | Rejection:
        """Whose snapshot it is, so that permission can be asked."""
        found = self._open.get(token)
        if found is None or found.expires_ms <= self._now_ms():
            return Rejection(
                rejection.SNAPSHOT_EXPIRED,
                "the snapshot was closed or its time is up; browse again for a new one",
            )
        return found.queue

    def page(
        self, token: str, start: bytes, end: bytes, states: int, rows_max: int, bytes_max: int
    ) -> Page:
        """After `queue_of` found it."""
        snapshot = self._open[token].snapshot
        return snapshot.page(start, end, states, *self._bounds(rows_max, bytes_max))

    def stored_page(
        self, token: str, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> StoredPage:
        """After `queue_of` found it."""
        snapshot = self._open[token].snapshot
        return snapshot.stored_page(start, end, *self._bounds(rows_max, bytes_max))

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

    def _sweep(self) -> None:
        now_ms = self._now_ms()
        for token in [one for one, found in self._open.items() if found.expires_ms <= now_ms]:
            del self._open[token]
