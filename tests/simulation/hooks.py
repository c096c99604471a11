"""The simulated policy: some queues have hooks, and what they say is drawn like everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fila.core.verdict import Assignment, FailedItem, FailureVerdict

from .turn import Hooked

if TYPE_CHECKING:
    from .workload import Workload


class DrawnHooks:
    def __init__(self, workload: Workload, hooked: set[str]) -> None:
        self._workload = workload
        self._hooked = hooked
        self.calls: list[Hooked] = []  # what failure hooks were shown, until somebody takes it

    def has_on_enqueue(self, queue: str) -> bool:
        return queue in self._hooked

    def has_on_failure(self, queue: str) -> bool:
        return queue in self._hooked

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        return [self._workload.assignment() for _ in bodies]

    def undecided(self, queue: str) -> list[int]:
        return [0] if self._workload.rng.random() < 0.1 else []

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        self.calls.append((queue, list(items)))
        return [self._workload.verdict() for _ in items]

    def take_calls(self) -> list[Hooked]:
        calls, self.calls = self.calls, []
        return calls
