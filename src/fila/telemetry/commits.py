"""A committer that measures the one it wraps: how long commits take, and how much they write."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Protocol

from fila.core.row_batch import RowBatch
from fila.telemetry.instruments import BATCH_BOUNDS, COMMIT_BOUNDS_S, Distribution

_NS = 1e9


class Commits(Protocol):
    """What is wrapped: a committer of the storage layer."""

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None: ...


class MeasuredCommits:
    def __init__(self, inner: Commits, clock_ns: Callable[[], int]) -> None:
        self._inner = inner
        self._clock_ns = clock_ns
        self.latency_counts = [0] * (len(COMMIT_BOUNDS_S) + 1)
        self.latency_s = 0.0
        self.size_counts = [0] * (len(BATCH_BOUNDS) + 1)
        self.rows = 0

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        if not batches:
            self._inner.commit(batches, committed)
            return
        rows = sum([len(batch.ops) for batch in batches])
        self.size_counts[bisect_left(BATCH_BOUNDS, rows)] += 1
        self.rows += rows
        began_ns = self._clock_ns()

        def measured() -> None:
            took_s = (self._clock_ns() - began_ns) / _NS
            self.latency_counts[bisect_left(COMMIT_BOUNDS_S, took_s)] += 1
            self.latency_s += took_s
            committed()

        self._inner.commit(batches, measured)

    def latency(self) -> Distribution:
        return Distribution(list(self.latency_counts), self.latency_s)

    def sizes(self) -> Distribution:
        return Distribution(list(self.size_counts), float(self.rows))
