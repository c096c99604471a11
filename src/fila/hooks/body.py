"""The headers of a message body: where they end, and what they are.

A body is `map headers, bytes payload`: u16 count, then per header two strings of u16 length; then
u32 length and payload. Only bodies whose headers are too long for a batch, and those of messages a
hook fails for, are walked here; the others are read in Lua.
"""

from __future__ import annotations

from typing import Final

from fila.hooks.limits import HEADER_BYTES_MAX, HEADERS_MAX

BLANK_BODY: Final = bytes(6)  # no headers, no payload


def headers_end(body: bytes, bytes_max: int, headers_max: int) -> int | None:
    """How many bytes the header map takes, or None if it is cut off or too large."""
    size = min(len(body), bytes_max)
    if size < 2:
        return None
    at = 2
    headers = body[0] << 8 | body[1]
    if headers > headers_max:
        return None
    for _ in range(2 * headers):
        if at + 2 > size:
            return None
        at += 2 + (body[at] << 8 | body[at + 1])
        if at > size:
            return None
    return at


def headers_of(body: bytes, bytes_max: int, headers_max: int) -> dict[bytes, bytes] | None:
    """The header map, or None if it is cut off or too large."""
    end = headers_end(body, bytes_max, headers_max)
    if end is None:
        return None
    at = 2
    texts = []
    while at < end:
        size = body[at] << 8 | body[at + 1]
        at += 2 + size
        texts.append(body[at - size : at])
    return dict(zip(texts[::2], texts[1::2], strict=True))


def shortened(body: bytes) -> bytes:
    """The same body, without its payload if that is long."""
    end = headers_end(body, HEADER_BYTES_MAX, HEADERS_MAX) or 0
    return body if len(body) <= HEADER_BYTES_MAX else body[:end] + bytes(4)
