"""The stored form of everything: keys and records, drawn byte by byte.

Numbers are big-endian so that byte order is delivery order. Column families:

    messages  queue u32 · lane u64 · stamp u64 · id 16     → message record
    leases    queue u32 · lease u64                        → lease record
    queues    name (UTF-8)                                 → queue record
    state     'c' · config key                             → config value
              'd' · queue u32                              → u8 1: a hidden queue holds something
              'b' · throttle key                           → bucket level
              'l' · queue u32 · lane u64                   → lane record
              'g' · group u32 · position u64               → ledger record
              'k' · queue u32 · u8 · fairness key          (`override.py`)
              'n'                                          → next queue number u32
              'o' · queue u32 · batch name (UTF-8)         → open batch record
              'p' · queue u32 · u8 0                       → pause record of the queue
              'p' · queue u32 · u8 1 · fairness key        → pause record of a key
              'q' · group u32                              → quarantine record
              't' · queue u32 · expires_ms u64 · …         (`aging_rows.py`)
              'r' · queue u32                              (`reclassify_rows.py`)
              'v' · queue u32 · version u32                (`version_rows.py`)
              'x' · queue u32 · lane u64                   → bytes that wait there u64
    idempotency                                            (`key_rows.py`)
    auth      API keys and ACLs (unreachable from config and hooks)
    default   'format'                                     → u32 FORMAT_VERSION

    message   u8 2 · attempts u32 · weight u32 · enqueued_ns u64 · since_ns u64
              · stall_ns i64 · throttled_ns i64 · busy_ns i64 · held_ns i64
              · body (map headers, bytes payload, as on the wire)
              (version 1: without busy_ns and held_ns)
    lease     u8 1 · expires_ns u64 · leased_ns u64 · len16 consumer
              · (lane u64 · stamp u64 · id 16)*
    queue     u8 2 · number u32 · group u32 · visibility_ms u64 · created_ns u64
              · flags u8 (1 on_enqueue present, 2 on_failure present, 4 hidden)
              · len32 script · len32 script
              · count8 × (setting u8 · value u64), those that are not 0: 1 max_attempts,
                2 cost (1 bytes), 3 version (left out: 1), 4 max_in_flight_per_key,
                8 message_ttl_ms, 9 expired (1 drop), 10 max_messages, 11 max_bytes,
                12 key_max_messages, 13 key_max_bytes, 14 overflow (1 drop-oldest),
                15 since when bytes are counted
              (version 1: without the settings)
    bucket    u8 1 · tokens f64 · at_ns u64
    lane      u8 1 · weight u32 · pending u64 · tail u64 · head u64 · throttled_ns u64
              · len16 fairness_key · count16 × len16 throttle_key
    ledger    u8 1 · now_ns u64 · count8 × (queue u32 · stall_ns u64)
              · (queue u32 · lane u64 · weight u32 · pending u64 · tail u64 · head u64
                 · throttled_ns u64)*

    open      u8 1 · leased_ns u64 · expires_ns u64 · visibility_ms u64
    batch     · flags u8 (1 running out counts an attempt) · (lease u64)*
    quarantine
              u8 1 · since_ns u64 · len16 cause

A lane's numbers are those of the newest ledger record that mentions it, or else its own record's
(`ledger.py` says why). `stall_ns` of a message is -1 when it was stored with a
delay; the top bit of a lane's `head` says the same of the message at its head.

To change a format: give the record a new version byte, keep reading the old one, and write the
new one only. To change a key or to stop reading an old record: raise FORMAT_VERSION, teach
`storage/format.py` to upgrade or to refuse, and say so in CHANGELOG.md.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

FORMAT_VERSION: Final = 1

MESSAGES: Final = 0
LEASES: Final = 1
QUEUES: Final = 2
STATE: Final = 3
AUTH: Final = 4
DEFAULT: Final = 5
IDEMPOTENCY: Final = 6
FAMILIES: Final = ("messages", "leases", "queues", "state", "auth", "default", "idempotency")

FORMAT_KEY: Final = b"format"
NEXT_QUEUE_KEY: Final = b"n"
CONFIG_PREFIX: Final = b"c"
BUCKET_PREFIX: Final = b"b"
OVERRIDE_PREFIX: Final = b"k"
SHOWN_PREFIX: Final = b"d"
LANE_PREFIX: Final = b"l"
LEDGER_PREFIX: Final = b"g"
OPEN_BATCH_PREFIX: Final = b"o"
PAUSE_PREFIX: Final = b"p"
QUARANTINE_PREFIX: Final = b"q"
AGING_PREFIX: Final = b"t"
RECLASSIFY_PREFIX: Final = b"r"
VERSION_PREFIX: Final = b"v"
WEIGHT_PREFIX: Final = b"x"
WEIGHT_BYTES: Final = 8  # of its value
# Rows of the state family that belong to a queue, whose number follows.
QUEUE_PREFIXES: Final = (
    OVERRIDE_PREFIX,
    LANE_PREFIX,
    OPEN_BATCH_PREFIX,
    PAUSE_PREFIX,
    AGING_PREFIX,
    RECLASSIFY_PREFIX,
    VERSION_PREFIX,
    SHOWN_PREFIX,
    WEIGHT_PREFIX,
)

MESSAGE_KEY: Final = struct.Struct(">IQQ16s")
LAST_ID: Final = b"\xff" * 16
MESSAGE_HEAD: Final = struct.Struct(">BIIQQqqqq")
MESSAGE_HEAD_BYTES: Final = 57
MESSAGE_VERSION: Final = 2
_MESSAGE_1_BYTES: Final = 41  # of a head of version 1
ID_AT: Final = 20  # where the id starts in a message key
LANE_AT: Final = 4  # where lane · stamp · id starts in a message key
STAMP_AT: Final = 12  # where the stamp starts in a message key
LEASED_BYTES: Final = 32  # lane · stamp · id in a lease record

_QUEUE: Final = struct.Struct(">I")
_QUEUE_LANE: Final = struct.Struct(">IQ")
_LEASE_HEAD: Final = struct.Struct(">BQQH")
_QUEUE_HEAD: Final = struct.Struct(">BIIQQB")
_QUEUE_SETTING: Final = struct.Struct(">BQ")
_MAX_ATTEMPTS: Final = 1
_COST: Final = 2
_VERSION: Final = 3
_MAX_IN_FLIGHT: Final = 4
_MESSAGE_TTL: Final = 8
_DROPS_EXPIRED: Final = 9
_ROOM: Final = 10  # and those after it, as in QueueRow
_KNOWN_SETTINGS: Final = {
    *(_MAX_ATTEMPTS, _COST, _VERSION, _MAX_IN_FLIGHT),
    *range(_MESSAGE_TTL, _ROOM + 6),
}
_BUCKET: Final = struct.Struct(">BdQ")
_LANE_HEAD: Final = struct.Struct(">BIQQQQ")
_LEDGER_HEAD: Final = struct.Struct(">BQB")
_LEDGER_CLOCK: Final = struct.Struct(">IQ")
_LEDGER_LANE: Final = struct.Struct(">IQIQQQQ")
_QUARANTINE_HEAD: Final = struct.Struct(">BQ")
_CAUSE_BYTES_MAX: Final = 1_000
_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")


class CorruptRowError(Exception):
    """A stored row does not say what this version can read."""


class LeaseRow(NamedTuple):
    expires_ns: int
    leased_ns: int
    consumer: str
    messages: list[bytes]  # lane · stamp · id, 32 bytes each


class QueueRow(NamedTuple):
    number: int
    group: int
    visibility_ms: int
    created_ns: int
    on_enqueue: str | None
    on_failure: str | None
    max_attempts: int = 0  # 0: no limit
    version: int = 1  # of its settings
    by_bytes: bool = False  # a message costs its bytes, not 1
    ttl_ms: int = 0  # of a message, from its enqueue; 0: it lives on
    drops_expired: bool = False  # else it is a dead letter
    # A dead-letter queue that was deleted while its queue was not: it is not there until the next
    # dead letter, which writes 'd'.
    hidden: bool = False
    max_in_flight_per_key: int = 0  # 0: no limit
    max_messages: int = 0  # that may wait; 0: any number
    max_bytes: int = 0
    key_max_messages: int = 0
    key_max_bytes: int = 0
    drops_oldest: bool = False  # to make room; else what comes is refused
    weighed_since: int = 0  # from when on bytes are counted; 0: they are not


class LaneRow(NamedTuple):
    weight: int
    pending: int
    tail: int
    head: int
    throttled_ns: int
    fairness_key: bytes
    throttle_keys: tuple[bytes, ...]


class LedgerRow(NamedTuple):
    now_ns: int
    clocks: list[tuple[int, int]]  # queue number, stall_ns
    lanes: list[tuple[int, int, int, int, int, int, int]]


def message_row(value: bytes) -> bytes:
    """A stored message as this version writes it."""
    if value[0] == MESSAGE_VERSION:
        return value
    if value[0] != 1 or len(value) < _MESSAGE_1_BYTES:
        raise CorruptRowError(
            f"a stored message has version {value[0]}; this Fila reads versions 1 and 2"
        )
    head = value[1:_MESSAGE_1_BYTES]
    return b"".join([b"\2", head, bytes(16), value[_MESSAGE_1_BYTES:]])


def queue_prefix(queue: int) -> bytes:
    return _QUEUE.pack(queue)


def lane_prefix(queue: int, lane: int) -> bytes:
    return _QUEUE_LANE.pack(queue, lane)


def after(prefix: bytes) -> bytes:
    """The smallest key greater than every key with this prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


