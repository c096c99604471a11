"""The HTTP port: accepts connections and keeps count of them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import cast

from fila.edges.failures import Failures
from fila.edges.handshake import PortTls, TlsServer
from fila.edges.http.connection import PAGES, HttpConnection, HttpLimits, Serve
from fila.edges.http.message import Fields
from fila.edges.inbound import Inbound
from fila.edges.outbound import Outbound

log = logging.getLogger("fila.http")

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class HttpListener:
    def __init__(
        self,
        serve: Serve,
        limits: HttpLimits,
        failures: Failures,
        outbound: Outbound,
        inbound: Inbound,
        always: Fields = PAGES,
    ) -> None:
        self._serve = serve
        self._outbound = outbound
        self._inbound = inbound
        self._always = always
        self._failures = failures
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | TlsServer | None = None
        self._connections: OrderedDict[HttpConnection, None] = OrderedDict()  # last used, last
        self.turned_away = 0  # since the start

    async def listen(self, host: str, port: int, tls: PortTls | None = None) -> tuple[str, int]:
        """Bind and accept. Returns the address that was bound."""
        server: asyncio.Server | TlsServer
        if tls is not None:
            limits = self._limits
            server = TlsServer(
                self._connect, tls, self._loop, limits.request_s, limits.connections_max
            )
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

    def connections(self) -> int:
        return len(self._connections)

    def _connect(self) -> asyncio.Protocol:
        if len(self._connections) >= self._limits.connections_max and not self._make_room():
            self.turned_away += 1
            return _TurnedAway()
        return HttpConnection(
            self._serve,
            self._limits,
            self._loop,
            self._used,
            self._closed,
            self._failures,
            self._outbound,
            self._inbound,
            self._always,
        )

    def _make_room(self) -> bool:
        """A health check must not wait for connections that say nothing, or do not read: of those
        the one that was used the longest ago goes."""
        found = next((one for one in self._connections if one.is_idle()), None)
        found = found or next((one for one in self._connections if one.is_slow()), None)
        if found is None:
            return False
        found.give_up()
        self._closed(found)
        return True

    def _used(self, connection: HttpConnection) -> None:
        self._connections[connection] = None
        self._connections.move_to_end(connection)

    def _closed(self, connection: HttpConnection) -> None:
        self._connections.pop(connection, None)


class _TurnedAway(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        transport.write(_FULL)
        transport.close()
