"""Bytes to frames and back, with continuations joined and split.

Owns the frame header, the limits on what one connection may have half-assembled, and nothing else:
bodies are opaque here. Never touches sockets.

    0        4        5        6            10
    +--------+--------+--------+------------+------ ... ------+
    | length | opcode | flags  | request id | body            |
    | u32    | u8     | u8     | u32        | length - 6      |
    +--------+--------+--------+------------+------ ... ------+

`length` counts everything after itself. Flag bit 0 (CONTINUATION) says that the body goes on in the
next frame with the same opcode and request id.
"""

from struct import Struct
from typing import Final

from fila.wire.errors import INVALID_FRAME, FrameError

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
ASSEMBLY_STREAMS_MAX: Final = 16
ASSEMBLY_BYTES_MAX: Final = 128 * 1024 * 1024
CONTINUATION: Final = 0x01
HEADER_BYTES: Final = 10
NO_LIMIT: Final = 1 << 62

_HEADER: Final = Struct(">IBBI")
_LENGTH: Final = Struct(">I")
_COUNTED_BYTES: Final = 6  # opcode, flags and request id are part of `length`
_HTTP_LENGTH: Final = int.from_bytes(b"HTTP", "big")  # how an HTTP answer begins

LARGE_BYTES: Final = 64 * 1024  # what is larger is copied as rarely as can be

# (opcode, request id, body)
Frame = tuple[int, int, bytes]


