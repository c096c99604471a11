"""EnqueueWith and its result, written for speed: a tuple per message, never an object.

Owns the fast walk over these two bodies. A body it refuses is read once more by `layouts`, which
names the field that is wrong. Never touches frames or sockets.
"""

import struct
from binascii import hexlify
from collections.abc import Sequence
from struct import Struct
from typing import Final

from fila.wire import bodies
from fila.wire.errors import OK
from fila.wire.fields import string_field, u64_field
from fila.wire.message_codec import FIRST, check_headers, count_of, explain

_U32: Final = Struct(">I")
_DELAY: Final = Struct(">QH")  # with the length of the idempotency key
_ID_LENGTH: Final = b"\x00\x24"
_STORED_BYTES: Final = 40  # of a result with an id: code, length, text, duplicate
# Where each character of an id's text stands in a result, and in hexadecimal groups of four.
_ID_COLUMNS: Final = [
    (3 + to, of) for to, of in enumerate(at for at in range(39) if at not in (4, 29, 34))
]

# (queue, message body, delay_ms, idempotency key, fairness key, weight, throttle keys)
EnqueuedWithItem = tuple[bytes, bytes, int, bytes, bytes, int, tuple[bytes, ...]]


def options_field(delay_ms: int, idempotency_key: str | bytes, lane: bytes) -> bytes:
    """What follows the payload in an EnqueueWith; `lane` is a `message_codec.lane_field`."""
    if not idempotency_key:
        return u64_field(delay_ms, "delay_ms") + b"\x00\x00" + lane
    return u64_field(delay_ms, "delay_ms") + string_field(idempotency_key, "idempotency_key") + lane


def decode_enqueue_with(body: bytes) -> list[EnqueuedWithItem]:
    """All messages of an EnqueueWith."""
    return enqueue_with_items(body, FIRST, count_of(body))[0]


def enqueue_with_items(
    body: bytes, position: int, count: int, index: int = 0
) -> tuple[list[EnqueuedWithItem], int]:
    """Cut `count` messages out of an EnqueueWith, of which that at `position` is number `index`,
    and where the next one stands. Structure and UTF-8 are checked, nothing is decoded.

    Bulk writers say the same of thousands of messages: what begins like the message before, without
    headers, is not read again, and neither is an assignment that was seen already.
    """
    items: list[EnqueuedWithItem] = []
    size = len(body)
    assignments: dict[bytes, tuple[bytes, int, tuple[bytes, ...]]] = {}
    queue = b""
    bare = b""  # the queue's name and no headers, as the message before began
    bare_bytes = 0
    first = position
    try:
        if count * 26 > size - position:
            raise explain(bodies.EnqueueWith, body, first, index, count)
        for _ in range(count):
            if bare_bytes and body.startswith(bare, position):
                position += bare_bytes
                start = position - 2
            else:
                begin = position
                start = position + 2
                position = start + (body[position] << 8 | body[position + 1])
                queue = body[start:position]
                start = position
                fields = (body[position] << 8 | body[position + 1]) * 2
                position += 2
                for _ in range(fields):
                    position += 2 + (body[position] << 8 | body[position + 1])
                if not (queue.isascii() and body[start:position].isascii()):
                    queue.decode()
                    check_headers(body, start, fields)
                bare = body[begin:position]
                bare_bytes = position - begin if fields == 0 else 0
            position += 4 + _U32.unpack_from(body, position)[0]
            message = body[start:position]
            delay_ms, key_bytes = _DELAY.unpack_from(body, position)
            start = position + 10
            position = start + key_bytes
            key = body[start:position]
            if not key.isascii():
                key.decode()
            end = position + 8 + (body[position] << 8 | body[position + 1])
            throttles = body[end - 2] << 8 | body[end - 1]
            for _ in range(throttles):
                end += 2 + (body[end] << 8 | body[end + 1])
            if end > size:
                raise explain(bodies.EnqueueWith, body, first, index, count)
            field = body[position:end]
            assignment = assignments.get(field)
            if assignment is None:
                assignment = assignments[field] = _assignment(field)
            position = end
            fairness_key, weight, throttle_keys = assignment
            items.append((queue, message, delay_ms, key, fairness_key, weight, throttle_keys))
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(bodies.EnqueueWith, body, first, index, count) from None
    return items, position


def _assignment(field: bytes) -> tuple[bytes, int, tuple[bytes, ...]]:
    """The fairness key, weight and throttle keys of a `message_codec.lane_field`."""
    position = 2 + (field[0] << 8 | field[1])
    fairness_key = field[2:position]
    (weight,) = _U32.unpack_from(field, position)
    position += 6
    keys: list[bytes] = []
    while position < len(field):
        start = position + 2
        position = start + (field[position] << 8 | field[position + 1])
        keys.append(field[start:position])
    if not field.isascii():
        fairness_key.decode()
        for one in keys:
            one.decode()
    return fairness_key, weight, tuple(keys)


def encode_stored(ids: Sequence[bytes], duplicates: bytes) -> bytes:
    """An EnqueueWithResult in which every message has an id. Such a result is a table: it is
    written by columns, at a tenth of the price of one item after the other."""
    count = len(ids)
    text = hexlify(b"".join(ids), "-", 2)  # per id eight groups of four, three dashes too many
    table = bytearray(count * _STORED_BYTES)
    table[2::_STORED_BYTES] = _ID_LENGTH[1:] * count
    for to, of in _ID_COLUMNS:
        table[to::_STORED_BYTES] = text[of::_STORED_BYTES]
    table[_STORED_BYTES - 1 :: _STORED_BYTES] = duplicates
    return _U32.pack(count) + table


def encode_enqueue_with_results(results: Sequence[tuple[int, bytes, bool]]) -> bytes:
    """An EnqueueWithResult of (code, id text, duplicate)."""
    parts = [_U32.pack(len(results))]
    for code, text, duplicate in results:
        parts.append(b"%c\x00%c%b%c" % (code, len(text), text, duplicate))
    return b"".join(parts)


def decode_enqueue_with_results(body: bytes) -> list[tuple[int, bytes, bool]]:
    results: list[tuple[int, bytes, bool]] = []
    try:
        (count,) = _U32.unpack_from(body, 0)
        if count * 4 > len(body) - 4:
            raise explain(bodies.EnqueueWithResult, body)
        if _is_table(body, count):
            flags = body[_STORED_BYTES + 3 :: _STORED_BYTES]
            starts = range(7, len(body), _STORED_BYTES)
            return [
                (OK, body[at : at + 36], flag == 1) for at, flag in zip(starts, flags, strict=True)
            ]
        position = 4
        for _ in range(count):
            start = position + 3
            end = start + (body[position + 1] << 8 | body[position + 2])
            text = body[start:end]
            if not text.isascii() or body[end] > 1:
                raise explain(bodies.EnqueueWithResult, body)
            results.append((body[position], text, body[end] == 1))
            position = end + 1
    except (IndexError, struct.error):
        raise explain(bodies.EnqueueWithResult, body) from None
    return results


def _is_table(body: bytes, count: int) -> bool:
    """Whether every message has an id: what `encode_stored` writes."""
    step = _STORED_BYTES
    return (
        len(body) == 4 + count * step
        and body[4:].isascii()
        and not any(body[4::step])
        and body[5::step] == _ID_LENGTH[:1] * count
        and body[6::step] == _ID_LENGTH[1:] * count
        and not body[step + 3 :: step].strip(b"\x00\x01")
    )
