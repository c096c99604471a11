"""Why a message is dead, kept with it: headers that stand before its own.

    fila.dead.reason     hook: on_failure said so; max_attempts: the queue's limit did;
                         expired: its time to live ran out
    fila.dead.error      what the consumer said at last, or that the lease ran out
    fila.dead.at_ms      when, in ms since 1970
    fila.dead.attempts   how often it failed
    fila.dead.queue      where

They are written when a message goes to the dead letters and taken off when it is redriven, so that
its queue gets back what its producer sent. Everything else of a body stays opaque to the core.
"""

from __future__ import annotations

import struct
from typing import Final

from fila.core.ttl import without_expiry

PREFIX: Final = b"fila.dead."
BY_HOOK: Final = "hook"
ERROR_BYTES_MAX: Final = 1_024  # of an error's text
_HEADERS_MAX: Final = 0xFFFF  # what a map counts
_U16: Final = struct.Struct(">H")
_MS: Final = 1_000_000


def explained(
    body: bytes, reason: str, error: str, now_ns: int, attempts: int, queue: str
) -> bytes:
    """The body of a dead letter. One that has no room for more headers stays as it is."""
    if len(body) < _U16.size:
        return body
    (count,) = _U16.unpack_from(body)
    told = {
        "reason": reason or BY_HOOK,
        "error": _cut(error),
        "at_ms": str(now_ns // _MS),
        "attempts": str(attempts),
        "queue": queue,
    }
    if count + len(told) > _HEADERS_MAX:
        return body
    parts = [_U16.pack(count + len(told))]
    for name, value in told.items():
        parts += [_text(PREFIX + name.encode()), _text(value.encode())]
    parts.append(body[_U16.size :])
    return b"".join(parts)


def original(body: bytes) -> bytes:
    """The body without what `explained` put before its headers."""
    body = without_expiry(body)
    if body[4 : 4 + len(PREFIX)] != PREFIX:
        return body
    (count,) = _U16.unpack_from(body)
    at = _U16.size
    while count and body[at + 2 : at + 2 + len(PREFIX)] == PREFIX:
        for _ in range(2):  # its name, its value
            (size,) = _U16.unpack_from(body, at)
            at += _U16.size + size
        count -= 1
    return _U16.pack(count) + body[at:]


def _cut(error: str) -> str:
    raw = error.encode()
    if len(raw) <= ERROR_BYTES_MAX:
        return error
    return raw[:ERROR_BYTES_MAX].decode(errors="ignore")


def _text(value: bytes) -> bytes:
    return _U16.pack(len(value)) + value
