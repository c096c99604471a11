"""Purge: pending messages of a queue, or of one of its keys, are dropped; what is leased stays.

Rows behind the last key a lane ever delivered are pending, all of them, so a lane is emptied by one
range delete and single deletes of what was handed back before that. Neighbouring lanes without
leases share one range. So a purge costs per lane, not per message, however deep the backlog.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from fila.core import effect, rows
from fila.core.command import Purge
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.entry import KEY
from fila.core.fairness import FairnessKey
from fila.core.lane import LANE_EMPTY, Lane
from fila.core.queue import Queue
from fila.core.readiness import make_unready
from fila.core.row_batch import DELETE_MESSAGE, DELETE_RANGE
from fila.core.state import State

_number: Final = attrgetter("number")

LaneName = tuple[bytes, tuple[bytes, ...]]  # fairness key, throttle keys


class Purgeable:
    """What a purge would empty: lanes in the order of their numbers. They are gathered some at a
    time, and let go of as they are taken."""

    __slots__ = ("_lanes", "_ordered", "_parts", "complete", "left", "next_lane")

    def __init__(self, keys: list[FairnessKey], next_lane: int) -> None:
        self._lanes = (lane for key in keys for lane in list(key.lanes.values()))
        self._parts: list[deque[Lane]] = []  # each in order
        self._ordered: Iterator[Lane] = iter(())
        self.complete = False  # whether every lane is gathered
        self.left = 0  # gathered and not taken
        self.next_lane = next_lane  # a lane with this number or a higher one was made later

    def gather(self, lanes_max: int) -> int:
        """Look at up to `lanes_max` more of the lanes that existed at the beginning. Returns how
        many it looked at. A lane that was forgotten since then was empty."""
        seen = list(islice(self._lanes, lanes_max))
        found = [lane for lane in seen if lane.number < self.next_lane and not lane.forgotten]
        found.sort(key=_number)
        self.left += len(found)
        self._parts.append(deque(found))
        self.complete = len(seen) < lanes_max
        if self.complete:
            self._ordered = heapq.merge(*map(_drained, self._parts), key=_number)
        return len(seen)

    def take(self, count: int) -> list[LaneName]:
        """The first so many, as a Purge names them, when all are gathered."""
        found = [(lane.key.name, lane.throttle_keys) for lane in islice(self._ordered, count)]
        self.left -= len(found)
        return found


def _drained(lanes: deque[Lane]) -> Iterator[Lane]:
    while lanes:
        yield lanes.popleft()


def purgeable(queue: Queue, fairness_key: bytes | None) -> Purgeable:
    """What a purge would empty. For the whole queue that names empty lanes, too: rows between two
    lanes may only go together with every lane that stands between them."""
    if fairness_key is None:
        keys = list(queue.keys.values())
    else:
        keys = [queue.keys[fairness_key]] if fairness_key in queue.keys else []
    return Purgeable(keys, queue.next_lane)


def purge(state: State, queue: Queue, command: Purge) -> int:
    """Empty the lanes. Returns how many messages went."""
    lanes = []
    for fairness_key, throttle_keys in command.lanes:
        key = queue.keys.get(fairness_key)
        lane = key.lanes.get(throttle_keys) if key is not None else None
        if lane is not None:  # else forgotten since it was named: it had nothing
            lanes.append(lane)
    _delete_rows(state, queue, lanes, command.next_lane if command.whole else 0)
    purged = 0
    for lane in lanes:
        purged += _empty(state, lane, command.who)
    queue.counters.purged += purged
    return purged


def _delete_rows(state: State, queue: Queue, lanes: list[Lane], next_lane: int) -> None:
    """Whoever stands between two of these lanes with numbers below `next_lane` was named as well. A
    lane that was made again since has a higher number, and others may stand before it."""
    ops = state.ops(queue.group)
    begin = end = b""  # the range that is being gathered
    for lane in sorted(lanes, key=lambda lane: lane.number):
        start = lane.prefix
        if lane.leased:
            start = lane.delivered + b"\0"
            for entry in lane.window:
                if entry[KEY] > lane.delivered:
                    break
                ops.append((DELETE_MESSAGE, entry[KEY], b""))
        joins = end and not lane.leased and (lane.number < next_lane or end == lane.prefix)
        if not joins:
            _delete(state, queue, begin, end)
            begin = start
        end = rows.after(lane.prefix)
    _delete(state, queue, begin, end)


def _delete(state: State, queue: Queue, begin: bytes, end: bytes) -> None:
    if end:
        state.ops(queue.group).append((DELETE_RANGE | rows.MESSAGES, begin, end))


def _empty(state: State, lane: Lane, who: str) -> int:
    count = lane.pending
    if count == 0:
        return 0
    key = lane.key
    queue = lane.queue
    state.windows.bytes -= lane.window_bytes
    lane.window_bytes = 0
    lane.window.clear()
    lane.horizon = b""
    lane.unflushed = None
    state.windows.unflushed.pop(lane, None)
    state.purged[lane] = None
    if lane.later is not None:
        lane.later.forget()
        lane.later = None
    state.times.not_before_ns = state.now + 1  # the store shows what is gone until the commit
    lane.weigh(-lane.weighed)
    lane.pending = 0
    key.pending -= count
    queue.pending -= count
    if key.pending == 0:
        queue.keys_pending -= 1
    state.touch(lane)
    was_active = key.active
    make_unready(state, lane, LANE_EMPTY)
    if state.journal:
        state.events.append(
            Event(
                state.now,
                effect.EVENT_PURGED,
                queue.name,
                fairness_key=key.name,
                throttle_keys=lane.throttle_keys,
                key_pending=key.pending,
                key_eligible=eligible(key, state.now),
                active_keys=queue.ring.keys,
                reason=f"messages={count}",
                consumer=who,
                ring_delta=key.active - was_active,
                queue_delivered=queue.ring.handed_out,
            )
        )
    if lane.leased == 0:
        state.rest(lane)
    return count
