"""A queue's lanes by the age of their oldest message: where a redrive goes on, step after step.

Kept while dead letters of the queue are moved. Every lane with messages has an entry whose stamp is
at most its head's: one whose head is younger by now is put right when it comes to the front, one
whose head is older is told by `readiness.new_head`. So finding the oldest costs the same however
many lanes there are, and none is read before its turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import islice
from typing import Protocol


class Headed(Protocol):
    """A lane, as far as this module looks."""

    pending: int
    forgotten: bool
    number: int

    def head_stamp(self) -> int: ...


class Heads:
    __slots__ = ("_heap", "_lanes", "_serial", "complete")

    def __init__(self, lanes: Iterable[Headed]) -> None:
        self._lanes = iter(lanes)
        self._heap: list[tuple[int, int, int, Headed]] = []  # stamp, lane number, serial
        self._serial = 0
        self.complete = False  # whether every lane has been looked at

    def gather(self, lanes_max: int) -> int:
        """Look at so many more of the lanes there were at the beginning; how many it were."""
        seen = 0
        for lane in islice(self._lanes, lanes_max):
            seen += 1
            self.add(lane)
        self.complete = seen < lanes_max
        return seen

    def add(self, lane: Headed) -> None:
        if lane.pending and not lane.forgotten:
            self._serial += 1
            heapq.heappush(self._heap, (lane.head_stamp(), lane.number, self._serial, lane))

    def pop(self) -> Headed | None:
        """Take the lane with the oldest head out. Whoever leaves something in it adds it again."""
        heap = self._heap
        while heap:
            stamp, number, _, lane = heapq.heappop(heap)
            while heap and heap[0][0] == stamp and heap[0][1] == number:
                heapq.heappop(heap)  # of several entries of a lane at most one is true
            if lane.pending and not lane.forgotten:
                if lane.head_stamp() == stamp:
                    return lane
                self.add(lane)
        return None
