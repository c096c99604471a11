"""The golden vectors, put to an adapter's codecs.

Owns how each kind of vector becomes requests and how answers are compared. The reference for
meaning is the vector; maps are compared without order.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fila.wire import bodies, layouts
from fila.wire.errors import InvalidBody
from fila.wire.frames import FrameDecoder
from harness.places import VECTORS

Json = dict[str, Any]
Ask = Callable[[str, Json], Awaitable[Json]]  # (op, fields) to the whole response


async def run(kind: str, files: list[str], ask: Ask) -> list[str]:
    """What is wrong, one line per vector and direction."""
    check = {
        "messages": _message,
        "malformed": _malformed,
        "streams": _stream,
        "states": _state,
    }[kind]
    faults: list[str] = []
    for name in files:
        document = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
        for vector in document.get("vectors") or document["rows"]:
            faults += [f"{name}: {fault}" for fault in await check(vector, ask)]
    return faults


async def _message(vector: Json, ask: Ask) -> list[str]:
    faults = []
    name = vector["name"]
    raw = written_out(vector["bytes"])
    operation = vector["operation"]
    meaning = _plain(operation, vector["body"])
    answer = await ask("decode", {"bytes": raw.hex()})
    expected = {
        "operation": operation,
        "opcode": vector["opcode"],
        "request_id": vector["request_id"],
    }
    decoded = answer.get("ok", {})
    if "error" in answer:
        faults.append(f"decode {name!r}: {answer['error']}")
    elif any(decoded.get(field) != value for field, value in expected.items()):
        faults.append(f"decode {name!r}: {decoded}, expected {expected}")
    elif _compared(operation, decoded.get("body")) != _compared(operation, meaning):
        faults.append(f"decode {name!r}: body {_short(decoded.get('body'))}")
    if not vector.get("decode_only"):
        fields = {"operation": operation, "request_id": vector["request_id"], "body": meaning}
        answer = await ask("encode", fields)
        if "error" in answer:
            faults.append(f"encode {name!r}: {answer['error']}")
        elif not _same_frame(operation, raw, answer["ok"].get("bytes", "")):
            faults.append(f"encode {name!r}: {_short(answer['ok'])}")
    return faults


async def _malformed(vector: Json, ask: Ask) -> list[str]:
    fields = {"operation": vector["operation"], "body": vector["body"]}
    answer = await ask("decode_body", fields)
    code = answer.get("error", {}).get("code")
    if code != "InvalidFrame":
        return [f"{vector['name']!r} was not refused with InvalidFrame: {_short(answer)}"]
    return []


async def _stream(vector: Json, ask: Ask) -> list[str]:
    faults = []
    raw = written_out(vector["bytes"])
    messages = [{**one, "body": written_out(one["body"]).hex()} for one in vector["messages"]]
    for chunk in (0, 1):
        fields = {"bytes": raw.hex(), "chunk": chunk, "limits": vector["limits"]}
        answer = (await ask("decode_stream", fields)).get("ok", {})
        if answer != {"messages": messages, "errors": vector["errors"]}:
            how = "byte by byte" if chunk else "at once"
            faults.append(f"{vector['name']!r} {how}: {_short(answer)}")
    return faults


async def _state(row: Json, ask: Ask) -> list[str]:
    if row["side"] != "client":
        return []  # an SDK is the client's side
    answer = await ask("state", {"state": row["state"], "receives": row["receives"]})
    expected = {name: row[name] for name in ("next", "refused", "fatal") if name in row}
    got = {name: value for name, value in answer.get("ok", {}).items() if value is not None}
    if got != expected:
        what = f"{row['receives']} in state {row['state']}"
        return [f"{what}: {_short(answer)}, expected {expected}"]
    return []


# Values.


def written_out(value: Any) -> bytes:
    """Bytes as the vectors write them, with their runs written out."""
    pieces = value if isinstance(value, list) else [value]
    return b"".join(
        bytes.fromhex(piece) if isinstance(piece, str)
        else bytes.fromhex(piece["repeat"]) * piece["count"]
        for piece in pieces
    )  # fmt: skip


def _plain(name: str, body: Json) -> Json:
    """The body with every `repeat` written out."""
    return {field: _plain_value(_kind(name, field), value) for field, value in body.items()}


def _plain_value(kind: Any, value: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return [_plain(kind.item.__name__, item) for item in value]
    if kind.removeprefix("optional ") == "bytes":
        return written_out(value).hex()
    return _texts(value)


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return value["repeat"] * value["count"]
    return [_texts(one) for one in value] if isinstance(value, list) else value


def _compared(name: str, body: Any) -> Any:
    """The body without what does not matter: absent fields, the order of maps."""
    if not isinstance(body, dict):
        return body
    compared: Json = {}
    for field, value in body.items():
        kind = _kind(name, field)
        if isinstance(kind, layouts.ListOf) and isinstance(value, list):
            compared[field] = [_compared(kind.item.__name__, item) for item in value]
        elif kind == "map" and isinstance(value, list):
            compared[field] = {pair[0]: pair[1] for pair in value}
        elif kind == "f64" and isinstance(value, int):
            compared[field] = float(value)
        elif value is not None or kind == "string?":
            compared[field] = value
    return compared


def _kind(name: str, field: str) -> Any:
    record = getattr(bodies, name)
    layout = layouts.LAYOUTS.get(record) or layouts.ITEM_LAYOUTS.get(record, {})
    return layout.get(field, "")


def _same_frame(operation: str, expected: bytes, got: str) -> bool:
    raw = bytes.fromhex(got)
    if raw == expected:
        return True
    if len(raw) != len(expected) or raw[:10] != expected[:10]:
        return False
    # Only the order of a map's pairs may differ, and then the meaning is the same.
    kind = getattr(bodies, operation)
    ((_, _, ours),) = FrameDecoder().feed(expected)
    ((_, _, theirs),) = FrameDecoder().feed(raw)
    try:
        return bool(layouts.decode(kind, ours) == layouts.decode(kind, theirs))
    except InvalidBody:
        return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "…"
