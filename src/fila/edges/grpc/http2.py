"""HTTP/2 without sockets, the server's side of one connection (RFC 9113): bytes in, events out.

Owns what frames mean, the windows the peer sends into, and the limits on what a hostile peer
costs: how many streams, how large header fields, how much work without a result. What leaves is
`outflow`'s business. Never touches sockets or calls.

Only what a gRPC server needs is here: no push, no priorities, no CONNECT, no compression of what
is sent. A library was measured and costs five times as much per call (docs/decisions/012-grpc.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fila.edges.grpc import frames
from fila.edges.grpc.fields import FieldsDecoder, FieldsError, Request
from fila.edges.grpc.outflow import Outflow, Stream, WindowTooLarge

REQUEST: Final = 0
DATA: Final = 1
RESET: Final = 2

FRAMES_PER_ROUND: Final = 256  # then other connections have their turn
GLITCHES_MAX: Final = 10_000  # work without a result, per period
GLITCH_PERIOD_S: Final = 10.0
RESET_GLITCHES: Final = 5  # a call opened and cancelled costs more than a ping
CONTINUATIONS_MAX: Final = 64


class Http2Limits(NamedTuple):
    streams_max: int = 1_000
    header_bytes_max: int = 16 * 1024
    frame_bytes_max: int = 32 * 1024  # what a stranger may send holds one whole
    stream_window_bytes: int = 4 * 1024 * 1024
    connection_window_bytes: int = 16 * 1024 * 1024


class Http2Error(Exception):
    """The peer broke the protocol or overdid it: the connection ends with this code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# (REQUEST, stream, request, ended) | (DATA, stream, bytes, ended) | (RESET, stream, b"", True)
Event = tuple[int, Stream, Request | bytes, bool]


