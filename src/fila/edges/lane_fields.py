"""How lanes are written in FIBP deliveries: encoded once per lane and weight, for all connections.

Owns that cache and its bound. A lane is known by the prefix of its messages' keys, which no other
lane of the same broker ever has.
"""

from __future__ import annotations

from typing import Final

from fila.core.lane import Lane
from fila.wire import message_codec

LANES_MAX: Final = 65_536  # a few hundred bytes each; beyond, the cache is cleared
UNKNOWN: Final = (-1, b"")  # no weight is negative


class LaneFields:
    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[int, bytes]] = {}  # weight and field by the lane's prefix

    def of(self, lane: Lane, weight: int) -> bytes:
        known_weight, field = self.known.get(lane.prefix, UNKNOWN)
        return field if known_weight == weight else self.encode(lane, weight)

    def encode(self, lane: Lane, weight: int) -> bytes:
        """Fairness key, weight and throttle keys as they travel; remembered."""
        if len(self.known) >= LANES_MAX:
            self.known.clear()
        field = message_codec.lane_field(lane.key.name, weight, lane.throttle_keys)
        self.known[lane.prefix] = (weight, field)
        return field