def owner_of(family: int, key: bytes) -> int | None:
    """The number of the queue a row belongs to; None: no queue's, or a whole group's."""
    if family in (MESSAGES, LEASES):
        return owner_of_message(key)
    if family == IDEMPOTENCY or key[:1] in QUEUE_PREFIXES:
        return owner_of_state(key)
    return None


def kind_of(key: bytes) -> bytes:
    """What kind of row it is, of the state and idempotency families."""
    return key[:1]


def owner_of_message(key: bytes) -> int:
    """The queue's number, in the key of a message or a lease."""
    return int.from_bytes(key[:LANE_AT], "big")


def owner_of_state(key: bytes) -> int:
    """The number of the queue, or of the group, in the key of a row whose first byte is its kind:
    state and idempotency."""
    return int.from_bytes(key[1:5], "big")


def lease_key(queue: int, lease: int) -> bytes:
    return _QUEUE_LANE.pack(queue, lease)


def lease_number(key: bytes) -> int:
    return int.from_bytes(key[4:12], "big")


def leased_message(lease: bytes, tail: bytes) -> bytes:
    """The key of a message that the lease with this key names."""
    return lease[:LANE_AT] + tail


def lease_row(expires_ns: int, leased_ns: int, consumer: str, keys: list[bytes]) -> bytes:
    name = consumer.encode()
    head = _LEASE_HEAD.pack(1, expires_ns, leased_ns, len(name))
    return b"".join([head, name, *[key[LANE_AT:] for key in keys]])


