"""FIBP's types, one field at a time, with an error that names the field.

Owns reading and writing of u8 … f64, bool, string, bytes, map and lists. Used where clarity counts
more than speed; `message_codec` has its own walk over the same bytes. Never touches frames or
sockets.
"""

from struct import Struct
from typing import Final

from fila.wire.errors import InvalidBody, UnencodableField

STRING_BYTES_MAX: Final = 0xFFFF
LIST_ITEMS_MAX: Final = 0xFFFF
STRINGS_MAX: Final = 4_096  # strings in one list: a request must not be long to read
BYTES_MAX: Final = 0xFFFFFFFF

_U8: Final = Struct(">B")
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_I64: Final = Struct(">q")
_F64: Final = Struct(">d")


class FieldReader:
    """Walks one body from its first byte, or from `position`; every read says which field it is
    for."""

    def __init__(self, body: bytes, position: int = 0) -> None:
        self._body = body
        self._position = position

    @property
    def remaining(self) -> int:
        return len(self._body) - self._position

    def u8(self, field: str) -> int:
        return self._body[self._advance(1, field)]

    def u16(self, field: str) -> int:
        value: int = _U16.unpack_from(self._body, self._advance(2, field))[0]
        return value

    def u32(self, field: str) -> int:
        value: int = _U32.unpack_from(self._body, self._advance(4, field))[0]
        return value

    def u64(self, field: str) -> int:
        value: int = _U64.unpack_from(self._body, self._advance(8, field))[0]
        return value

    def i64(self, field: str) -> int:
        value: int = _I64.unpack_from(self._body, self._advance(8, field))[0]
        return value

    def f64(self, field: str) -> float:
        value: float = _F64.unpack_from(self._body, self._advance(8, field))[0]
        return value

    def boolean(self, field: str) -> bool:
        value = self.u8(field)
        if value > 1:
            raise InvalidBody(f"{field}: a bool is 0 or 1, not {value}")
        return value == 1

    def string(self, field: str) -> str:
        raw = self._take(self.u16(field), field)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidBody(f"{field}: not valid UTF-8 at byte {error.start}") from None

    def blob(self, field: str) -> bytes:
        return self._take(self.u32(field), field)

    def optional_string(self, field: str) -> str | None:
        present = self.u8(field)
        if present > 1:
            raise InvalidBody(f"{field}: the presence byte is 0 or 1, not {present}")
        return self.string(field) if present else None

    def strings(self, field: str) -> tuple[str, ...]:
        count = self.count(self.u16(field), 2, field)
        if count > STRINGS_MAX:
            raise InvalidBody(f"{field}: {count} items; one request holds at most {STRINGS_MAX}")
        return tuple([self.string(f"{field}[{index}]") for index in range(count)])

    def string_map(self, field: str) -> dict[str, str]:
        count = self.count(self.u16(field), 4, field)
        entries: dict[str, str] = {}
        for index in range(count):
            key = self.string(f"{field}[{index}] key")
            entries[key] = self.string(f"{field}[{index}] value")
        return entries

    def count(self, claimed: int, item_bytes_min: int, field: str) -> int:
        """A claimed number of items, once it is clear that the body could hold them."""
        if claimed * item_bytes_min > self.remaining:
            raise InvalidBody(
                f"{field}: {claimed} items cannot fit in the {self.remaining} bytes that are left"
            )
        return claimed

    def _take(self, size: int, field: str) -> bytes:
        start = self._advance(size, field)
        return self._body[start : start + size]

    def _advance(self, size: int, field: str) -> int:
        start = self._position
        if start + size > len(self._body):
            raise InvalidBody(
                f"{field}: needs {size} bytes at offset {start}, the body ends at {len(self._body)}"
            )
        self._position = start + size
        return start


def u8_field(value: int, field: str) -> bytes:
    return _U8.pack(_in_range(value, 0, 0xFF, field))


def u16_field(value: int, field: str) -> bytes:
    return _U16.pack(_in_range(value, 0, 0xFFFF, field))


def u32_field(value: int, field: str) -> bytes:
    return _U32.pack(_in_range(value, 0, 0xFFFFFFFF, field))


def u64_field(value: int, field: str) -> bytes:
    return _U64.pack(_in_range(value, 0, 0xFFFFFFFFFFFFFFFF, field))


def i64_field(value: int, field: str) -> bytes:
    return _I64.pack(_in_range(value, -(1 << 63), (1 << 63) - 1, field))


def f64_field(value: float, field: str) -> bytes:
    try:
        return _F64.pack(value)
    except Exception as error:
        raise UnencodableField(f"{field}: {value!r} is not a 64-bit float ({error})") from None


def boolean_field(value: bool, field: str) -> bytes:
    return b"\x01" if value else b"\x00"


def string_field(value: str | bytes, field: str) -> bytes:
    """A string with its length. Bytes are taken as UTF-8 already."""
    if isinstance(value, str):
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            raise UnencodableField(
                f"{field}: character {error.start} cannot be written as UTF-8"
            ) from None
    else:
        raw = value
    if len(raw) > STRING_BYTES_MAX:
        raise UnencodableField(
            f"{field}: {len(raw)} bytes is too long; a string holds at most {STRING_BYTES_MAX}"
        )
    return _U16.pack(len(raw)) + raw


def blob_field(value: bytes, field: str) -> bytes:
    if len(value) > BYTES_MAX:
        raise UnencodableField(
            f"{field}: {len(value)} bytes is too long; a byte field holds at most {BYTES_MAX}"
        )
    return _U32.pack(len(value)) + value


def optional_string_field(value: str | None, field: str) -> bytes:
    return b"\x00" if value is None else b"\x01" + string_field(value, field)


def strings_field(values: tuple[str, ...] | list[str], field: str) -> bytes:
    if len(values) > STRINGS_MAX:
        raise UnencodableField(f"{field}: {len(values)} items; the most are {STRINGS_MAX}")
    parts = [count_u16(len(values), field)]
    parts += [string_field(value, f"{field}[{index}]") for index, value in enumerate(values)]
    return b"".join(parts)


def string_map_field(entries: dict[str, str], field: str) -> bytes:
    parts = [count_u16(len(entries), field)]
    for key, value in entries.items():
        parts.append(string_field(key, f"{field} key {key[:40]!r}"))
        parts.append(string_field(value, f"{field} value of {key[:40]!r}"))
    return b"".join(parts)


def count_u16(items: int, field: str) -> bytes:
    if items > LIST_ITEMS_MAX:
        raise UnencodableField(
            f"{field}: {items} items are too many; one body holds at most {LIST_ITEMS_MAX}"
        )
    return _U16.pack(items)


def _in_range(value: int, low: int, high: int, field: str) -> int:
    if not isinstance(value, int) or not low <= value <= high:
        raise UnencodableField(f"{field}: {value!r} is not a whole number from {low} to {high}")
    return value
