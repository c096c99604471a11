"""A lane: messages of one queue with the same fairness key and the same set of throttle keys.

Only the head of a lane is in memory. The window holds every pending message whose key is at most
`horizon`; what lies behind it is in the store alone and is paged in when the window is empty. A
horizon of b"" means that the whole lane is in the window.

    store   …gone… │ leased leased │ p p p p p p p p p p p p p p p p p p …
    memory                         └──── window ────┘ horizon

The horizon never lies below a key that was delivered. So rows behind it are pending, all of them,
and none is ever deleted one by one: a page neither meets a message that was acknowledged in the
same turn nor walks over tombstones.

A window may be cut at any time (`windows.py` says when): the newest messages are left to the store
again, down to an empty window if need be. What was handed back below a delivered message stays in
the window, if without its body.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Final

from fila.core.cap_clock import CapClock
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
    entry_bytes,
    entry_of,
    stamp_of,
    without_body,
)
from fila.core.later import Later
from fila.core.rows import LAST_ID, MESSAGE_KEY, lane_prefix

if TYPE_CHECKING:
    from fila.core.bucket import Bucket, Cap, Gate
    from fila.core.fairness import FairnessKey
    from fila.core.queue import Queue

DELAY_BIT: Final = 1 << 63  # in a stored head
# Shared by all lanes that have nothing of the kind, and never changed: a lane of its own for each
# is most of what an idle fairness key would cost.
NO_WINDOW: Final[deque[Entry]] = deque()
NO_BUCKETS: Final[list[Bucket]] = []
NO_CAPS: Final[list[Cap]] = []

LANE_EMPTY: Final = 0  # nothing pending
LANE_READY: Final = 1  # its head may go: the lane takes part in its key's turns
LANE_DELAYED: Final = 2  # its head lies in the future: parked on the deadline heap
LANE_PARKED: Final = 3  # a bucket is short, or a cap is full: parked there
LANE_PAUSED: Final = 4  # its key is paused: it takes part again when the key is resumed


class Lane(Sleeper):
    __slots__ = (
        "at_cap",
        "buckets",
        "cap_clock",
        "caps",
        "delivered",
        "forgotten",
        "head_active_ns",
        "head_busy_ns",
        "head_held_ns",
        "head_stall_ns",
        "head_throttled_ns",
        "horizon",
        "key",
        "later",
        "leased",
        "ledger_position",
        "line_of",
        "lost_since",
        "newer",
        "number",
        "older",
        "parked_since",
        "pending",
        "queue",
        "stands",
        "state",
        "tail",
        "throttle_keys",
        "throttled_ns",
        "touched",
        "unflushed",
        "unread_delay",
        "weighed",
        "weight_seen",
        "window",
        "window_bytes",
        "windowed",
    )

    def __init__(
        self, queue: Queue, key: FairnessKey, number: int, throttle_keys: tuple[bytes, ...]
    ) -> None:
        super().__init__()
        self.queue = queue
        self.key = key
        self.number = number
        self.throttle_keys = throttle_keys
        self.buckets: list[Bucket] = [] if throttle_keys else NO_BUCKETS
        self.caps: list[Cap] = NO_CAPS
        self.cap_clock: CapClock | None = None  # until it is first parked at a cap
        self.at_cap = False  # parked there, and not at a bucket
        self.state = LANE_EMPTY
        self.stands = 0  # its entry's serial among the lanes of its key that may go; 0: it has none
        self.line_of: Gate | None = None  # parked, or woken and not yet through with its visit
        self.pending = 0
        self.weighed = 0  # bytes of them, where the queue counts bytes
        self.later: Later | None = None  # which of them wait for their time; None: not one
        self.leased = 0
        self.tail = 0  # stamp of the newest message that was stored without a delay
        self.window: deque[Entry] = NO_WINDOW
        self.window_bytes = 0  # of what is there with its body
        # Its neighbours among the queue's lanes that have something in memory.
        self.windowed = False
        self.newer: Lane | None = None
        self.older: Lane | None = None
        self.horizon = b""
        self.unread_delay = False  # after a restart, until the window is read: the head has a delay
        self.delivered = b""  # highest message key ever taken out: the horizon stays above it
        # Behind the horizon, not yet visible in the store.
        self.unflushed: list[Entry] | None = None
        self.weight_seen = 1  # its key's weight when the lane was last stored (read by load)
        self.touched = False
        self.forgotten = False
        self.ledger_position = 0
        # Clocks of the wait split (see delivery.py). "Active" time is the queue's unstalled time.
        self.throttled_ns = 0  # survives a restart
        self.parked_since = 0  # active time
        self.head_stall_ns = 0  # when the head became head; kept only for a head with a delay
        self.head_throttled_ns = 0
        self.head_busy_ns = 0
        self.head_held_ns = 0
        # Active time when the head became its key's next, moved on by what it lost since.
        self.head_active_ns = 0
        self.lost_since = 0  # active time since when another lane is its key's next

    def weigh(self, size: int) -> None:
        """So many bytes more wait, in a queue that counts them."""
        self.weighed += size
        self.key.weighed += size
        self.queue.weighed += size

    def burden(self, entry: Entry) -> None:
        """This message waits, in a queue that counts bytes; of those that came before it did, and
        in that very moment, none is counted, neither now nor when it goes."""
        if entry[SINCE_NS] > self.queue.weighed_since:
            self.weigh(len(entry[BODY]))

    def lighten(self, entry: Entry) -> None:
        """It waits no more."""
        if entry[SINCE_NS] > self.queue.weighed_since:
            self.weigh(-len(entry[BODY]))

    @property
    def prefix(self) -> bytes:
        """What the keys of its messages begin with."""
        return lane_prefix(self.queue.number, self.number)

    def own_window(self) -> deque[Entry]:
        """The window, for those who put something into it."""
        if self.window is NO_WINDOW:
            self.window = deque()
        return self.window

    def _leave_out(self, entry: Entry) -> None:
        """It is behind the horizon, and the store does not show it yet."""
        if self.unflushed is None:
            self.unflushed = [entry]
        else:
            self.unflushed.append(entry)

    def insert(
        self,
        entry: Entry,
        window_messages: int,
        room: bool,
        fresh_ns: int,
        fresh: dict[bytes, bytes],
    ) -> int:
        """Take up a pending message. Returns how many bytes the window grew (may be negative).

        `room` says whether the windows of all lanes together have bytes left for it; without it,
        a lane keeps in memory only what was handed back to it, and not the bodies. Bodies that are
        neither in the window nor in the store yet (they came at `fresh_ns` or later) go to `fresh`.
        """
        key = entry[KEY]
        window = self.window
        if self.horizon and key > self.horizon:
            self._leave_out(entry)
            return 0
        last = window[-1][KEY] if window else b""
        full = not room or len(window) >= window_messages
        if full and key > last and key > self.delivered:
            self._end_window(entry)
            self._leave_out(entry)
            return 0
        if not room:
            fresh[key] = entry[BODY]
            entry = without_body(entry)
        grown = entry_bytes(entry)
        window = self.own_window()
        if key > last:
            window.append(entry)
        else:
            insort(window, entry)
        self.window_bytes += grown
        if not room:
            self._note_left_out()
        if full:
            grown -= self.cut(max(window_messages // 2, 1), self.window_bytes, fresh_ns, fresh)
        return grown

    def cut(
        self, messages_max: int, bytes_max: int, fresh_ns: int, fresh: dict[bytes, bytes]
    ) -> int:
        """Leave the newest messages to the store again, down to so many messages and bytes.

        Those at or below a delivered one stay; of them only the bodies go. Returns the bytes freed.
        """
        window = self.window
        before = self.window_bytes
        gone: Entry | None = None
        while window and (len(window) > messages_max or self.window_bytes > bytes_max):
            entry = window[-1]
            if entry[KEY] <= self.delivered:
                break
            gone = window.pop()
            self.window_bytes -= entry_bytes(gone)
            if gone[SINCE_NS] >= fresh_ns or gone[KEY] in fresh:
                # Of this very turn: the store cannot give it back before the commit.
                self._leave_out(gone)
        if gone is not None:
            self._end_window(gone)
            if not window:
                self.window = NO_WINDOW
        if self.window_bytes > bytes_max:
            self._strip(bytes_max, fresh_ns, fresh)
        return before - self.window_bytes

    def _end_window(self, following: Entry) -> None:
        """What is not in the window starts with `following`."""
        if self.window:
            self.horizon = max(self.window[-1][KEY], self.delivered)
        else:
            # As after a restart: the horizon tells the head's time.
            self.horizon = max(self.place_of(following[STAMP]), self.delivered)
            self.unread_delay = following[STALL_NS] < 0

    def _strip(self, bytes_max: int, fresh_ns: int, fresh: dict[bytes, bytes]) -> None:
        """Leave bodies to the store, the newest first."""
        entries = list(self.window)
        at = len(entries)
        while at and self.window_bytes > bytes_max:
            at -= 1
            entry = entries[at]
            if entry[BODY]:
                self.window_bytes -= entry_bytes(entry)
                entries[at] = without_body(entry)
                if entry[SINCE_NS] >= fresh_ns:
                    fresh[entry[KEY]] = entry[BODY]
        self.window.clear()
        self.window.extend(entries)
        self._note_left_out()

    def _note_left_out(self) -> None:
        """A lane without a horizon is one whose messages are all there, bodies and all."""
        if not self.horizon:
            self.horizon = max(self.window[-1][KEY], self.delivered)

    def lower_delivered(self, now: int) -> None:
        """The rows of what went before its time are gone: the horizon may lie below them again."""
        reached = MESSAGE_KEY.pack(self.queue.number, self.number, max(now, self.tail), LAST_ID)
        self.delivered = min(self.delivered, reached)

    def page(
        self,
        found: list[tuple[bytes, bytes]],
        complete: bool,
        room: int,
        fresh_ns: int,
        fresh: dict[bytes, bytes],
        taken: dict[bytes, None] | None = None,
    ) -> int:
        """Take in rows read from behind the horizon; `complete` when there are no further ones.

        Messages of the current turn, which the store does not show yet, are merged in. `room` is
        how many bytes the window may grow: what does not fit stays behind the horizon, but for the
        first message, which is then there without its body. What this turn has `taken` the store
        shows still. Returns how many bytes it grew.
        """
        leased = self.queue.leased
        entries = [entry_of(key, value) for key, value in found if key[ID_AT:] not in leased]
        if taken:
            entries = [entry for entry in entries if entry[KEY] not in taken]
        if self.unflushed:
            seen = {entry[KEY] for entry in entries}
            own = [entry for entry in self.unflushed if entry[KEY] not in seen]
            if complete:
                self.unflushed = None
            else:
                last = found[-1][0]
                self.unflushed = [entry for entry in own if entry[KEY] > last]
                own = [entry for entry in own if entry[KEY] <= last]
            entries = sorted(entries + own)
        self.horizon = b"" if complete else found[-1][0]
        grown = 0
        for entry in entries:
            size = len(entry[BODY])
            if size:
                grown += ENTRY_BYTES + size
        if grown > room:
            return self._squeeze(entries, room, fresh_ns, fresh)
        self.own_window().extend(entries)
        self.window_bytes += grown
        return grown

    def _squeeze(
        self, entries: list[Entry], room: int, fresh_ns: int, fresh: dict[bytes, bytes]
    ) -> int:
        """Take in as much of a page as there is room for."""
        window = self.own_window()
        grown = 0
        for at, entry in enumerate(entries):
            size = entry_bytes(entry)
            if grown + size > room:
                if window and entry[KEY] > self.delivered:
                    self._end_window(entry)
                    for one in entries[at:]:
                        if one[SINCE_NS] >= fresh_ns or one[KEY] in fresh:
                            self._leave_out(one)
                    break
                if entry[BODY] and entry[SINCE_NS] >= fresh_ns:
                    fresh[entry[KEY]] = entry[BODY]
                entry = without_body(entry)
                size = 0
            window.append(entry)
            grown += size
        self.window_bytes += grown
        self._note_left_out()
        return grown

    def throttled_at(self, now: int) -> int:
        """The throttle clock: unstalled time the lane stood parked at a gate, up to `now`."""
        if self.state != LANE_PARKED:
            return self.throttled_ns
        return self.throttled_ns + (now - self.queue.stall_at(now)) - self.parked_since

    def unpark(self, active_ns: int) -> None:
        """It is parked no more; its clocks tell so."""
        before = self.throttled_ns
        self.throttled_ns = before + active_ns - self.parked_since
        if self.cap_clock is not None:
            self.cap_clock.add(self.throttled_ns, self.at_cap)
        elif self.at_cap:
            self.cap_clock = CapClock(before, 0 if self.buckets else before)
            self.cap_clock.add(self.throttled_ns, at_cap=True)

    def capped_at(self, parked_ns: int) -> int:
        """How much of its first `parked_ns` of parked time it stood at a cap."""
        if self.state == LANE_PARKED and self.at_cap and parked_ns > self.throttled_ns:
            return self.capped_at(self.throttled_ns) + parked_ns - self.throttled_ns
        return self.cap_clock.at(parked_ns) if self.cap_clock is not None else 0

    def place_of(self, stamp: int) -> bytes:
        """Where messages with this stamp begin: below the keys of all of them."""
        return self.prefix + stamp.to_bytes(8, "big")

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


class Windowed:
    """The lanes of a queue that have something in memory, in the order they came to have it."""

    __slots__ = ("count", "newest", "oldest")

    def __init__(self) -> None:
        self.newest: Lane | None = None
        self.oldest: Lane | None = None
        self.count = 0

    def enter(self, lane: Lane) -> None:
        lane.windowed = True
        lane.older = self.newest
        if self.newest is not None:
            self.newest.newer = lane
        else:
            self.oldest = lane
        self.newest = lane
        self.count += 1

    def leave(self, lane: Lane) -> None:
        older, newer = lane.older, lane.newer
        if older is not None:
            older.newer = newer
        else:
            self.oldest = newer
        if newer is not None:
            newer.older = older
        else:
            self.newest = older
        lane.windowed = False
        lane.older = lane.newer = None
        self.count -= 1

    def set_back(self, lane: Lane) -> None:
        """Let it be the last to be looked at."""
        self.leave(lane)
        lane.windowed = True
        lane.newer = self.oldest
        if self.oldest is not None:
            self.oldest.older = lane
        else:
            self.newest = lane
        self.oldest = lane
        self.count += 1
