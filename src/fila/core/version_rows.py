"""The stored form of a queue's versions: who changed what of its settings, and what they were then.

    state     'v' · queue u32 · version u32                → version record

    version   u8 1 · at_ns u64 · len16 who · len16 note
              · count8 × (len16 setting · len32 text), those that are not empty

`rows.py` says how to change a format. A setting that is new needs no new version byte: an older
Fila that does not know its name refuses to bring that version back, and reads all others.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from fila.core import rows

_HEAD: Final = struct.Struct(">BQ")
_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")
_KEY: Final = struct.Struct(">II")


class VersionRow(NamedTuple):
    at_ns: int
    who: str
    note: str
    settings: dict[str, str]  # by the names of `versions.py`


def version_prefix(queue: int) -> bytes:
    return rows.VERSION_PREFIX + rows.queue_prefix(queue)


def version_key(queue: int, version: int) -> bytes:
    return rows.VERSION_PREFIX + _KEY.pack(queue, version)


def version_number(key: bytes) -> int:
    return int.from_bytes(key[5:9], "big")


def version_row(row: VersionRow) -> bytes:
    parts = [_HEAD.pack(1, row.at_ns)]
    for text in (row.who.encode(), row.note.encode()):
        parts += [_U16.pack(len(text)), text]
    given = [(name.encode(), text.encode()) for name, text in row.settings.items() if text]
    parts.append(bytes([len(given)]))
    for name, text in given:
        parts += [_U16.pack(len(name)), name, _U32.pack(len(text)), text]
    return b"".join(parts)


def read_version(value: bytes) -> VersionRow:
    version, at_ns = _HEAD.unpack_from(value)
    rows.check_version(version, "version of a queue")
    who, at = rows.read_bytes16(value, _HEAD.size)
    note, at = rows.read_bytes16(value, at)
    settings = {}
    count = value[at]
    at += 1
    for _ in range(count):
        name, at = rows.read_bytes16(value, at)
        text, at = rows.read_bytes32(value, at)
        settings[name.decode()] = text.decode()
    return VersionRow(at_ns, who.decode(), note.decode(), settings)
