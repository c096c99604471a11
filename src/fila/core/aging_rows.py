"""The stored form of when pending messages expire: rows in the order of time.

    state     't' · queue u32 · expires_ms u64 · lane u64 · stamp u64 · id 16  → lane's name

    lane's name   len16 fairness_key · (len16 throttle_key)*

The end of the key is that of the message's own; the name says where its lane is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fila.core import rows
from fila.core.row_batch import PUT_STATE, Op

if TYPE_CHECKING:
    from fila.core.lane import Lane

_TIME_AT: Final = 5
_LANE_AT: Final = 13


def prefix(queue: int) -> bytes:
    return rows.AGING_PREFIX + rows.queue_prefix(queue)


def from_ms(queue: int, at_ms: int) -> bytes:
    """Where the rows of what expires at this time begin."""
    return prefix(queue) + at_ms.to_bytes(8, "big")


def key_of(message_key: bytes, at_ms: int) -> bytes:
    queue, place = message_key[: rows.LANE_AT], message_key[rows.LANE_AT :]
    return rows.AGING_PREFIX + queue + at_ms.to_bytes(8, "big") + place


def put(message_key: bytes, at_ms: int, lane: Lane) -> Op:
    name = [len(one).to_bytes(2, "big") + one for one in (lane.key.name, *lane.throttle_keys)]
    return (PUT_STATE, key_of(message_key, at_ms), b"".join(name))


def at_ms(key: bytes) -> int:
    return int.from_bytes(key[_TIME_AT:_LANE_AT], "big")


def lane_number(key: bytes) -> int:
    return int.from_bytes(key[_LANE_AT : _LANE_AT + 8], "big")


def message_key(key: bytes) -> bytes:
    return key[1:_TIME_AT] + key[_LANE_AT:]


def read(row: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """The fairness key and throttle keys of the message's lane."""
    names = []
    at = 0
    while at < len(row):
        name, at = rows.read_bytes16(row, at)
        names.append(name)
    return names[0], tuple(names[1:])
