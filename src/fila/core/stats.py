"""What a queue looks like now, for people and programs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator
from typing import Final, NamedTuple

from fila.core.byte_cost import cost_of, quantum_of
from fila.core.fairness import FairnessKey
from fila.core.pause import Pause
from fila.core.quarantine import Quarantined
from fila.core.queue import Counters, Queue
from fila.core.rejection import Rejection
from fila.core.state import State

STEP_KEYS: Final = 512


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
    cost: str  # of a message


Reading = Generator[int, None, QueueStats]


class QueueSummary(NamedTuple):
    name: str
    depth: int
    in_flight: int
    consumers: int
    pause: Pause | None = None
    quarantined: Quarantined | None = None


def stats(state: State, name: str, keys_max: int) -> QueueStats | Rejection:
    """One queue in detail; at most `keys_max` fairness keys and as many buckets."""
    reading = stats_in_steps(state, name, keys_max)
    if isinstance(reading, Rejection):
        return reading
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: QueueStats = end.value
            return found


def stats_in_steps(state: State, name: str, keys_max: int) -> Reading | Rejection:
    """The same in steps, after each of which it says how many keys it looked at. Between two of
    them keys may come and go."""
    queue = state.queues.get(name)
    return _read(state, queue, keys_max) if queue is not None else state.no_queue(name)


def _read(state: State, queue: Queue, keys_max: int) -> Reading:
    keys = list(queue.keys.values())
    names: set[bytes] = set()
    sorted_parts: list[list[tuple[int, bytes, FairnessKey]]] = []
    for start in range(0, len(keys), STEP_KEYS):
        part = keys[start : start + STEP_KEYS]
        sorted_parts.append(sorted([(-key.pending, key.name, key) for key in part if key.pending]))
        lanes = [lane for key in part for lane in key.lanes.values()]
        names.update([name for lane in lanes for name in lane.throttle_keys])
        if start:
            yield len(part)
    found: list[KeyStats] = []
    deepest = heapq.merge(*sorted_parts)
    while True:
        some = list(itertools.islice(deepest, min(STEP_KEYS, keys_max - len(found))))
        if not some:
            break
        found += [key_stats(key, queue, state.now) for _, _, key in some]
        if len(some) == STEP_KEYS:
            yield STEP_KEYS
    buckets = []
    for throttle_key in sorted(names)[:keys_max]:
        bucket = state.buckets.get(throttle_key)
        if bucket is not None:
            waiting = len(bucket.waiters)
            buckets.append(
                BucketStats(
                    throttle_key, bucket.tokens_at(state.now), bucket.rate, bucket.burst, waiting
                )
            )
            if len(buckets) % STEP_KEYS == 0:
                yield STEP_KEYS
    standing = [*queue.ready, *queue.benched]
    return QueueStats(
        queue.pending,
        len(queue.leased),
        queue.keys_pending,
        len(queue.consumers),
        quantum_of(state, queue.ring),
        found,
        buckets,
        queue.counters,
        len(standing),
        sum(consumer.credit_messages for consumer in standing),
        queue.stall_at(state.now),
        queue.pause,
        dict(itertools.islice(queue.key_pauses.items(), keys_max)),
        cost_of(queue.ring),
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
