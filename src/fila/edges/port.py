"""What the connections of a broker share: the sums that keep all of them together within bounds."""

from __future__ import annotations

from typing import Final

from fila.edges.failures import Failures
from fila.edges.inbound import Inbound
from fila.edges.lane_fields import LaneFields
from fila.edges.limits import ConnectionLimits
from fila.edges.outbound import SLOW_BYTES, Outbound
from fila.edges.strangers import Strangers

ALWAYS_ALLOWED: Final = 16


class Port:
    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.failures = Failures()
        self.lane_fields = LaneFields()
        self.inbound = Inbound(limits.inbound_bytes_max)
        self.outbound = Outbound(limits.unread_bytes_max)
        self.strangers = Strangers(limits.strangers_max, limits.strangers_bytes_max)
        self.calls = 0  # that are open, over gRPC

    def unsent_bytes_max(self) -> int:
        """From how many unsent bytes on a connection's consumers get nothing more: fewer while all
        of them together leave much unread."""
        return SLOW_BYTES if self.outbound.is_crowded() else self.limits.unsent_bytes_max

    def allowed(self, own_max: int, total: int) -> int:
        """How many consumers, or calls, one connection may have. As all of them together come near
        their limit it is less, so that nobody takes what is left; a few are always allowed."""
        left = self.limits.consumers_total_max - total
        return min(own_max, max(ALWAYS_ALLOWED, left // 4))
