"""Message ids: UUIDv7, strictly increasing within one broker, across restarts too."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

_ID = Struct(">QQ")
_COUNTER_BITS = 62
_VARIANT = 0b10 << _COUNTER_BITS


class Ids:
    """`random_bits(n)` gives n random bits; times come in with each call."""

    def __init__(self, random_bits: Callable[[int], int], after_ns: int) -> None:
        self._random_bits = random_bits
        # An id of before the restart may carry this very millisecond: begin with the next.
        self._ms = after_ns // 1_000_000
        self._high = 0
        self._counter = 1 << _COUNTER_BITS

    def take(self, count: int, now_ns: int) -> list[bytes]:
        """`count` new ids in ascending order."""
        ms = now_ns // 1_000_000
        if ms > self._ms:
            self._begin(ms)
        elif self._counter + count >= 1 << _COUNTER_BITS:
            self._begin(self._ms + 1)
        high = self._high
        first = self._counter | _VARIANT
        self._counter += count
        pack = _ID.pack
        return [pack(high, low) for low in range(first, first + count)]

    def _begin(self, ms: int) -> None:
        self._ms = ms
        self._high = ms << 16 | 0x7000 | self._random_bits(12)
        # The upper half of the counter's range is left for counting.
        self._counter = self._random_bits(_COUNTER_BITS - 1)
