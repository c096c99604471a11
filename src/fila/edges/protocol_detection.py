"""Protocol detection: does a new connection speak FIBP or HTTP/2?

Under TLS the client may have said so (ALPN). Otherwise the first bytes decide: HTTP/2 begins with a
fixed preface, and a FIBP frame that began with its first byte would exceed the maximum frame size.
Owns a connection only until then; afterwards the transport calls the protocol directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from fila.edges.failures import UNKNOWN, Failures
from fila.edges.grpc.frames import PREFACE
from fila.edges.tls import ALPN_FIBP, ALPN_GRPC
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames


class Connection(Protocol):
    """A connection as the listener sees it."""

    def shut_down(self) -> None: ...

    def give_up(self) -> None: ...


class ProtocolDetector(asyncio.Protocol):
    def __init__(
        self,
        fibp: Callable[[], asyncio.Protocol],
        grpc: Callable[[], asyncio.Protocol],
        loop: asyncio.AbstractEventLoop,
        wait_s: float,
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
        failures: Failures,
    ) -> None:
        self._fibp = fibp
        self._grpc = grpc
        self._loop = loop
        self._wait_s = wait_s
        self._opened = opened
        self._closed = closed
        self._failures = failures
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = opened = cast(asyncio.Transport, transport)
        try:
            self._greet(opened)
        except Exception as error:
            self._fail(opened, error)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None, "once handed over, it calls its new protocol"
        try:
            self._detect(self._seen + data)
        except Exception as error:
            self._fail(transport, error)

    def _greet(self, transport: asyncio.Transport) -> None:
        secured = transport.get_extra_info("ssl_object")
        name = secured.selected_alpn_protocol() if secured is not None else None
        if name == ALPN_FIBP:
            self._hand_over(self._fibp())
        elif name == ALPN_GRPC:
            self._hand_over(self._grpc())
        else:
            self._opened(self)
            self._timer = self._loop.call_later(self._wait_s, self.shut_down)

    def _detect(self, seen: bytes) -> None:
        start = seen[: len(PREFACE)]
        if start != PREFACE[: len(start)]:
            protocol = self._fibp()
        elif len(start) < len(PREFACE):
            self._seen = seen
            return
        else:
            protocol = self._grpc()
        self._hand_over(protocol)
        self._leave()
        protocol.data_received(seen)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._leave()

    def shut_down(self) -> None:
        """The client sent nothing in time, or the server stops."""
        if self._transport is not None:
            self._transport.close()

    def give_up(self) -> None:
        """Others need its place."""
        if self._transport is not None:
            self._transport.abort()

    def _hand_over(self, protocol: asyncio.Protocol) -> None:
        assert self._transport is not None
        transport, self._transport = self._transport, None
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def _fail(self, transport: asyncio.Transport, error: Exception) -> None:
        """The protocol that owns the transport now is told that the connection is lost."""
        peer = transport.get_extra_info("peername")
        self._failures.report(UNKNOWN, f"{peer[0]}:{peer[1]}" if peer else "?", error)
        self._leave()
        transport.abort()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._closed(self)


class TurnedAway(asyncio.Protocol):
    """One connection too many: answered with an Error in FIBP, whatever it speaks, and closed."""

    def __init__(self, connections_max: int) -> None:
        text = f"there are {connections_max} connections, the limit; try again later"
        error = bodies.Error(errors.CHANNEL_FULL, text, {"retry_after_ms": "1000"})
        self._farewell = encode_frames(op.ERROR, 0, layouts.encode(error))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        transport.write(self._farewell)
        transport.close()
