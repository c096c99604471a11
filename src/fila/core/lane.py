"""A lane: messages of one queue with the same fairness key and the same set of throttle keys.

Only the head of a lane is in memory. The window holds every pending message whose key is at most
`horizon`; what lies behind it is in the store alone and is paged in when the window is empty. A
horizon of b"" means that the whole lane is in the window.

    store   …gone… │ leased leased │ p p p p p p p p p p p p p p p p p p …
    memory                         └──── window ────┘ horizon

The horizon never lies below a key that was delivered. So rows behind it are pending, all of them,
and none is ever deleted one by one: a page neither meets a message that was acknowledged in the
same turn nor walks over tombstones.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Final

from fila.core.deadline import Sleeper
from fila.core.entry import (
    BODY,
    ENTRY_BYTES,
    ID_AT,
    KEY,
    SINCE_NS,
    STALL_NS,
    STAMP,
    Entry,
    entry_of,
    stamp_of,
    without_body,
)
from fila.core.later import Later
from fila.core.rows import LAST_ID, MESSAGE_KEY, lane_prefix

if TYPE_CHECKING:
    from fila.core.bucket import Bucket
    from fila.core.fairness import FairnessKey
    from fila.core.queue import Queue

DELAY_BIT: Final = 1 << 63  # in a stored head

LANE_EMPTY: Final = 0  # nothing pending
LANE_READY: Final = 1  # its head may go: the lane takes part in its key's turns
LANE_DELAYED: Final = 2  # its head lies in the future: parked on the deadline heap
LANE_PARKED: Final = 3  # a bucket is short: parked on that bucket
LANE_PAUSED: Final = 4  # its key is paused: it takes part again when the key is resumed


class Lane(Sleeper):
    __slots__ = (
        "buckets",
        "delivered",
        "forgotten",
        "head_active_ns",
        "head_stall_ns",
        "head_throttled_ns",
        "horizon",
        "key",
        "later",
        "leased",
        "ledger_position",
        "line_of",
        "lost_since",
        "number",
        "parked_since",
        "pending",
        "prefix",
        "queue",
        "state",
        "tail",
        "throttle_keys",
        "throttled_ns",
        "touched",
        "unflushed",
        "unread_delay",
        "weight_seen",
        "window",
        "window_bytes",
    )

    def __init__(
        self, queue: Queue, key: FairnessKey, number: int, throttle_keys: tuple[bytes, ...]
    ) -> None:
        super().__init__()
        self.queue = queue
        self.key = key
        self.number = number
        self.prefix = lane_prefix(queue.number, number)
        self.throttle_keys = throttle_keys
        self.buckets: list[Bucket] = []
        self.state = LANE_EMPTY
        self.line_of: Bucket | None = None  # parked, or woken and not yet through with its visit
        self.pending = 0
        self.later: Later | None = None  # which of them wait for their time; None: not one
        self.leased = 0
        self.tail = 0  # stamp of the newest message that was stored without a delay
        self.window: deque[Entry] = deque()
        self.window_bytes = 0
        self.horizon = b""
        self.unread_delay = False  # after a restart, until the window is read: the head has a delay
        self.delivered = b""  # highest message key ever taken out: the horizon stays above it
        self.unflushed: list[Entry] = []  # behind the horizon, not yet visible in the store
        self.weight_seen = 1  # its key's weight when the lane was last stored (read by load)
        self.touched = False
        self.forgotten = False
        self.ledger_position = 0
        # Clocks of the wait split (see delivery.py). "Active" time is the queue's unstalled time.
        self.throttled_ns = 0  # survives a restart
        self.parked_since = 0  # active time
        self.head_stall_ns = 0  # when the head became head; kept only for a head with a delay
        self.head_throttled_ns = 0
        # Active time when the head became its key's next, moved on by what it lost since.
        self.head_active_ns = 0
        self.lost_since = 0  # active time since when another lane is its key's next

    def insert(self, entry: Entry, window_messages: int, room: bool) -> int:
        """Take up a pending message. Returns how many bytes the windows grew (may be negative).

        `room` says whether the windows of all lanes together have bytes left; without it, a lane
        still keeps its head and what was handed back to it in memory, but without the bodies.
        """
        key = entry[KEY]
        window = self.window
        if self.horizon and key > self.horizon:
            self.unflushed.append(entry)
            return 0
        last = window[-1][KEY] if window else b""
        full = not room or len(window) >= window_messages
        if window and full and key > last and key > self.delivered:
            self.horizon = max(last, self.delivered)
            self.unflushed.append(entry)
            return 0
        if not room:
            entry = without_body(entry)
        grown = ENTRY_BYTES + len(entry[BODY])
        if key > last:
            window.append(entry)
        else:
            insort(window, entry)
            if full:
                grown -= self._cut(window_messages)
        self.window_bytes += grown
        return grown

    def _cut(self, window_messages: int) -> int:
        """Leave the newest messages to the store again, but none below a delivered one."""
        window = self.window
        dropped = 0
        while len(window) > max(window_messages // 2, 1) and window[-1][KEY] > self.delivered:
            entry = window.pop()
            dropped += ENTRY_BYTES + len(entry[BODY])
            # It may be of this very turn, and then the store cannot give it back before the commit.
            self.unflushed.append(entry)
        if dropped:
            self.horizon = max(window[-1][KEY], self.delivered)
        return dropped

    def lower_delivered(self, now: int) -> None:
        """The rows of what went before its time are gone: the horizon may lie below them again."""
        reached = MESSAGE_KEY.pack(self.queue.number, self.number, max(now, self.tail), LAST_ID)
        self.delivered = min(self.delivered, reached)

    def page(
        self, found: list[tuple[bytes, bytes]], complete: bool, without_bodies: bool = False
    ) -> int:
        """Take in rows read from behind the horizon; `complete` when there are no further ones.

        Messages of the current turn, which the store does not show yet, are merged in.
        """
        leased = self.queue.leased
        entries = [entry_of(key, value) for key, value in found if key[ID_AT:] not in leased]
        if without_bodies:
            entries = [without_body(entry) for entry in entries]
        if self.unflushed:
            seen = {entry[KEY] for entry in entries}
            fresh = [entry for entry in self.unflushed if entry[KEY] not in seen]
            if complete:
                self.unflushed = []
            else:
                last = found[-1][0]
                self.unflushed = [entry for entry in fresh if entry[KEY] > last]
                fresh = [entry for entry in fresh if entry[KEY] <= last]
            entries = sorted(entries + fresh)
        self.horizon = b"" if complete else found[-1][0]
        grown = 0
        for entry in entries:
            grown += ENTRY_BYTES + len(entry[BODY])
        self.window.extend(entries)
        self.window_bytes += grown
        return grown

    def throttled_at(self, now: int) -> int:
        """The throttle clock: unstalled time the lane stood parked on a bucket, up to `now`."""
        if self.state != LANE_PARKED:
            return self.throttled_ns
        return self.throttled_ns + (now - self.queue.stall_at(now)) - self.parked_since

    def head_stamp(self) -> int:
        """The stamp of the oldest pending message; a restart knows it before it reads the row."""
        if self.window:
            return self.window[0][STAMP]
        return stamp_of(self.horizon) if self.horizon else self.tail

    def head_since(self) -> int:
        """When the oldest pending message began to wait, or became ready if it had a delay."""
        if self.window and not self.head_has_delay():
            return self.window[0][SINCE_NS]
        return self.head_stamp()

    def head_has_delay(self) -> bool:
        return self.window[0][STALL_NS] < 0 if self.window else self.unread_delay

    def stored_head(self) -> int:
        """The head as the ledger keeps it: its stamp, and in the top bit whether it has a delay."""
        return self.head_stamp() | (DELAY_BIT if self.head_has_delay() else 0)
