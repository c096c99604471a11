"""Lifecycle events against the model: which ones come, in what order, and with what numbers."""

from __future__ import annotations

from collections.abc import Iterator

from fila.core.effect import (
    EVENT_ACKED,
    EVENT_CONFIG_CHANGED,
    EVENT_CONSUMER_JOINED,
    EVENT_CONSUMER_LEFT,
    EVENT_DEAD_LETTERED,
    EVENT_DELIVERED,
    EVENT_ENQUEUED,
    EVENT_EXPIRED,
    EVENT_NACKED,
    EVENT_PARKED,
    EVENT_QUEUE_CREATED,
    EVENT_QUEUE_DELETED,
    EVENT_REDRIVEN,
    EVENT_RELEASED,
    EVENT_REQUEUED,
    EVENT_STALLED,
    EVENT_THROTTLED,
    EVENT_WEIGHT_CHANGED,
    Event,
)
from fila.core.waits import Waits

from .model import Consumer, Key, Lane, Message, Queue
from .turn import Violation

__all__ = [
    "EVENT_ACKED",
    "EVENT_CONFIG_CHANGED",
    "EVENT_CONSUMER_JOINED",
    "EVENT_CONSUMER_LEFT",
    "EVENT_DEAD_LETTERED",
    "EVENT_ENQUEUED",
    "EVENT_EXPIRED",
    "EVENT_NACKED",
    "EVENT_QUEUE_CREATED",
    "EVENT_QUEUE_DELETED",
    "EVENT_REDRIVEN",
    "EVENT_RELEASED",
    "EVENT_REQUEUED",
    "Event",
    "expect",
    "expect_consumer",
    "expect_delivered",
    "expect_no_more",
    "expect_plain",
]

PROMISE = "journal"
# Events of lanes, keys and queues, between those of messages.
BESIDE = (EVENT_PARKED, EVENT_THROTTLED, EVENT_STALLED, EVENT_WEIGHT_CHANGED)


def expect(
    events: Iterator[Event],
    kind: str,
    message: Message,
    lane: Lane | None = None,
    error: str = "",
    source: str = "",
    consumer: str = "",
) -> None:
    """The next event is this one, of this message, with its key's numbers after it."""
    event = _next(events, kind)
    lane = lane or message.lane
    key = lane.key
    seen: tuple[object, ...] = (
        event.queue,
        event.message_id,
        event.fairness_key,
        event.throttle_keys,
    )
    _same(kind, seen, (key.queue.name, message.id, key.name, lane.throttle_keys))
    _same(f"{kind}: key_pending", event.key_pending, key.pending)
    if kind == EVENT_ACKED:
        return
    _same(
        kind,
        (event.attempt, event.weight, event.error, event.source_queue, event.consumer),
        (message.attempts, message.weight, error, source, consumer),
    )
    _same(f"{kind}: enqueued_at", event.enqueued_ns, message.enqueued_ns)
    low, high = _eligible(key)
    if not low <= event.key_eligible <= high:
        raise Violation(PROMISE, f"{kind}: key_eligible {event.key_eligible} not in {low}–{high}")


def expect_delivered(
    events: Iterator[Event], message: Message, consumer: str, waits: Waits
) -> None:
    """Called while the model still counts the message as pending."""
    event = _next(events, EVENT_DELIVERED)
    lane = message.lane
    key = lane.key
    queue = key.queue
    _same(
        EVENT_DELIVERED,
        (event.queue, event.message_id, event.attempt, event.weight, event.consumer, event.waits),
        (queue.name, message.id, message.attempts, message.weight, consumer, waits),
    )
    _same("delivered: key_pending", event.key_pending, key.pending - 1)
    _same("delivered: since", event.since_ns, message.since_ns)
    sure = [one for one in queue.keys.values() if one.sure_lanes]
    ready = [one for one in queue.keys.values() if one.ready_lanes]
    weights = sum(one.weight for one in sure), sum(one.weight for one in ready)
    if not weights[0] <= event.active_weight_before <= weights[1]:
        raise Violation(
            PROMISE, f"active_weight_before {event.active_weight_before} not in {weights}"
        )
    if not len(sure) <= event.active_keys <= len(ready):
        raise Violation(PROMISE, f"active_keys {event.active_keys}, {len(sure)}–{len(ready)}")
    low, high = _eligible(key, message, event.ts_ns)
    if not low <= event.key_eligible <= high:
        raise Violation(PROMISE, f"key_eligible {event.key_eligible} not in {low}–{high}")


def expect_consumer(
    events: Iterator[Event], kind: str, queue: Queue, consumer: Consumer, credit: int
) -> None:
    event = _next(events, kind)
    _same(
        kind,
        (event.queue, event.consumer, event.credit_delta),
        (queue.name, consumer.id, credit),
    )


def expect_plain(events: Iterator[Event], kind: str, queue: str) -> Event:
    event = _next(events, kind)
    _same(kind, event.queue, queue)
    return event


def expect_no_more(events: Iterator[Event]) -> None:
    for event in events:
        if event.event not in BESIDE:
            raise Violation(PROMISE, f"an event too many: {event}")


def _eligible(key: Key, leaving: Message | None = None, now: int = 0) -> tuple[int, int]:
    """Pending messages in lanes that surely may go, and in those that perhaps may."""
    low = high = 0
    for lane in key.lanes.values():
        if not lane.ready:
            continue
        pending = lane.pending
        if leaving is not None and lane is leaving.lane:
            pending -= 1
            if not _others_ready(lane, leaving, now):
                continue
        high += pending
        if lane.sure and not (leaving is not None and lane.throttle_keys):
            low += pending
    return low, high


def _others_ready(lane: Lane, leaving: Message, now: int) -> bool:
    if len(lane.line) > (not leaving.timed):
        return True
    return any(one.ready_ns <= now for one in lane.timed[:2] if one is not leaving)


def _next(events: Iterator[Event], kind: str) -> Event:
    for event in events:
        if event.event in BESIDE:
            if event.since_ns > event.ts_ns:
                raise Violation(PROMISE, f"{event.event} from {event.since_ns} to {event.ts_ns}")
            if event.key_eligible > event.key_pending:
                raise Violation(PROMISE, f"{event.event}: more eligible than pending: {event}")
            continue
        _same("kind of event", event.event, kind)
        return event
    raise Violation(PROMISE, f"no event {kind}")


def _same(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise Violation(PROMISE, f"{what}: {seen!r}, should be {expected!r}")
