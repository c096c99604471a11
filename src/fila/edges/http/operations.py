"""Operations of the table over HTTP: a JSON object to a record, a result to JSON.

Fields go by the names of the table (`wire/operations.py`), so an operation that is added there is
here, too. What has a default may be left out. Bytes are base64url without padding. What carries
messages on the hot path, and has codecs by hand, is not offered.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64encode
from typing import Any, Final

from fila.broker import operations as carried_out
from fila.edges.http.message import Body, HttpError, encode
from fila.edges.http.views import key_of
from fila.wire import layouts
from fila.wire.fields import LIST_ITEMS_MAX, STRINGS_MAX
from fila.wire.layouts import ListOf

SLICE_ITEMS: Final = 256  # of a list, encoded at a time
# By name, without those that are refused below.
OFFERED: Final[dict[str, Any]] = {
    row.name: kind
    for kind, row in layouts.OPERATIONS.items()
    if kind in carried_out.AT_ONCE or kind in carried_out.LATER
}
_LIMITS: Final = {
    "u8": (0, 0xFF),
    "u16": (0, 0xFFFF),
    "u32": (0, 0xFFFFFFFF),
    "u64": (0, (1 << 64) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
}
_STATUS_FIELDS: Final = ("code", "message")  # an answer has a status for these


def request_of(name: str, fields: dict[str, Any]) -> Any:
    """The record of a request."""
    kind = OFFERED.get(name)
    if kind is None:
        raise HttpError(404, "NotFound", f"no operation {name[:100]!r} over HTTP (spec/http.md)")
    return _record(kind, layouts.LAYOUTS[kind], fields, "")


async def answer_of(result: Any) -> Body:
    """The result as JSON, lists of it in slices with the loop's other work in between."""
    parts: list[bytes] = []
    for (name, kind), value in zip(layouts.LAYOUTS[type(result)].items(), result, strict=True):
        if name in _STATUS_FIELDS:
            continue
        parts.append((b"," if parts else b"{") + encode(name) + b":")
        if not isinstance(kind, ListOf):
            parts.append(encode(_plain(value)))
            continue
        layout = layouts.ITEM_LAYOUTS[kind.item]
        parts.append(b"[")
        for start in range(0, len(value), SLICE_ITEMS):
            some = [_shown(layout, item) for item in value[start : start + SLICE_ITEMS]]
            parts.append((b"," if start else b"") + encode(some)[1:-1])
            if len(some) == SLICE_ITEMS:
                await asyncio.sleep(0)
        parts.append(b"]")
    return (*parts, b"}") if parts else b"{}"


def _shown(layout: layouts.Layout, item: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in zip(layout, item, strict=True)}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).rstrip(b"=").decode()
    return value


def _record(kind: Any, layout: layouts.Layout, fields: Any, where: str) -> Any:
    if not isinstance(fields, dict):
        raise HttpError(400, "BadRequest", f"{where.rstrip('.')} is no JSON object")
    for name in fields:
        if name not in layout:
            known = ", ".join(layout) or "none"
            raise _wrong(f"{where}{name[:100]}", f"is no field of it; there are: {known}")
    values = []
    for name, spec in layout.items():
        if name in fields:
            values.append(_value(spec, fields[name], where + name))
        elif name in kind._field_defaults:
            values.append(kind._field_defaults[name])
        else:
            raise _wrong(where + name, "is missing")
    return kind(*values)


def _value(spec: Any, given: Any, field: str) -> Any:
    if isinstance(spec, ListOf):
        layout = layouts.ITEM_LAYOUTS[spec.item]
        items = _list(given, field, LIST_ITEMS_MAX)
        return tuple(
            [_record(spec.item, layout, one, f"{field}[{at}].") for at, one in enumerate(items)]
        )
    if spec.startswith("optional "):
        return None if given is None else _value(spec.removeprefix("optional "), given, field)
    if spec == "string?":
        return None if given is None else _text(given, field)
    if spec == "string":
        return _text(given, field)
    if spec == "string[]":
        items = _list(given, field, STRINGS_MAX)
        return tuple([_text(one, f"{field}[{at}]") for at, one in enumerate(items)])
    if spec == "bool":
        if not isinstance(given, bool):
            raise _wrong(field, "is true or false")
        return given
    if spec == "map":
        if not isinstance(given, dict) or len(given) > STRINGS_MAX:
            raise _wrong(field, f"is an object of at most {STRINGS_MAX} texts")
        return {name: _text(one, f"{field}.{name[:100]}") for name, one in given.items()}
    if spec == "bytes":
        return key_of(_text(given, field))
    low, high = _LIMITS[spec]
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise _wrong(field, f"is a whole number from {low} to {high}")
    return given


def _text(given: Any, field: str) -> str:
    if not isinstance(given, str):
        raise _wrong(field, "is text")
    return given


def _list(given: Any, field: str, most: int) -> list[Any]:
    if not isinstance(given, list) or len(given) > most:
        raise _wrong(field, f"is a list of at most {most}")
    return given


def _wrong(field: str, what: str) -> HttpError:
    return HttpError(400, "BadRequest", f"{json.dumps(field)[1:-1]} {what}")
