"""The stored form of idempotency keys, drawn as in `rows.py`.

'k' · queue u32 · key           → known key record
'o' · queue u32 · number u64    → key
'w' · queue u32                 → key window record

known key u8 1 · number u64 · at_ns u64 · id 16
window    u8 1 · head u64 · next u64
"""

from __future__ import annotations

import struct
from typing import Final

from fila.core.rows import check_version

KNOWN_KEY_PREFIX: Final = b"k"
KEY_ORDER_PREFIX: Final = b"o"
KEY_WINDOW_PREFIX: Final = b"w"
KEY_PREFIXES: Final = (KNOWN_KEY_PREFIX, KEY_ORDER_PREFIX, KEY_WINDOW_PREFIX)

_KNOWN_KEY: Final = struct.Struct(">BQQ16s")
_KEY_ORDER: Final = struct.Struct(">IQ")
_KEY_WINDOW: Final = struct.Struct(">BQQ")


def known_key_row(number: int, at_ns: int, id: bytes) -> bytes:
    return _KNOWN_KEY.pack(1, number, at_ns, id)


def read_known_key(value: bytes) -> tuple[int, int, bytes]:
    version, number, at_ns, id = _KNOWN_KEY.unpack(value)
    check_version(version, "idempotency key")
    return number, at_ns, id


def key_order_key(queue: int, number: int) -> bytes:
    return KEY_ORDER_PREFIX + _KEY_ORDER.pack(queue, number)


def known_key_of(order_key: bytes, value: bytes) -> bytes:
    """The key of the row an order row speaks of."""
    return KNOWN_KEY_PREFIX + order_key[1:5] + value


def key_order_number(key: bytes) -> int:
    return int.from_bytes(key[5:13], "big")


def key_window_row(head: int, next: int) -> bytes:
    return _KEY_WINDOW.pack(1, head, next)


def read_key_window(value: bytes) -> tuple[int, int]:
    version, head, next = _KEY_WINDOW.unpack(value)
    check_version(version, "idempotency window")
    return head, next


def check_idempotency(kind: bytes, value: bytes) -> None:
    """Whether a record of this kind can be read."""
    if kind == KNOWN_KEY_PREFIX:
        read_known_key(value)
    elif kind == KEY_WINDOW_PREFIX:
        read_key_window(value)
