"""A short past in memory: one row of numbers per step, the oldest overwritten by the newest."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

POINTS: Final = 300  # five minutes of seconds
QUEUE_FIELDS: Final = (
    *("depth", "in_flight", "enqueued", "delivered", "acked", "failed"),
    *("dead_lettered", "throttled", "dlq_depth", "active_keys"),
)
KEY_FIELDS: Final = (
    *("pending", "delivered", "share", "fair_share"),
    *("retry", "throttled", "no_consumer", "own", "turn", "paused"),
    *("busy_own", "busy_others", "capped"),
)


class History:
    """About 24 KB for a queue. `fields` name the columns."""

    __slots__ = ("_at", "_filled", "_values", "fields", "newest")

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = fields
        self._values = array("d", bytes(8 * POINTS * len(fields)))
        self._at = 0
        self._filled = 0
        self.newest: Sequence[float] = ()

    def append(self, row: Sequence[float]) -> None:
        width = len(self.fields)
        start = self._at * width
        self._values[start : start + width] = array("d", row)
        self._at = (self._at + 1) % POINTS
        self._filled = min(self._filled + 1, POINTS)
        self.newest = row

    def columns(self, count: int) -> dict[str, list[float]]:
        """The last `count` values of each field, oldest first."""
        count = min(count, self._filled)
        width = len(self.fields)
        values = self._values
        first = (self._at - count) % POINTS
        if first + count <= POINTS:
            rows = values[first * width : (first + count) * width]
        else:
            rows = values[first * width :] + values[: (first + count - POINTS) * width]
        return {
            name: [_plain(one) for one in rows[at::width]] for at, name in enumerate(self.fields)
        }


def _plain(value: float) -> float:
    """Whole numbers without a fraction, the others in six digits: JSON stays small."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