class Http2:
    def __init__(self, limits: Http2Limits, now_s: Callable[[], float]) -> None:
        self._limits = limits
        self._now_s = now_s
        self._decoder = FieldsDecoder(limits.header_bytes_max)
        self.out = Outflow()
        self.streams = self.out.streams
        self.last_stream = 0
        self.more = False  # whole frames wait for the next round: feed again
        self._going_away = False
        self._rest = bytearray()
        self._needed = len(frames.PREFACE)
        self._preface = False
        self._settled = False  # the peer's first settings came
        self._events: list[Event] = []
        self._block: list[bytes] = []  # header fields that go on in the next frame
        self._block_bytes = 0
        self._block_stream = 0
        self._block_ended = False
        self._receive_window = limits.connection_window_bytes
        self._owed = 0
        self._glitches = 0
        self._glitches_since_s = now_s()
        self.out.write(
            frames.settings(
                {
                    frames.MAX_CONCURRENT_STREAMS: limits.streams_max,
                    frames.INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
                    frames.MAX_FRAME_SIZE: limits.frame_bytes_max,
                    frames.MAX_HEADER_LIST_SIZE: limits.header_bytes_max,
                }
            )
        )
        window = limits.connection_window_bytes
        self.out.write(frames.window_update(0, window - frames.WINDOW_DEFAULT))

    # --- bytes in

    @property
    def opened(self) -> bool:
        """Whether the peer introduced itself."""
        return self._settled

    def buffered_bytes(self) -> int:
        """Bytes of a frame, or of header fields, that have not arrived whole."""
        return len(self._rest) + (self._block_bytes if self._block_stream else 0)

    def feed(self, data: bytes) -> list[Event]:
        """What these bytes mean. Raises Http2Error.

        Handles a limited number of frames; while `more` is set, call again with nothing.
        """
        rest = self._rest
        if rest:
            rest += data
            if len(rest) < self._needed:
                return []
            data = bytes(rest)
            self._rest = bytearray()
        position = 0
        if not self._preface:
            if not self._begin(data):
                return []
            position = len(frames.PREFACE)
        size = len(data)
        left = FRAMES_PER_ROUND
        self._needed = frames.HEADER_BYTES
        self.more = False
        unpack = frames.HEADER.unpack_from
        while size - position >= frames.HEADER_BYTES:
            head, flags, stream_id = unpack(data, position)
            start = position + frames.HEADER_BYTES
            end = start + (head >> 8)
            if end - start > self._limits.frame_bytes_max:
                raise Http2Error(frames.FRAME_SIZE_ERROR, "a frame is larger than allowed")
            if end > size:
                self._needed = end - position
                break
            if left == 0:
                self.more = True
                break
            left -= 1
            position = end
            kind = head & 0xFF
            stream_id &= 0x7FFFFFFF
            if kind == frames.DATA and self._block_stream == 0 and self._settled:
                self._data(flags, stream_id, data, start, end)
            else:
                self._frame(kind, flags, stream_id, data[start:end])
        if position < size:
            self._rest += data[position:]
        events, self._events = self._events, []
        return events

    def _begin(self, data: bytes) -> bool:
        """Whether the peer's magic words are complete."""
        words = frames.PREFACE
        if data[: len(words)] != words[: len(data)]:
            raise Http2Error(frames.PROTOCOL_ERROR, "this is not HTTP/2")
        if len(data) < len(words):
            self._rest += data
            return False
        self._preface = True
        return True

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if self._block_stream and (kind != frames.CONTINUATION or stream_id != self._block_stream):
            raise Http2Error(frames.PROTOCOL_ERROR, "header fields were not finished")
        if not self._settled and kind != frames.SETTINGS:
            raise Http2Error(frames.PROTOCOL_ERROR, "the first frame must be SETTINGS")
        if kind == frames.HEADERS:
            self._headers(flags, stream_id, payload)
        elif kind == frames.WINDOW_UPDATE:
            self._window_update(stream_id, payload)
        elif kind == frames.RST_STREAM:
            self._rst_stream(stream_id, payload)
        elif kind == frames.PING:
            self._ping(flags, stream_id, payload)
        elif kind == frames.SETTINGS:
            self._settings(flags, stream_id, payload)
        elif kind == frames.CONTINUATION:
            self._continuation(flags, stream_id, payload)
        elif kind == frames.PRIORITY:
            self._priority(stream_id, payload)
        elif kind == frames.GOAWAY:
            if stream_id != 0:
                raise Http2Error(frames.PROTOCOL_ERROR, "GOAWAY belongs to the connection")
            self.glitch(1)  # the peer opens no more streams; those it has go on
        elif kind == frames.PUSH_PROMISE:
            raise Http2Error(frames.PROTOCOL_ERROR, "a client cannot push")
        else:
            self.glitch(1)  # kinds we do not know are ignored

    def _data(self, flags: int, stream_id: int, data: bytes, start: int, end: int) -> None:
        length = end - start
        self._receive_window -= length
        if self._receive_window < 0:
            raise Http2Error(frames.FLOW_CONTROL_ERROR, "more data than the window allows")
        # What one stream leaves unread must not hold up the others: the connection's window is
        # given back at once, the stream's when its call has dealt with the bytes.
        self._owed += length
        if self._owed >= self._limits.connection_window_bytes // 2:
            self.out.write(frames.window_update(0, self._owed))
            self._receive_window += self._owed
            self._owed = 0
        stream = self.streams.get(stream_id)
        if stream is None:
            self._late_data(flags, stream_id)
            return
        if flags & frames.PADDED:
            padding = data[start] if length else 0
            if length == 0 or padding >= length:
                raise Http2Error(frames.PROTOCOL_ERROR, "there is more padding than frame")
            start += 1
            end -= padding
        if stream.remote_ended:
            self._stream_fault(stream, frames.STREAM_CLOSED)
            return
        stream.receive_window -= length
        if stream.receive_window < 0:
            self._stream_fault(stream, frames.FLOW_CONTROL_ERROR)
            return
        stream.owed += length
        ended = flags & frames.END_STREAM != 0
        if stream.body_left >= 0:
            stream.body_left -= end - start
            if stream.body_left < 0 or (ended and stream.body_left):
                self._stream_fault(stream, frames.PROTOCOL_ERROR)
                return
        if ended:
            stream.remote_ended = True
        elif start == end:
            self.glitch(1)
        self._events.append((DATA, stream, data[start:end], ended))

    def _late_data(self, flags: int, stream_id: int) -> None:
        """Data for a stream that is closed: ignored where the client could not know that yet."""
        self._closed_or_fault(stream_id)
        self.glitch(1)
        abandoned = self.out.abandoned
        if stream_id in abandoned:
            if flags & frames.END_STREAM:
                del abandoned[stream_id]
        elif not self._going_away:
            self.out.write(frames.rst_stream(stream_id, frames.STREAM_CLOSED))
            self.glitch(RESET_GLITCHES)

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        start, end = 0, len(payload)
        if flags & frames.PADDED:
            if not payload:
                raise Http2Error(frames.FRAME_SIZE_ERROR, "a padded frame has a length")
            start, end = 1, end - payload[0]
        if flags & frames.WITH_PRIORITY:
            if end - start < 5:
                raise Http2Error(frames.FRAME_SIZE_ERROR, "a priority has five bytes")
            self._depends_on_itself(stream_id, payload[start : start + 4])
            start += 5
        if start > end:
            raise Http2Error(frames.PROTOCOL_ERROR, "there is more padding than frame")
        if stream_id == 0 or stream_id % 2 == 0:
            raise Http2Error(frames.PROTOCOL_ERROR, "clients open streams with odd numbers")
        if (
            stream_id <= self.last_stream
            and stream_id not in self.streams
            and stream_id not in self.out.abandoned
        ):
            raise Http2Error(frames.STREAM_CLOSED, f"stream {stream_id} is closed")
        block = payload[start:end]
        ended = flags & frames.END_STREAM != 0
        if flags & frames.END_HEADERS:
            self._fields(stream_id, block, ended)
        else:
            self._block = [block]
            self._block_bytes = len(block)
            self._block_stream = stream_id
            self._block_ended = ended

    def _continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self._block_stream == 0:
            raise Http2Error(frames.PROTOCOL_ERROR, "nothing to continue")
        self._block.append(payload)
        self._block_bytes += len(payload)
        if (
            self._block_bytes > 2 * self._limits.header_bytes_max
            or len(self._block) > CONTINUATIONS_MAX
        ):
            raise Http2Error(frames.ENHANCE_YOUR_CALM, "far too many header fields")
        if flags & frames.END_HEADERS:
            block = b"".join(self._block)
            self._block = []
            self._block_stream = 0
            self._fields(stream_id, block, self._block_ended)

    def _fields(self, stream_id: int, block: bytes, ended: bool) -> None:
        if len(block) > 2 * self._limits.header_bytes_max:
            raise Http2Error(frames.ENHANCE_YOUR_CALM, "far too many header fields")
        try:
            request = self._decoder.decode(block)
        except FieldsError as error:
            code = frames.ENHANCE_YOUR_CALM if error.flood else frames.COMPRESSION_ERROR
            raise Http2Error(code, str(error)) from error
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._client_trailers(stream, ended)
            return
        if stream_id in self.out.abandoned:
            self.glitch(1)  # trailers that were on their way
            return
        self.last_stream = stream_id
        if self._going_away:
            return  # the peer has been sent GOAWAY: it knows that this is ignored
        if len(self.streams) >= self._limits.streams_max:
            self.out.write(frames.rst_stream(stream_id, frames.REFUSED_STREAM))
            if not ended:
                self.out.abandon(stream_id)
            self.glitch(1)
            return
        stream = Stream(stream_id, self._limits.stream_window_bytes, self.out.window_initial, ended)
        stream.body_left = request.content_length
        self.streams[stream_id] = stream
        if request.malformed or (ended and stream.body_left > 0):
            self.out.reset(stream, frames.PROTOCOL_ERROR)
            self.glitch(RESET_GLITCHES)
            return
        self._events.append((REQUEST, stream, request, ended))

    def _client_trailers(self, stream: Stream, ended: bool) -> None:
        if stream.remote_ended:
            self._stream_fault(stream, frames.STREAM_CLOSED)
        elif not ended or stream.body_left > 0:
            self._stream_fault(stream, frames.PROTOCOL_ERROR)
        else:
            stream.remote_ended = True
            self._events.append((DATA, stream, b"", True))

    def _window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(frames.FRAME_SIZE_ERROR, "WINDOW_UPDATE has four bytes")
        increment = int.from_bytes(payload, "big") & 0x7FFFFFFF
        if stream_id == 0:
            if increment == 0:
                raise Http2Error(frames.PROTOCOL_ERROR, "a window grows by at least 1")
            try:
                self.out.grow_window(increment)
            except WindowTooLarge:
                raise Http2Error(frames.FLOW_CONTROL_ERROR, "the window is too large") from None
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._closed_or_fault(stream_id)
        elif increment == 0:
            self._stream_fault(stream, frames.PROTOCOL_ERROR)
        else:
            try:
                self.out.grow_stream_window(stream, increment)
            except WindowTooLarge:
                self._stream_fault(stream, frames.FLOW_CONTROL_ERROR)

    def _rst_stream(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(frames.FRAME_SIZE_ERROR, "RST_STREAM has four bytes")
        stream = self.streams.get(stream_id)
        if stream is None:
            self._closed_or_fault(stream_id)
            self.glitch(1)
            return
        stream.remote_ended = True
        self.out.close(stream)
        self._events.append((RESET, stream, b"", True))
        self.glitch(RESET_GLITCHES)

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0:
            raise Http2Error(frames.PROTOCOL_ERROR, "PING belongs to the connection")
        if len(payload) != 8:
            raise Http2Error(frames.FRAME_SIZE_ERROR, "PING has eight bytes")
        self.glitch(1)
        if not flags & frames.ACK:
            self.out.write(frames.ping_ack(payload))

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0:
            raise Http2Error(frames.PROTOCOL_ERROR, "SETTINGS belong to the connection")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise Http2Error(frames.FRAME_SIZE_ERROR, "SETTINGS have six bytes each")
        self.glitch(1 + len(payload) // 60)
        if flags & frames.ACK:
            return
        self._settled = True
        for name, value in frames.SETTING.iter_unpack(payload):
            if name == frames.INITIAL_WINDOW_SIZE:
                try:
                    self.out.set_window_initial(value)
                except WindowTooLarge:
                    raise Http2Error(frames.FLOW_CONTROL_ERROR, "a window is too large") from None
            elif name == frames.MAX_FRAME_SIZE:
                if not frames.FRAME_BYTES_MIN <= value <= frames.FRAME_BYTES_TOP:
                    raise Http2Error(frames.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is wrong")
                self.out.set_frame_max(value)
            elif name == frames.ENABLE_PUSH and value > 1:
                raise Http2Error(frames.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is 0 or 1")
            elif name == frames.HEADER_TABLE_SIZE:
                self.out.table_resized()
        self.out.write(frames.settings_ack())

    def _priority(self, stream_id: int, payload: bytes) -> None:
        if stream_id == 0:
            raise Http2Error(frames.PROTOCOL_ERROR, "PRIORITY belongs to a stream")
        if len(payload) != 5:
            raise Http2Error(frames.FRAME_SIZE_ERROR, "PRIORITY has five bytes")
        self._depends_on_itself(stream_id, payload[:4])
        self.glitch(1)

    def _depends_on_itself(self, stream_id: int, parent: bytes) -> None:
        if int.from_bytes(parent, "big") & 0x7FFFFFFF == stream_id:
            raise Http2Error(frames.PROTOCOL_ERROR, "a stream cannot depend on itself")

    def _closed_or_fault(self, stream_id: int) -> None:
        """Frames may still come for a stream that is closed, but not for one never opened."""
        if stream_id == 0 or stream_id > self.last_stream or stream_id % 2 == 0:
            raise Http2Error(frames.PROTOCOL_ERROR, f"stream {stream_id} was never opened")

    def _stream_fault(self, stream: Stream, code: int) -> None:
        self.out.reset(stream, code)
        self._events.append((RESET, stream, b"", True))
        self.glitch(RESET_GLITCHES)

    def glitch(self, weight: int) -> None:
        """Work without a result. Anybody does some of it; too much of it is an attack."""
        self._glitches += weight
        if self._glitches >= GLITCHES_MAX:
            now_s = self._now_s()
            if now_s - self._glitches_since_s < GLITCH_PERIOD_S:
                raise Http2Error(frames.ENHANCE_YOUR_CALM, "too much work without a result")
            self._glitches = 0
            self._glitches_since_s = now_s

    # --- what the calls decide

    def give_back(self, stream: Stream) -> None:
        """Let the peer send again what the call has dealt with."""
        if stream.owed >= self._limits.stream_window_bytes // 2 and not stream.remote_ended:
            self.out.write(frames.window_update(stream.id, stream.owed))
            stream.receive_window += stream.owed
            stream.owed = 0

    def go_away(self, code: int, text: str) -> None:
        """Open no more streams; those that are open go on."""
        if not self._going_away:
            self._going_away = True
            self.out.write(frames.goaway(self.last_stream, code, text))
