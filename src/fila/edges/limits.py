"""What one client connection may have under way, and all of them, whichever protocol they speak."""

from __future__ import annotations

from typing import NamedTuple


class ConnectionLimits(NamedTuple):
    frame_bytes_max: int = 16 * 1024 * 1024  # FIBP's; HTTP/2 has its own
    message_bytes_max: int = 32 * 1024 * 1024
    assembly_streams_max: int = 16
    inbound_bytes_max: int = 128 * 1024 * 1024  # unfinished messages of all connections
    unsent_bytes_max: int = 1024 * 1024  # beyond: no more deliveries
    outbound_bytes_max: int = 16 * 1024 * 1024  # replies beyond: no more requests
    unread_bytes_max: int = 128 * 1024 * 1024  # of all connections; beyond: who reads nothing goes
    strangers_max: int = 1_000  # connections nobody has been admitted on
    stranger_bytes_max: int = 64 * 1024  # that one of them may send
    strangers_bytes_max: int = 16 * 1024 * 1024  # and all of them together
    messages_max: int = 65_536  # in one Enqueue, Ack or Nack
    consumers_max: int = 1_024
    consumers_total_max: int = 200_000  # on all connections, and as many calls over gRPC
    handshake_s: float = 30.0
    close_s: float = 3.0
    keepalive_interval_s: int = 15
    keepalive_timeout_s: int = 10
