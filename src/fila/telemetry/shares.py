"""Shares: what a fairness key was given and what it was entitled to, over the pulse's window.

In messages, or where these cost their bytes, in bytes."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.figures import KeyFigures, QueueFigures
from fila.telemetry.pulse import QueuePulse


class Share(NamedTuple):
    """`share` and `fair` are parts of what the queue gave; `ratio`: None if it was entitled to
    less than one."""

    given: float
    share: float
    fair: float
    ratio: float | None


class Shares:
    """Of the keys of one queue."""

    def __init__(self, one: QueuePulse, queue: QueueFigures) -> None:
        self._one = one
        self._total = one.window_given(queue)

    def of(self, key: KeyFigures) -> Share:
        since = self._one.since(key)
        given = key.given - since[0]
        entitled = key.entitled - since[1]
        ratio = given / entitled if entitled >= 1.0 else None
        if self._total <= 0:
            return Share(0.0, 0.0, 0.0, ratio)
        return Share(given, given / self._total, entitled / self._total, ratio)
