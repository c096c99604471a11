"""The memory for windows: one limit for all lanes, and who gives back when it is short.

Owns the count of bytes, which queues are being delivered, and the choice of what is cut. A message
may be in memory wherever there is room; that costs nobody anything. When there is none, room is
made for whoever is being delivered:

  - first at the cost of queues that have delivered nothing for a while: of them nothing needs to be
    in memory at all;
  - then, for a lane that has less than its claim, at the cost of lanes that have more than theirs.

The claim of a lane that takes part in the turns of a queue that delivers is an equal part: of the
limit among such queues, of that among the keys in the queue's ring, of that among a key's lanes. So
what all may claim together is within the limit, and a claim can always be met. Everybody else (a
lane that is parked, delayed or paused, a queue nobody consumes) claims nothing.

A little is kept free for pages (`mark`), and that much is taken back at once: to look for it costs
little per message, however many lanes there are.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from fila.core.lane import LANE_READY, Lane
from fila.core.queue import Queue

LOOKS_MAX: Final = 1_024  # lanes looked at for something to take back, at once


class Windows:
    __slots__ = (
        "_delivering",
        "_idle_ns",
        "_resting",
        "_rolls_ns",
        "bytes",
        "fresh",
        "fresh_ns",
        "limit",
        "mark",
        "unflushed",
    )

    def __init__(self, limit: int, idle_ns: int) -> None:
        self.limit = limit
        self.mark = limit - limit // 16  # what enqueues leave free
        self.bytes = 0
        self.unflushed: dict[Lane, None] = {}  # lanes with messages the store does not show yet
        self.fresh: dict[bytes, bytes] = {}  # bodies not kept in a window and not yet in the store
        # What came at this time or later may not be in the store yet. Until a turn begins: none.
        self.fresh_ns = 1 << 63
        self._idle_ns = idle_ns
        self._rolls_ns = 0
        self._delivering: OrderedDict[Queue, None] = OrderedDict()
        # The others that have something in memory.
        self._resting: OrderedDict[Queue, None] = OrderedDict()

    # --- who is being delivered

    def note(self, queue: Queue, now: int) -> None:
        """The queue delivers."""
        queue.notes_ns = now + self._idle_ns // 4
        self._delivering[queue] = None
        self._resting.pop(queue, None)
        self._roll(now)

    def enter(self, lane: Lane) -> None:
        """The lane has something in memory from now on."""
        queue = lane.queue
        queue.windowed.enter(lane)
        if queue not in self._delivering:
            self._resting[queue] = None

    def forget(self, queue: Queue) -> None:
        """The queue is gone."""
        self._delivering.pop(queue, None)
        self._resting.pop(queue, None)

    def stored(self, now: int) -> None:
        """The store shows everything that came up to now."""
        self.fresh_ns = now + 1
        for lane in self.unflushed:
            lane.unflushed = None
        self.unflushed.clear()
        self.fresh.clear()

    def _roll(self, now: int) -> None:
        """From time to time: which queues no longer deliver?"""
        if now < self._rolls_ns:
            return
        self._rolls_ns = now + self._idle_ns // 4
        idle = [queue for queue in self._delivering if queue.notes_ns + self._idle_ns <= now]
        for queue in idle:
            del self._delivering[queue]
            queue.notes_ns = 0
            if queue.windowed.count:
                self._resting[queue] = None

    # --- how much a lane may have

    def claim(self, lane: Lane) -> int:
        """The bytes a lane that is being delivered may have, whatever others would like."""
        queue = lane.queue
        queues = len(self._delivering) + (queue not in self._delivering)
        return self._part(lane) // queues

    def page_bytes(self, lane: Lane, bytes_max: int, few: bool, now: int) -> int:
        """How large a page of the lane may be now; not `few`: it is being delivered."""
        if not few and now >= lane.queue.notes_ns:
            self.note(lane.queue, now)
        wanted = min(self._part(lane), bytes_max)
        return min(self.room(lane, wanted, now, few), wanted)

    def room(self, lane: Lane, wanted: int, now: int, few: bool = False) -> int:
        """How many bytes the lane may take in. Up to `wanted` are taken back for it; with `few`
        from queues that rest alone."""
        free = self.limit - self.bytes
        if free >= wanted:
            return free
        self._roll(now)
        self._take_from_resting(lane.queue, self._goal(wanted))
        if not few:
            claimed = min(wanted, self.claim(lane) - lane.window_bytes)
            if self.limit - self.bytes < claimed:
                self._take_excess(lane, self._goal(claimed))
        return self.limit - self.bytes

    def _part(self, lane: Lane) -> int:
        """What it could claim if no other queue delivered."""
        key = lane.key
        return self.mark // (lane.queue.ring.keys + (not key.active)) // len(key.lanes)

    def _goal(self, wanted: int) -> int:
        return min(self.mark, max(self.limit - wanted, 0))

    # --- taking back

    def _take_from_resting(self, own: Queue, goal: int) -> None:
        """Cut windows of queues that deliver nothing, until all windows together have `goal`."""
        resting = self._resting
        if own in resting:
            resting.move_to_end(own)
        while self.bytes > goal and resting:
            queue = next(iter(resting))
            if queue is own:
                return
            lane = queue.windowed.newest
            if lane is None:
                del resting[queue]
            else:
                self._cut(lane, 0)

    def _take_excess(self, lane: Lane, goal: int) -> None:
        """Cut lanes of queues that deliver to what they may claim."""
        delivering = self._delivering
        looks = LOOKS_MAX
        queues = len(delivering)
        while self.bytes > goal and queues > 0 and looks > 0:
            queue = next(iter(delivering))
            # The newest first: those that were just visited have their next turn last.
            lanes = queue.windowed.count
            while self.bytes > goal and lanes > 0 and looks > 0:
                other = queue.windowed.newest
                assert other is not None
                lanes -= 1
                looks -= 1
                if other is lane:
                    queue.windowed.set_back(other)
                    continue
                claim = self.claim(other) if other.state == LANE_READY else 0
                self._cut(other, claim)
            if lanes == 0:
                queues -= 1
                delivering.move_to_end(queue)

    def _cut(self, lane: Lane, bytes_max: int) -> None:
        windowed = lane.queue.windowed
        if bytes_max == 0 or lane.window_bytes > bytes_max:
            messages_max = len(lane.window) if bytes_max else 0
            self.bytes -= lane.cut(messages_max, bytes_max, self.fresh_ns, self.fresh)
            if lane.unflushed:
                self.unflushed[lane] = None
        if lane.window_bytes:
            windowed.set_back(lane)
        else:
            windowed.leave(lane)
