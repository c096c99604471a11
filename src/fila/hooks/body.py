"""Where the headers of a message body end.

A body is `map headers, bytes payload`: u16 count, then per header two strings of u16 length; then
u32 length and payload. Only bodies whose headers are too long for a batch are walked here; the
others are read in Lua.
"""

from __future__ import annotations


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
