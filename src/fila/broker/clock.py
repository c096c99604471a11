"""The only module that knows what time it is.

The broker's time is wall time at start carried on by the monotonic clock, so a corrected or
changed wall clock never moves it backwards or makes leases jump. Across restarts it continues from
the newest time found in the store if the wall clock has fallen behind that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_MS = 1_000_000


class Clock:
    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._sleep = sleep
        self._offset_ns = wall_ns() - monotonic_ns()

    def now_ns(self) -> int:
        return self._monotonic_ns() + self._offset_ns

    def never_before(self, floor_ns: int) -> None:
        """Continue from `floor_ns` if the clock lies before it, in a new millisecond: ids carry
        milliseconds, and a restarted broker must not make any in one it has used before."""
        behind = floor_ns - self.now_ns()
        if behind > 0:
            self._offset_ns += behind
        while self.now_ns() // _MS <= floor_ns // _MS:
            self._sleep(0.0002)


def elapsed_ns() -> int:
    """For measuring how long something took."""
    return time.monotonic_ns()
