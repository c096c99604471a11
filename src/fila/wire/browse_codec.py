"""The messages of a browsed page, written for speed: a tuple per message, never an object.

Owns the fast walk over the encoded messages of a BrowsePageResult; the fields around them are
`layouts`'. Never touches frames or sockets.
"""

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final

from fila.wire.errors import InvalidBody
from fila.wire.ids import id_text
from fila.wire.message_codec import check_headers

_U32: Final = Struct(">I")
_BROWSED: Final = Struct(">IQQB")
_ID_LENGTH: Final = b"\x00\x24"

# (id, message body, lane_field, attempts, enqueued_at_ms, ready_at_ms, state)
BrowsedItem = tuple[bytes, bytes, bytes, int, int, int, int]

# (id text, queue, message body, fairness key, weight, throttle keys, attempts, enqueued_at_ms,
#  ready_at_ms, state), as a client receives it
SeenItem = tuple[bytes, bytes, bytes, bytes, int, tuple[bytes, ...], int, int, int, int]


def encode_browsed(queue: bytes, items: Sequence[BrowsedItem]) -> bytes:
    """The messages of a page; `queue` is a `message_codec.queue_field`."""
    parts = [_U32.pack(len(items))]
    pack = _BROWSED.pack
    for id16, body, lane, attempts, enqueued_at_ms, ready_at_ms, state in items:
        parts += (
            _ID_LENGTH,
            id_text(id16),
            queue,
            body,
            lane,
            pack(attempts, enqueued_at_ms, ready_at_ms, state),
        )
    return b"".join(parts)


def decode_browsed(body: bytes) -> list[SeenItem]:
    """The messages of a page, their bodies untouched. Raises InvalidBody."""
    items: list[SeenItem] = []
    size = len(body)
    try:
        (count,) = _U32.unpack_from(body, 0)
        position = 4
        for _ in range(count):
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
            check_headers(body, start, fields)
            position += 4 + _U32.unpack_from(body, position)[0]
            message = body[start:position]
            start = position + 2
            position = start + (body[position] << 8 | body[position + 1])
            fairness_key = body[start:position]
            (weight,) = _U32.unpack_from(body, position)
            throttles = body[position + 4] << 8 | body[position + 5]
            position += 6
            keys: list[bytes] = []
            for _ in range(throttles):
                start = position + 2
                position = start + (body[position] << 8 | body[position + 1])
                keys.append(body[start:position])
            attempts, enqueued_at_ms, ready_at_ms, state = _BROWSED.unpack_from(body, position)
            position += 21
            for text in (message_id, queue, fairness_key, *keys):
                text.decode()
            items.append(
                (
                    message_id,
                    queue,
                    message,
                    fairness_key,
                    weight,
                    tuple(keys),
                    attempts,
                    enqueued_at_ms,
                    ready_at_ms,
                    state,
                )
            )
    except (IndexError, struct.error, UnicodeDecodeError):
        raise InvalidBody(f"body: message {len(items)} of a page does not parse") from None
    if position > size:
        raise InvalidBody("body: the last message of a page is cut short")
    return items
