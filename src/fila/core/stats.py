"""What a queue looks like now, for people and programs."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from fila.core.fairness import FairnessKey
from fila.core.pause import Pause
from fila.core.quarantine import Quarantined
from fila.core.queue import Counters, Queue
from fila.core.rejection import Rejection
from fila.core.state import State


class KeyStats(NamedTuple):
    key: bytes
    pending: int
    deficit: int
    weight: int
    delivered: int = 0  # since the broker started
    oldest_ns: int = 0  # how long its oldest message that may go has waited; 0: none may
    throttled_ns: int = 0  # how long its lanes stood parked on a bucket, in all
    pause: Pause | None = None


class BucketStats(NamedTuple):
    key: bytes
    tokens: float
    rate: float
    burst: float
    waiting: int = 0  # lanes in line for it, of all queues


class QueueStats(NamedTuple):
    depth: int
    in_flight: int
    active_keys: int
    consumers: int
    quantum: int
    keys: list[KeyStats]  # the deepest first
    buckets: list[BucketStats]
    counters: Counters
    ready_consumers: int  # those with credit
    credit: int  # messages they would take now, together
    stall_ns: int  # how long no consumer had credit, or the queue was paused, in all
    pause: Pause | None
    key_pauses: dict[bytes, Pause]  # also of keys without messages


class QueueSummary(NamedTuple):
    name: str
    depth: int
    in_flight: int
    consumers: int
    pause: Pause | None = None
    quarantined: Quarantined | None = None


def stats(state: State, name: str, keys_max: int) -> QueueStats | Rejection:
    """One queue in detail; at most `keys_max` fairness keys and as many buckets."""
    queue = state.queues.get(name)
    if queue is None:
        return state.no_queue(name)
    found = [(-key.pending, key.name, key) for key in queue.keys.values() if key.pending]
    found.sort()
    names = {
        name
        for key in queue.keys.values()
        for lane in key.lanes.values()
        for name in lane.throttle_keys
    }
    buckets = []
    for throttle_key in sorted(names):
        bucket = state.buckets.get(throttle_key)
        if bucket is not None:
            waiting = len(bucket.waiters)
            buckets.append(
                BucketStats(
                    throttle_key, bucket.tokens_at(state.now), bucket.rate, bucket.burst, waiting
                )
            )
    standing = [*queue.ready, *queue.benched]
    return QueueStats(
        queue.pending,
        len(queue.leased),
        queue.keys_pending,
        len(queue.consumers),
        state.settings.quantum,
        [key_stats(key, queue, state.now) for _, _, key in found[:keys_max]],
        buckets[:keys_max],
        queue.counters,
        len(standing),
        sum(consumer.credit_messages for consumer in standing),
        queue.stall_at(state.now),
        queue.pause,
        dict(itertools.islice(queue.key_pauses.items(), keys_max)),
    )


def key_stats(key: FairnessKey, queue: Queue, now: int) -> KeyStats:
    """One fairness key in numbers."""
    return KeyStats(
        key.name,
        key.pending,
        key.deficit,
        key.weight,
        key.served,
        max(now - key.lane.head_since(), 0) if key.lane is not None else 0,
        sum(lane.throttled_at(now) for lane in key.lanes.values()),
        key.pause,
    )


def summaries(state: State) -> list[QueueSummary]:
    """All queues by name, quarantined ones among them."""
    found = [
        QueueSummary(name, queue.pending, len(queue.leased), len(queue.consumers), queue.pause)
        for name, queue in state.queues.items()
    ]
    found += [QueueSummary(name, 0, 0, 0, None, one) for name, one in state.quarantined.items()]
    found.sort(key=lambda one: one.name)
    return found
