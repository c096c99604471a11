"""W3C trace context: `traceparent`, and where it stands among a message's headers.

Headers are walked only for messages of a batch that is traced; the hot path never decodes them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FORM: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NAME: Final = b"traceparent"
_HEADERS_MAX: Final = 64  # looked at per message


class TraceContext(NamedTuple):
    trace_id: int
    span_id: int
    sampled: bool


def parse(value: bytes) -> TraceContext | None:
    """None for anything that is not a valid traceparent."""
    found = _FORM.fullmatch(value)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == b"ff" or (version == b"00" and rest):
        return None
    trace_id, span_id = int(trace, 16), int(span, 16)
    if not trace_id or not span_id:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def of_body(body: bytes) -> TraceContext | None:
    """The context a message carries: u16 count, then name and value as strings of u16 length."""
    headers = int.from_bytes(body[:2], "big")
    at = 2
    for _ in range(min(headers, _HEADERS_MAX)):
        name, at = _string(body, at)
        value, at = _string(body, at)
        if name.lower() == _NAME:
            return parse(value)
        if at > len(body):
            return None
    return None


def _string(body: bytes, at: int) -> tuple[bytes, int]:
    end = at + 2 + int.from_bytes(body[at : at + 2], "big")
    return body[at + 2 : end], end
