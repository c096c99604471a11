"""Replays the golden vectors the way an SDK in another language would."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fila.wire import errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody
from fila.wire.frames import FrameDecoder, encode_frames
from fila.wire.states import CLIENT, SERVER, Refusal, State, receive

SPEC = Path(__file__).parents[2] / "spec"


def _load(name: str) -> list[Any]:
    (rows,) = json.loads((SPEC / name).read_text(encoding="utf-8")).values()
    assert rows
    return list(rows)


def _name(vector: dict[str, Any]) -> str:
    return str(vector["name"])


WHOLE = [v for part in ("control", "hot", "bulk", "admin") for v in _load(f"vectors/{part}.json")]
TYPES = {number: body_type for body_type, number in layouts.OPCODES.items()}


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value)
    if isinstance(value, dict):
        return bytes.fromhex(value["repeat"]) * int(value["count"])
    return b"".join(_bytes(piece) for piece in value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value["repeat"] * value["count"]


def _record(record_type: Any, layout: layouts.Layout, meaning: dict[str, Any]) -> Any:
    assert set(meaning) <= set(layout)
    return record_type(*[_field(kind, meaning.get(name)) for name, kind in layout.items()])


def _field(kind: Any, value: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        layout = layouts.ITEM_LAYOUTS[kind.item]
        return tuple(_record(kind.item, layout, item) for item in value)
    if value is None:
        assert kind == "string?" or kind.startswith("optional ")
        return None
    kind = kind.removeprefix("optional ")
    if kind in ("u64", "i64"):
        return int(value)
    if kind == "bytes":
        return _bytes(value)
    if kind == "map":
        return {_text(key): _text(entry) for key, entry in value}
    if kind == "string[]":
        return tuple(_text(item) for item in value)
    return _text(value) if kind in ("string", "string?") else value


def test_every_operation_has_a_vector() -> None:
    assert {vector["opcode"] for vector in WHOLE} == set(op.NAMES)
    assert all(op.NAMES[vector["opcode"]] == vector["operation"] for vector in WHOLE)


@pytest.mark.parametrize("vector", WHOLE, ids=_name)
def test_bytes_and_meaning_turn_into_each_other(vector: dict[str, Any]) -> None:
    body_type = TYPES[vector["opcode"]]
    record = _record(body_type, layouts.LAYOUTS[body_type], vector["body"])
    raw = _bytes(vector["bytes"])
    [(opcode, request_id, body)] = FrameDecoder().feed(raw)
    assert (opcode, request_id) == (vector["opcode"], vector["request_id"])
    assert layouts.decode(body_type, body) == record
    if not vector.get("decode_only"):
        assert encode_frames(opcode, request_id, layouts.encode(record)) == raw


HOT_DECODERS: dict[int, Any] = {
    op.ENQUEUE: message_codec.decode_enqueue,
    op.ENQUEUE_RESULT: message_codec.decode_enqueue_results,
    op.DELIVERY: message_codec.decode_delivery,
    op.ACK: message_codec.decode_acks,
    op.ACK_RESULT: message_codec.decode_codes,
    op.NACK: message_codec.decode_nacks,
    op.NACK_RESULT: message_codec.decode_codes,
}


@pytest.mark.parametrize("vector", [v for v in WHOLE if v["opcode"] in HOT_DECODERS], ids=_name)
def test_the_fast_codec_finds_as_many_items_in_the_vectors(vector: dict[str, Any]) -> None:
    [(opcode, _, body)] = FrameDecoder().feed(_bytes(vector["bytes"]))
    (items,) = vector["body"].values()
    assert len(HOT_DECODERS[opcode](body)) == len(items)


@pytest.mark.parametrize("vector", _load("vectors/streams.json"), ids=_name)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_streams_give_the_same_messages_and_errors_however_they_are_cut(
    vector: dict[str, Any], step: int
) -> None:
    decoder = FrameDecoder(**vector["limits"])
    raw = _bytes(vector["bytes"])
    messages: list[Any] = []
    for position in range(0, len(raw), step):
        messages += decoder.feed(raw[position : position + step])
    assert messages == [
        (m["opcode"], m["request_id"], _bytes(m["body"])) for m in vector["messages"]
    ]
    assert [(e.code, e.request_id, e.fatal) for e in decoder.take_errors()] == [
        (e["code"], e["request_id"], e["fatal"]) for e in vector["errors"]
    ]


@pytest.mark.parametrize("vector", _load("vectors/malformed.json"), ids=_name)
def test_malformed_bodies_are_refused_with_the_field_at_fault(vector: dict[str, Any]) -> None:
    body = _bytes(vector["body"])
    decoders = [lambda raw: layouts.decode(TYPES[vector["opcode"]], raw)]
    if vector["opcode"] in HOT_DECODERS:
        decoders.append(HOT_DECODERS[vector["opcode"]])
    for decode in decoders:
        with pytest.raises(InvalidBody, match=f"^{re.escape(vector['field'])}:"):
            decode(body)
    assert vector["code"] == errors.INVALID_FRAME


def test_the_state_tables_are_those_of_the_specification() -> None:
    tables = {"server": SERVER, "client": CLIENT}
    for row in _load("vectors/states.json"):
        outcome = receive(tables[row["side"]], State(row["state"]), row["receives"])
        if isinstance(outcome, Refusal):
            assert (row["refused"], row["fatal"]) == (outcome.code, outcome.fatal)
        else:
            assert row["next"] == outcome.value


def test_the_written_catalogue_is_the_one_in_the_code() -> None:
    entries = [
        errors.ErrorEntry(**{**e, "metadata": tuple(e["metadata"])}) for e in _load("errors.json")
    ]
    assert entries == list(errors.CATALOGUE)
    assert len({entry.code for entry in entries}) == len(entries)


def test_the_vector_files_are_up_to_date() -> None:
    make = [sys.executable, str(SPEC / "vectors" / "make.py"), "--check"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PAGE = (SPEC / "fibp.md").read_text(encoding="utf-8")


def test_the_page_lists_every_operation_and_every_error() -> None:
    for number, name in op.NAMES.items():
        assert re.search(rf"^\|[^|]*`{number:02X}`[^|]*\|[^|]*\b{name}\b", PAGE, re.MULTILINE), name
    for entry in errors.CATALOGUE:
        metadata = ", ".join(f"`{key}`" for key in entry.metadata)
        row = rf"^\| `{entry.code:02X}` \| {entry.name} \|[^|]*\| {metadata} ?\|$"
        assert re.search(row, PAGE, re.MULTILINE), entry.name


def test_the_examples_on_the_page_are_golden_vectors() -> None:
    golden = {_bytes(vector["bytes"]) for vector in WHOLE}
    blocks = re.findall(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        raw = bytes.fromhex("".join(line.split("#")[0] for line in block.splitlines()))
        assert raw in golden, block