def read_lease(value: bytes) -> LeaseRow:
    version, expires_ns, leased_ns, name_bytes = _LEASE_HEAD.unpack_from(value)
    check_version(version, "lease")
    start = _LEASE_HEAD.size + name_bytes
    consumer = value[_LEASE_HEAD.size : start].decode()
    messages = [value[at : at + LEASED_BYTES] for at in range(start, len(value), LEASED_BYTES)]
    return LeaseRow(expires_ns, leased_ns, consumer, messages)


def queue_row(row: QueueRow) -> bytes:
    enqueue = (row.on_enqueue or "").encode()
    failure = (row.on_failure or "").encode()
    flags = (row.on_enqueue is not None) | (row.on_failure is not None) << 1 | row.hidden << 2
    head = _QUEUE_HEAD.pack(2, row.number, row.group, row.visibility_ms, row.created_ns, flags)
    parts = [head, _U32.pack(len(enqueue)), enqueue, _U32.pack(len(failure)), failure]
    settings = [(_MAX_ATTEMPTS, row.max_attempts), (_COST, int(row.by_bytes))]
    if row.version != 1:
        settings.append((_VERSION, row.version))
    settings += [(_MESSAGE_TTL, row.ttl_ms), (_DROPS_EXPIRED, int(row.drops_expired))]
    settings.append((_MAX_IN_FLIGHT, row.max_in_flight_per_key))
    room = (row.max_messages, row.max_bytes, row.key_max_messages, row.key_max_bytes)
    rest = (int(row.drops_oldest), row.weighed_since)
    settings += [(_ROOM + at, value) for at, value in enumerate((*room, *rest))]
    given = [_QUEUE_SETTING.pack(*one) for one in settings if one[1]]
    return b"".join([*parts, bytes([len(given)]), *given])


def read_queue(value: bytes) -> QueueRow:
    version, number, group, visibility_ms, created_ns, flags = _QUEUE_HEAD.unpack_from(value)
    if version != 1:
        check_version(version, "queue", 2)
    enqueue, at = read_bytes32(value, _QUEUE_HEAD.size)
    failure, at = read_bytes32(value, at)
    settings = _read_settings(value, at) if version > 1 else {}
    return QueueRow(
        number,
        group,
        visibility_ms,
        created_ns,
        enqueue.decode() if flags & 1 else None,
        failure.decode() if flags & 2 else None,
        settings.get(_MAX_ATTEMPTS, 0),
        settings.get(_VERSION, 1),
        settings.get(_COST, 0) == 1,
        settings.get(_MESSAGE_TTL, 0),
        settings.get(_DROPS_EXPIRED, 0) == 1,
        bool(flags & 4),
        settings.get(_MAX_IN_FLIGHT, 0),
        settings.get(_ROOM, 0),
        settings.get(_ROOM + 1, 0),
        settings.get(_ROOM + 2, 0),
        settings.get(_ROOM + 3, 0),
        settings.get(_ROOM + 4, 0) == 1,
        settings.get(_ROOM + 5, 0),
    )


