"""Gates: what a lane may have to wait at, and the lanes in line there.

A token bucket says how often messages of one throttle key may go. A cap says how many of a throttle
key, a fairness key or an ordering key may be leased at once; that is counted by the lanes that have
it (`caps.py`), so no slot is ever lost.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from fila.core import rows
from fila.core.deadline import Sleeper

if TYPE_CHECKING:
    from fila.core.lane import Lane
    from fila.core.queue import Queue

NS: Final = 1_000_000_000
# A refill computed in floating point may fall short of a whole token by rounding; this is
# far above that error and far below anything a rate can show.
TOKEN: Final = 1.0 - 1e-9
NO_LIMIT: Final = 1 << 62


class Gate(Sleeper):
    """Lanes in line, and how often one was made to wait here since the broker started."""

    __slots__ = ("limited", "name", "waiters")

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self.name = name
        self.waiters: OrderedDict[Lane, None] = OrderedDict()
        self.limited = 0


class Cap(Gate):
    """Slots for messages in flight; each lane that has this cap among its own counts here."""

    __slots__ = ("in_flight", "limit", "queue")

    def __init__(self, name: bytes, limit: int, queue: Queue | None = None) -> None:
        super().__init__(name)
        self.limit = limit  # 0: the queue's, for each of its keys
        self.queue = queue  # whose key's it is; None: a throttle key's
        self.in_flight = 0

    def slots(self) -> int:
        """How many more may be leased now."""
        limit = self.limit
        if limit == 0 and self.queue is not None:
            limit = self.queue.max_in_flight_per_key
        if limit == 0:
            return NO_LIMIT
        return limit - self.in_flight if limit > self.in_flight else 0


class Bucket(Gate):
    """Tokens at a point in time. Shared by every queue that names its key; or, where a group is
    given, of one fairness key of a queue (`overriding.py`), whose name it has then."""

    __slots__ = (
        "at_ns",
        "burst",
        "dirty",
        "group",
        "passed",
        "rate",
        "row",
        "tokens",
    )

    def __init__(
        self, name: bytes, rate: float, burst: float, now: int, row: bytes = b"", group: int = 0
    ) -> None:
        super().__init__(name)
        self.row = row or rows.BUCKET_PREFIX + name  # where its level is stored
        self.group = group  # the log group it is stored with
        self.rate = rate
        self.burst = burst
        self.tokens = burst  # a new bucket starts full
        self.at_ns = now
        self.dirty = False
        self.passed = 0  # messages it admitted since the broker started

    def refill(self, now: int) -> None:
        elapsed = now - self.at_ns
        if elapsed > 0:
            tokens = self.tokens + elapsed * self.rate / NS
            self.tokens = tokens if tokens < self.burst else self.burst
            self.at_ns = now

    def tokens_at(self, now: int) -> float:
        """What a refill would make of it, for those who only look."""
        elapsed = now - self.at_ns
        if elapsed <= 0:
            return self.tokens
        return min(self.tokens + elapsed * self.rate / NS, self.burst)

    def change(self, rate: float, burst: float, now: int) -> None:
        """A changed bucket keeps its tokens, cut to the new burst."""
        self.refill(now)
        self.rate = rate
        self.burst = burst
        if self.tokens > burst:
            self.tokens = burst

    def restore(self, tokens: float, at_ns: int, now: int) -> None:
        """Continue from a stored level plus the time that passed: a crash grants no fresh burst."""
        self.tokens = min(tokens, self.burst)
        self.at_ns = min(at_ns, now)
        self.refill(now)

    def next_token_ns(self) -> int:
        """When the bucket next holds a whole token; 0 for never."""
        if self.tokens >= TOKEN:
            return self.at_ns
        if self.rate <= 0.0 or self.burst < TOKEN:
            return 0
        wait = (1.0 - self.tokens) * NS / self.rate
        if wait > 1e18:
            return 0
        return self.at_ns + math.ceil(wait)


def whole_tokens(buckets: list[Bucket], want: int, now: int) -> int:
    """How many messages, up to `want`, all of the buckets together admit now."""
    for bucket in buckets:
        bucket.refill(now)
        tokens = bucket.tokens
        if tokens < want:
            want = int(tokens + 1e-9)
            if want <= 0:
                return 0
    return want


def first_short(buckets: list[Bucket]) -> Bucket | None:
    for bucket in buckets:
        if bucket.tokens < TOKEN:
            return bucket
    return None
