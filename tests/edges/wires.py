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

FRAME_BYTES = 16_384


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

    def call(self, stream: int, method: str, *messages: bytes, end: bool = True) -> None:
        """A call with these messages; without `end` the client may send more."""
        fields = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", f"/fila.v1.{method}".encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream, encode(fields))
        body = b"".join(message_prefix(len(message)) + message for message in messages)
        cut = [body[at : at + FRAME_BYTES] for at in range(0, len(body), FRAME_BYTES)] or [b""]
        sent = [frames.frame(frames.DATA, 0, stream, piece) for piece in cut[:-1]]
        last = frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream, cut[-1])
        self.connection.data_received(head + b"".join(sent) + last)

    def answers(self) -> dict[int, tuple[list[bytes], bytes | None]]:
        """What the client has read since it was asked last: the messages of each stream, and the
        fields its call ended with, if it did."""
        while self.transport.unsent:
            self.transport.drain()
        data = bytes(self.transport.sent)
        self.transport.sent.clear()
        found: dict[int, tuple[bytearray, bytes | None]] = {}
        position = 0
        while position < len(data):
            head, flags, stream = frames.HEADER.unpack_from(data, position)
            start = position + frames.HEADER_BYTES
            position = start + (head >> 8)
            content = data[start:position]
            body, fields = found.get(stream, (bytearray(), None))
            if head & 0xFF == frames.DATA:
                body += content
            elif head & 0xFF == frames.HEADERS and flags & frames.END_STREAM:
                fields = content
            found[stream] = (body, fields)
        found.pop(0, None)
        return {stream: (_messages(body), fields) for stream, (body, fields) in found.items()}


def _messages(body: bytearray) -> list[bytes]:
    found = []
    while body:
        end = 5 + int.from_bytes(body[1:5], "big")
        found.append(bytes(body[5:end]))
        del body[:end]
    return found


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
