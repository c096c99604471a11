"""Meters: what delivered messages waited for, per fairness key and per queue.

They are kept only when somebody measures (telemetry is on), by `measuring.py`. Readers take the
numbers when they want them. Everything here counts since the broker started, or since the broker
last forgot an idle key.
"""

from __future__ import annotations

from typing import Final

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

# (delivered, retry, throttled, no consumer, own, turn, paused, busy own, busy others, capped):
# messages, then ns by cause.
Reading = tuple[int, int, int, int, int, int, int, int, int, int]
NOTHING: Final[Reading] = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class Meter:
    """One fairness key's delivered messages, and what they waited for."""

    __slots__ = (
        "busy_others",
        "busy_own",
        "capped",
        "delivered",
        "no_consumer",
        "own",
        "paused",
        "retry",
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
        self.busy_own = 0
        self.busy_others = 0
        self.capped = 0

    def reading(self) -> Reading:
        return (
            self.delivered,
            self.retry,
            self.throttled,
            self.no_consumer,
            self.own,
            self.turn,
            self.paused,
            self.busy_own,
            self.busy_others,
            self.capped,
        )


class QueueMeter:
    """A queue's delivered messages: waits by cause, and how long they took since their enqueue."""

    __slots__ = ("latency_counts", "latency_ns", "limited", "waits")

    def __init__(self) -> None:
        self.waits = Meter()
        self.limited = 0  # messages that had to wait for a bucket
        self.latency_counts = [0] * (len(LATENCY_BOUNDS_NS) + 1)
        self.latency_ns = 0
