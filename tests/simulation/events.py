"""Lifecycle events against the model: which ones come, in what order, and with what numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fila.core.effect import (
    EVENT_ACKED,
    EVENT_CAPPED,
    EVENT_CONFIG_CHANGED,
    EVENT_CONSUMER_JOINED,
    EVENT_CONSUMER_LEFT,
    EVENT_DEAD_LETTERED,
    EVENT_DELIVERED,
    EVENT_DUE,
    EVENT_ENQUEUED,
    EVENT_EXPIRED,
    EVENT_MOVED,
    EVENT_NACKED,
    EVENT_PARKED,
    EVENT_QUEUE_CREATED,
    EVENT_QUEUE_DELETED,
    EVENT_RECLASSIFIED,
    EVENT_REDRIVEN,
    EVENT_RELEASED,
    EVENT_REQUEUED,
    EVENT_STALLED,
    EVENT_THROTTLED,
    EVENT_WEIGHT_CHANGED,
    Event,
)
from fila.core.later import UNKNOWN
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
    "Rings",
    "expect",
    "expect_consumer",
    "expect_delivered",
    "expect_kind",
    "expect_no_more",
    "expect_plain",
]

PROMISE = "journal"
# Events of lanes, keys and queues, between those of messages.
BESIDE = (
    EVENT_PARKED,
    EVENT_THROTTLED,
    EVENT_CAPPED,
    EVENT_DUE,
    EVENT_MOVED,
    EVENT_STALLED,
    EVENT_WEIGHT_CHANGED,
)


class Rings:
    """Who takes part, as a reader of the journal knows it from the events alone."""

    def __init__(self) -> None:
        self._takes_part: dict[tuple[str, bytes], bool] = {}  # not there: not known yet
        self._delivered: dict[str, int] = {}

    def forget(self, queue: str) -> None:
        """The queue was taken up anew: its ring begins again, and so do its counts."""
        self._delivered.pop(queue, None)
        self._takes_part = {one: part for one, part in self._takes_part.items() if one[0] != queue}

    def follow(self, events: Iterable[Event], apart: set[str]) -> Iterator[Event]:
        """The same events, each checked against those before it. `apart`: queues quarantined with
        their turn, whose keys drop out of the ring where a lane cannot be read."""
        for event in events:
            self._check(event, event.queue in apart)
            yield event

    def _check(self, event: Event, apart: bool) -> None:
        queue = event.queue
        if event.event == EVENT_QUEUE_CREATED:
            self._delivered[queue] = 0
            self._takes_part = {one: part for one, part in self._takes_part.items()
                                if one[0] != queue}  # fmt: skip
        if event.event == EVENT_DELIVERED:
            self._delivered[queue] = self._delivered.get(queue, 0) + 1
        if not event.fairness_key:
            return
        _same(
            f"{event.event}: queue_delivered", event.queue_delivered, self._delivered.get(queue, 0)
        )
        place = (queue, event.fairness_key)
        before = self._takes_part.get(place)
        after = event.key_eligible != 0
        self._takes_part[place] = after
        expected = event.ring_delta if before is None or apart else after - before
        _same(f"{event.event} of {event.fairness_key!r}: ring_delta", event.ring_delta, expected)
        if event.ring_delta and (event.ring_delta > 0) != after:
            raise Violation(PROMISE, f"{event} tells of the ring what its count denies")


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
    _check_eligible(event, key)
    if kind == EVENT_ACKED:
        return
    # What a reader takes its key's weight from says that, even where an override holds.
    weighs = kind in (EVENT_ENQUEUED, EVENT_DEAD_LETTERED, EVENT_REDRIVEN, EVENT_RECLASSIFIED)
    weight = key.weight if weighs else message.weight
    _same(
        kind,
        (event.attempt, event.weight, event.error, event.source_queue, event.consumer),
        (message.attempts, weight, error, source, consumer),
    )
    _same(f"{kind}: enqueued_at", event.enqueued_ns, message.enqueued_ns)


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
    if queue.apart:
        return  # its ring lacks a key whose rows cannot be read
    # Where messages cost their bytes, a key that pays may wait at a bucket that has tokens.
    sure = [
        one for one in queue.keys.values() if (one.stands if queue.by_bytes else one.sure_lanes)
    ]
    ready = [one for one in queue.keys.values() if one.ready_lanes]
    weights = sum(one.weight for one in sure), sum(one.weight for one in ready)
    if not weights[0] <= event.active_weight_before <= weights[1]:
        raise Violation(
            PROMISE, f"active_weight_before {event.active_weight_before} not in {weights}"
        )
    if not len(sure) <= event.active_keys <= len(ready):
        raise Violation(PROMISE, f"active_keys {event.active_keys}, {len(sure)}–{len(ready)}")
    _check_eligible(event, key, message)


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


def expect_kind(events: Iterator[Event], kind: str) -> Event:
    return _next(events, kind)


def expect_no_more(events: Iterator[Event]) -> None:
    for event in events:
        if event.event not in BESIDE:
            raise Violation(PROMISE, f"an event too many: {event}")


def _check_eligible(event: Event, key: Key, leaving: Message | None = None) -> None:
    """Messages that are due, in lanes that surely may go and in those that perhaps may."""
    low = high = 0
    for lane in key.lanes.values():
        if not lane.ready:
            continue
        due = len(lane.line) + sum(one.ready_ns <= event.ts_ns for one in lane.timed)
        gone = leaving if leaving is not None and lane is leaving.lane else None
        if gone is not None:
            due -= 1
        high += due
        # A message that falls due within the burst at the head holds back what is behind it.
        stands_aside = leaving is not None or key.queue.by_bytes
        if lane.sure and not (stands_aside and lane.may_park):
            low += 0 if lane.is_hazy(event.ts_ns, gone) else due
    told = event.key_eligible
    if not (low <= told <= high or (told == UNKNOWN and high > 0)):
        raise Violation(PROMISE, f"{event.event}: key_eligible {told} not in {low}–{high}")


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
