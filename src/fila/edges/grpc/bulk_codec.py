"""FilaBulk's requests with many items, read by hand: EnqueueWith and Release.

Items are counted as they are met, and a message's own lists while they are read: a request of empty
items is two bytes for each, and a generated class would make hundreds of every one. Never touches
sockets or sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from fila.broker.options import Options
from fila.edges.grpc.protobuf_reader import (
    HEADERS_MAX,
    ITEM_FIELDS_MAX,
    TEXT_BYTES_MAX,
    TOO_MANY_FIELDS,
    Fields,
    InvalidMessage,
    check_text,
    map_entry,
    read_length,
    read_varint,
)
from fila.hooks.limits import THROTTLE_KEYS_MAX

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_LISTED: Final = (0x0A, 0x12, 0x1A, 0x2A, 0x32, 0x42)  # tags of fields with a length
_U32_MAX: Final = 0xFFFF_FFFF

# (queue, message with options); no message: it cannot be stored, its headers are too long.
ItemWith = tuple[bytes, Options | None]


def decode_enqueue_with(
    data: bytes, items_max: int, fields: Fields | None = None
) -> list[ItemWith]:
    """The messages of an EnqueueWithRequest. `fields` counts those of several parts of one."""
    fields = fields or Fields()
    items: list[ItemWith] = []
    try:
        for _, start, end in _values(data, (0x0A,), fields):
            if len(items) == items_max:
                raise InvalidMessage(f"it may hold {items_max} messages; send several")
            items.append(_item(data, start, end, fields))
    except IndexError:
        raise InvalidMessage("it is cut short") from None
    return items


def decode_release(
    data: bytes, items_max: int, fields: Fields | None = None
) -> tuple[bytes, list[bytes]]:
    """The queue and the ids of a ReleaseRequest."""
    queue = b""
    ids: list[bytes] = []
    try:
        for tag, start, end in _values(data, (0x0A, 0x12), fields or Fields()):
            text = data[start:end]
            check_text(text)
            if tag == 0x0A:
                queue = text
            elif len(ids) == items_max:
                raise InvalidMessage(f"it may hold {items_max} ids; send several")
            else:
                ids.append(text)
    except IndexError:
        raise InvalidMessage("it is cut short") from None
    return queue, ids


def check_count(data: bytes, fields_max: int) -> None:
    """Refuse a message of too many fields before anything is made of it."""
    if len(data) <= 2 * fields_max:
        return  # a field has two bytes at least
    every = Fields(fields_max)
    position = 0
    try:
        while position < len(data):
            position = every.skip(data, position)
    except IndexError:
        raise InvalidMessage("it is cut short") from None


def _values(data: bytes, wanted: tuple[int, ...], fields: Fields) -> Iterator[tuple[int, int, int]]:
    """Tag, begin and end of the fields with a length whose tags are wanted. An IndexError: it is
    cut short."""
    position = 0
    size = len(data)
    while position < size:
        tag = data[position]
        if tag in wanted:
            length = data[position + 1]
            start = position + 2
            if length >= 0x80:
                length, start = read_length(data, position + 1)
            position = start + length
            if position > size:
                break
            fields.count()
            yield tag, start, position
        else:
            position = fields.skip(data, position)
    if position > size:
        raise InvalidMessage("it is cut short")


def _item(data: bytes, position: int, end: int, fields: Fields) -> ItemWith:
    queue = payload = idempotency_key = fairness_key = b""
    delay_ms = weight = 0
    parts = [b""]
    throttle_keys: list[bytes] = []
    fits = True
    for met in range(ITEM_FIELDS_MAX):
        if position >= end:
            fields.left -= met
            break
        tag = data[position]
        if tag in _LISTED:
            length = data[position + 1]
            position += 2
            if length >= 0x80:
                length, position = read_length(data, position - 1)
            stop = position + length
            if stop > end:
                raise InvalidMessage("a field is longer than its message")
            if tag == 0x12:
                key, value, known = map_entry(data, position, stop, fields)
                if len(key) > TEXT_BYTES_MAX or len(value) > TEXT_BYTES_MAX:
                    fits = False
                elif known:
                    parts += (_U16.pack(len(key)), key, _U16.pack(len(value)), value)
            elif tag == 0x1A:
                payload = data[position:stop]
            else:
                text = data[position:stop]
                check_text(text)
                if tag == 0x0A:
                    queue = text
                elif tag == 0x2A:
                    idempotency_key = text
                elif tag == 0x32:
                    fairness_key = text
                elif len(throttle_keys) <= THROTTLE_KEYS_MAX:
                    throttle_keys.append(text)  # one more than there may be says enough
            position = stop
        elif tag == 0x20:
            delay_ms, position = read_varint(data, position + 1)
        elif tag == 0x38:
            weight, position = read_varint(data, position + 1)
            weight &= _U32_MAX
        else:
            position = fields.skip(data, position)
    else:
        raise InvalidMessage(TOO_MANY_FIELDS)
    if position > end:
        raise InvalidMessage("a field is longer than its message")
    count = len(parts) // 4
    if not fits or count > HEADERS_MAX:
        return queue, None
    parts[0] = _U16.pack(count)
    parts += (_U32.pack(len(payload)), payload)
    return queue, Options(
        b"".join(parts), delay_ms, idempotency_key, fairness_key, weight, tuple(throttle_keys)
    )
