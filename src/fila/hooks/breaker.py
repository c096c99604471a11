"""The circuit breaker of one hook: after too many failures in a row, stop asking for a while.

Owns the count of consecutive failures and when to ask again. Knows neither scripts nor the clock.
"""

from __future__ import annotations

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half-open"


class Breaker:
    """Closed: ask. Open: wait for the cool-down. Half-open: the next answer decides."""

    __slots__ = ("_cooldown_ns", "_open_until_ns", "_threshold", "failures", "state", "trips")

    def __init__(self, threshold: int, cooldown_ms: int) -> None:
        self._threshold = threshold
        self._cooldown_ns = cooldown_ms * 1_000_000
        self._open_until_ns = 0
        self.failures = 0
        self.trips = 0
        self.state = CLOSED

    def allows(self, now_ns: int) -> bool:
        if self.state != OPEN:
            return True
        if now_ns < self._open_until_ns:
            return False
        self.state = HALF_OPEN
        return True

    def succeed(self) -> bool:
        """Note an answer; True if it closed the breaker."""
        self.failures = 0
        if self.state == CLOSED:
            return False
        self.state = CLOSED
        return True

    def is_last_straw(self, *, at_once: bool = False) -> bool:
        """Whether one more failure would trip it."""
        return self.failures + 1 >= self._threshold or self.state != CLOSED or at_once

    def fail(self, now_ns: int, *, at_once: bool = False) -> bool:
        """Note a failure; True if it tripped the breaker. `at_once`: however many came before."""
        self.failures += 1
        if self.failures < self._threshold and self.state == CLOSED and not at_once:
            return False
        self.state = OPEN
        self.trips += 1
        self._open_until_ns = now_ns + self._cooldown_ns
        return True
