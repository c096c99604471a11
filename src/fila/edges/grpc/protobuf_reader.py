"""Protobuf read by hand: varints, lengths, fields that are passed over, map entries, and how many
of them one request may hold.

A field is two bytes at least, so a request of a few megabytes may hold millions. What is read here
is counted, and one that holds far too many is refused while it is read.
"""

from __future__ import annotations

from typing import Final

HEADERS_MAX: Final = 65_535
TEXT_BYTES_MAX: Final = 65_535
FIELDS_MAX: Final = 2_097_152  # of a request and its items, together
ITEM_FIELDS_MAX: Final = 2 * HEADERS_MAX
ENTRY_FIELDS_MAX: Final = 16  # of one header
TOO_MANY_FIELDS: Final = "it holds far too many fields"
_TAG_MAX: Final = (1 << 32) - 1
_LENGTH_MAX: Final = (1 << 31) - 1


class InvalidMessage(ValueError):  # noqa: N818  the wire's word for it
    """Bytes that are not the protobuf message they should be."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift >= 70:
            raise InvalidMessage("a number is longer than ten bytes")


def read_length(data: bytes, position: int) -> tuple[int, int]:
    """How long a field is: at most five bytes and 31 bits, as protobuf has it."""
    length, end = read_varint(data, position)
    if end - position > 5 or length > _LENGTH_MAX:
        raise InvalidMessage("a field is longer than 2 GiB")
    return length, end


class Fields:
    """How many fields a request may hold altogether, those nobody knows included."""

    __slots__ = ("left",)

    def __init__(self, fields_max: int = FIELDS_MAX) -> None:
        self.left = fields_max

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise InvalidMessage(TOO_MANY_FIELDS)

    def skip(self, data: bytes, position: int) -> int:
        """Past a field that is not known here.

        A tag is at most 32 bits. One that is written with more bytes than it needs might be a field
        that we do know: it is refused, since skipping it would lose what the client meant.
        """
        self.count()
        start = position
        tag, position = read_varint(data, position)
        kind = tag & 7
        if tag > _TAG_MAX or position - start > 5:
            raise InvalidMessage("a field's number is too large")
        if position - start > 1 and data[position - 1] == 0:
            raise InvalidMessage("a field's number is longer than it needs to be")
        if tag >> 3 == 0:
            raise InvalidMessage("a field has no number")
        if kind == 0:
            return read_varint(data, position)[1]
        if kind == 1:
            return position + 8
        if kind == 2:
            length, position = read_length(data, position)
            return position + length
        if kind == 5:
            return position + 4
        raise InvalidMessage("a field has a kind that is not in use")


def check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise InvalidMessage("a string is not UTF-8") from None


def map_entry(data: bytes, position: int, end: int, fields: Fields) -> tuple[bytes, bytes, bool]:
    """A header's name and value; False where it holds anything else, which makes it no header."""
    key = value = b""
    known = True
    plain = data[position:end].isascii()
    for _ in range(ENTRY_FIELDS_MAX):
        if position >= end:
            break
        tag = data[position]
        if tag == 0x0A or tag == 0x12:
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
                key = text
            else:
                value = text
            position = stop
        else:
            known = False
            position = fields.skip(data, position)
    else:
        raise InvalidMessage(TOO_MANY_FIELDS)
    if position > end:
        raise InvalidMessage("a field is longer than its message")
    return key, value, known
