"""The only module that knows what time it is.

Two times. The **broker's time** decides order, leases, delays and buckets: wall time at start
carried on by the monotonic clock, so a corrected wall clock never moves it backwards or makes
leases jump.
Across restarts it continues from the newest time in the store if the wall clock lies before that;
then it runs a little slower until the wall clock has caught up. **Wall time** is what
certificates and API keys expire by: it is read each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_MS = 1_000_000
SLOWER_BY: Final = 8  # a clock that is ahead loses an eighth of the time that passes


class Clock:
    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._sleep = sleep
        self._offset_ns = wall_ns() - monotonic_ns()
        self._ahead_ns = 0  # of the wall clock, when it began to run slower
        self._slower_since_ns = 0

    def now_ns(self) -> int:
        now = self._monotonic_ns()
        if self._ahead_ns:
            lost = (now - self._slower_since_ns) // SLOWER_BY
            if lost >= self._ahead_ns:
                self._offset_ns -= self._ahead_ns
                self._ahead_ns = 0
            else:
                return now + self._offset_ns - lost
        return now + self._offset_ns

    def wall_ns(self) -> int:
        """What the machine's clock says: for expiry of keys and certificates, never for order."""
        return self._wall_ns()

    def ahead_ns(self) -> int:
        """How far the broker's time is ahead of the wall clock; negative when behind."""
        return self.now_ns() - self._wall_ns()

    def never_before(self, floor_ns: int) -> None:
        """Continue from `floor_ns` if the clock lies before it, in a new millisecond: ids carry
        milliseconds, and a restarted broker must not make any in one it has used before."""
        behind = floor_ns - self.now_ns()
        if behind > 0:
            self._offset_ns += behind
        while self.now_ns() // _MS <= floor_ns // _MS:
            self._sleep(0.0002)
        if behind > 0:
            self._ahead_ns = behind
            self._slower_since_ns = self._monotonic_ns()


def elapsed_ns() -> int:
    """For measuring how long something took."""
    return time.monotonic_ns()
