"""How late this machine is: the bound on lateness that a test of punctuality may hold a broker to.

An idle machine wakes a sleeping thread within a millisecond, a crowded one after a quarter of a
second. While a test runs, a thread sleeps for a few milliseconds again and again and notes by how
much it overslept. The broker may be late by three times the worst of it and a fixed allowance,
which is generous: a process may be kept waiting where a thread was not. That nothing is late by the
scheduler's own doing is for the simulated clock to show.
"""

from __future__ import annotations

import threading
import time

ALLOWANCE_MS = 2_000
_NAP_S = 0.005


class Jitter:
    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._nap, daemon=True)

    @property
    def late_ms_max(self) -> float:
        return ALLOWANCE_MS + 3 * self.worst_ms

    def _nap(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            time.sleep(_NAP_S)
            over_ms = (time.monotonic() - began - _NAP_S) * 1_000
            self.worst_ms = max(self.worst_ms, over_ms)

    def __enter__(self) -> Jitter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
