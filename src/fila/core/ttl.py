"""How long a message lives: told by headers, kept with it as one more.

    fila.ttl_ms         its producer's wish, counted from the enqueue
    fila.expires_at_ms  when it expires, in ms since 1970. A producer may say that instead, too;
                        of what is said, and what its queue says, the earliest counts

`expiring` puts `fila.expires_at_ms` before all other headers, so that one look tells. Nothing else
of a body is touched. A number that is none, or 0, says nothing. Decision 055 says why headers.
"""

from __future__ import annotations

import struct
from typing import Final

TTL: Final = b"fila.ttl_ms"
EXPIRES: Final = b"fila.expires_at_ms"
_DIGITS_MAX: Final = 15
_HEADERS_MAX: Final = 0xFFFF  # what a map counts
_SMALL: Final = 512  # a body that is searched, not walked
_PREFIX: Final = b"fila."
_U16: Final = struct.Struct(">H")
_MARK: Final = _U16.pack(len(EXPIRES)) + EXPIRES
_VALUE_AT: Final = 2 + len(_MARK)
_MS: Final = 1_000_000


def expires_ms(body: bytes) -> int:
    """When the message expires; 0: never. Of a body that `expiring` made, or left as it was."""
    if not body.startswith(_MARK, 2):
        return 0
    end = _VALUE_AT + 2 + (body[_VALUE_AT] << 8 | body[_VALUE_AT + 1])
    return _number(body[_VALUE_AT + 2 : end])


def is_told(row: bytes, at: int) -> bool:
    """Whether the body that begins there says when it expires."""
    return row.startswith(_MARK, at + 2)


def is_expired(body: bytes, now_ns: int) -> bool:
    at_ms = expires_ms(body)
    return at_ms != 0 and at_ms * _MS <= now_ns


def expiring(body: bytes, ttl_ms: int, now_ns: int) -> bytes:
    """The body as it is stored: what its headers and its queue (`ttl_ms`; 0: nothing) say of its
    end stands first. The same object where nobody says anything."""
    told = body[:2] != b"\0\0" and (len(body) > _SMALL or _PREFIX in body)
    if not (told or ttl_ms) or len(body) < 2:
        return body
    now_ms = -(-now_ns // _MS)
    at_ms = now_ms + ttl_ms if ttl_ms else 0
    found = False
    kept = [b""]
    if told:
        try:
            for name, value, field in _headers(body):
                if name == TTL:
                    wished = _number(value)
                    wished += now_ms if wished else 0
                elif name == EXPIRES:
                    found = True
                    wished = _number(value)
                else:
                    kept.append(field)
                    continue
                if name == TTL:
                    kept.append(field)
                if wished and (at_ms == 0 or wished < at_ms):
                    at_ms = wished
        except IndexError:
            told = found = False  # no headers: whoever reads it will say so
            at_ms = now_ms + ttl_ms if ttl_ms else 0
    if not (at_ms or found):
        return body
    if not found and not told:
        (count,) = _U16.unpack_from(body)
        return body if count == _HEADERS_MAX else _U16.pack(count + 1) + _field(at_ms) + body[2:]
    if at_ms:
        kept[0] = _field(at_ms)
    fields = len(kept) - (not at_ms)
    if fields > _HEADERS_MAX:
        return body
    return b"".join([_U16.pack(fields), *kept, body[_payload_at(body) :]])


def with_expiry(body: bytes, at_ms: int) -> bytes:
    """The body, to expire at that time whatever its headers say; 0: never."""
    body = without_expiry(body)
    (count,) = _U16.unpack_from(body)
    if not at_ms or count == _HEADERS_MAX:
        return body
    return _U16.pack(count + 1) + _field(at_ms) + body[2:]


def without_expiry(body: bytes) -> bytes:
    """The body without the header that stands first."""
    if not body.startswith(_MARK, 2):
        return body
    (count,) = _U16.unpack_from(body)
    (size,) = _U16.unpack_from(body, _VALUE_AT)
    return _U16.pack(count - 1) + body[_VALUE_AT + 2 + size :]


def _field(at_ms: int) -> bytes:
    value = str(at_ms).encode()
    return _MARK + _U16.pack(len(value)) + value


def _number(text: bytes) -> int:
    """A whole number; 0 where it is none."""
    return int(text) if text.isdigit() and len(text) <= _DIGITS_MAX else 0


def _headers(body: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Name, value and both as they stand there."""
    found = []
    at = 2
    for _ in range(body[0] << 8 | body[1]):
        value_at = at + 2 + (body[at] << 8 | body[at + 1])
        end = value_at + 2 + (body[value_at] << 8 | body[value_at + 1])
        found.append((body[at + 2 : value_at], body[value_at + 2 : end], body[at:end]))
        at = end
    return found


def _payload_at(body: bytes) -> int:
    at = 2
    for _ in range(2 * (body[0] << 8 | body[1])):
        at += 2 + (body[at] << 8 | body[at + 1])
    return at
