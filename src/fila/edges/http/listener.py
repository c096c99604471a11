"""The HTTP port: accepts connections and keeps count of them."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

from fila.edges.failures import Failures
from fila.edges.handshake import PortTls, TlsServer
from fila.edges.http.connection import HttpConnection, HttpLimits, Serve

log = logging.getLogger("fila.http")

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class HttpListener:
    def __init__(self, serve: Serve, limits: HttpLimits, failures: Failures) -> None:
        self._serve = serve
        self._failures = failures
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | TlsServer | None = None
        self._connections: set[HttpConnection] = set()

    async def listen(self, host: str, port: int, tls: PortTls | None = None) -> tuple[str, int]:
        """Bind and accept. Returns the address that was bound."""
        server: asyncio.Server | TlsServer
        if tls is not None:
            server = TlsServer(self._connect, tls, self._loop, self._limits.request_s)
            await server.listen(host, port, backlog=128)
        else:
            server = await self._loop.create_server(
                self._connect, host or None, port, backlog=128, reuse_address=True
            )
        self._server = server
        bound = server.sockets[0].getsockname()
        return bound[0], bound[1]

    def close(self) -> None:
        """Stop accepting and end what is open: nothing here must finish."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.shut_down()

    def _connect(self) -> asyncio.Protocol:
        if len(self._connections) >= self._limits.connections_max:
            return _TurnedAway()
        return HttpConnection(
            self._serve,
            self._limits,
            self._loop,
            self._connections.add,
            self._connections.discard,
            self._failures,
        )


class _TurnedAway(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        transport.write(_FULL)
        transport.close()
