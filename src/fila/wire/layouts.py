"""How every operation's body travels: the table's layouts, and the codec that follows them.

Owns `encode(body)` and `decode(type, bytes)` for all operations. It is the reference, and the only
codec for what is not hot; `message_codec` walks Enqueue, Delivery, Ack and Nack faster and must
agree. Never touches frames or sockets.

An absent optional field decodes to None and may be left out only together with all that follow it.
"""

from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple, TypeVar

from fila.wire import bodies as b
from fila.wire import fields as f
from fila.wire import opcodes as op
from fila.wire import operation, operations
from fila.wire.operation import Notice, Operation

PROTOCOL_VERSION: Final = 1
STEP_ITEMS: Final = 512  # of a list that is encoded in steps

Body = TypeVar("Body", bound=tuple[Any, ...])


class ListOf(NamedTuple):
    """Items of one record type, counted by a u16 or a u32."""

    counter: str
    item: Any


# Field name to type, in wire order.
Layout = dict[str, Any]


def _layout(specs: operation.Layout) -> Layout:
    """Of a row of the table: list kinds become `ListOf`, defaults are the records' affair."""
    kinds: Layout = {}
    for name, spec in specs.items():
        kind = operation.kind_of(spec)
        item, bracket, counter = kind.rstrip("]").partition("[")
        listed = bracket and item in operations.RECORDS
        kinds[name] = ListOf(counter, getattr(b, item)) if listed else kind
    return kinds


def _layouts() -> dict[Any, Layout]:
    made: dict[Any, Layout] = {}
    for one in operations.TABLE:
        if isinstance(one, Notice):
            made[getattr(b, one.name)] = _layout(one.fields)
        else:
            made[getattr(b, one.name)] = _layout(one.request)
            made[getattr(b, one.result_type())] = _layout(one.result)
    return made


ITEM_LAYOUTS: Final[dict[Any, Layout]] = {
    getattr(b, name): _layout(specs) for name, specs in operations.RECORDS.items()
}
LAYOUTS: Final[dict[Any, Layout]] = _layouts()
OPCODES: Final[dict[Any, int]] = {getattr(b, name): number for number, name in op.NAMES.items()}
# The record a request is answered with, and the row of the table that tells about it.
RESULTS: Final[dict[Any, Any]] = {
    getattr(b, name): getattr(b, one.result_type()) for name, one in operations.OPERATIONS.items()
}
OPERATIONS: Final[dict[Any, Operation]] = {
    getattr(b, name): one for name, one in operations.OPERATIONS.items()
}


def encode(body: tuple[Any, ...]) -> bytes:
    """The bytes of a body record."""
    return _write(type(body), LAYOUTS[type(body)], body, "")


def encode_in_steps(body: tuple[Any, ...]) -> Generator[int, None, bytes]:
    """The same, some items of a list at a time: how many, after each of them."""
    parts: list[bytes] = []
    for (name, kind), value in zip(LAYOUTS[type(body)].items(), body, strict=True):
        if not isinstance(kind, ListOf):
            parts.append(_write(type(body), {name: kind}, (value,), ""))
            continue
        parts.append(_COUNTERS[kind.counter](len(value), name))
        layout = ITEM_LAYOUTS[kind.item]
        for start in range(0, len(value), STEP_ITEMS):
            items = value[start : start + STEP_ITEMS]
            for index, item in enumerate(items, start):
                parts.append(_write(kind.item, layout, item, f"{name}[{index}]."))
            yield len(items)
    return b"".join(parts)


def is_large(body: tuple[Any, ...]) -> bool:
    """Whether it is worth to be encoded in steps."""
    return any(
        len(value) > STEP_ITEMS
        for kind, value in zip(LAYOUTS[type(body)].values(), body, strict=True)
        if isinstance(kind, ListOf)
    )


def decode(body_type: type[Body], body: bytes) -> Body:
    """The record in these bytes; bytes after the last field it knows are ignored."""
    record: Body = _read(f.FieldReader(body), body_type, LAYOUTS[body_type], "")
    return record


