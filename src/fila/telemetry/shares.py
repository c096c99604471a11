"""Shares: what a fairness key was given and what was its due, over the window of the pulse."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.fairness import FairnessKey
from fila.telemetry.pulse import QueuePulse


class Share(NamedTuple):
    """`share` and `fair` are parts of the queue's deliveries; `ratio`: None if nothing was due."""

    delivered: float
    share: float
    fair: float
    ratio: float | None


def share_of(key: FairnessKey, one: QueuePulse) -> Share:
    meter = key.meter
    total = one.window_delivered()
    since = meter.since if meter is not None else (0.0, 0.0, 0.0, 0.0)
    delivered = (meter.delivered if meter is not None else 0) - since[0]
    due = key.entitled_at(one.queue.ring.clock) - since[1]
    ratio = delivered / due if due >= 1.0 else None
    if total <= 0:
        return Share(0.0, 0.0, 0.0, ratio)
    return Share(delivered, delivered / total, due / total, ratio)
