"""Figures: what a queue, a fairness key, a consumer or a bucket looks like now, as plain values.

For observers (`telemetry/`, the HTTP API). Values, not objects: they stay as they were while
the machine goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from fila.core.bucket import Bucket
from fila.core.byte_cost import cost_of
from fila.core.fairness import FairnessKey, Ring
from fila.core.lane import LANE_DELAYED, LANE_PARKED
from fila.core.lease import Consumer, LeaseBatch
from fila.core.meter import NOTHING, Reading
from fila.core.override import Terms
from fila.core.pause import Pause
from fila.core.queue import Queue

# What a key does now.
KEY_PAUSED = "paused"
KEY_CAPPED = "capped"  # as many as may be are in flight
KEY_READY = "ready"
KEY_THROTTLED = "throttled"
KEY_DELAYED = "delayed"
KEY_IDLE = "idle"


class Counts(NamedTuple):
    """Messages that went through a queue since the broker started, by what happened to them."""

    enqueued: int
    delivered: int
    acked: int
    nacked: int
    expired: int
    requeued: int
    released: int
    dead_lettered: int
    redriven: int
    purged: int
    aged_out: int
    overflowed: int


class Measured(NamedTuple):
    """What a queue's delivered messages waited for, and how long they took since their enqueue."""

    waits: Reading
    limited: int  # messages that had to wait for a bucket
    latency_counts: list[int]
    latency_ns: int


class QueueFigures(NamedTuple):
    name: str
    number: int  # a queue that was deleted and made again has another
    pending: int
    leased: int
    consumers: int
    consumers_held: int
    keys: int  # those it remembers
    keys_pending: int
    known_keys: int  # idempotency keys; 0 if none was looked up since the start
    dlq: str | None
    pause: Pause | None
    active_keys: int  # in the ring
    active_weight: int
    clock: float  # the ring's
    visits: int
    cost: str  # of a message to its key: "messages" (1) or "bytes"
    given: int  # what its keys share: messages delivered, as measured, or bytes
    visibility_ms: int
    created_ns: int
    counts: Counts
    measured: Measured | None  # None: not measured, or nothing was delivered


class KeyFigures(NamedTuple):
    name: bytes
    number: int  # a key that was forgotten while idle comes back with another
    weight: int
    pending: int
    deficit: int
    given: int  # messages it was delivered, as measured, or bytes where they cost these …
    entitled: float  # … and should have been, by its weight
    reading: Reading  # what it was delivered, and what that waited for
    leased: int
    throttled: int  # pending messages behind an empty bucket
    state: str
    pause: Pause | None
    override: Terms | None

    @property
    def delivered(self) -> int:
        return self.reading[0]


class ConsumerFigures(NamedTuple):
    id: str
    connection: int
    prefetch: int
    credit: int
    held: bool  # its client does not read
    ready: bool  # would be handed a message now

    @property
    def in_flight(self) -> int:
        return self.prefetch - self.credit


class BucketFigures(NamedTuple):
    tokens: float
    rate: float
    burst: float
    waiting_lanes: int
    waiting_messages: int
    passed: int
    limited: int


class OpenBatch(NamedTuple):
    """A lease batch that somebody has."""

    name: str
    messages: int
    leased_ns: int
    expires_ns: int


def of_queue(queue: Queue) -> QueueFigures:
    ring = queue.ring
    counters = queue.counters
    meter = queue.meter
    held = 0
    for consumer in queue.consumers.values():
        held += consumer.held
    return QueueFigures(
        queue.name,
        queue.number,
        queue.pending,
        len(queue.leased),
        len(queue.consumers),
        held,
        len(queue.keys),
        queue.keys_pending,
        0 if queue.known_keys is None else queue.known_keys.next - queue.known_keys.head,
        queue.dlq_name(),
        queue.pause,
        ring.keys,
        ring.weight,
        ring.clock,
        ring.visits,
        cost_of(ring),
        _given(ring.bytes, ring, NOTHING if meter is None else meter.waits.reading()),
        queue.visibility_ms,
        queue.created_ns,
        Counts(
            counters.enqueued,
            counters.delivered,
            counters.acked,
            counters.nacked,
            counters.expired,
            counters.requeued,
            counters.released,
            counters.dead_lettered,
            counters.redriven,
            counters.purged,
            counters.aged_out,
            counters.overflowed,
        ),
        None
        if meter is None
        else Measured(
            meter.waits.reading(), meter.limited, list(meter.latency_counts), meter.latency_ns
        ),
    )


def of_key(key: FairnessKey, queue: Queue) -> KeyFigures:
    ring = queue.ring
    override = queue.overrides.get(key.name)
    leased = throttled = capped = delayed = 0
    for lane in key.lanes.values():
        leased += lane.leased
        if lane.state == LANE_PARKED and lane.at_cap:
            capped += lane.pending
        elif lane.state == LANE_PARKED:
            throttled += lane.pending
        elif lane.state == LANE_DELAYED:
            delayed += lane.pending
    if key.pause is not None:
        state = KEY_PAUSED
    elif key.active:
        state = KEY_READY
    elif throttled:
        state = KEY_THROTTLED
    elif capped:
        state = KEY_CAPPED
    else:
        state = KEY_DELAYED if delayed else KEY_IDLE
    reading = NOTHING if key.meter is None else key.meter.reading()
    return KeyFigures(
        key.name,
        key.number,
        key.weight,
        key.pending,
        key.deficit,
        _given(key.bytes, ring, reading),
        ring.entitled(key),
        reading,
        leased,
        throttled,
        state,
        key.pause,
        override.terms if override is not None else None,
    )


def _given(bytes_: int, ring: Ring, reading: Reading) -> int:
    return bytes_ if ring.by_bytes else reading[0]


def of_consumer(consumer: Consumer) -> ConsumerFigures:
    return ConsumerFigures(
        consumer.id,
        consumer.connection,
        consumer.prefetch,
        consumer.credit_messages,
        consumer.held,
        consumer.ready,
    )


def of_bucket(bucket: Bucket, now: int) -> BucketFigures:
    lanes = messages = 0
    for lane in bucket.waiters:
        if lane.state == LANE_PARKED:
            lanes += 1
            messages += lane.pending
    return BucketFigures(
        bucket.tokens_at(now),
        bucket.rate,
        bucket.burst,
        lanes,
        messages,
        bucket.passed,
        bucket.limited,
    )


def of_batch(batch: LeaseBatch) -> OpenBatch:
    return OpenBatch(batch.name, batch.messages(), batch.leased_ns, batch.expires_ns)
