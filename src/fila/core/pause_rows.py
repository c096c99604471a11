"""The stored form of a pause, of a queue or of one of its keys. `rows.py` has its key and every
byte, and says how to change a format."""

from __future__ import annotations

import struct
from typing import Final

from fila.core import rows

_HEAD: Final = struct.Struct(">BQQ")
_U16: Final = struct.Struct(">H")


def pause_key(queue: int, fairness_key: bytes | None) -> bytes:
    """Where the pause of a queue (no key) or of one of its keys is kept."""
    prefix = rows.PAUSE_PREFIX + rows.queue_prefix(queue)
    return prefix + b"\0" if fairness_key is None else prefix + b"\1" + fairness_key


def paused_key(key: bytes) -> bytes | None:
    """The fairness key a pause row speaks of; None: the whole queue."""
    return None if key[5] == 0 else key[6:]


def pause_row(since_ns: int, active_ns: int, who: str, reason: str) -> bytes:
    texts = [who.encode(), reason.encode()]
    head = _HEAD.pack(1, since_ns, active_ns)
    return b"".join([head, *[_U16.pack(len(text)) + text for text in texts]])


def read_pause(value: bytes) -> tuple[int, int, str, str]:
    """since_ns, active_ns, who, reason."""
    version, since_ns, active_ns = _HEAD.unpack_from(value)
    rows.check_version(version, "pause")
    who, at = rows.read_bytes16(value, _HEAD.size)
    reason, _ = rows.read_bytes16(value, at)
    return since_ns, active_ns, who.decode(), reason.decode()
