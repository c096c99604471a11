"""An entry: one pending message as the core carries it about, and the layout of its tuple.

Owns where everything stands in an entry and in a message's key; no other module counts places or
bytes. A plain tuple, not an object: one is made for every message. Hot loops index it by the names
below; everybody else asks the functions.
"""

from __future__ import annotations

from typing import Final

from fila.core import rows
from fila.core.rows import ID_AT as ID_AT  # where the id starts in a message key
from fila.core.rows import STAMP_AT as STAMP_AT  # where the stamp starts, up to the id

# (key, stamp, attempts, weight, enqueued_ns, since_ns, stall_ns, throttled_ns, body, busy_ns,
# held_ns). An empty body is in the store only.
Entry = tuple[bytes, int, int, int, int, int, int, int, bytes, int, int]
KEY: Final = 0
STAMP: Final = 1
ATTEMPTS: Final = 2
WEIGHT: Final = 3
ENQUEUED_NS: Final = 4
SINCE_NS: Final = 5
STALL_NS: Final = 6  # the queue's stall clock when the message became ready; -1: it had a delay
THROTTLED_NS: Final = 7  # the lane's throttle clock at the same moment
BODY: Final = 8
BUSY_NS: Final = 9  # the queue's busy clock at the same moment (`busy.py`)
HELD_NS: Final = 10  # its key's part of it

ENTRY_BYTES: Final = 464  # what an entry costs in memory beside its body


def entry_of(key: bytes, value: bytes) -> Entry:
    """The pending message a stored row tells of."""
    if value[0] != rows.MESSAGE_VERSION:
        value = rows.message_row(value)
    _, attempts, weight, enqueued_ns, since_ns, stall_ns, throttled_ns, busy_ns, held_ns = (
        rows.MESSAGE_HEAD.unpack_from(value)
    )
    stamp = int.from_bytes(key[STAMP_AT:ID_AT], "big")
    body = value[rows.MESSAGE_HEAD_BYTES :]
    return (
        key, stamp, attempts, weight, enqueued_ns, since_ns, stall_ns, throttled_ns, body, busy_ns,
        held_ns,
    )  # fmt: skip


def row_of(entry: Entry) -> bytes:
    """The stored value of a pending message."""
    (
        _,
        _,
        attempts,
        weight,
        enqueued_ns,
        since_ns,
        stall_ns,
        throttled_ns,
        body,
        busy_ns,
        held_ns,
    ) = entry
    head = rows.MESSAGE_HEAD.pack(
        rows.MESSAGE_VERSION, attempts, weight, enqueued_ns, since_ns, stall_ns, throttled_ns,
        busy_ns, held_ns,
    )  # fmt: skip
    return head + body


def entry_bytes(entry: Entry) -> int:
    """What it costs in memory; one without its body is not counted."""
    return ENTRY_BYTES + len(entry[BODY]) if entry[BODY] else 0


def message_id(entry: Entry) -> bytes:
    return entry[KEY][ID_AT:]


def message_ids(entries: list[Entry]) -> list[bytes]:
    return [entry[KEY][ID_AT:] for entry in entries]


def had_delay(entry: Entry) -> bool:
    """Whether it was stored with a delay: then it is ready at its stamp, not since it came."""
    return entry[STALL_NS] < 0


def ready_ns(entry: Entry) -> int:
    """Since or from when the message may be delivered."""
    return entry[STAMP] if entry[STALL_NS] < 0 else entry[SINCE_NS]


def with_body(entry: Entry, body: bytes) -> Entry:
    return (*entry[:BODY], body, entry[BUSY_NS], entry[HELD_NS])


def without_body(entry: Entry) -> Entry:
    """The same message with its body left to the store."""
    return (*entry[:BODY], b"", entry[BUSY_NS], entry[HELD_NS])


def waiting_anew(
    entry: Entry, since_ns: int, stall_ns: int, throttled_ns: int, busy_ns: int, held_ns: int
) -> Entry:
    """The same message, whose waiting starts now."""
    return (*entry[:SINCE_NS], since_ns, stall_ns, throttled_ns, entry[BODY], busy_ns, held_ns)


def with_weight(entry: Entry, weight: int) -> Entry:
    return (*entry[:WEIGHT], weight, *entry[ENQUEUED_NS:])


def moved_to(
    entry: Entry, key: bytes, stamp: int, weight: int, throttled_ns: int, held_ns: int
) -> Entry:
    """The same message in another lane, where it goes on waiting."""
    return (
        key, stamp, entry[ATTEMPTS], weight, entry[ENQUEUED_NS], entry[SINCE_NS], entry[STALL_NS],
        throttled_ns, entry[BODY], entry[BUSY_NS], held_ns,
    )  # fmt: skip


# --- the key of a message


def id_of(key: bytes) -> bytes:
    return key[ID_AT:]


def stamp_of(key: bytes) -> int:
    return int.from_bytes(key[STAMP_AT:ID_AT], "big")


def lane_prefix_of(key: bytes) -> bytes:
    """What the keys of all messages of its lane begin with."""
    return key[:STAMP_AT]


def key_in_queue(key: bytes) -> bytes:
    """The key without its queue, as a lease's row names a message."""
    return key[rows.LANE_AT :]


def lane_number_of(key: bytes) -> int:
    return int.from_bytes(key[rows.LANE_AT : STAMP_AT], "big")
