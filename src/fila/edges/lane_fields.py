"""How lanes are written in FIBP deliveries: encoded once per lane and weight, for all connections.

Owns that cache and its bound. A lane is known by the numbers of its queue and its own, which no
other lane of the same broker ever has.
"""

from __future__ import annotations

from typing import Final

from fila.core.lane import Lane
from fila.wire import message_codec

LANES_MAX: Final = 65_536  # a few hundred bytes each; beyond, the cache is cleared
UNKNOWN: Final = (-1, b"")  # no weight is negative

Fields = dict[int, tuple[int, bytes]]  # weight and field, by the lane's number
NONE: Final[Fields] = {}  # of all queues of which none is known; never changed


class LaneFields:
    __slots__ = ("_lanes", "known")

    def __init__(self) -> None:
        self.known: dict[int, Fields] = {}  # by the queue's number
        self._lanes = 0

    def of(self, lane: Lane, weight: int) -> bytes:
        fields = self.known.get(lane.queue.number, NONE)
        known_weight, field = fields.get(lane.number, UNKNOWN)
        return field if known_weight == weight else self.encode(lane, weight)

    def encode(self, lane: Lane, weight: int) -> bytes:
        """Fairness key, weight and throttle keys as they travel; remembered."""
        if self._lanes >= LANES_MAX:
            self.known.clear()
            self._lanes = 0
        field = message_codec.lane_field(lane.key.name, weight, lane.throttle_keys)
        fields = self.known.setdefault(lane.queue.number, {})
        self._lanes += lane.number not in fields
        fields[lane.number] = (weight, field)
        return field
