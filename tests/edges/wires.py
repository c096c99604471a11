"""Connections on a transport made of memory, their loop turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from fila.broker.session import Sessions
from fila.edges.fibp import FibpConnection
from fila.edges.grpc import frames
from fila.edges.grpc.connection import GrpcConnection, GrpcLimits
from fila.edges.grpc.fields import encode
from fila.edges.grpc.message_codec import message_prefix
from fila.edges.limits import ConnectionLimits
from fila.edges.port import Port
from fila.security.guard import Guard
from fila.security.keyring import Keyring
from fila.storage.committer import Committer
from fila.storage.memory import MemoryStore
from fila.wire import bodies, layouts
from fila.wire.frames import FrameDecoder, encode_frames
from tests.broker.turns import Bench, CountingCommitter


def sessions_of(bench: Bench) -> Sessions:
    return Sessions(bench.broker, Guard(Keyring([]), "", False), lambda n: "0" * n, lambda: 0)


class Transport:
    """Keeps what is written as if the client read nothing, until `drain`."""

    def __init__(self) -> None:
        self.protocol: FibpConnection | GrpcConnection | None = None
        self.high = 0
        self.unsent = bytearray()
        self.sent = bytearray()
        self.paused_writing = False
        self.reading = True
        self.closing = False
        self.aborted = False

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def write(self, data: bytes) -> None:
        assert not self.closing, "a closing transport is not written to"
        self.unsent += data
        if len(self.unsent) > self.high and not self.paused_writing:
            self.paused_writing = True
            assert self.protocol is not None
            self.protocol.pause_writing()

    def drain(self, bytes_max: int = 1 << 40) -> None:
        """The client reads so much."""
        self.sent += self.unsent[:bytes_max]
        del self.unsent[:bytes_max]
        assert self.protocol is not None
        if self.paused_writing and len(self.unsent) <= self.high // 4:
            self.paused_writing = False
            self.protocol.resume_writing()
        if self.closing and not self.unsent and not self.aborted:
            self.protocol.connection_lost(None)

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.aborted = True
        self.unsent.clear()
        assert self.protocol is not None
        self.protocol.connection_lost(None)

    def can_write_eof(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> Any:
        return ("198.51.100.7", 4711) if name == "peername" else None


class GrpcWire:
    """One HTTP/2 connection of a bench; what it says is bytes."""

    def __init__(self, bench: Bench | None = None) -> None:
        self.bench = bench or Bench()
        self.transport = Transport()
        self.port = Port(ConnectionLimits())
        self.failures = self.port.failures
        self.connection = GrpcConnection(
            sessions_of(self.bench),
            GrpcLimits(),
            cast(asyncio.AbstractEventLoop, self.bench.loop),
            lambda _: None,
            lambda _: None,
            self.port,
        )
        self.transport.protocol = self.connection
        self.connection.connection_made(cast(asyncio.BaseTransport, self.transport))
        self.connection.data_received(frames.PREFACE + frames.settings({}))

    def call(self, stream: int, method: str, message: bytes) -> None:
        fields = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", f"/fila.v1.{method}".encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
        body = message_prefix(len(message)) + message
        self.connection.data_received(
            frames.frame(frames.HEADERS, frames.END_HEADERS, stream, encode(fields))
            + frames.frame(frames.DATA, frames.END_STREAM, stream, body)
        )


class Wire:
    """One client of a bench."""

    def __init__(
        self,
        bench: Bench | None = None,
        limits: ConnectionLimits | None = None,
        committer: Callable[[MemoryStore], Committer] = CountingCommitter,
        handshake: bool = True,
        port: Port | None = None,
    ) -> None:
        self.bench = bench or Bench(committer)
        self.transport = Transport()
        self.closed = False
        self._decoder = FrameDecoder()
        self.connection = FibpConnection(
            sessions_of(self.bench),
            limits or ConnectionLimits(),
            cast(asyncio.AbstractEventLoop, self.bench.loop),
            lambda _: None,
            self._gone,
            port,
        )
        self.transport.protocol = self.connection
        self.connection.connection_made(cast(asyncio.BaseTransport, self.transport))
        if handshake:
            self.send(bodies.Handshake(1, None))
            self.settle()
            self.received()

    def send(self, *records: tuple[Any, ...], request_id: int = 0) -> None:
        """All of them in one read."""
        self.send_bytes(
            b"".join(
                encode_frames(layouts.opcode_of(record), request_id + place, layouts.encode(record))
                for place, record in enumerate(records)
            )
        )

    def send_bytes(self, data: bytes) -> None:
        assert self.transport.reading, "the server does not read"
        self.connection.data_received(data)

    def settle(self) -> None:
        self.bench.loop.settle()

    def received(self) -> list[tuple[int, int]]:
        """Let the client read everything; opcode and request id of each frame."""
        return [(opcode, request_id) for opcode, request_id, _ in self.frames()]

    def frames(self) -> list[tuple[int, int, bytes]]:
        """The same with their bodies."""
        self.transport.drain()
        data = bytes(self.transport.sent)
        self.transport.sent.clear()
        found = self._decoder.feed(data)
        return [(opcode, request_id, body) for opcode, request_id, body in found]

    def _gone(self, _: object) -> None:
        self.closed = True
