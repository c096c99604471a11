"""What is left in memory of a queue that went: taken apart some objects per turn, then free.

A queue, its keys, lanes, consumers and leases refer to each other, so none would be freed by
itself, and the cycle collector hardly ever looks at what is old (`server/collector.py`): a hundred
thousand keys would hold the loop for a second, or stay for ever. Nothing here is seen from outside:
the queue's name is free and its rows are gone when this begins. What was handed out may still be on
its way, so a lane keeps its key and its queue.
"""

from __future__ import annotations

from fila.core.fairness import NO_OTHERS
from fila.core.lane import NO_CAPS
from fila.core.queue import Queue
from fila.core.state import State


def take_apart(state: State) -> None:
    """Let go of some of what is left; the rest with the next turns."""
    left = state.settings.remains_objects
    while state.remains and left > 0:
        left = _some(state.remains[0], left)
        if left > 0:
            state.remains.popleft()


def _some(queue: Queue, left: int) -> int:
    """How much of a step is left; 0: there is more."""
    while queue.keys:
        if left <= 0:
            return 0
        _, key = queue.keys.popitem()
        left -= 1 + len(key.lanes)
        for lane in key.lanes.values():
            lane.older = lane.newer = None
            lane.caps = NO_CAPS
        key.lanes.clear()
        key.lane = None
        key.cap = None
        key.others = NO_OTHERS
        key.before = key.after = None
    queue.full_caps.clear()
    while queue.leased:
        if left <= 0:
            return 0
        _, (lease, *_) = queue.leased.popitem()
        lease.batch = None
        left -= 1
    while queue.leases:
        if left <= 0:
            return 0
        _, lease = queue.leases.popitem()
        left -= 1
        if lease.consumer is not None:
            lease.consumer.leases.clear()
    for consumer in queue.consumers.values():
        consumer.leases.clear()
    for consumers in queue.departed.values():
        for consumer in consumers:
            consumer.leases.clear()
    for held in (queue.consumers, queue.departed, queue.ready, queue.benched, queue.extended):
        held.clear()
    queue.due_extended.clear()
    queue.windowed.newest = queue.windowed.oldest = None
    queue.ring.head = None
    if not queue.group.queues:
        queue.group.records.clear()  # they name its lanes
    return max(left, 1)
