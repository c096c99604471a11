"""Enqueue, Delivery, Ack, Nack and Release, written for speed: a tuple per message, no object.

Owns the fast walk over the bodies that carry messages. A body the fast walk refuses is read once
more by `layouts`, which knows how to name the field that is wrong. Never touches frames or sockets.
"""

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final

from fila.wire import bodies, layouts
from fila.wire.errors import InvalidBody
from fila.wire.fields import string_field, u32_field
from fila.wire.ids import id_text

_U32: Final = Struct(">I")
_U16: Final = Struct(">H")
_TIMES: Final = Struct(">IQQ")
_ID_LENGTH: Final = b"\x00\x24"
FIRST: Final = 4  # where the first item of a body stands, after their number

# (queue, message body, header bytes): the payload's length stands at `header bytes` in the body.
EnqueuedItem = tuple[bytes, bytes, int]

# (id, queue_field, message body, lane_field, attempts, enqueued_at_ms, leased_at_ms)
DeliveredItem = tuple[bytes, bytes, bytes, bytes, int, int, int]

# (id text, queue, message body, fairness key, weight, throttle keys, attempts,
#  enqueued_at_ms, leased_at_ms), as a client receives it
ReceivedItem = tuple[bytes, bytes, bytes, bytes, int, tuple[bytes, ...], int, int, int]


def count_of(body: bytes) -> int:
    """How many items a body claims to hold."""
    return int.from_bytes(body[:4], "big")


def decode_enqueue(body: bytes) -> list[EnqueuedItem]:
    """All messages of an Enqueue."""
    return enqueue_items(body, FIRST, count_of(body))[0]


def enqueue_items(
    body: bytes, position: int, count: int, index: int = 0
) -> tuple[list[EnqueuedItem], int]:
    """Cut `count` messages out of an Enqueue, of which that at `position` is number `index`, and
    where the next one stands. Structure and UTF-8 are checked, nothing is decoded."""
    items: list[EnqueuedItem] = []
    begin = position
    size = len(body)
    unpack_u32 = _U32.unpack_from
    last_queue = b""
    try:
        if count * 8 > size - position:
            raise explain(bodies.Enqueue, body, begin, index, count)
        for _ in range(count):
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            queue = body[start:position]
            if queue == last_queue:
                queue = last_queue  # one object per run of messages to the same queue
            else:
                if not queue.isascii():
                    queue.decode()
                last_queue = queue
            start = position
            fields = (body[position] << 8 | body[position + 1]) * 2
            position += 2
            if fields:
                for _ in range(fields):
                    position += 2 + (body[position] << 8 | body[position + 1])
                # Lengths are among these bytes, so a long string may look like non-ASCII: the
                # careful check then finds nothing wrong.
                if not body[start:position].isascii():
                    check_headers(body, start, fields)
            headers = position - start
            position += 4 + unpack_u32(body, position)[0]
            if position > size:
                raise explain(bodies.Enqueue, body, begin, index, count)
            items.append((queue, body[start:position], headers))
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(bodies.Enqueue, body, begin, index, count) from None
    return items, position


