"""An SQS message as Fila keeps it, and back: text, attributes, and the digests SDKs check.

    body                  the payload, UTF-8
    an attribute          a header of its name; its value as text, base64 where it is binary
    sqs.type.<name>       its data type, unless that is String
    sqs.group             the MessageGroupId, which is also the fairness key
    sqs.trace             the AWSTraceHeader

A message that no SQS client sent has headers, too: they are told as attributes of type String. A
payload that is no text SQS knows is told in base64, with the attribute `fila.encoding`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping
from hashlib import md5
from struct import Struct
from typing import Any, Final, NamedTuple

from fila.core import obituary
from fila.edges.sqs.faults import SqsError, invalid
from fila.wire.fields import STRING_BYTES_MAX
from fila.wire.message import decode_headers, message_body, payload_of

ATTRIBUTES_MAX: Final = 10
NAME_CHARS_MAX: Final = 256
GROUP: Final = "sqs.group"
TRACE: Final = "sqs.trace"
TYPE: Final = "sqs.type."
ENCODING: Final = "fila.encoding"
TRACE_NAME: Final = "AWSTraceHeader"
_OWN: Final = ("sqs.", obituary.PREFIX.decode())
_NAME: Final = re.compile(
    r"(?!(?i:aws\.|amazon\.|sqs\.|fila\.dead\.))[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
)
_TYPE: Final = re.compile(r"(String|Number|Binary)(\.[^\s]{1,})?")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_GROUP: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LENGTH: Final = Struct(">I")

Attributes = Mapping[str, Any]


class Sent(NamedTuple):
    """A message that may be stored, and what its sender is told of it."""

    body: bytes  # headers and payload, as Fila keeps them
    size: int  # as SQS counts: text, names, types and values
    group: str
    digests: dict[str, str]


class Kept(NamedTuple):
    """A stored message as SQS tells it."""

    text: str
    attributes: dict[str, dict[str, str]]
    headers: dict[str, str]


def sent(fields: Mapping[str, Any]) -> Sent:
    """What one send asks to store. Raises SqsError."""
    text = fields.get("MessageBody")
    if text is None:
        raise SqsError("MissingParameter", "the parameter MessageBody is missing")
    if not isinstance(text, str) or not text:
        raise invalid("MessageBody", "it has to be text of one character at least")
    payload = _encoded(text, "MessageBody")
    digests = {"MD5OfMessageBody": md5(payload, usedforsecurity=False).hexdigest()}
    headers: dict[str, str] = {}
    size = len(payload)
    attributes = _mapping(fields, "MessageAttributes")
    if attributes:
        size += _keep(attributes, headers)
        digests["MD5OfMessageAttributes"] = digest_of(attributes)
    system = _mapping(fields, "MessageSystemAttributes")
    if system:
        headers[TRACE] = _trace(system)
        digests["MD5OfMessageSystemAttributes"] = digest_of(system)
    group = fields.get("MessageGroupId") or ""
    if group:
        if not isinstance(group, str) or not _GROUP.fullmatch(group):
            raise invalid("MessageGroupId", "use 1 to 128 letters, digits and punctuation of ASCII")
        headers[GROUP] = group
    return Sent(message_body(headers, payload), size, group, digests)


def kept(body: bytes) -> Kept:
    headers = decode_headers(body)
    attributes = {}
    for name, value in headers.items():
        if name.startswith(_OWN):
            continue
        kind = headers.get(TYPE + name, "String")
        field = "BinaryValue" if kind.startswith("Binary") else "StringValue"
        attributes[name] = {field: value, "DataType": kind}
    payload = payload_of(body)
    try:
        text = payload.decode()
        if not _FORBIDDEN.search(text):
            return Kept(text, attributes, headers)
    except UnicodeDecodeError:
        pass
    attributes[ENCODING] = {"StringValue": "base64", "DataType": "String"}
    return Kept(b64encode(payload).decode(), attributes, headers)


def digest_of(attributes: Attributes) -> str:
    """MD5 of message attributes, as SDKs compute it: by name, every part with its length."""
    found = md5(usedforsecurity=False)
    for name in sorted(attributes):
        one = attributes[name]
        kind = one["DataType"]
        if kind.startswith("Binary"):
            value, marker = _binary(name, one.get("BinaryValue")), b"\x02"
        else:
            value, marker = one["StringValue"].encode(), b"\x01"
        for part in (name.encode(), kind.encode()):
            found.update(_LENGTH.pack(len(part)) + part)
        found.update(marker + _LENGTH.pack(len(value)) + value)
    return found.hexdigest()


def _keep(attributes: Attributes, headers: dict[str, str]) -> int:
    """Put attributes among the headers; their size."""
    if len(attributes) > ATTRIBUTES_MAX:
        raise invalid("MessageAttributes", f"a message may have {ATTRIBUTES_MAX}")
    size = 0
    for name, one in attributes.items():
        if len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
            raise invalid("MessageAttributes", f'"{name[:100]}" cannot be the name of an attribute')
        kind = one.get("DataType") if isinstance(one, dict) else None
        if not isinstance(kind, str) or len(kind) > NAME_CHARS_MAX or not _TYPE.fullmatch(kind):
            raise invalid(name, "its DataType begins with String, Number or Binary")
        if kind.startswith("Binary"):
            raw = _binary(name, one.get("BinaryValue"))
            value = b64encode(raw).decode()
            size += len(raw)
        else:
            value = one.get("StringValue")
            if not isinstance(value, str) or not value:
                raise invalid(name, "its StringValue is missing, or empty")
            size += len(_encoded(value, name))
            if kind.startswith("Number") and not _NUMBER.fullmatch(value):
                raise invalid(name, f'"{value[:100]}" is no number')
        if len(value.encode()) > STRING_BYTES_MAX:
            raise invalid(name, f"its value is longer than {STRING_BYTES_MAX} bytes")
        headers[name] = value
        if kind != "String":
            headers[TYPE + name] = kind
        size += len(name) + len(_encoded(kind, name))
    return size


def _trace(system: Attributes) -> str:
    one = system.get(TRACE_NAME)
    if len(system) > 1 or not isinstance(one, dict) or one.get("DataType") != "String":
        raise invalid("MessageSystemAttributes", f"there is {TRACE_NAME}, a String")
    value = one.get("StringValue")
    if not isinstance(value, str) or not 0 < len(_encoded(value, TRACE_NAME)) <= STRING_BYTES_MAX:
        raise invalid(TRACE_NAME, f"its value has 1 to {STRING_BYTES_MAX} bytes")
    return value


def _mapping(fields: Mapping[str, Any], name: str) -> Attributes:
    found = fields.get(name) or {}
    if not isinstance(found, dict):
        raise invalid(name, "it is no map")
    return found


def _binary(name: str, value: object) -> bytes:
    if not isinstance(value, str) or not value:
        raise invalid(name, "its BinaryValue is missing, or empty")
    try:
        return b64decode(value, validate=True)
    except (BadBase64, ValueError):
        raise invalid(name, "its BinaryValue is no base64") from None


def _encoded(text: str, name: str) -> bytes:
    found = _FORBIDDEN.search(text)
    if found is not None:
        raise SqsError(
            "InvalidMessageContents",
            f"{name}: the character U+{ord(found[0]):04X} at {found.start()} is none that XML and "
            "SQS allow",
        )
    return text.encode()
