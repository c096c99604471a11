"""TCP keepalive: the kernel detects dead peers.

No frame a client must answer is ever sent for it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from fila.edges.limits import ConnectionLimits

_PROBES: Final = 3


def keep_alive(transport: asyncio.Transport, limits: ConnectionLimits) -> None:
    """Set a new connection's socket up; small frames are sent at once, too."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        every = max(1, limits.keepalive_timeout_s // _PROBES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, limits.keepalive_interval_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, every)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
