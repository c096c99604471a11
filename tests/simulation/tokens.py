"""The auditor's own throttle settings and token buckets.

A bucket that never goes below zero under its own arithmetic is the same as the promise that no span
of time sees more than burst + rate × t deliveries, so that promise is checked token by token.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from . import caps
from .model import Lane, Queue
from .turn import Violation

# Far above floating-point error, far below anything a rate can show.
TOLERANCE = 1e-6
NS = 1_000_000_000
NEVER_NS = 10**18 * 9


class Setting(NamedTuple):
    """What the config says about one throttle key."""

    dotted: bool
    rate: float | None
    burst: float | None


class Bucket:
    __slots__ = ("at_ns", "burst", "changes", "level", "rate")

    def __init__(self, rate: float, burst: float, now: int) -> None:
        self.rate = rate
        self.burst = burst
        self.level = burst
        self.at_ns = now
        self.changes = 0

    def level_at(self, now: int) -> float:
        return min(self.burst, self.level + max(now - self.at_ns, 0) * self.rate / NS)

    def token_ns(self) -> int:
        """When it next holds a token, give or take its rounding."""
        if self.level >= 1.0:
            return self.at_ns
        wait_ns = (1.0 - self.level) * NS / self.rate if self.rate > 0.0 else NEVER_NS
        return self.at_ns + int(wait_ns) if self.burst >= 1.0 and wait_ns < NEVER_NS else NEVER_NS


class Tokens:
    """Every throttle key's setting, bucket, and the lanes that name it."""

    def __init__(self) -> None:
        self.settings: dict[bytes, Setting] = {}
        self.buckets: dict[bytes, Bucket] = {}
        self.caps: dict[bytes, int] = {}
        self.lanes: dict[bytes, dict[Lane, None]] = {}
        self.queues: dict[bytes, Counter[Queue]] = {}  # how many ready lanes of each queue name it

    def know(self, lane: Lane) -> None:
        for name in lane.limits:
            self.lanes.setdefault(name, {})[lane] = None

    def forget(self, lane: Lane) -> None:
        for name in lane.limits:
            self.lanes[name].pop(lane, None)
            self.queues.get(name, Counter()).pop(lane.key.queue, None)

    def forget_queue(self, queue: Queue) -> None:
        """It is not in memory: none of its lanes has anything ready."""
        for queues in self.queues.values():
            queues.pop(queue, None)

    def forget_ready(self) -> None:
        self.queues = {}

    def ready_changes(self, lane: Lane) -> None:
        """The lane came to have something ready, or has nothing ready any more."""
        for name in lane.limits:
            queues = self.queues.setdefault(name, Counter())
            queues[lane.key.queue] += 1 if lane.ready else -1
            if not queues[lane.key.queue]:
                del queues[lane.key.queue]

    def is_of_one_queue(self, name: bytes) -> bool:
        """Whether the bucket's tokens went to one queue only in this turn, as far as they may.

        If not, spans behind it end: tokens are shared by weight inside a queue, not across queues.
        """
        queues = self.queues[name]
        if name in self.buckets and sum(queue.had_credit for queue in queues) == 1:
            return True
        for queue in queues:
            queue.shared = {}
        return False

    def buckets_of(self, lane: Lane) -> list[Bucket]:
        buckets = self.buckets
        return [buckets[name] for name in lane.limits if name in buckets]

    def has(self, lane: Lane, now: int, margin: float) -> bool:
        """Whether every bucket of the lane holds a token, and `margin` more, and no cap is full."""
        if caps.is_full(self, lane):
            return False
        buckets = self.buckets
        for name in lane.limits:
            bucket = buckets.get(name)
            if bucket is not None and bucket.level_at(now) < 1.0 + margin:
                return False
        return True

    def take(self, lane: Lane, now: int) -> list[bytes]:
        """One token from each bucket. Returns the throttle keys that are short afterwards."""
        short = []
        for name in lane.limits:
            bucket = self.buckets.get(name)
            if bucket is None:
                continue
            level = bucket.level_at(now)
            if level < 1.0 - TOLERANCE:
                raise Violation(
                    "throttle rate",
                    f"{name.decode()} delivers with {level:.9f} of a token left "
                    f"(rate {bucket.rate}, burst {bucket.burst})",
                )
            bucket.level = level - 1.0
            bucket.at_ns = now
            bucket.changes += 1
            if bucket.level < 1.0 + TOLERANCE:
                short.append(name)
        return short

    def set_config(self, key: str, value: str, now: int) -> bytes | bool | None:
        """Follow a config write. Returns the throttle key, None if it is none, False if refused."""
        if key.startswith("throttle."):
            name = key[len("throttle.") :].encode()
            if not name:
                return False
            if not value:
                self.settings.pop(name, None)
            else:
                parts = [_number(part) for part in value.split(",")]
                if len(parts) != 2 or None in parts:
                    return False
                self.settings[name] = Setting(True, parts[0], parts[1])
        elif key.startswith("throttle:"):
            middle, _, field = key[len("throttle:") :].rpartition(":")
            name = middle.encode()
            if field == "max_in_flight":
                return self._set_cap(name, value)
            number = _number(value) if value else None
            if not name or field not in ("rate", "burst") or (value and number is None):
                return False
            dotted, rate, burst = self.settings.get(name, Setting(False, None, None))
            if field == "burst":
                self.settings[name] = Setting(False, rate, number)
            elif number is None and dotted:
                del self.settings[name]
            else:
                self.settings[name] = Setting(False, number, burst)
        else:
            return None
        self._follow(name, now)
        return name

    def _set_cap(self, name: bytes, value: str) -> bytes | bool:
        most = int(value) if value.isdigit() else 0
        if not name or (value and not 1 <= most <= 1_000_000):
            return False
        self.caps.pop(name, None)
        if value:
            self.caps[name] = most
        return name

    def _follow(self, name: bytes, now: int) -> None:
        setting = self.settings.get(name)
        if setting is None or setting.rate is None:
            self.buckets.pop(name, None)
            return
        rate = setting.rate
        burst = max(rate, 1.0) if setting.burst is None else setting.burst
        bucket = self.buckets.get(name)
        if bucket is None:
            self.buckets[name] = Bucket(rate, burst, now)
            return
        bucket.level = min(bucket.level_at(now), burst)
        bucket.at_ns = now
        bucket.rate = rate
        bucket.burst = burst
        bucket.changes += 1


def _number(text: str) -> float | None:
    text = text.strip()
    if not text or not (text[0].isdigit() or text[0] == "."):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
