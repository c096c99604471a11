"""The port: accepts connections and keeps count of them."""

from __future__ import annotations

import asyncio
import logging
import socket

from fila.broker.session import Sessions
from fila.edges.fibp import FibpConnection
from fila.edges.grpc.connection import GrpcConnection, GrpcLimits
from fila.edges.grpc.http2 import Http2Limits
from fila.edges.handshake import PortTls, TlsServer
from fila.edges.limits import ConnectionLimits
from fila.edges.port import Port
from fila.edges.protocol_detection import Connection, ProtocolDetector, TurnedAway

log = logging.getLogger("fila.listener")


class Listener:
    def __init__(
        self,
        sessions: Sessions,
        limits: ConnectionLimits,
        http2: Http2Limits | None = None,
        connections_max: int = 10_000,
    ) -> None:
        self.connections_max = connections_max
        self.turned_away = 0  # since the start
        self._full = False
        self.port = Port(limits)
        self._sessions = sessions
        self._limits = limits
        self._grpc_limits = GrpcLimits(http2 or Http2Limits(), limits)
        self._loop = asyncio.get_running_loop()
        self._servers: list[asyncio.Server | TlsServer] = []
        self._connections: set[Connection] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def connections(self) -> int:
        return len(self._connections)

    async def listen(self, host: str, port: int, tls: PortTls | None = None) -> tuple[str, int]:
        """Bind and accept, once per address. Returns the address that was bound (port 0 picks a
        free one)."""
        server: asyncio.Server | TlsServer
        if tls is not None:
            limits = self._limits
            server = TlsServer(
                self._connect, tls, self._loop, limits.handshake_s, limits.strangers_max
            )
            await server.listen(host, port, backlog=1024)
        else:
            server = await self._loop.create_server(
                self._connect, host or None, port, backlog=1024, reuse_address=True
            )
        self._servers.append(server)
        bound = server.sockets[0].getsockname()
        return bound[0], bound[1]

    async def close(self, grace_s: float) -> None:
        """Stop accepting, let every connection finish what was accepted, close them."""
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.shut_down()
        try:
            await asyncio.wait_for(self._idle.wait(), grace_s)
        except TimeoutError:
            log.warning("connections did not close in time", extra={"open": len(self._connections)})

    def _connect(self) -> asyncio.Protocol:
        full = len(self._connections) >= self.connections_max
        if full and not self._full:
            log.warning("too many connections", extra={"max_connections": self.connections_max})
        self._full = full
        if full:
            self.turned_away += 1
            return TurnedAway(self.connections_max)
        return ProtocolDetector(
            self._fibp,
            self._grpc,
            self._loop,
            self._limits.handshake_s,
            self._opened,
            self._closed,
            self.port.failures,
        )

    def _fibp(self) -> FibpConnection:
        return FibpConnection(
            self._sessions,
            self._limits,
            self._loop,
            self._opened,
            self._closed,
            self.port,
        )

    def _grpc(self) -> GrpcConnection:
        return GrpcConnection(
            self._sessions,
            self._grpc_limits,
            self._loop,
            self._opened,
            self._closed,
            self.port,
        )

    def _opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._idle.clear()
        self.port.strangers.met(connection)

    def _closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.port.strangers.known(connection)
        if not self._connections:
            self._idle.set()


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, `[v6]:port` or `:port`. Raises ValueError with a reason."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f'"{text}" is not host:port, for example "0.0.0.0:5555"')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        socket.inet_pton(socket.AF_INET6, host)
    return host, int(port)
