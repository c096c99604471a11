"""Is the broker still there? A Ping after silence, and the end when nothing comes back.

Owns when that is asked and when it is given up. Time is an argument; sending is the exchange's
part.
"""

from enum import Enum


class Pulse(Enum):
    FINE = "fine"
    ASK = "ask"  # send a Ping
    GONE = "gone"  # nothing came back


class KeepAlive:
    def __init__(self, interval_s: float, timeout_s: float) -> None:
        self.heard_at = 0.0
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._pinged_at: float | None = None
        self._unsent_bytes = 0  # at the last look

    def heard(self, now: float) -> None:
        self.heard_at = now
        self._pinged_at = None

    def deadline(self) -> float:
        if self._pinged_at is None:
            return self.heard_at + self._interval_s
        return self._pinged_at + self._timeout_s

    def check(self, now: float, unsent_bytes: int) -> Pulse:
        """`unsent_bytes` is what the shell still holds of the output it took."""
        if self._pinged_at is None:
            if now < self.heard_at + self._interval_s:
                return Pulse.FINE
            self._pinged_at = now
            self._unsent_bytes = unsent_bytes
            return Pulse.ASK
        if unsent_bytes and unsent_bytes < self._unsent_bytes:
            # A large message on a slow line: our Ping stands behind it, but bytes are moving.
            self._pinged_at = now
            self._unsent_bytes = unsent_bytes
        elif now >= self._pinged_at + self._timeout_s:
            return Pulse.GONE
        return Pulse.FINE
