"""Leases that are handed back, some per turn: those of consumers that left and let go of them.

Owns which lease is next: of all these consumers the one that was made first, so that messages
come back to their lanes oldest first, each behind those that are back already.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.lease import Consumer, Lease
    from fila.core.queue import Queue


class Returning:
    __slots__ = ("heap",)

    def __init__(self) -> None:
        # Number of a consumer's first lease, its id, which is unique, and all its leases. When it
        # is empty there is nothing to do.
        self.heap: list[tuple[int, str, deque[Lease]]] = []

    def __bool__(self) -> bool:
        return self.first() is not None

    def add(self, consumer: Consumer) -> None:
        """All it holds goes back from now on."""
        consumer.returning = True
        leases = deque(consumer.leases.values())
        if leases:
            heapq.heappush(self.heap, (leases[0].number, consumer.id, leases))

    def first(self) -> Lease | None:
        """The lease that goes back next, if any."""
        heap = self.heap
        while heap:
            number, id, leases = heap[0]
            while leases and leases[0].remaining == 0:
                leases.popleft()
            if not leases:
                heapq.heappop(heap)
            elif leases[0].number == number:
                return leases[0]
            else:
                heapq.heapreplace(heap, (leases[0].number, id, leases))
        return None

    def forget(self, queue: Queue) -> None:
        """It is gone, and all its leases with it."""
        self.heap = [one for one in self.heap if not _is_of(one[2], queue)]
        heapq.heapify(self.heap)


def _is_of(leases: deque[Lease], queue: Queue) -> bool:
    consumer = leases[0].consumer if leases else None
    return consumer is not None and consumer.queue is queue
