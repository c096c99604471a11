"""Tracked buckets: which throttle keys have labels of their own; the others share `other`.

A bucket that has a label keeps it while it exists; the first to come get one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fila.core.figures import BucketFigures


class TrackedBuckets:
    def __init__(self, buckets_max: int) -> None:
        self._buckets_max = buckets_max
        self.names: dict[bytes, tuple[int, int]] = {}  # what they counted before they had a label
        self.other_passed = 0
        self.other_limited = 0
        self._seen: dict[bytes, tuple[int, int]] = {}  # of those without
        self._counted: dict[bytes, tuple[int, int]] = {}  # the same, of the count under way

    def begin(self, there: Sequence[bytes]) -> None:
        """A count of these begins."""
        known = set(there)
        for name in [name for name in self.names if name not in known]:
            del self.names[name]
        self._counted = {}

    def count(self, buckets: Mapping[bytes, BucketFigures]) -> None:
        """Some of them."""
        seen = self._counted
        for name, bucket in buckets.items():
            if name in self.names:
                continue
            passed, limited = self._seen.get(name, (0, 0))
            if len(self.names) < self._buckets_max:
                self.names[name] = (passed, limited)
            else:
                # A bucket that was removed and made again counts from 0.
                self.other_passed += max(bucket.passed - passed, 0)
                self.other_limited += max(bucket.limited - limited, 0)
                seen[name] = (bucket.passed, bucket.limited)

    def end(self) -> None:
        self._seen = self._counted
