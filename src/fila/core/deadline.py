"""One heap of everything that happens by itself: the machine says when it next wants to wake."""

from __future__ import annotations

import heapq
from typing import Final

# Alarms are (at_ns, serial, owner). Nothing is taken out of the middle: an alarm counts only while
# its owner's armed_ns still equals at_ns, and stale ones are swept when they outnumber the living.
_SWEEP_MIN: Final = 1_024


class Sleeper:
    """Something that may be woken at a time: a lane, bucket, queue, lease or lease batch."""

    __slots__ = ("armed_ns",)

    def __init__(self) -> None:
        self.armed_ns = 0  # when it will be woken; 0: it is not armed


class Deadlines:
    __slots__ = ("_armed", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._serial = 0
        self._armed = 0

    def arm(self, owner: Sleeper, at_ns: int) -> None:
        """Wake `owner` at `at_ns`, and no longer when it was armed for before."""
        if owner.armed_ns == at_ns:
            return
        if owner.armed_ns == 0:
            self._armed += 1
        owner.armed_ns = at_ns
        self._serial += 1
        heapq.heappush(self._heap, (at_ns, self._serial, owner))
        if len(self._heap) > 2 * self._armed + _SWEEP_MIN:
            self._sweep()

    def disarm(self, owner: Sleeper) -> None:
        if owner.armed_ns:
            owner.armed_ns = 0
            self._armed -= 1
            if len(self._heap) > 2 * self._armed + _SWEEP_MIN:
                self._sweep()

    def next_ns(self) -> int:
        """When the first deadline falls; 0 when there is none."""
        heap = self._heap
        while heap:
            at_ns, _, owner = heap[0]
            if owner.armed_ns == at_ns:
                return at_ns
            heapq.heappop(heap)
        return 0

    def pop(self) -> Sleeper:
        """The owner whose deadline `next_ns` told; it is disarmed."""
        at_ns, _, owner = heapq.heappop(self._heap)
        assert owner.armed_ns == at_ns
        owner.armed_ns = 0
        self._armed -= 1
        return owner

    def _sweep(self) -> None:
        self._heap = [alarm for alarm in self._heap if alarm[2].armed_ns == alarm[0]]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)
