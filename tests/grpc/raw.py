"""A gRPC peer on a plain socket: full control over every frame, and bounded waits.

HTTP/2 by another maker (`h2`), so that what the official client does or hides cannot colour a
result; `send_bytes` goes around it.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from types import TracebackType

import h2.config
import h2.connection
import h2.events
import h2.settings

WAIT_S = 30.0


class Closed(Exception):  # noqa: N818
    """The server closed the connection."""


class RawPeer:
    def __init__(
        self,
        address: tuple[str, int],
        tls: ssl.SSLContext | None = None,
        window: int | None = None,
        source: str = "",
    ) -> None:
        self.socket: socket.socket = socket.create_connection(
            address, timeout=WAIT_S, source_address=(source, 0) if source else None
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.http2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        )
        if window is not None:
            self.http2.local_settings.initial_window_size = window
        self.http2.initiate_connection()
        self.events: list[h2.events.Event] = []
        self.flush()

    def settle(self) -> RawPeer:
        """Wait until the server has said how large its windows are."""
        while not any(isinstance(one, h2.events.WindowUpdated) for one in self.events):
            assert self.read()
        return self

    def flush(self) -> None:
        self.send_bytes(self.http2.data_to_send())

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def open(
        self, path: str, fields: list[tuple[str, str]] | None = None, end: bool = False
    ) -> int:
        """Begin a call; its stream."""
        stream = self.http2.get_next_available_stream_id()
        base = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
        self.http2.send_headers(stream, base + (fields or []), end_stream=end)
        self.flush()
        return stream

    def send(self, stream: int, message: bytes, end: bool = True) -> None:
        self.http2.send_data(stream, prefixed(message), end_stream=end)
        self.flush()

    def status(self, stream: int, timeout_s: float = WAIT_S) -> tuple[int, str]:
        """How the call ended: its code and text."""
        while True:
            for event in self.events:
                fields = getattr(event, "headers", None)
                if fields and getattr(event, "stream_id", 0) == stream:
                    found = dict(fields)
                    if "grpc-status" in found:
                        return int(found["grpc-status"]), found.get("grpc-message", "")
            if not self.read(timeout_s):
                raise Closed

    def data(self, stream: int) -> bytes:
        return b"".join(
            event.data or b""
            for event in self.events
            if isinstance(event, h2.events.DataReceived) and event.stream_id == stream
        )

    def read(self, timeout_s: float = WAIT_S) -> bool:
        """Take in what the next read brings; False when the server closed."""
        self.socket.settimeout(timeout_s)
        try:
            data = self.socket.recv(1 << 18)
        except (ConnectionError, ssl.SSLError):
            return False
        if not data:
            return False
        self.events += self.http2.receive_data(data)
        self.flush_quietly()
        return True

    def flush_quietly(self) -> None:
        try:
            self.flush()
        except OSError:
            pass

    def expect_close(self, timeout_s: float = WAIT_S) -> int | None:
        """Read until the server closes; the code of its GOAWAY."""
        end = time.monotonic() + timeout_s
        while self.read(max(0.01, end - time.monotonic())):
            pass
        for event in self.events:
            if isinstance(event, h2.events.ConnectionTerminated):
                return int(event.error_code or 0)
        return None

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def prefixed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message
