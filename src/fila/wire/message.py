"""A message's bytes between its queue name and its end: `map headers, bytes payload`.

The same bytes travel in Enqueue and in Delivery, so the broker cuts them out once, stores them and
sends them on. Owns building such a slice and looking into it. The functions that look in expect a
slice that `message_codec` or `layouts` has accepted. Never touches frames or sockets.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from fila.wire.errors import UnencodableField
from fila.wire.fields import BYTES_MAX, count_u16, string_field

_U32: Final = Struct(">I")
_NO_HEADERS: Final = b"\x00\x00"


def message_body(headers: Mapping[str, str] | None, payload: bytes) -> bytes:
    """The bytes of a message as they travel and as they are stored."""
    if len(payload) > BYTES_MAX:
        raise UnencodableField(
            f"payload: {len(payload)} bytes is too long; a message holds at most {BYTES_MAX}"
        )
    if not headers:
        return _NO_HEADERS + _U32.pack(len(payload)) + payload
    parts = [count_u16(len(headers), "headers")]
    for key, value in headers.items():
        parts.append(string_field(key, "header name"))
        parts.append(string_field(value, f'header "{key}"'))
    parts.append(_U32.pack(len(payload)))
    parts.append(payload)
    return b"".join(parts)


def decode_headers(body: bytes) -> dict[str, str]:
    """The headers; the last of two with one name wins."""
    headers: dict[str, str] = {}
    position = 2
    for _ in range(body[0] << 8 | body[1]):
        start = position + 2
        position = start + (body[position] << 8 | body[position + 1])
        key = body[start:position].decode()
        start = position + 2
        position = start + (body[position] << 8 | body[position + 1])
        headers[key] = body[start:position].decode()
    return headers


def header_bytes_len(body: bytes) -> int:
    """Where the payload's length stands: the size of the encoded headers."""
    position = 2
    for _ in range((body[0] << 8 | body[1]) * 2):
        position += 2 + (body[position] << 8 | body[position + 1])
    return position


def payload_of(body: bytes) -> bytes:
    start = header_bytes_len(body) + 4
    size: int = _U32.unpack_from(body, start - 4)[0]
    return body[start : start + size]


def payload_size_of(body: bytes) -> int:
    size: int = _U32.unpack_from(body, header_bytes_len(body))[0]
    return size
