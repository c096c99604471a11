"""How long things took: counts in buckets that grow with the value.

Owns the buckets. Each is 1/32 wider than the one before: a percentile is wrong by 3 % at most, and
memory does not depend on how much is measured. Several are added up into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

_STEPS_LOG2: Final = 5  # 32 buckets from one power of two to the next
_STEPS: Final = 1 << _STEPS_LOG2
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)


class Histogram:
    def __init__(self, counts: dict[int, int] | None = None, largest_us: int = 0) -> None:
        self.counts: Counter[int] = Counter(counts or {})
        self.largest_us = largest_us

    def add(self, us: int) -> None:
        self.counts[_bucket(us)] += 1
        if us > self.largest_us:
            self.largest_us = us

    def total(self) -> int:
        return self.counts.total()

    def percentile_us(self, percent: float) -> int:
        """The value that so many percent do not exceed; 0 when nothing was measured."""
        wanted = self.total() * percent / 100
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(_upper_us(bucket), self.largest_us)
        return 0

    def by_power(self) -> list[tuple[int, int]]:
        """Upper limit in µs and count of each power of two, without gaps, for a picture."""
        if not self.counts:
            return []
        powers: Counter[int] = Counter()
        for bucket, count in self.counts.items():
            powers[_upper_us(bucket).bit_length()] += count
        return [(1 << power, powers[power]) for power in range(min(powers), max(powers) + 1)]


def added(parts: Iterable[Histogram]) -> Histogram:
    whole = Histogram()
    for part in parts:
        whole.counts.update(part.counts)
        whole.largest_us = max(whole.largest_us, part.largest_us)
    return whole


def _bucket(us: int) -> int:
    """Values below 64 have a bucket each, then 32 to a power of two."""
    shift = max(us.bit_length() - _STEPS_LOG2 - 1, 0)
    return (shift << (_STEPS_LOG2 + 1)) | (us >> shift)


def _upper_us(bucket: int) -> int:
    shift, top = bucket >> (_STEPS_LOG2 + 1), bucket & (2 * _STEPS - 1)
    return ((top + 1) << shift) - 1
