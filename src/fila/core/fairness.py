"""Fairness keys and their ring: Deficit Round Robin, one visit after the other.

A visit adds weight × quantum to the key's deficit; each message costs 1; the visit ends when the
deficit is used up. So between visits a deficit is 0, and a deficit above 0 means that the visit is
under way. Where a message costs its bytes, the last one of a visit may cost more than is left: then
the deficit is below 0 until later visits have paid (`byte_cost.py`). The ring is a circular doubly
linked list through the keys themselves: the next visit is one pointer away, joining and leaving are
O(1) whatever the number of keys.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fila.core.busy import FRACTION
from fila.core.service import Counted

if TYPE_CHECKING:
    from fila.core.bucket import Cap
    from fila.core.lane import Lane
    from fila.core.meter import Meter
    from fila.core.pause import Pause


NO_OTHERS: Final[list[tuple[int, int, int, Lane]]] = []  # of all keys with one lane; never changed
STALE_MIN: Final = 64


class FairnessKey(Counted):
    __slots__ = (
        "active",
        "after",
        "before",
        "bytes",
        "cap",
        "carried",
        "deficit",
        "entitled",
        "granted",
        "held_clock",
        "held_then",
        "joined",
        "joined_had",
        "lane",
        "lanes",
        "leased",
        "meter",
        "number",
        "others",
        "owes_until",
        "pause",
        "pending",
        "serial",
        "stale",
        "told_weight",
        "weighed",
        "weight",
    )

    def __init__(self, name: bytes, number: int = 0) -> None:
        super().__init__(name)
        self.number = number  # its first lane's: a key that was forgotten comes back with another
        self.weight = 1
        self.told_weight = 1  # by its newest message: the same, unless it has an override
        self.weighed = 0  # bytes that wait, where its queue counts them
        self.deficit = 0
        self.granted = 0  # the deficit with which the visit under way began
        # Where messages cost their bytes:
        self.carried = 0  # the deficit before the visit under way: 0, or below
        self.owes_until = 0.0  # when others have had as much, by the ring's clock
        self.bytes = 0  # delivered
        self.pending = 0
        self.leased = 0  # in flight
        # Its part of the queue's busy time, and the integral when it was counted (`busy.py`).
        self.held_clock = 0
        self.held_then = 0
        self.active = False  # stands in the ring
        # Messages it was entitled to by weight while it stood in the ring, up to its last joining.
        self.entitled = 0.0
        self.joined = 0.0  # the ring's clock at that moment
        self.joined_had = 0  # and what had been delivered of it
        self.meter: Meter | None = None  # made when somebody measures
        self.pause: Pause | None = None
        self.cap: Cap | None = None  # of what is in flight; made when its queue first has one
        self.before: FairnessKey | None = None
        self.after: FairnessKey | None = None
        self.lanes: dict[tuple[bytes, ...], Lane] = {}
        # Among the lanes that may go the oldest head goes first: `lane` is that candidate, the
        # others wait in a heap of (head stamp, lane number, serial, lane). Nearly always there is
        # one lane. An entry counts while its lane still has its serial; the first one always does.
        self.lane: Lane | None = None
        self.others = NO_OTHERS
        self.serial = 0
        self.stale = 0  # entries that do not count

    def count_held(self, integral: int) -> None:
        """What is in flight of it changes. Nothing to count while `held_then` is the integral, so
        that those who change `leased` for every message look first."""
        self.held_clock += self.leased * (integral - self.held_then)
        self.held_then = integral

    def held_ns(self, integral: int) -> int:
        """Busy time that fell to its own messages in flight."""
        return (self.held_clock + self.leased * (integral - self.held_then)) >> FRACTION

    def add_lane(self, lane: Lane, active_ns: int) -> None:
        """A lane may go now. `active_ns` is the queue's clock of unstalled time."""
        current = self.lane
        stamp = lane.head_stamp()
        if current is None:
            self.lane = lane
            lane.head_active_ns += active_ns - lane.lost_since
        elif stamp < current.head_stamp():
            self._promote(lane, current, active_ns)
            self._push(current.head_stamp(), current)
        else:
            self._push(stamp, lane)

    def drop_lane(self, lane: Lane, active_ns: int) -> None:
        """A lane may no longer go: it is empty, delayed or parked."""
        if self.lane is lane:
            lane.lost_since = active_ns
            if self.others:
                self.lane = first = heapq.heappop(self.others)[3]
                first.stands = 0
                first.head_active_ns += active_ns - first.lost_since
                self._sweep()
            else:
                self.lane = None
        else:
            lane.stands = 0
            self.stale += 1
            self._sweep()

    def add_lanes(self, lanes: list[Lane], active_ns: int) -> None:
        """Many may go now, where none did before."""
        entries = []
        for lane in lanes:
            self.serial = lane.stands = self.serial + 1
            entries.append((lane.head_stamp(), lane.number, lane.stands, lane))
        heapq.heapify(entries)
        self.stale = 0
        self.others = entries
        if entries:
            self.lane = first = heapq.heappop(entries)[3]
            first.stands = 0
            first.head_active_ns += active_ns - first.lost_since

    def drop_lanes(self, active_ns: int) -> None:
        """None may go any more."""
        if self.lane is not None:
            self.lane.lost_since = active_ns
        for _, _, _, lane in self.others:
            lane.stands = 0
        self.lane = None
        self.others = NO_OTHERS
        self.stale = 0

    def standing(self) -> Iterator[Lane]:
        """The lanes that may go, beside the candidate."""
        for _, _, serial, lane in self.others:
            if lane.stands == serial:
                yield lane

    def reorder(self, active_ns: int) -> None:
        """The candidate's head changed: let the lane with the oldest head be the candidate."""
        current = self.lane
        if current is None or not self.others:
            return
        stamp = current.head_stamp()
        if self.others[0][0] < stamp:
            self.serial = current.stands = self.serial + 1
            entry = (stamp, current.number, current.stands, current)
            oldest = heapq.heapreplace(self.others, entry)[3]
            oldest.stands = 0
            self._promote(oldest, current, active_ns)
            if self.stale:
                self._sweep()

    def _push(self, stamp: int, lane: Lane) -> None:
        if self.others is NO_OTHERS:
            self.others = []
        self.serial = lane.stands = self.serial + 1
        heapq.heappush(self.others, (stamp, lane.number, lane.stands, lane))

    def _sweep(self) -> None:
        """Let the first entry be one that counts, and most of them."""
        others = self.others
        while others and others[0][3].stands != others[0][2]:
            heapq.heappop(others)
            self.stale -= 1
        if self.stale > STALE_MIN + len(others) // 2:
            self.others = [other for other in others if other[3].stands == other[2]]
            heapq.heapify(self.others)
            self.stale = 0

    def _promote(self, lane: Lane, current: Lane, active_ns: int) -> None:
        current.lost_since = active_ns
        lane.head_active_ns += active_ns - lane.lost_since
        self.lane = lane


