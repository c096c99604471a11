"""The cold operations over gRPC: messages to records of the table, results to messages.

A field goes by its name; the exceptions stand in RENAMED. proto3 cannot tell 0 from absent: where
the table gives a field a default, 0 or the empty string means that default. A failure is the call's
status. That every field finds its twin is checked when the module is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fila.broker.stepping import STEP_ITEMS, Steps, counted
from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, parser
from fila.edges.grpc.status import Status, of_queue
from fila.edges.grpc.unary import UnaryCall
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2
from fila.wire import layouts
from fila.wire.layouts import ListOf
from fila.wire.operation import Operation

# The largest request of each service.
SERVICES: Final = {
    "FilaAdmin": (admin_pb2.DESCRIPTOR, 4 * 1024 * 1024),
    "FilaBulk": (bulk_pb2.DESCRIPTOR, 65_536),
}

# What has another name, or stands inside another message, in the .proto files.
RENAMED: Final[dict[tuple[str, str], str]] = {
    ("CreateQueue", "on_enqueue"): "config.on_enqueue_script",
    ("CreateQueue", "on_failure"): "config.on_failure_script",
    ("CreateQueue", "visibility_timeout_ms"): "config.visibility_timeout_ms",
    ("CreateQueue", "max_attempts"): "config.max_attempts",
    ("CreateQueue", "cost"): "config.cost",
    ("Redrive", "limit"): "count",
    ("GetStatsResult", "fairness_keys"): "per_key_stats",
    ("GetStatsResult", "throttle_keys"): "per_throttle_stats",
    ("FairnessKeyStats", "pending"): "pending_count",
    ("FairnessKeyStats", "deficit"): "current_deficit",
    ("BrowseResult", "messages"): "message_count",
}
_STATUS_FIELDS: Final = ("code", "message")  # a call has a status for these

Read = Callable[[Any], Any]
Writing = Generator[int, None, list[bytes]]
Write = Callable[[Any], Any]


def _config_found(request: Any, result: Any, response: Any) -> Status | None:
    """FIBP says an empty value; a call has a status for it."""
    if result.value:
        return None
    return Status(grpc_status.NOT_FOUND, f'config key "{request.key}" is not set')


def _config_counted(request: Any, result: Any, response: Any) -> None:
    response.total_count = len(result.entries)


# Fills in what a response has beyond the result's fields, before the lists are added.
FINISHED: Final[dict[str, Callable[[Any, Any, Any], Status | None]]] = {
    "GetConfig": _config_found,
    "ListConfig": _config_counted,
}


def method(request_type: Any, row: Operation, file: Any, bytes_max: int) -> Method:
    """The gRPC method of an operation."""
    described = file.services_by_name[row.service].methods_by_name[row.name]
    request_class = GetMessageClass(described.input_type)
    read = reader(request_type, described.input_type)
    plain, lists = writers(layouts.RESULTS[request_type], described.output_type)
    finished = FINISHED.get(row.name)

    def apply(call: UnaryCall, message: Message) -> Status | None:
        request = read(message)

        def failed(fault: Rejection) -> Status:
            return of_queue(getattr(request, row.on, "?"), fault)

        def done(result: Any) -> Steps | None:
            if isinstance(result, Rejection):
                call.answer(failed(result))
                return None
            steps = answer(result)
            if layouts.is_large(result):
                return counted(call.session.broker.work, steps)
            for _ in steps:
                pass
            return None

        def answer(result: Any) -> Generator[int, None, None]:
            response = plain(result)
            refused = finished(request, result, response) if finished is not None else None
            if refused is not None:
                call.answer(refused)
                return
            # A message is the list of its fields: its parts need no other joining.
            parts = yield from lists(result)
            call.answer(b"".join([response.SerializeToString(), *parts]))

        fault = call.session.carry_out(request, done)
        return None if fault is None else failed(fault)

    return Method(UnaryCall, parser(request_class), apply, described.input_type.name, bytes_max)


def reader(record: Any, described: Descriptor) -> Read:
    """Message to record."""
    layout = layouts.LAYOUTS.get(record) or layouts.ITEM_LAYOUTS.get(record, {})
    fields = [_field_reader(record, name, kind, described) for name, kind in layout.items()]

    def read(message: Message) -> Any:
        return record(*[one(message) for one in fields])

    return read


def _field_reader(record: Any, name: str, kind: Any, described: Descriptor) -> Read:
    *outer, last = RENAMED.get((record.__name__, name), name).split(".")
    for step in outer:
        described = _inside(described.fields_by_name[step])
    field: FieldDescriptor = described.fields_by_name[last]

    def value(message: Any) -> Any:
        for step in outer:
            message = getattr(message, step)
        return getattr(message, last)

    if isinstance(kind, ListOf):
        item = reader(kind.item, _inside(field))
        return lambda message: tuple([item(one) for one in value(message)])
    if kind == "map":
        return lambda message: dict(value(message))
    if kind == "string?" or kind.startswith("optional "):
        if not field.has_presence:
            return lambda message: value(message) or None
        assert not outer, f"{name}: an optional field inside another message is not read"
        return lambda message: getattr(message, last) if message.HasField(last) else None
    default = record._field_defaults.get(name)
    if default:
        return lambda message: value(message) or default
    return value


def writers(record: Any, described: Descriptor) -> tuple[Write, Callable[[Any], Writing]]:
    """Record to message without its lists; and its lists in steps, some items at a time: bytes,
    and how many items after each step."""
    fields = _twins(record, described)
    message_class = GetMessageClass(described)

    def plain(result: Any) -> Any:
        return message_class(
            **{twin: getattr(result, name) for name, twin, item in fields if item is None}
        )

    def lists(result: Any) -> Writing:
        parts: list[bytes] = []
        for name, twin, item in fields:
            if item is None:
                continue
            values = getattr(result, name)
            for start in range(0, len(values), STEP_ITEMS):
                items = [item(one) for one in values[start : start + STEP_ITEMS]]
                parts.append(message_class(**{twin: items}).SerializeToString())
                yield len(items)
        return parts

    return plain, lists


def _item_writer(record: Any, described: Descriptor) -> Write:
    """An item of a list to its message; no item holds a list."""
    pairs = [(name, twin) for name, twin, _ in _twins(record, described)]
    message_class = GetMessageClass(described)

    def write(value: Any) -> Any:
        return message_class(**{twin: getattr(value, name) for name, twin in pairs})

    return write


def _twins(record: Any, described: Descriptor) -> list[tuple[str, str, Write | None]]:
    """A record's fields with their names in the message and, of lists, how an item is written."""
    layout = layouts.LAYOUTS.get(record) or layouts.ITEM_LAYOUTS.get(record, {})
    fields: list[tuple[str, str, Write | None]] = []
    for name, kind in layout.items():
        if name in _STATUS_FIELDS and record in layouts.LAYOUTS:
            continue
        field: FieldDescriptor = described.fields_by_name[
            RENAMED.get((record.__name__, name), name)
        ]
        item = _item_writer(kind.item, _inside(field)) if isinstance(kind, ListOf) else None
        fields.append((name, field.name, item))
    return fields


def _inside(field: FieldDescriptor) -> Descriptor:
    assert field.message_type is not None, f"{field.full_name} holds no message"
    return field.message_type


METHODS: Final[dict[bytes, Method]] = {
    f"/fila.v1.{row.service}/{row.name}".encode(): method(request_type, row, *SERVICES[row.service])
    for request_type, row in layouts.OPERATIONS.items()
    if row.service and not row.by_hand
}
