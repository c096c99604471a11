"""Outbound data of an HTTP/2 connection: streams, flow-control windows, and which sends next.

Owns what waits to be sent and the order in which it goes. Never touches sockets, nor what comes in.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fila.edges.grpc import frames

PUMP_BYTES: Final = 256 * 1024  # written at once
CHUNK_BYTES_MAX: Final = 65_536  # of one stream before another one's turn
ABANDONED_MAX: Final = 1_024


class WindowTooLarge(Exception):  # noqa: N818  says what it is
    """A window was to grow beyond what the protocol can count."""


class Stream:
    """One call's two directions."""

    __slots__ = (
        "body_left",
        "closed",
        "id",
        "offset",
        "out",
        "out_bytes",
        "owed",
        "receive_window",
        "remote_ended",
        "send_window",
        "trailers",
        "waiting",
    )

    def __init__(self, id: int, receive_window: int, send_window: int, remote_ended: bool) -> None:
        self.id = id
        self.receive_window = receive_window
        self.send_window = send_window
        self.remote_ended = remote_ended
        self.closed = False
        self.body_left = -1  # bytes the client has announced and not sent; -1: it has not said
        self.owed = 0  # received, and not yet given back to the peer's window
        self.out: deque[bytes] = deque()  # waits for the peer's window or the socket
        self.out_bytes = 0
        self.offset = 0  # how much of out[0] is sent
        self.trailers: bytes | None = None  # sent after `out`
        self.waiting = False  # stands in the line of streams that want to send


class Outflow:
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        # Streams that ended here first, the oldest in front: their clients may not know it yet.
        self.abandoned: dict[int, None] = {}
        self.blocked = False  # the socket is full: no data leaves
        self.waiting_bytes = 0  # of all streams
        self.left_bytes = 0  # that had waited
        self.window_initial = frames.WINDOW_DEFAULT
        self._window = frames.WINDOW_DEFAULT
        self._frame_max = frames.FRAME_BYTES_MIN
        self._table_update = b""
        self._waiting: deque[Stream] = deque()
        self._out: list[bytes] = []

    @property
    def idle(self) -> bool:
        """Nothing waits to be sent."""
        return not (self.waiting_bytes or self._waiting or self._out)

    # --- what the peer allows

    def grow_window(self, increment: int) -> None:
        """Raises WindowTooLarge."""
        self._window += increment
        if self._window > frames.WINDOW_MAX:
            raise WindowTooLarge

    def grow_stream_window(self, stream: Stream, increment: int) -> None:
        """Raises WindowTooLarge."""
        stream.send_window += increment
        if stream.send_window > frames.WINDOW_MAX:
            raise WindowTooLarge
        if stream.out:
            self._line_up(stream)

    def set_window_initial(self, value: int) -> None:
        """All streams' windows change with it. Raises WindowTooLarge."""
        if value > frames.WINDOW_MAX:
            raise WindowTooLarge
        change = value - self.window_initial
        self.window_initial = value
        for stream in self.streams.values():
            self.grow_stream_window(stream, change)

    def set_frame_max(self, value: int) -> None:
        self._frame_max = value

    def table_resized(self) -> None:
        """We never use the compression table, but a peer that shrinks it wants to hear so."""
        self._table_update = b"\x20"

    # --- what leaves

    def write(self, data: bytes) -> None:
        """Frames that no window holds back."""
        self._out.append(data)

    def headers(self, stream: Stream, block: bytes) -> None:
        if not stream.closed:
            self._write_fields(stream, block, frames.END_HEADERS)

    def data(self, stream: Stream, data: bytes) -> None:
        if stream.closed:
            return
        size = len(data)
        if (
            not stream.out
            and not self.blocked
            and size <= stream.send_window
            and size <= self._window
            and size <= self._frame_max
        ):
            stream.send_window -= size
            self._window -= size
            self._out += (frames.frame_header(size, frames.DATA, 0, stream.id), data)
        else:
            stream.out.append(data)
            stream.out_bytes += size
            self.waiting_bytes += size
            self._line_up(stream)

    def trailers(self, stream: Stream, block: bytes) -> None:
        """The last thing on a stream, maybe empty; it waits for the data before it."""
        if stream.closed:
            return
        if stream.out:
            stream.trailers = block
            return
        if block:
            self._write_fields(stream, block, frames.END_HEADERS | frames.END_STREAM)
        else:
            self._out.append(frames.frame(frames.DATA, frames.END_STREAM, stream.id, b""))
        if not stream.remote_ended:
            self._out.append(frames.rst_stream(stream.id, frames.NO_ERROR))
        self.close(stream)

    def reset(self, stream: Stream, code: int) -> None:
        if not stream.closed:
            self._out.append(frames.rst_stream(stream.id, code))
            self.close(stream)

    def close(self, stream: Stream) -> None:
        """Forget a stream and what it had to say."""
        stream.closed = True
        if not stream.remote_ended:
            self.abandon(stream.id)
        self.waiting_bytes -= stream.out_bytes
        stream.out_bytes = 0
        stream.out.clear()
        stream.trailers = None
        self.streams.pop(stream.id, None)

    def abandon(self, id: int) -> None:
        """What the client has sent on this stream before it knew is no fault of its."""
        self.abandoned[id] = None
        if len(self.abandoned) > ABANDONED_MAX:
            del self.abandoned[next(iter(self.abandoned))]

    def take(self) -> bytes:
        """Bytes for the socket; take again until there are none."""
        if self._waiting and not self.blocked:
            self._pump()
        out = self._out
        if not out:
            return b""
        self._out = []
        return out[0] if len(out) == 1 else b"".join(out)

    def _pump(self) -> None:
        """Send what waits, a chunk of each stream in turn, as far as the windows allow."""
        waiting = self._waiting
        room = PUMP_BYTES
        while waiting and room > 0 and self._window > 0:
            stream = waiting.popleft()
            stream.waiting = False
            size = min(stream.send_window, self._window, self._frame_max, CHUNK_BYTES_MAX)
            if size <= 0 or not stream.out:
                continue  # a larger window lets it line up again
            first = stream.out[0]
            chunk = first[stream.offset : stream.offset + size]
            size = len(chunk)
            stream.offset += size
            if stream.offset == len(first):
                stream.out.popleft()
                stream.offset = 0
            stream.out_bytes -= size
            self.waiting_bytes -= size
            self.left_bytes += size
            stream.send_window -= size
            self._window -= size
            room -= size + frames.HEADER_BYTES
            self._out += (frames.frame_header(size, frames.DATA, 0, stream.id), chunk)
            if stream.out:
                self._line_up(stream)
            elif stream.trailers is not None:
                self.trailers(stream, stream.trailers)

    def _line_up(self, stream: Stream) -> None:
        if not stream.waiting:
            stream.waiting = True
            self._waiting.append(stream)

    def _write_fields(self, stream: Stream, block: bytes, flags: int) -> None:
        if self._table_update:
            block = self._table_update + block
            self._table_update = b""
        self._out += (frames.frame_header(len(block), frames.HEADERS, flags, stream.id), block)
