"""When a waiting message will go, from how fast its queue and its key were served lately.

Owns the arithmetic of rates and estimates. An estimate says what happens if everything goes on as
it did in the last seconds; None where nothing would happen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.bucket import NS, Bucket
from fila.core.entry import STAMP
from fila.core.lane import Lane
from fila.core.service import Served
from fila.core.waiting import (
    CAUSE_NO_CONSUMER,
    CAUSE_PAUSED,
    CAUSE_RETRY,
    Waiting,
    cause_of,
    short_bucket,
)

RECENT_NS: Final = 10 * NS
_SEEN_MIN: Final = 5  # deliveries of a key from which its own rate counts


class Forecast(NamedTuple):
    eta_ns: int | None
    because: str  # what the estimate stands on, or why there is none
    rate: float  # messages of the key per second it stands on; 0: on none
    queue_rate: float


def recent(lane: Lane, now: int) -> Served:
    return lane.queue.service.since(now - RECENT_NS, now)


def forecast(waiting: Waiting, now: int) -> Forecast:
    lane, entry, ahead = waiting
    queue = lane.queue
    served = recent(lane, now)
    queue_rate = served.per_second()
    rate = key_rate(lane, served, now)
    cause = cause_of(waiting, now)
    if cause == CAUSE_PAUSED:
        return Forecast(None, "it is paused", rate, queue_rate)
    if cause == CAUSE_RETRY:
        eta_ns = max(entry[STAMP] - now, lane.head_stamp() - now, 0)
        return Forecast(eta_ns, "its delay runs out then", rate, queue_rate)
    if not queue.consumers and not queue.lease_batches:
        return Forecast(None, "nobody consumes the queue", 0.0, queue_rate)
    short = short_bucket(lane, now)
    if short is not None and short.next_token_ns() == 0:
        return Forecast(None, "its bucket never gets a token", 0.0, queue_rate)
    if rate <= 0.0:
        if cause == CAUSE_NO_CONSUMER:
            why = "no consumer has credit and none was given back lately"
            return Forecast(None, why, 0.0, queue_rate)
        token_ns = max(short.next_token_ns() - now, 0) if short is not None else 0
        return Forecast(token_ns, "it may go as soon as that", 0.0, queue_rate)
    eta_ns = int((ahead + 1) * NS / rate)
    if short is not None:
        eta_ns = max(eta_ns, short.next_token_ns() - now)
    return Forecast(eta_ns, f"its key gets {rate:.3g} messages a second", rate, queue_rate)


def key_rate(lane: Lane, served: Served, now: int) -> float:
    """Messages per second the key can expect: as lately, or its share of the queue's rate."""
    key = lane.key
    seen = served.keys.get(key.name, 0.0)
    backlogged = lane.head_since() <= now - served.span_ns or key.pending > seen
    if seen >= _SEEN_MIN and backlogged:
        return served.per_second(key.name)
    ring = lane.queue.ring
    weights = ring.weight + (0 if key.active else key.weight)
    rate = served.per_second() * key.weight / max(weights, 1)
    limits = [bucket_share(lane, bucket) for bucket in lane.buckets]
    if rate > 0.0:
        return min([rate, *limits])
    if limits and lane.line_of is not None:
        return min(limits)  # nothing else was served: the bucket is what there is to go by
    return 0.0


def bucket_share(lane: Lane, bucket: Bucket) -> float:
    """The lane's part of the bucket's rate, by weight among the keys that wait for it."""
    keys = {one.key: None for one in bucket.waiters}
    keys[lane.key] = None
    return bucket.rate * lane.key.weight / sum(key.weight for key in keys)


def reweighted(lane: Lane, found: Forecast, factor: int) -> float:
    """The key's rate if its weight were `factor` times what it is and nothing else changed."""
    ring = lane.queue.ring
    weight = lane.key.weight
    weights = ring.weight + (0 if lane.key.active else weight)
    grown = weights + (factor - 1) * weight
    return found.rate * factor * weights / max(grown, 1)
