"""Messages of a lane that wait for their time: what is pending there and not due yet, as a number.

Nothing happens when a delayed message comes due in a lane that may go anyway, so the number has to
be kept by time. The nearest times are in memory, each with how many wait for it; of what lies
beyond them there is a count. Before their time comes the next ones are read from the store, so
memory does not grow with the number of delayed messages. After a restart the number is unknown
until the store was asked; so it is where more times came than are in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

from fila.core.reader import Reader

TIMES: Final = 256  # of one lane in memory; twice as many before some are put beyond
TIMES_MAX: Final = 262_144  # of all lanes together
UNKNOWN: Final = -1
_NEVER_NS: Final = 1 << 62
_ROW_NS: Final = 50_000  # a row read for its time pauses further reading for so long


class Times:
    """What all lanes share: the store to ask, how often it may be, and how many times are kept."""

    __slots__ = ("kept", "not_before_ns", "reader", "unread")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.not_before_ns = 0
        self.kept = 0
        # Stands for every lane nothing is known of yet; each gets its own when somebody asks.
        self.unread = Later(self, UNKNOWN)

    def read_rows(self, count: int, now: int) -> None:
        """So many were read: only a small part of the time may go into it."""
        self.not_before_ns = now + (count + 1) * _ROW_NS


class Later:
    __slots__ = ("beyond", "beyond_ns", "counts", "near", "stuck_ns", "sum", "times")

    def __init__(self, times: Times, beyond: int = 0) -> None:
        self.times = times
        self.near: list[int] = []  # rising
        self.counts: dict[int, int] = {}  # how many wait for each
        self.sum = 0  # of those
        self.beyond = beyond  # how many wait longer; UNKNOWN: nothing is known
        self.beyond_ns = 0  # none of them before this; UNKNOWN: not to be looked for before this
        self.stuck_ns = 0  # more wait for this time than are read at once

    def add(self, stamp: int, count: int = 1) -> None:
        if self.beyond == UNKNOWN:
            return
        if self.beyond and stamp >= self.beyond_ns:
            self.beyond += count
            return
        known = self.counts.get(stamp, 0)
        self.counts[stamp] = known + count
        self.sum += count
        if known == 0:
            insort(self.near, stamp)
            self.times.kept += 1
            if len(self.near) > 2 * TIMES:
                self._cut(TIMES)
            elif self.times.kept > TIMES_MAX:
                self._cut(len(self.near) - 1)

    def remove(self, stamp: int) -> None:
        """A message of this time is gone, whether it was due by now or not."""
        count = self.counts.get(stamp, 0)
        if count > 1:
            self.counts[stamp] = count - 1
            self.sum -= 1
        elif count == 1:
            del self.near[bisect_left(self.near, stamp)]
            self._drop([stamp])
        elif self.beyond > 0 and stamp >= self.beyond_ns:
            self.beyond -= 1

    def pass_to(self, now: int) -> None:
        """What is due by now waits no more. Some beyond may be among it, unseen."""
        near = self.near
        if near and near[0] <= now:
            due = bisect_right(near, now)
            self._drop(near[:due])
            del near[:due]
        if self.beyond > 0 and self.beyond_ns <= now:
            self.forget()
            self.beyond = UNKNOWN

    def count(self) -> int:
        """As of the last `pass_to`; UNKNOWN where it cannot be said."""
        return UNKNOWN if self.beyond == UNKNOWN else self.sum + self.beyond

    def wants_more(self, now: int) -> bool:
        """Whether the lane should be looked through."""
        if self.beyond == UNKNOWN:
            return now >= self.beyond_ns
        return self.beyond > 0 and len(self.near) < TIMES // 4 and self.stuck_ns < self.beyond_ns

    def read_from(self, now: int) -> int:
        """From which time on."""
        return now + 1 if self.beyond == UNKNOWN else self.beyond_ns

    def found(self, stamps: list[int], complete: bool) -> None:
        """Those from `read_from` on, in order; `complete`: there are no further ones."""
        if not complete:
            if self.beyond == UNKNOWN:
                # Too many to count. There are fewer when half of these are due.
                self.beyond_ns = stamps[len(stamps) // 2] if stamps else 0
                return
            # Of the last one there may be more.
            beyond_ns = stamps[-1] if stamps else self.beyond_ns
            stamps = stamps[: bisect_left(stamps, beyond_ns)]
            if not stamps:
                self.stuck_ns = beyond_ns
            self.beyond -= len(stamps)
            self.beyond_ns = beyond_ns
            kept = self.beyond
        else:
            kept = 0
        self.beyond = 0
        for stamp in stamps:
            self.add(stamp)
        self.beyond += kept

    def forget(self) -> None:
        self._drop(self.near)
        self.near = []

    def lose(self) -> None:
        """The store cannot tell: it is not asked again."""
        self.forget()
        self.beyond = UNKNOWN
        self.beyond_ns = _NEVER_NS

    def _cut(self, kept: int) -> None:
        """Keep only so many of the nearest times; what waits for others is counted."""
        cut = self.near[kept:]
        del self.near[kept:]
        self.beyond_ns = cut[0]
        self.beyond += self._drop(cut)

    def _drop(self, stamps: list[int]) -> int:
        count = 0
        for stamp in stamps:
            count += self.counts.pop(stamp)
        self.sum -= count
        self.times.kept -= len(stamps)
        return count