class _Assembly:
    """A body that arrives in several frames. Large pieces are kept as they are and copied once, at
    the end; small ones in one growing buffer: a flood of tiny ones costs only its bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._small = bytearray()

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(piece) < LARGE_BYTES:
            self._small += piece
            if len(self._small) < LARGE_BYTES:
                return
            piece = b""
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small = bytearray()
        if piece:
            self._pieces.append(piece)

    def whole(self) -> bytes:
        return b"".join([*self._pieces, self._small])


class FrameDecoder:
    """Turns a stream of bytes into whole messages, whatever the pieces they arrive in."""

    def __init__(
        self,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        assembly_streams_max: int = ASSEMBLY_STREAMS_MAX,
        assembly_bytes_max: int = ASSEMBLY_BYTES_MAX,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.assembly_streams_max = assembly_streams_max
        self.assembly_bytes_max = assembly_bytes_max
        self._pending = bytearray()
        # How many pending bytes make the next attempt worthwhile: a large frame that trickles in
        # is looked at twice, not once per chunk.
        self._needed = HEADER_BYTES
        self._streams: dict[int, _Assembly] = {}
        self._assembly_bytes = 0
        self._refused: set[int] = set()
        self._errors: list[FrameError] = []
        self._fatal_errors = 0  # after the first, nothing more is decoded
        self.more = False  # there may be further messages in what was fed already

    def feed(self, data: bytes, messages_max: int = NO_LIMIT) -> list[Frame]:
        """The messages completed by these bytes, in order, and no more than so many: while `more`
        is set, call again with nothing.

        What could not be accepted waits in `take_errors()`; after a fatal error nothing more
        comes out.
        """
        self.more = False
        if self._fatal_errors > 0:
            return []
        frames: list[Frame] = []
        pending = self._pending
        if pending:
            if len(pending) + len(data) < self._needed:
                pending += data
                return []
            if self._needed > LARGE_BYTES and len(pending) >= HEADER_BYTES:
                if messages_max <= 0:
                    pending += data
                    self.more = True
                    return []
                messages_max -= 1
                data = self._take_large(data, frames)
                if self._fatal_errors > 0:
                    return frames
            else:
                data = b"".join((pending, data))
                self._pending = bytearray()
        size = len(data)
        position = 0
        frame_bytes_max = self.frame_bytes_max
        unpack = _HEADER.unpack_from
        plain = not self._streams and not self._refused
        while size - position >= HEADER_BYTES:
            length, opcode, flags, request_id = unpack(data, position)
            if length < _COUNTED_BYTES or length > frame_bytes_max:
                self._break(length, request_id)
                return frames
            end = position + 4 + length
            if end > size:
                break
            if messages_max <= 0:
                self.more = True
                break
            messages_max -= 1
            body = data[position + HEADER_BYTES : end]
            position = end
            if flags == 0 and plain:
                frames.append((opcode, request_id, body))
                continue
            whole = self._assemble(opcode, flags, request_id, body)
            if whole is not None:
                frames.append((opcode, request_id, whole))
            if self._fatal_errors > 0:
                return frames
            plain = not self._streams and not self._refused
        if position < size:
            self._keep(data[position:] if position else data)
            if self.more and self._needed <= LARGE_BYTES:
                self._needed = 0
        return frames

    def _take_large(self, data: bytes, frames: list[Frame]) -> bytes:
        """The frame that is complete with these bytes, its body copied once; the bytes behind
        it."""
        pending = self._pending
        self._pending = bytearray()
        _, opcode, flags, request_id = _HEADER.unpack_from(pending)
        end = self._needed
        left = end - len(pending)
        if left > 0:
            body = b"".join((memoryview(pending)[HEADER_BYTES:], memoryview(data)[:left]))
            rest = data[left:]
        else:
            body = bytes(memoryview(pending)[HEADER_BYTES:end])
            rest = bytes(memoryview(pending)[end:]) + data
        del pending
        whole: bytes | None = body
        if flags or self._streams or self._refused:
            whole = self._assemble(opcode, flags, request_id, body)
        if whole is not None:
            frames.append((opcode, request_id, whole))
        return rest

    def take_errors(self) -> list[FrameError]:
        """What was refused since the last call. Empty in all but the rarest of calls."""
        errors = self._errors
        if errors:
            self._errors = []
        return errors

    @property
    def buffered_bytes(self) -> int:
        """Bytes held back: the unfinished frame and the half-assembled bodies."""
        return len(self._pending) + self._assembly_bytes

    def _keep(self, rest: bytes) -> None:
        self._pending = bytearray(rest)
        if len(rest) < 4:
            self._needed = HEADER_BYTES
            return
        (length,) = _LENGTH.unpack_from(rest)
        if length < _COUNTED_BYTES:
            self._break(length, 0)
        elif length > self.frame_bytes_max:
            # Judged once the header is complete, so that the error can name its request.
            self._needed = HEADER_BYTES
        else:
            self._needed = 4 + length

    def _assemble(self, opcode: int, flags: int, request_id: int, body: bytes) -> bytes | None:
        stream_id = opcode << 32 | request_id
        more = flags & CONTINUATION
        if stream_id in self._refused:
            if not more:
                self._refused.discard(stream_id)
            return None
        stream = self._streams.get(stream_id)
        if flags & ~CONTINUATION:
            self._refuse(stream_id, more, f"flags 0x{flags:02X} use bits that are reserved")
            return None
        if stream is None:
            if not more:
                return body
            if len(self._streams) >= self.assembly_streams_max:
                self._refuse(
                    stream_id,
                    more,
                    f"more than {self.assembly_streams_max} messages are being continued at once",
                )
                return None
        if self._assembly_bytes + len(body) > self.assembly_bytes_max:
            self._refuse(
                stream_id,
                more,
                f"continued messages exceed {self.assembly_bytes_max} bytes on this connection",
            )
            return None
        if stream is None:
            stream = self._streams[stream_id] = _Assembly()
        stream.add(body)
        self._assembly_bytes += len(body)
        if more:
            return None
        del self._streams[stream_id]
        self._assembly_bytes -= stream.size
        return stream.whole()

    def _refuse(self, stream_id: int, more: int, message: str) -> None:
        """Drop this message and the pieces of it still to come; the connection lives on."""
        dropped = self._streams.pop(stream_id, None)
        if dropped is not None:
            self._assembly_bytes -= dropped.size
        fatal = False
        if more:
            self._refused.add(stream_id)
            fatal = len(self._refused) > self.assembly_streams_max
        self._report(message, stream_id & 0xFFFFFFFF, fatal)

    def _break(self, length: int, request_id: int) -> None:
        if length < _COUNTED_BYTES:
            message = f"frame length {length} is shorter than its {_COUNTED_BYTES}-byte header"
            request_id = 0
        elif length == _HTTP_LENGTH:
            message = "they are HTTP's; the broker's own port is another one (5555 by default)"
        else:
            message = f"frame of {length} bytes exceeds the limit of {self.frame_bytes_max}"
        self._report(message, request_id, True)

    def _report(self, message: str, request_id: int, fatal: bool) -> None:
        self._errors.append(FrameError(INVALID_FRAME, message, request_id, fatal))
        if fatal:
            self._fatal_errors += 1
            self._pending = bytearray()
            self._streams.clear()
            self._refused.clear()
            self._assembly_bytes = 0


def frame_header(opcode: int, flags: int, request_id: int, body_bytes: int) -> bytes:
    """The ten bytes before a body, for callers that send header and body without joining them."""
    return _HEADER.pack(_COUNTED_BYTES + body_bytes, opcode, flags, request_id)


def encode_frames(
    opcode: int, request_id: int, body: bytes = b"", frame_bytes_max: int = FRAME_BYTES_MAX
) -> bytes:
    """The body as one frame, or as a run of continued frames when it is larger than a frame."""
    size = len(body)
    if size + _COUNTED_BYTES <= frame_bytes_max:
        return _HEADER.pack(_COUNTED_BYTES + size, opcode, 0, request_id) + body
    return b"".join(frame_views(opcode, request_id, body, frame_bytes_max))


def frame_pieces(
    opcode: int, request_id: int, body: bytes, frame_bytes_max: int = FRAME_BYTES_MAX
) -> list[bytes]:
    """A body that is larger than a frame as a run of continued ones: a header, a piece, and so on.
    For callers that send them without joining them."""
    return [bytes(one) for one in frame_views(opcode, request_id, body, frame_bytes_max)]


def frame_views(
    opcode: int, request_id: int, body: bytes, frame_bytes_max: int
) -> list[bytes | memoryview]:
    """The same without a copy of the body."""
    view = memoryview(body)
    size = len(body)
    piece_bytes = frame_bytes_max - _COUNTED_BYTES
    assert piece_bytes > 0, f"no body fits a frame of {frame_bytes_max} bytes"
    full = _HEADER.pack(frame_bytes_max, opcode, CONTINUATION, request_id)
    parts: list[bytes | memoryview] = []
    last = (size - 1) // piece_bytes * piece_bytes
    for start in range(0, last, piece_bytes):
        parts.append(full)
        parts.append(view[start : start + piece_bytes])
    parts.append(_HEADER.pack(_COUNTED_BYTES + size - last, opcode, 0, request_id))
    parts.append(view[last:])
    return parts
