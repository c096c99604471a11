"""Write the golden vectors and the error catalogue from the Python codecs.

    python spec/vectors/make.py           write spec/errors.json and spec/vectors/*.json
    python spec/vectors/make.py --check   say whether the files are up to date (exit 1 if not)

The format of the files is described in `spec/vectors/README.md`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import cases

from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.errors import FrameError, InvalidBody
from fila.wire.frames import FrameDecoder, encode_frames
from fila.wire.states import CLIENT, SERVER, Refusal, State, receive

HERE = Path(__file__).parent


def main() -> int:
    stale = []
    for path, (name, rows) in files().items():
        lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
        text = f'{{\n "{name}": [\n{lines}\n ]\n}}\n'
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    for name in stale:
        print(f"{name} is out of date: run python spec/vectors/make.py")
    return 1 if stale else 0


def files() -> dict[Path, tuple[str, list[dict[str, Any]]]]:
    hot = [whole(*case) for case in cases.HOT]
    hot += [decode_only(*case) for case in cases.decode_only_hot()]
    admin = [whole(*case) for case in cases.ADMIN]
    admin += [decode_only(*case) for case in cases.decode_only_admin()]
    admin += [whole(*case) for case in cases.examples()]
    return {
        HERE.parent / "errors.json": ("errors", catalogue()),
        HERE.parent / "operations.json": ("operations", operations()),
        HERE / "control.json": ("vectors", [whole(*case) for case in cases.CONTROL]),
        HERE / "hot.json": ("vectors", hot),
        HERE / "bulk.json": ("vectors", [whole(*case) for case in cases.BULK]),
        HERE / "admin.json": ("vectors", admin),
        HERE / "streams.json": ("vectors", [stream(*case) for case in cases.streams()]),
        HERE / "malformed.json": ("vectors", [malformed(*case) for case in cases.MALFORMED]),
        HERE / "states.json": ("rows", states()),
    }


def catalogue() -> list[dict[str, Any]]:
    return [{**entry._asdict(), "metadata": list(entry.metadata)} for entry in errors.CATALOGUE]


def operations() -> list[dict[str, Any]]:
    """Every body and every record inside one: what a codec in another language is made from."""
    senders = dict.fromkeys(op.FROM_CLIENT, "client") | dict.fromkeys(op.FROM_SERVER, "server")
    rows: list[dict[str, Any]] = []
    for number, name in sorted(op.NAMES.items()):
        reply = op.REPLY_TO.get(number)
        rows.append(
            {
                "name": name,
                "opcode": number,
                "sender": "both" if number in op.BOTH_SIDES else senders[number],
                "reply": op.NAMES[reply] if reply is not None else None,
                "fields": _fields(layouts.LAYOUTS[getattr(bodies, name)]),
            }
        )
    for record, layout in layouts.ITEM_LAYOUTS.items():
        rows.append({"name": record.__name__, "opcode": None, "fields": _fields(layout)})
    return rows


def _fields(layout: layouts.Layout) -> list[list[str]]:
    return [
        [
            name,
            f"{kind.item.__name__}[{kind.counter}]" if isinstance(kind, layouts.ListOf) else kind,
        ]
        for name, kind in layout.items()
    ]


# Meaning: records as JSON.


def meaning_of(record: tuple[Any, ...]) -> dict[str, Any]:
    layout = layouts.LAYOUTS.get(type(record)) or layouts.ITEM_LAYOUTS.get(type(record), {})
    return {
        name: _value(kind, value)
        for (name, kind), value in zip(layout.items(), record, strict=True)
        if not (value is None and isinstance(kind, str) and kind.startswith("optional "))
    }


def _value(kind: Any, value: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return [meaning_of(item) for item in value]
    kind = kind.removeprefix("optional ")
    if kind in ("u64", "i64"):
        return str(value)
    if kind == "bytes":
        return packed(value)
    if kind == "map":
        return [[_text(key), _text(entry)] for key, entry in value.items()]
    if kind == "string[]":
        return [_text(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> Any:
    if len(value) > 200 and len(set(value)) == 1:
        return {"repeat": value[0], "count": len(value)}
    return value


def packed(raw: bytes) -> Any:
    """Hex, with long runs of one byte told as a count."""
    pieces: list[Any] = []
    position = 0
    for run in re.finditer(rb"(.)\1{99,}", raw, re.DOTALL):
        if run.start() > position:
            pieces.append(raw[position : run.start()].hex())
        pieces.append({"repeat": run[0][:1].hex(), "count": len(run[0])})
        position = run.end()
    if position < len(raw) or not pieces:
        pieces.append(raw[position:].hex())
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


# Whole messages in one frame, both ways.


def whole(name: str, request_id: int, body: tuple[Any, ...]) -> dict[str, Any]:
    return _vector(name, request_id, body, layouts.encode(body))


def decode_only(name: str, body: tuple[Any, ...], raw: bytes) -> dict[str, Any]:
    """Bytes a writer never makes and a reader must accept."""
    return {**_vector(name, 1, body, raw), "decode_only": True}


def _vector(name: str, request_id: int, body: tuple[Any, ...], raw: bytes) -> dict[str, Any]:
    opcode = layouts.opcode_of(body)
    return {
        "name": name,
        "opcode": opcode,
        "operation": op.NAMES[opcode],
        "request_id": request_id,
        "body": meaning_of(body),
        "bytes": packed(encode_frames(opcode, request_id, raw)),
    }


# Streams of bytes: continuations, limits, and what goes wrong with frames.


def stream(
    name: str, raw: bytes, frame_bytes_max: int, streams_max: int, bytes_max: int
) -> dict[str, Any]:
    decoder = FrameDecoder(frame_bytes_max, streams_max, bytes_max)
    frames = decoder.feed(raw)
    return {
        "name": name,
        "limits": {
            "frame_bytes_max": frame_bytes_max,
            "assembly_streams_max": streams_max,
            "assembly_bytes_max": bytes_max,
        },
        "bytes": packed(raw),
        "messages": [
            {"opcode": opcode, "request_id": request_id, "body": packed(body)}
            for opcode, request_id, body in frames
        ],
        "errors": [_refused(error) for error in decoder.take_errors()],
    }


def _refused(error: FrameError) -> dict[str, Any]:
    return {
        "code": error.code,
        "request_id": error.request_id,
        "fatal": error.fatal,
    }


# Bodies that must be refused with InvalidFrame and the field's name.


def malformed(name: str, body_type: Any, hexadecimal: str, field: str) -> dict[str, Any]:
    raw = bytes.fromhex(hexadecimal)
    try:
        layouts.decode(body_type, raw)
    except InvalidBody as error:
        complaint = str(error)
    else:
        complaint = "accepted"
    assert complaint.startswith(field + ":"), f"{name}: {complaint}"
    return {
        "name": name,
        "opcode": layouts.OPCODES[body_type],
        "operation": body_type.__name__,
        "body": raw.hex(),
        "code": errors.INVALID_FRAME,
        "field": field,
    }


def states() -> list[dict[str, Any]]:
    rows = []
    for side, table in (("server", SERVER), ("client", CLIENT)):
        for state in State:
            for opcode in [*op.NAMES, 0x2E, 0x77]:
                outcome = receive(table, state, opcode)
                row: dict[str, Any] = {"side": side, "state": state.value, "receives": opcode}
                if isinstance(outcome, Refusal):
                    row |= {"refused": outcome.code, "fatal": outcome.fatal}
                else:
                    row |= {"next": outcome.value}
                rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