def decode_items(
    body_type: type[tuple[object, ...]], body: bytes, position: int, index: int, count: int
) -> None:
    """Read so many items of a body that is one list; `index` is the number of the first."""
    ((name, kind),) = LAYOUTS[body_type].items()
    layout = ITEM_LAYOUTS[kind.item]
    reader = f.FieldReader(body, position)
    bytes_min = sum(_BYTES_MIN[item_kind] for item_kind in layout.values())
    reader.count(count, bytes_min, name)
    for number in range(index, index + count):
        _read(reader, kind.item, layout, f"{name}[{number}].")


def opcode_of(body: tuple[Any, ...]) -> int:
    return OPCODES[type(body)]


_WRITERS: Final[dict[str, Callable[[Any, str], bytes]]] = {
    "u8": f.u8_field,
    "u16": f.u16_field,
    "u32": f.u32_field,
    "u64": f.u64_field,
    "i64": f.i64_field,
    "f64": f.f64_field,
    "bool": f.boolean_field,
    "string": f.string_field,
    "bytes": f.blob_field,
    "map": f.string_map_field,
    "string[]": f.strings_field,
    "string?": f.optional_string_field,
}

_COUNTERS: Final[dict[str, Callable[[int, str], bytes]]] = {
    "u16": f.count_u16,
    "u32": f.u32_field,
}

_READERS: Final[dict[str, Callable[[f.FieldReader, str], Any]]] = {
    "u8": f.FieldReader.u8,
    "u16": f.FieldReader.u16,
    "u32": f.FieldReader.u32,
    "u64": f.FieldReader.u64,
    "i64": f.FieldReader.i64,
    "f64": f.FieldReader.f64,
    "bool": f.FieldReader.boolean,
    "string": f.FieldReader.string,
    "bytes": f.FieldReader.blob,
    "map": f.FieldReader.string_map,
    "string[]": f.FieldReader.strings,
    "string?": f.FieldReader.optional_string,
}

# The fewest bytes a field can take, so that a claimed count is checked before anything is built.
_BYTES_MIN: Final[dict[str, int]] = {
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "u64": 8,
    "i64": 8,
    "f64": 8,
    "bool": 1,
    "string": 2,
    "bytes": 4,
    "map": 2,
    "string[]": 2,
    "string?": 1,
}


def _write(record_type: Any, layout: Layout, record: tuple[Any, ...], where: str) -> bytes:
    parts: list[bytes] = []
    left_out = ""
    for (name, kind), value in zip(layout.items(), record, strict=True):
        field = where + name
        if isinstance(kind, ListOf):
            parts.append(_COUNTERS[kind.counter](len(value), field))
            item_layout = ITEM_LAYOUTS[kind.item]
            for index, item in enumerate(value):
                parts.append(_write(kind.item, item_layout, item, f"{field}[{index}]."))
            continue
        if kind.startswith("optional "):
            if value is None:
                left_out = left_out or field
                continue
            assert not left_out, f"{field} is given but {left_out} before it is not"
            kind = kind.removeprefix("optional ")
        parts.append(_WRITERS[kind](value, field))
    return b"".join(parts)


def _read(reader: f.FieldReader, record_type: Any, layout: Layout, where: str) -> Any:
    values: list[Any] = []
    for name, kind in layout.items():
        field = where + name
        if isinstance(kind, ListOf):
            item_layout = ITEM_LAYOUTS[kind.item]
            bytes_min = sum(_BYTES_MIN[item_kind] for item_kind in item_layout.values())
            count = reader.count(_READERS[kind.counter](reader, field), bytes_min, field)
            values.append(
                tuple(
                    [
                        _read(reader, kind.item, item_layout, f"{field}[{index}].")
                        for index in range(count)
                    ]
                )
            )
            continue
        if kind.startswith("optional "):
            if not reader.remaining:
                values.append(None)
                continue
            kind = kind.removeprefix("optional ")
        values.append(_READERS[kind](reader, field))
    return record_type(*values)
