"""Enqueue, Ack, Nack and ConsumeResponse in protobuf's bytes, written by hand.

Owns the translation between protobuf and what the broker stores (`wire.message`: headers and
payload as one slice) without an object per message in between. It is as fast as the generated
classes and, unlike them, stops at a limit before a hostile request has become a hundred times
larger in memory. Everything else uses the generated classes (`v1`). Never touches sockets or
sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from fila.core.effect import Delivery
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, ID_AT, KEY, WEIGHT
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
from fila.wire.ids import id_text

LABELS_MAX: Final = 4_096
_NS: Final = 1_000_000_000

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_PREFIX: Final = Struct(">BI")
PREFIX_BYTES: Final = _PREFIX.size
_SMALL: Final = [bytes((value,)) for value in range(128)]

# (queue, message body); no body: the message cannot be stored, its headers are too long.
EnqueueItem = tuple[bytes, bytes | None]
# (queue, id text, error)
SettleItem = tuple[bytes, bytes, bytes]
# (code, text) of what went wrong with an item
Fault = tuple[int, str]


def message_prefix(size: int) -> bytes:
    """What stands before every gRPC message: not compressed, so long."""
    return _PREFIX.pack(0, size)


# --- requests


def decode_enqueue(
    data: bytes, items_max: int, fields: Fields | None = None
) -> tuple[list[EnqueueItem], int]:
    """The messages and the number of an EnqueueRequest or StreamEnqueueRequest. `fields` counts
    those of several parts of one request."""
    items: list[EnqueueItem] = []
    fields = fields or Fields()
    number = 0
    position = 0
    size = len(data)
    try:
        while position < size:
            tag = data[position]
            if tag == 0x0A:
                length = data[position + 1]
                position += 2
                if length >= 0x80:
                    length, position = read_length(data, position - 1)
                end = position + length
                if end > size:
                    raise InvalidMessage("it is cut short")
                if len(items) == items_max:
                    raise InvalidMessage(f"it may hold {items_max} messages; send several")
                if fields.left < 0:
                    raise InvalidMessage(TOO_MANY_FIELDS)
                items.append(_enqueue_item(data, position, end, fields))
                position = end
            elif tag == 0x10:
                number, position = read_varint(data, position + 1)
                fields.count()
            else:
                position = fields.skip(data, position)
    except IndexError:
        raise InvalidMessage("it is cut short") from None
    if position > size:
        raise InvalidMessage("it is cut short")
    return items, number


def decode_settlements(
    data: bytes, items_max: int, fields: Fields | None = None
) -> list[SettleItem]:
    """The items of an AckRequest or a NackRequest."""
    items: list[SettleItem] = []
    fields = fields or Fields()
    position = 0
    size = len(data)
    try:
        while position < size:
            if data[position] == 0x0A:
                length = data[position + 1]
                position += 2
                if length >= 0x80:
                    length, position = read_length(data, position - 1)
                end = position + length
                if end > size:
                    raise InvalidMessage("it is cut short")
                if len(items) == items_max:
                    raise InvalidMessage(f"it may hold {items_max} messages; send several")
                if fields.left < 0:
                    raise InvalidMessage(TOO_MANY_FIELDS)
                items.append(_settle_item(data, position, end, fields))
                position = end
            else:
                position = fields.skip(data, position)
    except IndexError:
        raise InvalidMessage("it is cut short") from None
    if position > size:
        raise InvalidMessage("it is cut short")
    return items


def read_enqueue_item(data: bytes) -> EnqueueItem:
    """One EnqueueMessage that is all there is."""
    try:
        return _enqueue_item(data, 0, len(data), Fields())
    except IndexError:
        raise InvalidMessage("it is cut short") from None


def read_settle_item(data: bytes) -> SettleItem:
    """One AckMessage or NackMessage that is all there is."""
    try:
        return _settle_item(data, 0, len(data), Fields())
    except IndexError:
        raise InvalidMessage("it is cut short") from None


def _enqueue_item(data: bytes, position: int, end: int, fields: Fields) -> EnqueueItem:
    queue = payload = b""
    parts = [b""]
    fits = True
    for met in range(ITEM_FIELDS_MAX):
        if position >= end:
            fields.left -= met
            break
        tag = data[position]
        if tag == 0x0A or tag == 0x12 or tag == 0x1A:
            length = data[position + 1]
            position += 2
            if length >= 0x80:
                length, position = read_length(data, position - 1)
            stop = position + length
            if stop > end:
                raise InvalidMessage("a field is longer than its message")
            if tag == 0x1A:
                payload = data[position:stop]
            elif tag == 0x12:
                key, value, known = map_entry(data, position, stop, fields)
                if len(key) > TEXT_BYTES_MAX or len(value) > TEXT_BYTES_MAX:
                    fits = False
                elif known:
                    parts += (_U16.pack(len(key)), key, _U16.pack(len(value)), value)
            else:
                queue = data[position:stop]
                if not queue.isascii():
                    check_text(queue)
            position = stop
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
    return queue, b"".join(parts)


def _settle_item(data: bytes, position: int, end: int, fields: Fields) -> SettleItem:
    queue = id = error = b""
    plain = data[position:end].isascii()
    for met in range(ITEM_FIELDS_MAX):
        if position >= end:
            fields.left -= met
            break
        tag = data[position]
        if tag == 0x0A or tag == 0x12 or tag == 0x1A:
            length = data[position + 1]
            position += 2
            if length >= 0x80:
                length, position = read_length(data, position - 1)
            stop = position + length
            if stop > end:
                raise InvalidMessage("a field is longer than its message")
            text = data[position:stop]
            if not plain:
                check_text(text)
            if tag == 0x0A:
                queue = text
            elif tag == 0x12:
                id = text
            else:
                error = text
            position = stop
        else:
            position = fields.skip(data, position)
    else:
        raise InvalidMessage(TOO_MANY_FIELDS)
    if position > end:
        raise InvalidMessage("a field is longer than its message")
    return queue, id, error


# --- responses


def encode_enqueued(results: Sequence[bytes | Fault], number: int | None) -> bytes:
    """An EnqueueResponse, or with a number a StreamEnqueueResponse; ids are the 16-byte form."""
    if number is None:
        parts, tag = [], b"\x0a"
    else:
        parts, tag = [b"\x08", varint(number)] if number else [], b"\x12"
    stored = tag + b"\x26\x0a\x24"  # a result of 38 bytes: an id of 36
    for result in results:
        if isinstance(result, bytes):
            parts += (stored, id_text(result))
        else:
            parts += (tag, _fault(result))
    return b"".join(parts)


def encode_settled(faults: Sequence[Fault | None]) -> bytes:
    """An AckResponse or NackResponse."""
    done = b"\x0a\x02\x0a\x00"
    return b"".join([done if fault is None else b"\x0a" + _fault(fault) for fault in faults])


def _fault(fault: Fault) -> bytes:
    """A result that holds an error, with its length."""
    code, text = fault
    words = text.encode()
    error = (b"\x08" + varint(code) if code else b"") + b"\x12" + varint(len(words)) + words
    result = b"\x12" + varint(len(error)) + error
    return varint(len(result)) + result


class DeliveryEncoder:
    """ConsumeResponses for one consumer of one queue."""

    def __init__(self, queue: str) -> None:
        name = queue.encode()
        self._queue = b"\x2a" + varint(len(name)) + name
        # What is said of a lane, by key, weight and throttle keys: the same for all its messages.
        self._labels: dict[tuple[bytes, int, tuple[bytes, ...]], tuple[bytes, bytes]] = {}

    def encode(self, delivery: Delivery, one_each: bool = False) -> bytes:
        """A response with all messages, or one for each; with the gRPC prefix in front."""
        parts = [b""]
        total = 0
        leased = _timestamp(b"\x12", delivery.leased_ns)
        enqueued_before = -1
        times = b""
        for entry, lane in zip(delivery.entries, delivery.lanes, strict=True):
            label = (lane.key.name, entry[WEIGHT], lane.throttle_keys)
            known = self._labels.get(label)
            first, metadata = known if known is not None else self._label(label)
            attempts = entry[ATTEMPTS]
            if attempts:
                failed = first + b"\x20" + varint(attempts) + self._queue
                metadata = b"\x22" + varint(len(failed)) + failed
            enqueued_ns = entry[ENQUEUED_NS]
            if enqueued_ns != enqueued_before:
                enqueued_before = enqueued_ns
                both = _timestamp(b"\x0a", enqueued_ns) + leased
                times = b"\x2a" + _SMALL[len(both)] + both
            body = entry[BODY]
            headers, start = _headers(body)
            payload = body[start:]
            size = varint(len(payload))
            length = 39 + len(headers) + len(size) + len(payload) + len(metadata) + len(times)
            head = b"\x0a" + varint(length) + b"\x0a\x24"
            if one_each:
                head = _PREFIX.pack(0, len(head) - 2 + length) + head
            parts += (
                head,
                id_text(entry[KEY][ID_AT:]),
                headers,
                b"\x1a" + size,
                payload,
                metadata,
                times,
            )
            total += len(head) - 2 + length
        if not one_each:
            parts[0] = _PREFIX.pack(0, total)
        return b"".join(parts)

    def _label(self, label: tuple[bytes, int, tuple[bytes, ...]]) -> tuple[bytes, bytes]:
        """Metadata without attempts and queue, and the whole field when nothing failed yet."""
        key, weight, throttle_keys = label
        parts = [b"\x0a", varint(len(key)), key, b"\x10", varint(weight)]
        for name in throttle_keys:
            parts += (b"\x1a", varint(len(name)), name)
        first = b"".join(parts)
        whole = first + self._queue
        if len(self._labels) >= LABELS_MAX:
            self._labels.clear()
        made = first, b"\x22" + varint(len(whole)) + whole
        self._labels[label] = made
        return made


def varint(value: int) -> bytes:
    if value < 0x80:
        return _SMALL[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _headers(body: bytes) -> tuple[bytes, int]:
    """A stored body's headers as map entries, and where its payload begins."""
    count = body[0] << 8 | body[1]
    if count == 0:
        return b"", 6
    parts: list[bytes] = []
    position = 2
    for _ in range(count):
        start = position + 2
        position = start + (body[position] << 8 | body[position + 1])
        key = body[start:position]
        start = position + 2
        position = start + (body[position] << 8 | body[position + 1])
        value = body[start:position]
        key_size = varint(len(key))
        value_size = varint(len(value))
        length = 2 + len(key_size) + len(key) + len(value_size) + len(value)
        parts += (b"\x12", varint(length), b"\x0a", key_size, key, b"\x12", value_size, value)
    return b"".join(parts), position + 4


def _timestamp(tag: bytes, ns: int) -> bytes:
    nanos = ns % _NS
    moment = b"\x08" + varint(ns // _NS) + (b"\x10" + varint(nanos) if nanos else b"")
    return tag + _SMALL[len(moment)] + moment
