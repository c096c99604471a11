"""Browsing: a queue's messages as of one moment, read in ranges without taking anything.

Pure like the rest of the core: it says where ranges begin and end, and reads pages of a snapshot's
rows. A page looks at a bounded number of rows, whether they are wanted or not.

Whether a message is leased is told by the snapshot's own lease rows, so a page never mixes the
present with the past: a lease names a message by its whole key, and a message that was retried
since has another.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Generator
from itertools import islice, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from fila.core import rows
from fila.core.entry import STAMP, Entry, entry_of, had_delay, key_in_queue, lane_prefix_of
from fila.core.lane import Lane
from fila.core.queue import Queue
from fila.core.reader import Reader, missing

BROWSE_READY: Final = 1
BROWSE_DELAYED: Final = 2
BROWSE_LEASED: Final = 4
BROWSE_ALL: Final = BROWSE_READY | BROWSE_DELAYED | BROWSE_LEASED
STEP_LANES: Final = 1_024  # looked at in one step
_ALL: Final = 1 << 62
_STAMP_END: Final = (1 << 64) - 1

_number: Final = attrgetter("number")

Range = tuple[bytes, bytes]


class Seen(NamedTuple):
    """A message on a page."""

    entry: Entry
    lane: rows.LaneRow
    state: int


class Page(NamedTuple):
    messages: list[Seen]
    next: bytes  # where the next page starts; empty: the range is read


class StoredPage(NamedTuple):
    """A page as it stands in the store, for those who take it apart by columns."""

    rows: list[tuple[bytes, bytes]]
    lanes: list[tuple[rows.LaneRow, int]]  # of so many rows that follow one another
    leased: list[bool]  # which of them; empty: none
    now_ns: int
    next: bytes


def count(queue: Queue, fairness_key: bytes | None) -> int:
    """How many messages a browse would find now."""
    if fairness_key is None:
        return queue.pending + len(queue.leased)
    return sum([lane.pending + lane.leased for lane in lanes_of(queue, fairness_key)])


def ranges(queue: Queue, fairness_key: bytes | None, parts: int) -> list[Range]:
    """Ranges of keys without overlap that hold all of it, each with about the same share.

    Within a lane shares are guessed from its stamps, as if messages had come evenly.
    """
    steps = ranges_in_steps(queue, fairness_key, parts)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[Range] = end.value
            return found


def ranges_in_steps(
    queue: Queue, fairness_key: bytes | None, parts: int
) -> Generator[int, None, list[Range]]:
    """The same in steps, after each of which it says how many lanes it looked at. Between two of
    them lanes may come, go and change: then shares differ more, and nothing else."""
    if fairness_key is None:
        keys = list(queue.keys.values())
        lanes = (lane for key in keys for lane in list(key.lanes.values()) if _holds(lane))
    else:
        lanes = (lane for lane in lanes_of(queue, fairness_key))
    total = 0
    ordered: list[list[Lane]] = []
    while not ordered or len(ordered[-1]) == STEP_LANES:
        some = sorted(islice(lanes, STEP_LANES), key=_number)
        total += sum([lane.pending + lane.leased for lane in some])
        ordered.append(some)
        if len(some) == STEP_LANES:
            yield STEP_LANES
    share = max(1, -(-total // parts))
    edges = [rows.queue_prefix(queue.number)]
    found: list[Range] = []
    filled = 0
    for at, lane in enumerate(heapq.merge(*ordered, key=_number)):
        if fairness_key is None:
            cuts, filled = _cuts(lane, share, filled)
            edges += cuts
        else:
            own = [lane.prefix, *_cuts(lane, share, 0)[0], rows.after(lane.prefix)]
            found += list(pairwise(own))
        if at % STEP_LANES == STEP_LANES - 1:
            yield STEP_LANES
    if fairness_key is not None:
        return found
    edges.append(rows.after(edges[0]))
    return list(pairwise(edges))


class Snapshot:
    """What is remembered of a snapshot between its pages."""

    def __init__(self, reader: Reader, queue: Queue, now_ns: int) -> None:
        self._reader = reader
        self._number = queue.number
        self._now_ns = now_ns
        self._leased: set[bytes] | None = None
        self._lanes: dict[bytes, rows.LaneRow] = {}

    def page(self, start: bytes, end: bytes, states: int, rows_max: int, bytes_max: int) -> Page:
        """Read on from `start`. What lies outside of the queue is not looked at."""
        found, following = self._read(start, end, rows_max, bytes_max)
        leased = self._leases()
        messages = []
        lane_key = b""
        lane = None
        for key, value in found:
            entry = entry_of(key, value)
            if key_in_queue(key) in leased:
                state = BROWSE_LEASED
            elif had_delay(entry) and entry[STAMP] > self._now_ns:
                state = BROWSE_DELAYED
            else:
                state = BROWSE_READY
            if not states & state:
                continue
            if lane is None or lane_prefix_of(key) != lane_key:
                lane_key = lane_prefix_of(key)
                lane = self._lane(lane_key)
            messages.append(Seen(entry, lane, state))
        return Page(messages, following)

    def stored_page(self, start: bytes, end: bytes, rows_max: int, bytes_max: int) -> StoredPage:
        """The same rows, whatever state they are in, with nothing made of each of them."""
        found, following = self._read(start, end, rows_max, bytes_max)
        lanes = []
        at = 0
        while at < len(found):
            prefix = lane_prefix_of(found[at][0])
            behind = bisect_left(found, (rows.after(prefix), b""), at)
            lanes.append((self._lane(prefix), behind - at))
            at = behind
        leased = self._leases()
        leases = [key_in_queue(key) in leased for key, _ in found] if leased else []
        return StoredPage(found, lanes, leases, self._now_ns, following)

    def _read(
        self, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Rows from `start` on, and where the next ones start."""
        prefix = rows.queue_prefix(self._number)
        start = max(start, prefix)
        end = min(end, rows.after(prefix))
        if start >= end:
            return [], b""
        found = self._reader.scan(rows.MESSAGES, start, end, rows_max, bytes_max)
        size = sum([len(key) + len(value) for key, value in found])
        complete = len(found) < rows_max and size < bytes_max
        return found, b"" if complete else found[-1][0] + b"\0"

    def _lane(self, prefix: bytes) -> rows.LaneRow:
        lane = self._lanes.get(prefix)
        if lane is None:
            value = self._reader.get(rows.STATE, rows.LANE_PREFIX + prefix)
            if value is None:
                raise missing("a lane", rows.MESSAGES, prefix)
            lane = self._lanes[prefix] = rows.read_lane(value)
            if len(self._lanes) > 4_096:
                self._lanes = {prefix: lane}
        return lane

    def _leases(self) -> set[bytes]:
        if self._leased is None:
            prefix = rows.queue_prefix(self._number)
            found = self._reader.scan(rows.LEASES, prefix, rows.after(prefix), _ALL, _ALL)
            messages = [rows.read_lease(value).messages for _, value in found]
            self._leased = {message for some in messages for message in some}
        return self._leased


def lanes_of(queue: Queue, fairness_key: bytes) -> list[Lane]:
    """The lanes of a key that hold something."""
    key = queue.keys.get(fairness_key)
    return [lane for lane in key.lanes.values() if _holds(lane)] if key is not None else []


def _holds(lane: Lane) -> bool:
    return lane.pending > 0 or lane.leased > 0


def _cuts(lane: Lane, share: int, filled: int) -> tuple[list[bytes], int]:
    """Where ranges end inside of a lane when `filled` messages of the present one came before it;
    and how many of this lane the last one has."""
    messages = lane.pending + lane.leased
    first = lane.head_stamp() if lane.pending else lane.tail
    last = max(lane.tail, first)
    cuts: list[bytes] = []
    at = share - filled  # messages of this lane before the next cut
    while at < messages:
        stamp = min(first + (last - first) * at // messages, _STAMP_END)
        edge = lane.place_of(stamp)
        if not cuts or edge > cuts[-1]:
            cuts.append(edge)
        at += share
    return cuts, messages - (at - share)
