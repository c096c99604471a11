"""What a queue looks like now, for people and programs."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.machine import Machine
from fila.core.queue import Counters
from fila.core.rejection import Rejection, queue_not_found


class KeyStats(NamedTuple):
    key: bytes
    pending: int
    deficit: int
    weight: int


class BucketStats(NamedTuple):
    key: bytes
    tokens: float
    rate: float
    burst: float


class QueueStats(NamedTuple):
    depth: int
    in_flight: int
    active_keys: int
    consumers: int
    quantum: int
    keys: list[KeyStats]  # the deepest first
    buckets: list[BucketStats]
    counters: Counters


class QueueSummary(NamedTuple):
    name: str
    depth: int
    in_flight: int
    consumers: int


def stats(machine: Machine, name: str, keys_max: int) -> QueueStats | Rejection:
    """One queue in detail; at most `keys_max` fairness keys and as many buckets."""
    state = machine.state
    queue = state.queues.get(name)
    if queue is None:
        return queue_not_found(name)
    found = [
        KeyStats(key.name, key.pending, key.deficit, key.weight)
        for key in queue.keys.values()
        if key.pending
    ]
    found.sort(key=lambda one: (-one.pending, one.key))
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
            bucket.refill(state.now)
            buckets.append(BucketStats(throttle_key, bucket.tokens, bucket.rate, bucket.burst))
    return QueueStats(
        queue.pending,
        len(queue.leased),
        queue.keys_pending,
        len(queue.consumers),
        state.settings.quantum,
        found[:keys_max],
        buckets[:keys_max],
        queue.counters,
    )


def summaries(machine: Machine) -> list[QueueSummary]:
    """All queues by name."""
    return [
        QueueSummary(name, queue.pending, len(queue.leased), len(queue.consumers))
        for name, queue in sorted(machine.state.queues.items())
    ]
