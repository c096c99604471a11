"""What a key is due while consumers are busy, and why it has to wait all the same.

A key that waits for busy consumers waits for one of three reasons: it sends more than its share by
weight; others got more than theirs, which the ring rules out (then something is broken, and it is
said so); or all together send more than the consumers take. Pure arithmetic over what is counted
anyway; it is told in explanations.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.fairness import FairnessKey
from fila.core.queue import Queue
from fila.core.state import State

REASON_OVER_SHARE: Final = "over_share"
REASON_OTHERS: Final = "others_over_share"
REASON_CAPACITY: Final = "capacity"
_MORE: Final = 1.1  # what counts as more than a share, of rates that are estimates
_VISITS: Final = 3  # that a key may lag behind while the ring is fair


class Due(NamedTuple):
    share: float  # of what is delivered, by weight among the keys that take turns now
    sends: float | None  # messages of the key that come in a second
    all_send: float | None  # and of all keys
    reason: str


def due(state: State, queue: Queue, key: FairnessKey) -> Due:
    now = state.now
    ring = queue.ring
    weights = ring.weight + (0 if key.active else key.weight)
    share = key.weight / max(weights, 1)
    sends = sent_per_second(key, now)
    all_send = queue.service.had.per_second(queue.counters.delivered + queue.pending, now)
    if _is_behind(state, queue, key):
        reason = REASON_OTHERS
    elif sends is not None and all_send:
        reason = REASON_OVER_SHARE if sends > share * all_send * _MORE else REASON_CAPACITY
    else:
        over = key.pending > share * queue.pending * _MORE
        reason = REASON_OVER_SHARE if over else REASON_CAPACITY
    return Due(share, sends, all_send, reason)


def sent_per_second(key: FairnessKey, now: int) -> float | None:
    """How many messages of the key come in a second; those that come back count, too."""
    return key.had.per_second(key.served + key.pending, now)


def _is_behind(state: State, queue: Queue, key: FairnessKey) -> bool:
    """Whether, since it takes turns, it got less than the ring owes it by more than some visits. A
    key behind a bucket may: what it could not take for want of tokens, others had. Where messages
    cost their bytes a message may outweigh many visits: `fila.fairness.ratio` watches these."""
    ring = queue.ring
    if not key.active or ring.by_bytes or any(lane.buckets for lane in key.lanes.values()):
        return False
    owed = key.weight * (ring.clock - key.joined)
    return owed - (key.served - key.joined_had) > _VISITS * key.weight * state.settings.quantum
