"""Effects: what a turn wants done. Nothing leaves the broker before its batches are stored.

Apart from `effect.py`, of which the trail is made: a compiled module must not be in a circle.
"""

from __future__ import annotations

from typing import NamedTuple

from fila.core.effect import BatchLeased, Delivery, Ended
from fila.core.row_batch import RowBatch
from fila.core.trail import Trail


class Effects(NamedTuple):
    """A turn's outcome: store the batches as one, then let the rest go, in order."""

    batches: list[RowBatch]
    deliveries: list[Delivery]
    ended: list[Ended]
    events: Trail
    batches_leased: list[BatchLeased]
