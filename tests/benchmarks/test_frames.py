"""The raw load's frames: what it acknowledges is what it was given."""

from __future__ import annotations

import struct

import pytest
from bench.system.frames import ACKS_PER_FRAME, RawError, acks_of

from fila.wire import message_codec
from fila.wire import opcodes as op
from fila.wire.fields import string_field
from fila.wire.frames import FrameDecoder


def delivery(queue: bytes, ids: list[bytes], payload: bytes = b"x") -> bytearray:
    """As far as `acks_of` looks: id, queue, and the rest of each message."""
    items = [string_field(id.decode(), "id") + queue + payload for id in ids]
    return bytearray(struct.pack(">I", len(items)) + b"".join(items))


def test_every_message_of_a_delivery_is_acknowledged_once_and_in_order() -> None:
    ids = [b"%036d" % number for number in range(ACKS_PER_FRAME * 2 + 7)]
    queue = string_field("orders", "queue")
    body = delivery(queue, ids)
    data, frames, _ = acks_of(body, 0, len(body), queue)
    found = list(FrameDecoder().feed(data))
    assert [opcode for opcode, _, _ in found] == [op.ACK] * frames
    acked = [item for _, _, one in found for item in message_codec.decode_acks(bytes(one))]
    assert [id for _, id in acked] == ids
    assert {name for name, _ in acked} == {b"orders"}


def test_messages_of_different_lengths_are_refused_rather_than_misread() -> None:
    queue = string_field("orders", "queue")
    body = delivery(queue, [b"%036d" % 1], b"x" * 10)
    body += delivery(queue, [b"%036d" % 2], b"y" * 11)[4:]
    body[:4] = struct.pack(">I", 2)
    with pytest.raises(RawError, match="not of one length"):
        acks_of(body, 0, len(body), queue)
