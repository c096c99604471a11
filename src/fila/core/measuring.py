"""Measuring: a committed delivery is taken into the meters of its keys and its queue.

Called once for every committed delivery when somebody measures (telemetry is on), and the only
place that looks at its messages one by one.
"""

from __future__ import annotations

from bisect import bisect_left

from fila.core.effect import Delivery
from fila.core.entry import ENQUEUED_NS
from fila.core.meter import LATENCY_BOUNDS_NS, Meter, QueueMeter


def measure(delivery: Delivery) -> None:
    """Take one committed delivery into the meters."""
    queue = delivery.consumer.queue
    total = queue.meter
    if total is None:
        total = queue.meter = QueueMeter()
    counts = total.latency_counts
    now = delivery.leased_ns
    latency_ns = retries = throttles = stalls = owns = turns = pauses = caps = limited = 0
    held_own = held_others = 0
    for entry, lane, wait in zip(delivery.entries, delivery.lanes, delivery.waits, strict=True):
        key = lane.key
        meter = key.meter
        if meter is None:
            meter = key.meter = Meter()
        retry, throttled, no_consumer, own, turn, paused, busy_own, busy_others, capped = wait
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
        if busy_own:
            meter.busy_own += busy_own
            held_own += busy_own
        if busy_others:
            meter.busy_others += busy_others
            held_others += busy_others
        if capped:
            meter.capped += capped
            caps += capped
        took = now - entry[ENQUEUED_NS]
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
    waits.busy_own += held_own
    waits.busy_others += held_others
    waits.capped += caps
    total.limited += limited
    total.latency_ns += latency_ns
