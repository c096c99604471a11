"""How long to wait before the next attempt to connect.

Owns the growing, jittered pause. Time and randomness are arguments.
"""

from collections.abc import Callable


class Backoff:
    """Doubling pauses between min and max, each shortened by up to half at random."""

    def __init__(self, min_s: float, max_s: float, jitter: Callable[[], float]) -> None:
        self._min_s = min_s
        self._max_s = max(min_s, max_s)
        self._jitter = jitter  # a number from 0 to 1
        self._failures = 0

    def next_pause_s(self) -> float:
        pause = min(self._max_s, self._min_s * float(1 << min(self._failures, 30)))
        self._failures += 1
        # Many clients lose one broker at the same moment; they must not come back at one moment.
        return pause * (1 - self._jitter() / 2)

    def reset(self) -> None:
        self._failures = 0
