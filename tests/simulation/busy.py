"""How long consumers were busy, and with whose messages: told again from the model alone.

Between two turns nothing changes, so one look at the beginning of each turn is enough: if nobody
had credit since the last one, although somebody was there to work, the time goes to the keys by how
many of the queue's leased messages were theirs.
"""

from __future__ import annotations

from collections import Counter

from .model import Key, Queue

_FINE = 1 << 40  # parts of a nanosecond that are told apart
TOLERANCE_NS = 16  # the core rounds down once per change


def is_busy(queue: Queue) -> bool:
    if queue.credit or queue.paused or not queue.leased:
        return False
    return bool(queue.batches) or any(not one.paused for one in queue.consumers.values())


def passes(queue: Queue, now: int) -> None:
    """Time passes up to `now`, at which a turn begins."""
    spent = now - queue.busy_since
    queue.busy_since = now
    if spent <= 0 or not is_busy(queue):
        return
    queue.busy_ns += spent
    total = len(queue.leased)
    for key, own in Counter(one.lane.key for one in queue.leased.values()).items():
        key.busy_parts += spent * _FINE * own // total


def reading(key: Key, at_ns: int) -> tuple[int, int]:
    """The queue's busy time up to then, and the key's part of it in nanoseconds."""
    queue = key.queue
    spent = at_ns - queue.busy_since
    if spent <= 0 or not is_busy(queue):
        return queue.busy_ns, key.busy_parts // _FINE
    own = sum(one.lane.key is key for one in queue.leased.values())
    parts = key.busy_parts + spent * _FINE * own // len(queue.leased)
    return queue.busy_ns + spent, parts // _FINE
