"""Quarantine: an origin the hook keeps failing for is not asked about for a while, alone.

Owns which origins those are, for how long, and how much the failures of all of them may cost.
Failures that cost a time-out are rationed: once so many have happened within a cool-down, strangers
(origins whose key the policy never gave) are kept out as well, since whoever makes up origins could
go on for ever. Knows neither scripts nor the clock.
"""

from __future__ import annotations

from fila.hooks.limits import COSTLY_PER_THRESHOLD, COSTLY_WORST_FACTOR, ORIGINS_KEPT_MAX


class Quarantine:
    """Per origin: so many failures in a row, then a cool-down; one more failure, and another."""

    __slots__ = (
        "_cooldown_ns",
        "_costly",
        "_costly_max",
        "_held",
        "_strangers_until_ns",
        "_threshold",
        "_window_ns",
        "began",
        "failing",
    )

    def __init__(self, threshold: int, cooldown_ms: int) -> None:
        self._threshold = threshold
        self._cooldown_ns = cooldown_ms * 1_000_000
        self._costly_max = threshold * COSTLY_PER_THRESHOLD
        self._held: dict[bytes, int] = {}  # until when
        self._strangers_until_ns = 0
        self._costly = 0
        self._window_ns = 0
        self.failing: dict[bytes, int] = {}  # failures in a row
        self.began = 0  # how often an origin was put away

    @property
    def at_work(self) -> bool:
        """Whether anybody may be kept out."""
        return bool(self._held) or self._strangers_until_ns > 0

    def fail(self, origin: bytes, now_ns: int, *, costly: int = 0, at_once: bool = False) -> bool:
        """Note a failure, and how many time-outs it cost; True if it puts the origin away.
        `at_once`: however many came before."""
        if costly:
            self._spend(costly, now_ns)
        failures = self.failing.pop(origin, 0) + 1
        at_once = at_once or costly > 1 or (costly > 0 and self.keeps_strangers_out(now_ns))
        self.failing[origin] = failures
        if len(self.failing) > ORIGINS_KEPT_MAX:
            del self.failing[next(iter(self.failing))]
        if failures < self._threshold and not at_once:
            return False
        self.failing[origin] = self._threshold - 1  # after the cool-down, one failure is enough
        self._held.pop(origin, None)
        if len(self._held) >= ORIGINS_KEPT_MAX:
            del self._held[next(iter(self._held))]
        self._held[origin] = now_ns + self._cooldown_ns
        self.began += 1
        return True

    def succeed(self, origin: bytes) -> None:
        """Note an answer."""
        self.failing.pop(origin, None)

    def keeps_out(self, origin: bytes, now_ns: int) -> bool:
        until_ns = self._held.get(origin)
        if until_ns is None:
            return False
        if now_ns < until_ns:
            return True
        del self._held[origin]
        return False

    def keeps_strangers_out(self, now_ns: int) -> bool:
        if self._strangers_until_ns and now_ns >= self._strangers_until_ns:
            self._strangers_until_ns = 0
        return self._strangers_until_ns > 0

    def is_overwhelmed(self) -> bool:
        """Whether known origins, too, cost more than may be spent within a cool-down."""
        return self._costly > self._costly_max * COSTLY_WORST_FACTOR

    def clear(self) -> None:
        """Let everybody out; what was spent stays spent."""
        self._held.clear()
        self.failing.clear()
        self._strangers_until_ns = 0

    def held(self, now_ns: int) -> list[bytes]:
        """Who is put away, the latest last."""
        return [origin for origin, until_ns in self._held.items() if now_ns < until_ns]

    def _spend(self, costly: int, now_ns: int) -> None:
        if now_ns - self._window_ns >= self._cooldown_ns:
            self._window_ns, self._costly = now_ns, 0
        self._costly += costly
        if self._costly >= self._costly_max:
            self._strangers_until_ns = now_ns + self._cooldown_ns
