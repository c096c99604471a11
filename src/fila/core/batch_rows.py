"""The stored form of an open lease batch. `rows.py` has its key and every byte, and says how to
change a format."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from fila.core import rows

_HEAD: Final = struct.Struct(">BQQQB")


class OpenBatchRow(NamedTuple):
    leased_ns: int
    expires_ns: int
    visibility_ms: int
    count_attempt: bool
    leases: list[int]


def open_batch_key(queue: int, name: str) -> bytes:
    return rows.OPEN_BATCH_PREFIX + rows.queue_prefix(queue) + name.encode()


def open_batch_name(key: bytes) -> str:
    return key[5:].decode()


def open_batch_row(row: OpenBatchRow) -> bytes:
    head = _HEAD.pack(1, row.leased_ns, row.expires_ns, row.visibility_ms, row.count_attempt)
    return b"".join([head, *[lease.to_bytes(8, "big") for lease in row.leases]])


def read_open_batch(value: bytes) -> OpenBatchRow:
    version, leased_ns, expires_ns, visibility_ms, flags = _HEAD.unpack_from(value)
    rows.check_version(version, "open batch")
    leases = [int.from_bytes(value[at : at + 8], "big") for at in range(_HEAD.size, len(value), 8)]
    return OpenBatchRow(leased_ns, expires_ns, visibility_ms, bool(flags & 1), leases)
