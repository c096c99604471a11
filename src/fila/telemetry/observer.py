"""The observer: called by the broker, per batch, with what was delivered and what failed.

Owns the groups of errors with which messages were dead-lettered. Counts nothing the core counts
already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from fila.core.effect import Delivery
from fila.core.entry import BODY
from fila.core.measuring import measure
from fila.core.verdict import FailureVerdict
from fila.telemetry.spans import Tracer

GROUPS_MAX: Final = 50  # per queue; what exceeds them is one group, `other`
QUEUES_MAX: Final = 1_000
ERROR_CHARS_MAX: Final = 300
_VARYING: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|\d+"
)


class ErrorGroup:
    """Dead letters that failed for one reason, numbers and ids in it left out."""

    __slots__ = ("count", "error", "example", "first_ms", "last_ms", "message")

    def __init__(self, error: str, now_ms: int) -> None:
        self.error = error
        self.count = 0
        self.first_ms = now_ms
        self.last_ms = now_ms
        self.example = ""
        self.message = b""


class Observer:
    def __init__(self, now_ms: Callable[[], int], tracer: Tracer | None) -> None:
        self._now_ms = now_ms
        self._tracer = tracer
        self._errors: dict[str, dict[str, ErrorGroup]] = {}

    def delivered(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            measure(delivery)
        tracer = self._tracer
        if tracer is None:
            return
        for delivery in deliveries:
            bodies = [entry[BODY] for entry in delivery.entries[:32]]
            queue = delivery.consumer.queue.name
            span = tracer.begin("deliver", queue, len(delivery.entries), b"", bodies)
            if span is not None:
                span.attributes["fila.consumer"] = delivery.consumer.id
                span.end()

    def failed(
        self,
        queue: str,
        ids: Sequence[bytes],
        errors: Sequence[str],
        verdicts: Sequence[FailureVerdict],
    ) -> None:
        for id, error, verdict in zip(ids, errors, verdicts, strict=True):
            if verdict.dead_letter:
                self._note(queue, id, error)

    def forget(self, queues: Callable[[str], bool]) -> None:
        """Keep the errors of queues that still exist."""
        for name in [name for name in self._errors if not queues(name)]:
            del self._errors[name]

    def error_groups(self, queue: str) -> list[ErrorGroup]:
        """The largest first."""
        groups = self._errors.get(queue, {})
        return sorted(groups.values(), key=lambda one: (-one.count, one.error))

    def _note(self, queue: str, id: bytes, error: str) -> None:
        groups = self._errors.get(queue)
        if groups is None:
            if len(self._errors) >= QUEUES_MAX:
                return
            groups = self._errors[queue] = {}
        error = error[:ERROR_CHARS_MAX]
        name = _VARYING.sub("#", error)
        now_ms = self._now_ms()
        group = groups.get(name)
        if group is None:
            if len(groups) >= GROUPS_MAX:
                name = "other"
                group = groups.get(name)
            if group is None:
                group = groups[name] = ErrorGroup(name, now_ms)
        group.count += 1
        group.last_ms = now_ms
        group.example = error
        group.message = id
