"""Events for the journal: of single messages, lanes, keys and queues.

    parked      a bucket is short, or a cap is full: the lane's messages may not go any more
    throttled   the lane's wait for a bucket, an interval, recorded at its end
    capped      the same for a slot: as many of its key as may be were in flight
    due         a lane that waited for its first message's time may go
    moved       a message was redriven: what its key has left in the dead-letter queue
    stalled     no consumer had credit although messages waited, an interval, recorded at its end

Whatever lets a key join the ring or leave it is told with an event of that key, so that a reader
knows at any moment which keys took part: `ring_delta` says which event it was.
"""

from __future__ import annotations

from fila.core import effect
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.entry import (
    ATTEMPTS,
    BODY,
    ENQUEUED_NS,
    SINCE_NS,
    WEIGHT,
    Entry,
    message_id,
    ready_ns,
)
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.queue import Queue


def of_message(
    kind: str, lane: Lane, entry: Entry, now: int, error: str = "", ring_delta: int = 0
) -> Event:
    """Something happened to this message of the lane."""
    key = lane.key
    since_ns = entry[SINCE_NS]
    values = (
        now,
        kind,
        lane.queue.name,
        message_id(entry),
        entry[ATTEMPTS],
        key.name,
        entry[WEIGHT],
        lane.throttle_keys,
        key.pending,
        eligible(key, now),
        0,
        lane.queue.ring.keys,
        since_ns,
        ready_ns(entry),
        None,
        "",
        error,
        "",
        0,
        entry[ENQUEUED_NS],
        len(entry[BODY]),
        "",
        0,
        ring_delta,
        lane.queue.ring.handed_out,
    )
    return tuple.__new__(Event, values)  # half the cost of calling Event


def parked(lane: Lane, now: int, ring_delta: int) -> Event:
    return _of_lane(effect.EVENT_PARKED, lane, now, 0, ring_delta)


def throttled(lane: Lane, now: int, ring_delta: int = 0) -> Event:
    """Called when the lane is no longer parked; its clock still tells since when it was."""
    unstalled_ns = now - lane.queue.stall_at(now) - lane.parked_since
    kind = effect.EVENT_CAPPED if lane.at_cap else effect.EVENT_THROTTLED
    return _of_lane(kind, lane, now, now - unstalled_ns, ring_delta)


def due(lane: Lane, now: int, ring_delta: int) -> Event:
    return _of_lane(effect.EVENT_DUE, lane, now, 0, ring_delta)


def moved(lane: Lane, now: int, ring_delta: int) -> Event:
    return _of_lane(effect.EVENT_MOVED, lane, now, 0, ring_delta)


def stalled(queue: Queue, now: int) -> Event:
    """Called while no consumer has credit yet."""
    return Event(
        now,
        effect.EVENT_STALLED,
        queue.name,
        active_keys=queue.ring.keys,
        since_ns=queue.stalled_since,
    )


def weight_changed(queue: Queue, key: FairnessKey, now: int) -> Event:
    return Event(
        now,
        effect.EVENT_WEIGHT_CHANGED,
        queue.name,
        fairness_key=key.name,
        weight=key.weight,
        key_pending=key.pending,
        key_eligible=eligible(key, now),
        queue_delivered=queue.ring.handed_out,
    )


def _of_lane(kind: str, lane: Lane, now: int, since_ns: int, ring_delta: int) -> Event:
    key = lane.key
    return Event(
        now,
        kind,
        lane.queue.name,
        fairness_key=key.name,
        throttle_keys=lane.throttle_keys,
        key_pending=key.pending,
        key_eligible=eligible(key, now),
        since_ns=since_ns,
        ring_delta=ring_delta,
        queue_delivered=lane.queue.ring.handed_out,
    )


def of_key(
    kind: str, queue: Queue, name: bytes, now: int, who: str, reason: str, ring_delta: int = 0
) -> Event:
    """What an operator did to a fairness key, or without a name to the queue."""
    key = queue.keys.get(name) if name else None
    return Event(
        now,
        kind,
        queue.name,
        fairness_key=name,
        key_pending=key.pending if key is not None else 0,
        key_eligible=eligible(key, now) if key is not None else 0,
        active_keys=queue.ring.keys,
        reason=reason,
        consumer=who,
        ring_delta=ring_delta,
        queue_delivered=queue.ring.handed_out,
    )