def encode_enqueue(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    """An Enqueue of (queue_field, message body) pairs."""
    parts = [_U32.pack(len(items))]
    for pair in items:
        parts += pair
    return b"".join(parts)


def encode_enqueue_results(results: Sequence[tuple[int, bytes]]) -> bytes:
    """An EnqueueResult of (code, id text) pairs; the text is empty unless the code is Ok."""
    parts = [_U32.pack(len(results))]
    append = parts.append
    for code, text in results:
        append(b"%c\x00%c%b" % (code, len(text), text))
    return b"".join(parts)


def decode_enqueue_results(body: bytes) -> list[tuple[int, bytes]]:
    results: list[tuple[int, bytes]] = []
    try:
        (count,) = _U32.unpack_from(body, 0)
        if count * 3 > len(body) - 4:
            raise explain(bodies.EnqueueResult, body)
        position = 4
        for _ in range(count):
            start = position + 3
            end = start + (body[position + 1] << 8 | body[position + 2])
            text = body[start:end]
            if not text.isascii():
                text.decode()
            results.append((body[position], text))
            position = end
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(bodies.EnqueueResult, body) from None
    if position > len(body):
        raise explain(bodies.EnqueueResult, body)
    return results


def queue_field(queue: bytes) -> bytes:
    """A queue's name as it stands in a body. Constant per queue: encode it once."""
    return string_field(queue, "queue")


def lane_field(fairness_key: bytes, weight: int, throttle_keys: Sequence[bytes]) -> bytes:
    """Fairness key, weight and throttle keys as they follow a payload in a Delivery.

    Constant per lane and weight: encode it once.
    """
    parts = [
        string_field(fairness_key, "fairness_key"),
        u32_field(weight, "weight"),
        _U16.pack(len(throttle_keys)),
    ]
    parts += [string_field(key, "throttle key") for key in throttle_keys]
    return b"".join(parts)


def encode_delivery(items: Sequence[DeliveredItem]) -> bytes:
    """A Delivery. Ids are the 16-byte form; `queue_field` and `lane_field` are pre-encoded."""
    parts = [_U32.pack(len(items))]
    pack_times = _TIMES.pack
    for id16, queue, body, lane, attempts, enqueued_at_ms, leased_at_ms in items:
        parts += (
            _ID_LENGTH,
            id_text(id16),
            queue,
            body,
            lane,
            pack_times(attempts, enqueued_at_ms, leased_at_ms),
        )
    return b"".join(parts)


def decode_delivery(body: bytes) -> list[ReceivedItem]:
    """The messages of a Delivery, their bodies untouched."""
    items: list[ReceivedItem] = []
    size = len(body)
    unpack_u32 = _U32.unpack_from
    unpack_times = _TIMES.unpack_from
    none: tuple[bytes, ...] = ()
    try:
        (count,) = unpack_u32(body, 0)
        if count * 38 > size - 4:
            raise explain(bodies.Delivery, body)
        position = 4
        for _ in range(count):
            begin = position
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            message_id = body[start:position]
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            queue = body[start:position]
            start = position
            fields = (body[position] << 8 | body[position + 1]) * 2
            position += 2
            for _ in range(fields):
                position += 2 + (body[position] << 8 | body[position + 1])
            if not body[begin:position].isascii():
                message_id.decode()
                queue.decode()
                check_headers(body, start, fields)
            position += 4 + unpack_u32(body, position)[0]
            message = body[start:position]
            begin = position
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            fairness_key = body[start:position]
            (weight,) = unpack_u32(body, position)
            throttles = body[position + 4] << 8 | body[position + 5]
            position += 6
            throttle_keys = none
            if throttles:
                keys: list[bytes] = []
                for _ in range(throttles):
                    start = position + 2
                    position = start + (body[position] << 8 | body[position + 1])
                    keys.append(body[start:position])
                throttle_keys = tuple(keys)
            if not body[begin:position].isascii():
                fairness_key.decode()
                for key in throttle_keys:
                    key.decode()
            attempts, enqueued_at_ms, leased_at_ms = unpack_times(body, position)
            position += 20
            items.append(
                (
                    message_id,
                    queue,
                    message,
                    fairness_key,
                    weight,
                    throttle_keys,
                    attempts,
                    enqueued_at_ms,
                    leased_at_ms,
                )
            )
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(bodies.Delivery, body) from None
    return items


def decode_acks(body: bytes) -> list[tuple[bytes, bytes]]:
    """The (queue, id text) pairs of an Ack."""
    return ack_items(body, FIRST, count_of(body))[0]


def ack_items(
    body: bytes,
    position: int,
    count: int,
    index: int = 0,
    body_type: type[tuple[object, ...]] = bodies.Ack,
) -> tuple[list[tuple[bytes, bytes]], int]:
    """So many pairs of an Ack or a Release from `position` on, and where the next one stands."""
    items: list[tuple[bytes, bytes]] = []
    begin = position
    try:
        if count * 4 > len(body) - position:
            raise explain(body_type, body, begin, index, count)
        for _ in range(count):
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            queue = body[start:position]
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            text = body[start:position]
            if not (queue.isascii() and text.isascii()):
                queue.decode()
                text.decode()
            items.append((queue, text))
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(body_type, body, begin, index, count) from None
    if position > len(body):
        raise explain(body_type, body, begin, index, count)
    return items, position


def encode_acks(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    """An Ack of (queue_field, id text) pairs."""
    parts = [_U32.pack(len(items))]
    for queue, text in items:
        parts += (queue, _U16.pack(len(text)), text)
    return b"".join(parts)


def decode_nacks(body: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The (queue, id text, error) triples of a Nack."""
    return nack_items(body, FIRST, count_of(body))[0]


def nack_items(
    body: bytes, position: int, count: int, index: int = 0
) -> tuple[list[tuple[bytes, bytes, bytes]], int]:
    """So many triples from `position` on, and where the next one stands."""
    items: list[tuple[bytes, bytes, bytes]] = []
    begin = position
    try:
        if count * 6 > len(body) - position:
            raise explain(bodies.Nack, body, begin, index, count)
        for _ in range(count):
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            queue = body[start:position]
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            text = body[start:position]
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            error = body[start:position]
            if not (queue.isascii() and text.isascii() and error.isascii()):
                queue.decode()
                text.decode()
                error.decode()
            items.append((queue, text, error))
    except (IndexError, struct.error, UnicodeDecodeError):
        raise explain(bodies.Nack, body, begin, index, count) from None
    if position > len(body):
        raise explain(bodies.Nack, body, begin, index, count)
    return items, position


def encode_nacks(items: Sequence[tuple[bytes, bytes, bytes]]) -> bytes:
    """A Nack of (queue_field, id text, error) triples."""
    parts = [_U32.pack(len(items))]
    for queue, text, error in items:
        parts += (queue, _U16.pack(len(text)), text, string_field(error, "error"))
    return b"".join(parts)


def decode_releases(body: bytes) -> list[tuple[bytes, bytes]]:
    """The (queue, id text) pairs of a Release."""
    return release_items(body, FIRST, count_of(body))[0]


def release_items(
    body: bytes, position: int, count: int, index: int = 0
) -> tuple[list[tuple[bytes, bytes]], int]:
    """So many pairs from `position` on, and where the next one stands."""
    return ack_items(body, position, count, index, bodies.Release)


def encode_codes(codes: Sequence[int]) -> bytes:
    """An AckResult, NackResult or ReleaseResult."""
    return _U32.pack(len(codes)) + bytes(codes)


def decode_codes(body: bytes) -> bytes:
    """The codes of an AckResult, NackResult or ReleaseResult, one byte each."""
    if len(body) < 4 or _U32.unpack_from(body, 0)[0] > len(body) - 4:
        raise explain(bodies.AckResult, body)
    return body[4 : 4 + _U32.unpack_from(body, 0)[0]]


def check_headers(body: bytes, start: int, fields: int) -> None:
    position = start + 2
    for _ in range(fields):
        start = position + 2
        position = start + (body[position] << 8 | body[position + 1])
        body[start:position].decode()


def explain(
    body_type: type[tuple[object, ...]],
    body: bytes,
    position: int = 0,
    index: int = 0,
    count: int = 0,
) -> InvalidBody:
    """Read what was refused again with the careful codec, for an error that names the field: the
    whole body, or so many of its items from one on."""
    try:
        if position == 0 or len(body) < FIRST:
            layouts.decode(body_type, body)
        else:
            layouts.decode_items(body_type, body, position, index, count)
    except InvalidBody as error:
        return error
    raise AssertionError(f"{body_type.__name__}: refused by the fast codec, accepted by the other")
