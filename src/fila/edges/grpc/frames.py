"""HTTP/2 frames as bytes (RFC 9113, section 4): their numbers and how they are written.

Owns no state; `http2` decides what to send and what a received frame means.

    0          3      4       5             9
    +----------+------+-------+-------------+---- ... ----+
    | length   | type | flags | stream id   | payload     |
    | u24      | u8   | u8    | u31         | length      |
    +----------+------+-------+-------------+---- ... ----+
"""

from __future__ import annotations

from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
FRAME_BYTES_MIN: Final = 16_384  # the least an endpoint may name as its largest frame
FRAME_BYTES_TOP: Final = (1 << 24) - 1
WINDOW_MAX: Final = (1 << 31) - 1
WINDOW_DEFAULT: Final = 65_535

# Types.
DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

# Flags.
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

# Settings.
HEADER_TABLE_SIZE: Final = 0x1
ENABLE_PUSH: Final = 0x2
MAX_CONCURRENT_STREAMS: Final = 0x3
INITIAL_WINDOW_SIZE: Final = 0x4
MAX_FRAME_SIZE: Final = 0x5
MAX_HEADER_LIST_SIZE: Final = 0x6

# Error codes.
NO_ERROR: Final = 0x0
PROTOCOL_ERROR: Final = 0x1
INTERNAL_ERROR: Final = 0x2
FLOW_CONTROL_ERROR: Final = 0x3
STREAM_CLOSED: Final = 0x5
FRAME_SIZE_ERROR: Final = 0x6
REFUSED_STREAM: Final = 0x7
CANCEL: Final = 0x8
COMPRESSION_ERROR: Final = 0x9
ENHANCE_YOUR_CALM: Final = 0xB

# Length and type in one number: a u24 and a u8.
HEADER: Final = Struct(">IBI")
U32: Final = Struct(">I")
SETTING: Final = Struct(">HI")
_GOAWAY: Final = Struct(">II")


def frame_header(length: int, type: int, flags: int, stream: int) -> bytes:
    return HEADER.pack(length << 8 | type, flags, stream)


def frame(type: int, flags: int, stream: int, payload: bytes) -> bytes:
    return HEADER.pack(len(payload) << 8 | type, flags, stream) + payload


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*one) for one in values.items()))


def settings_ack() -> bytes:
    return frame(SETTINGS, ACK, 0, b"")


def ping_ack(payload: bytes) -> bytes:
    return frame(PING, ACK, 0, payload)


def rst_stream(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, U32.pack(code))


def window_update(stream: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, U32.pack(increment))


def goaway(last_stream: int, code: int, text: str) -> bytes:
    return frame(GOAWAY, 0, 0, _GOAWAY.pack(last_stream, code) + text.encode())
