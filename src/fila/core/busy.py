"""Busy: nobody has credit, and whose messages are in flight meanwhile.

A queue is *busy* while nobody has credit although consumers are connected that are not held, or
batches are open, and it is not paused. In that time the consumers work on what is in flight. With n
messages in flight, k of them of a key, the key holds k/n of the time that passes, and other keys
the rest. So two numbers are enough: the integral of dt/n over busy time, moved on when n changes,
and per key a clock that is moved on by k times what the integral moved when k changes. Both cost
O(1) per change, and nothing while somebody has credit.

Clocks run since the broker started, or the queue was created. What a message was stored with by an
earlier process says nothing about them (`Queue.loaded_ns`): of its wait the busy time since the
start counts, and what was before it as time without a consumer.
"""

from __future__ import annotations

from typing import Final

FRACTION: Final = 16  # bits after the point of the integral and the keys' clocks, in ns


class Busy:
    """A queue's busy clock, and the integral. A key's clock is in `fairness.py`."""

    __slots__ = ("busy_ns", "held", "integral", "since_ns")

    def __init__(self, now: int) -> None:
        self.busy_ns = 0
        self.integral = 0
        self.held = 0  # messages in flight while it is busy; 0: it is not
        self.since_ns = now

    def count(self, held: int, now: int) -> None:
        """From now on so many messages are in flight and nobody has credit; 0: it is not busy."""
        if self.held:
            passed = now - self.since_ns
            self.busy_ns += passed
            self.integral += (passed << FRACTION) // self.held
        self.held = held
        self.since_ns = now

    def busy_at(self, now: int) -> int:
        return self.busy_ns + now - self.since_ns if self.held else self.busy_ns

    def integral_at(self, now: int) -> int:
        if not self.held:
            return self.integral
        return self.integral + ((now - self.since_ns) << FRACTION) // self.held