def _read_settings(value: bytes, at: int) -> dict[int, int]:
    """A queue's settings that are not 0."""
    settings = dict(_QUEUE_SETTING.iter_unpack(value[at + 1 :]))
    unknown = settings.keys() - _KNOWN_SETTINGS
    if unknown or len(settings) != value[at] or settings.get(_COST, 0) > 1:
        raise CorruptRowError(f"a stored queue has settings this Fila does not know: {settings}")
    return settings


def bucket_row(tokens: float, at_ns: int) -> bytes:
    return _BUCKET.pack(1, tokens, at_ns)


def read_bucket(value: bytes) -> tuple[float, int]:
    version, tokens, at_ns = _BUCKET.unpack(value)
    check_version(version, "bucket")
    return tokens, at_ns


def lane_key(queue: int, lane: int) -> bytes:
    return LANE_PREFIX + _QUEUE_LANE.pack(queue, lane)


def lane_number(key: bytes) -> int:
    """Of the key of a lane's own row."""
    return int.from_bytes(key[5:13], "big")


def config_name(key: bytes) -> str:
    return key[len(CONFIG_PREFIX) :].decode()


def lane_row(row: LaneRow) -> bytes:
    head = _LANE_HEAD.pack(1, row.weight, row.pending, row.tail, row.head, row.throttled_ns)
    parts = [head, _U16.pack(len(row.fairness_key)), row.fairness_key]
    parts.append(_U16.pack(len(row.throttle_keys)))
    for key in row.throttle_keys:
        parts.append(_U16.pack(len(key)))
        parts.append(key)
    return b"".join(parts)


def read_lane(value: bytes) -> LaneRow:
    version, weight, pending, tail, head, throttled_ns = _LANE_HEAD.unpack_from(value)
    check_version(version, "lane")
    fairness_key, at = read_bytes16(value, _LANE_HEAD.size)
    (count,) = _U16.unpack_from(value, at)
    at += 2
    keys = []
    for _ in range(count):
        key, at = read_bytes16(value, at)
        keys.append(key)
    return LaneRow(weight, pending, tail, head, throttled_ns, fairness_key, tuple(keys))


def ledger_key(group: int, position: int) -> bytes:
    return LEDGER_PREFIX + _QUEUE_LANE.pack(group, position)


def ledger_position(key: bytes) -> int:
    return int.from_bytes(key[5:13], "big")


def ledger_head(now_ns: int, clocks: list[tuple[int, int]]) -> bytes:
    head = _LEDGER_HEAD.pack(1, now_ns, len(clocks))
    return b"".join([head, *[_LEDGER_CLOCK.pack(queue, ns) for queue, ns in clocks]])


pack_ledger_lane: Final = _LEDGER_LANE.pack


def read_ledger(value: bytes) -> LedgerRow:
    version, now_ns, count = _LEDGER_HEAD.unpack_from(value)
    check_version(version, "ledger")
    clocks = []
    at = _LEDGER_HEAD.size
    for _ in range(count):
        queue, stall_ns = _LEDGER_CLOCK.unpack_from(value, at)
        clocks.append((queue, stall_ns))
        at += _LEDGER_CLOCK.size
    return LedgerRow(now_ns, clocks, list(_LEDGER_LANE.iter_unpack(value[at:])))


def shown_key(queue: int) -> bytes:
    return SHOWN_PREFIX + _QUEUE.pack(queue)


def quarantine_key(group: int) -> bytes:
    return QUARANTINE_PREFIX + _QUEUE.pack(group)


def quarantine_row(since_ns: int, cause: str) -> bytes:
    text = cause.encode()[:_CAUSE_BYTES_MAX]
    return _QUARANTINE_HEAD.pack(1, since_ns) + _U16.pack(len(text)) + text


def read_quarantine(value: bytes) -> tuple[int, str]:
    """since_ns, cause."""
    version, since_ns = _QUARANTINE_HEAD.unpack_from(value)
    check_version(version, "quarantine")
    cause, _ = read_bytes16(value, _QUARANTINE_HEAD.size)
    return since_ns, cause.decode(errors="replace")


def check_message(value: bytes) -> None:
    """Whether a message record can be read."""
    MESSAGE_HEAD.unpack_from(message_row(value))


def read_bytes16(value: bytes, at: int) -> tuple[bytes, int]:
    (size,) = _U16.unpack_from(value, at)
    return value[at + 2 : at + 2 + size], at + 2 + size


def read_bytes32(value: bytes, at: int) -> tuple[bytes, int]:
    (size,) = _U32.unpack_from(value, at)
    return value[at + 4 : at + 4 + size], at + 4 + size


def check_version(version: int, what: str, known: int = 1) -> None:
    if version != known:
        raise CorruptRowError(
            f"a stored {what} has version {version}; this Fila reads version {known}"
        )
