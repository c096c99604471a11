"""Meters: what delivered messages waited for, per fairness key and per queue.

They are kept only when somebody measures (telemetry is on): `measure` is called once for every
committed delivery and is the only place that looks at its messages one by one. Readers take the
numbers when they want them. Everything here counts since the broker started, or since the broker
last forgot an idle key.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fila.core.effect import Delivery

_MS: Final = 1_000_000
# Upper bounds of the latency histogram, from a tenth of a millisecond to an hour; one more counts
# what took longer.
LATENCY_BOUNDS_NS: Final = [
    *(_MS // 10, _MS // 4, _MS // 2),
    *(_MS, 5 * _MS // 2, 5 * _MS),
    *(10 * _MS, 25 * _MS, 50 * _MS),
    *(100 * _MS, 250 * _MS, 500 * _MS),
    *(1_000 * _MS, 2_500 * _MS, 5_000 * _MS),
    *(10_000 * _MS, 30_000 * _MS, 60_000 * _MS),
    *(300_000 * _MS, 900_000 * _MS, 3_600_000 * _MS),
]
# Upper bounds of the time a hook takes per message.
HOOK_BOUNDS_US: Final = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 10000.0]
_ENQUEUED: Final = 4  # place in an Entry

# (delivered, retry, throttled, no consumer, own, turn, paused): messages, then ns by cause.
Reading = tuple[int, int, int, int, int, int, int]
NOTHING: Final[Reading] = (0, 0, 0, 0, 0, 0, 0)


class Meter:
    """One fairness key's delivered messages, and what they waited for."""

    __slots__ = (
        "delivered",
        "due",
        "no_consumer",
        "own",
        "paused",
        "retry",
        "seen",
        "since",
        "throttled",
        "turn",
    )

    def __init__(self) -> None:
        self.delivered = 0
        self.retry = 0
        self.throttled = 0
        self.no_consumer = 0
        self.own = 0
        self.turn = 0
        self.paused = 0
        # A reader's notes: the reading it last took, the entitlement a tracked key was last seen
        # with, and (delivered, entitled) at the beginnings of the window before and of this one.
        self.seen: Reading = NOTHING
        self.due = 0.0
        self.since: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def reading(self) -> Reading:
        return (
            self.delivered,
            self.retry,
            self.throttled,
            self.no_consumer,
            self.own,
            self.turn,
            self.paused,
        )


class QueueMeter:
    """A queue's delivered messages: waits by cause, and how long they took since their enqueue."""

    __slots__ = ("latency_counts", "latency_ns", "limited", "waits")

    def __init__(self) -> None:
        self.waits = Meter()
        self.limited = 0  # messages that had to wait for a bucket
        self.latency_counts = [0] * (len(LATENCY_BOUNDS_NS) + 1)
        self.latency_ns = 0


def measure(delivery: Delivery) -> None:
    """Take one committed delivery into the meters."""
    queue = delivery.consumer.queue
    total = queue.meter
    if total is None:
        total = queue.meter = QueueMeter()
    counts = total.latency_counts
    now = delivery.leased_ns
    latency_ns = retries = throttles = stalls = owns = turns = pauses = limited = 0
    for entry, lane, wait in zip(delivery.entries, delivery.lanes, delivery.waits, strict=True):
        key = lane.key
        meter = key.meter
        if meter is None:
            meter = key.meter = Meter()
        retry, throttled, no_consumer, own, turn, paused = wait
        meter.delivered += 1
        # Most messages wait for one or two things: looking is cheaper than adding nothing.
        if own:
            meter.own += own
            owns += own
        if turn:
            meter.turn += turn
            turns += turn
        if no_consumer:
            meter.no_consumer += no_consumer
            stalls += no_consumer
        if throttled:
            meter.throttled += throttled
            throttles += throttled
            limited += 1
        if retry:
            meter.retry += retry
            retries += retry
        if paused:
            meter.paused += paused
            pauses += paused
        took = now - entry[_ENQUEUED]
        latency_ns += took
        counts[bisect_left(LATENCY_BOUNDS_NS, took)] += 1
    waits = total.waits
    waits.delivered += len(delivery.entries)
    waits.retry += retries
    waits.throttled += throttles
    waits.no_consumer += stalls
    waits.own += owns
    waits.turn += turns
    waits.paused += pauses
    total.limited += limited
    total.latency_ns += latency_ns