class Ring:
    __slots__ = (
        "by_bytes",
        "bytes",
        "clock",
        "emptied",
        "handed_out",
        "head",
        "keys",
        "visits",
        "weight",
    )

    def __init__(self, by_bytes: bool = False) -> None:
        self.by_bytes = by_bytes  # a message costs its bytes, not 1
        self.bytes = 0  # delivered, where that is what they cost
        self.emptied = 0.0  # what the clock said when the last key left
        self.head: FairnessKey | None = None  # whose visit is under way or comes next
        self.keys = 0
        self.weight = 0  # sum of the weights of the keys in the ring
        # Fair time: every message moves it by its cost / weight, so that a key is entitled to its
        # weight times what passes while it stands in the ring, and a full round takes one quantum.
        self.clock = 0.0
        self.visits = 0
        self.handed_out = 0  # messages, while events are recorded

    def join(self, key: FairnessKey) -> None:
        """A newcomer stands at the end: it waits for one visit of every other key."""
        head = self.head
        if head is None:
            key.before = key.after = key
            self.head = key
        else:
            last = head.before
            assert last is not None
            key.before = last
            key.after = head
            last.after = key
            head.before = key
        key.active = True
        if key.owes_until:
            if key.owes_until > self.clock and key.joined >= self.emptied:
                key.deficit = -math.ceil((key.owes_until - self.clock) * key.weight)
            key.owes_until = 0.0
        key.joined = self.clock
        key.joined_had = key.served
        self.keys += 1
        self.weight += key.weight

    def leave(self, key: FairnessKey) -> None:
        before, after = key.before, key.after
        assert before is not None and after is not None
        if after is key:
            self.head = None
        else:
            before.after = after
            after.before = before
            if self.head is key:
                self.head = after
        key.before = key.after = None
        # Who leaves with nothing more to send has had what it was entitled to.
        if key.pending:
            key.entitled = self.entitled(key)
        else:
            key.entitled = float(key.bytes if self.by_bytes else key.served)
        key.active = False
        self.keys -= 1
        self.weight -= key.weight
        if self.keys == 0:
            self.emptied = self.clock

    def set_weight(self, key: FairnessKey, weight: int) -> None:
        """The weight of the newest message counts from the key's next visit."""
        if key.active:
            key.entitled = self.entitled(key)
            key.joined = self.clock
            key.joined_had = key.served
            self.weight += weight - key.weight
        key.weight = weight

    def let_go(self, key: FairnessKey) -> None:
        """The key takes no turns: what is left of its visit is void. What it owes is owed until
        the others have had as much, unless there are none: who had what nobody wanted owes nothing.
        """
        if key.deficit > 0:
            key.deficit = key.carried if key.deficit == key.granted else 0
        if key.deficit < 0:
            key.owes_until = self.clock - key.deficit / key.weight
            key.deficit = 0

    def entitled(self, key: FairnessKey) -> float:
        """What the key was entitled to up to now, in messages, or in bytes if they cost these.

        Its weight's part of what was handed out while it stood in the ring, but never more
        messages than it had to send: one with a few is not owed what it could not have used."""
        if not key.active:
            return key.entitled
        entitled = key.entitled + key.weight * (self.clock - key.joined)
        if self.by_bytes:
            return entitled
        wanted = float(key.served + key.pending)
        return entitled if entitled < wanted else wanted
