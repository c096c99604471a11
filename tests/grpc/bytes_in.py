"""Our side of HTTP/2 in memory, fed with bytes of one's own."""

from __future__ import annotations

import pytest

from fila.edges.grpc import frames, http2
from fila.edges.grpc.fields import encode
from fila.edges.grpc.http2 import Http2, Http2Error, Http2Limits

FIELDS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/fila.v1.FilaService/Enqueue"),
    (":authority", "localhost"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
    ("authorization", "Bearer 0123"),
]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Raw:
    """Our server, and bytes of our own."""

    def __init__(self, limits: Http2Limits | None = None) -> None:
        self.clock = Clock()
        self.server = Http2(limits or Http2Limits(), self.clock)
        self.feed(frames.PREFACE + frames.settings({}))
        self.out()

    def feed(self, data: bytes) -> list[http2.Event]:
        events = self.server.feed(data)
        while self.server.more:
            events += self.server.feed(b"")
        return events

    def out(self) -> bytes:
        return self.server.out.take()

    def fault(self, data: bytes) -> int:
        with pytest.raises(Http2Error) as caught:
            self.feed(data)
        return caught.value.code


def fields_block() -> bytes:
    return encode([(name.encode(), value.encode()) for name, value in FIELDS])


def headers(id: int, end: bool = False, block: bytes | None = None) -> bytes:
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frames.frame(frames.HEADERS, flags, id, fields_block() if block is None else block)


def data(id: int, content: bytes, end: bool) -> bytes:
    return frames.frame(frames.DATA, frames.END_STREAM if end else 0, id, content)
