"""Header fields: blocks in, as requests; blocks out, without a compression table.

Owns HPACK (the library lives here alone) and what a request's fields must be. Never touches frames.

A client repeats its fields with every call, as the same few bytes once they stand in the table.
Such a block is decoded once: as long as the table does not change, it means the same. That turns
the most expensive part of a call (20 to 100 µs) into a dict lookup.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from hpack import Decoder, HPACKError, OversizedHeaderListError

# The library logs every field it decodes, API keys among them.
logging.getLogger("hpack").setLevel(logging.WARNING)

_REMEMBERED_MAX: Final = 64
_SIZE_UPDATE: Final = 0x20  # the first bits of a block that resizes the table: 001
_PSEUDO: Final = frozenset((b":method", b":scheme", b":path", b":authority"))
_CONNECTION_FIELDS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)


class Request(NamedTuple):
    """The fields of a request that matter to a gRPC server."""

    method: bytes = b""
    path: bytes = b""
    content_type: bytes = b""
    timeout: bytes = b""
    encoding: bytes = b""
    authorization: bytes | None = None
    malformed: str = ""  # what is wrong with them as HTTP, if anything
    too_large: bool = False
    traceparent: bytes = b""
    content_length: int = -1  # of the body, if the client said so


class FieldsError(Exception):
    """A block after which the table is unknown: the connection cannot go on."""

    def __init__(self, message: str, flood: bool) -> None:
        super().__init__(message)
        self.flood = flood


class FieldsDecoder:
    """`bytes_max`: fields above it are refused, above four times as much the connection ends."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._decoder = Decoder(max_header_list_size=4 * bytes_max)
        self._remembered: dict[bytes, Request] = {}

    def decode(self, block: bytes) -> Request:
        """Raises FieldsError."""
        known = self._remembered.get(block)
        if known is not None:
            return known
        table = self._decoder.header_table.dynamic_entries
        before = (len(table), table[0] if table else None)
        try:
            fields = self._decoder.decode(block, raw=True)
        except OversizedHeaderListError as error:
            raise FieldsError("far too many header fields", flood=True) from error
        except (HPACKError, ValueError, IndexError) as error:
            raise FieldsError(f"header fields cannot be decoded: {error}", flood=False) from error
        request = _request(fields, self._bytes_max)
        table = self._decoder.header_table.dynamic_entries
        if before[0] != len(table) or (table and before[1] is not table[0]):
            self._remembered.clear()
        elif block and block[0] & 0xE0 != _SIZE_UPDATE:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[block] = request
        return request


def encode(fields: list[tuple[bytes, bytes]]) -> bytes:
    """A block of literal fields that leaves the peer's table alone, so it can be made once."""
    parts: list[bytes] = []
    for name, value in fields:
        parts += (b"\x00", _length(len(name)), name, _length(len(value)), value)
    return b"".join(parts)


def status_200(rest: list[tuple[bytes, bytes]]) -> bytes:
    return b"\x88" + encode(rest)  # entry 8 of the static table is ":status: 200"


def _length(value: int) -> bytes:
    """An HPACK integer with a seven-bit prefix, and no Huffman code."""
    if value < 127:
        return bytes((value,))
    out = bytearray((127,))
    value -= 127
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _request(fields: Iterable[tuple[bytes, bytes]], bytes_max: int) -> Request:
    found: dict[bytes, bytes] = {}
    malformed = ""
    pseudo = True
    size = 0
    authorizations = 0
    for name, value in fields:
        size += len(name) + len(value) + 32
        if name[:1] == b":":
            if not pseudo or name not in _PSEUDO or name in found:
                malformed = f"pseudo-header field {_shown(name)} is misplaced"
        else:
            pseudo = False
            if name != name.lower() or not name or name in _CONNECTION_FIELDS:
                malformed = f"header field {_shown(name)} is not allowed"
            if name == b"te" and value != b"trailers":
                malformed = "te may only be trailers"
            if name == b"authorization":
                authorizations += 1
            if name == b"content-length" and not _is_length(value, found.get(name)):
                malformed = "content-length is not one number"
        found[name] = value
    if not malformed and not (
        found.get(b":method") and found.get(b":path") and found.get(b":scheme")
    ):
        malformed = "a request needs :method, :scheme and :path"
    return Request(
        found.get(b":method", b""),
        found.get(b":path", b""),
        found.get(b"content-type", b""),
        found.get(b"grpc-timeout", b""),
        found.get(b"grpc-encoding", b""),
        # Two keys are none: which of them was meant?
        found.get(b"authorization") if authorizations == 1 else None,
        malformed,
        size > bytes_max,
        found.get(b"traceparent", b""),
        int(found[b"content-length"]) if b"content-length" in found and not malformed else -1,
    )


def _is_length(value: bytes, before: bytes | None) -> bool:
    """Said twice it has to be the same; beyond 18 digits there is no such body."""
    return value.isdigit() and len(value) <= 18 and before in (None, value)


def _shown(name: bytes) -> str:
    return ascii(name[:40].decode("latin-1"))
