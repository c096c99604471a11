"""Shares: what a fairness key was given and what it was entitled to, over the pulse's window."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.figures import KeyFigures, QueueFigures
from fila.telemetry.pulse import QueuePulse


class Share(NamedTuple):
    """`share` and `fair` are parts of the queue's deliveries; `ratio`: None if it was entitled to
    less than a message."""

    delivered: float
    share: float
    fair: float
    ratio: float | None


class Shares:
    """Of the keys of one queue."""

    def __init__(self, one: QueuePulse, queue: QueueFigures) -> None:
        self._one = one
        self._total = one.window_delivered(queue)

    def of(self, key: KeyFigures) -> Share:
        since = self._one.since(key)
        delivered = key.delivered - since[0]
        entitled = key.entitled - since[1]
        ratio = delivered / entitled if entitled >= 1.0 else None
        if self._total <= 0:
            return Share(0.0, 0.0, 0.0, ratio)
        return Share(delivered, delivered / self._total, entitled / self._total, ratio)
