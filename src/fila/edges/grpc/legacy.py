"""The first gRPC shape: one message per request. Recognised by its bytes, and served wholly.

Clients generated from the first .proto files are still in use. They say in Enqueue what is now said
in each of its messages, and so in Ack and Nack:

    then   EnqueueRequest { 1 queue · 2 headers · 3 payload }   → EnqueueResponse { 1 message_id }
    now    EnqueueRequest { 1 messages { 1 queue · 2 headers · 3 payload } }   → … { 1 results }
    then   AckRequest { 1 queue · 2 message_id }, NackRequest { … 3 error }   → an empty answer

Methods have the same names, so nothing but the bytes tells which one is meant. What stands in field
1 does: a message of now that names a queue holds the tag of that name, a control character, and the
name of a queue never holds one. Without that, a request of then with a queue called `email` parses
as a message of now that has only unknown fields.

A response of Consume holds one message then, any number now, and ConsumeRequest looks the same in
both. So a connection gets one message per response until it has sent a request of now, and for good
once it has sent one of then.

Failures were statuses then. Owns recognising and answering; what is done is the session's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method
from fila.edges.grpc.message_codec import EnqueueItem, SettleItem
from fila.edges.grpc.protobuf_reader import TEXT_BYTES_MAX, InvalidMessage, read_varint
from fila.edges.grpc.status import Status, of_queue
from fila.edges.grpc.unary import UnaryCall
from fila.wire import errors
from fila.wire.ids import id_text, parse_id

if TYPE_CHECKING:
    from fila.edges.grpc.connection import GrpcConnection

# What a connection has shown of itself.
UNKNOWN: Final = 0
PRESENT: Final = 1
LEGACY: Final = 2

_QUEUE: Final = 0x0A  # the tag of field 1, which is also that of `messages`
_REST: Final = (0x12, 0x1A)  # the tags of fields 2 and 3
_UNFIT: Final = Status(
    grpc_status.INVALID_ARGUMENT, "headers: at most 65,535 of them, of at most 65,535 bytes each"
)


class LegacyRequest(NamedTuple):
    """A request of the first shape: what is one item now."""

    item: Any


def either_shape(
    method: Method,
    read: Callable[[bytes], Any],
    serve: Callable[[UnaryCall, Any], bytes | Status],
) -> Method:
    """The method as it is; requests of the first shape are read and served by these."""
    parse_present, apply_present = method.parse, method.apply
    assert apply_present is not None

    def parse(data: bytes, items_max: int) -> Any:
        return LegacyRequest(read(data)) if is_legacy(data) else parse_present(data, items_max)

    def apply(call: UnaryCall, request: Any) -> bytes | Status | None:
        if isinstance(request, LegacyRequest):
            call.connection.shape = LEGACY
            return serve(call, request.item)
        note_present(call.connection)
        return apply_present(call, request)

    parts = method.parts
    if parts is not None:
        apply_part = parts.apply

        def apply_present_part(call: UnaryCall, request: Any) -> bytes | Status:
            note_present(call.connection)
            return apply_part(call, request)

        parts = parts._replace(apply=apply_present_part, takes=lambda data: not is_legacy(data))
    return method._replace(parse=parse, apply=apply, parts=parts)


def note_present(connection: GrpcConnection) -> None:
    """The connection has sent what only a present client sends."""
    if connection.shape == UNKNOWN:
        connection.shape = PRESENT


def is_legacy(data: bytes) -> bool:
    """Whether these bytes are an Enqueue, Ack or Nack of the first shape."""
    if not data:
        return False
    if data[0] != _QUEUE:
        return data[0] in _REST  # no queue name at all
    try:
        length, start = read_varint(data, 1)
        if not length or data[start] < 0x20:
            return False  # a present message, with the tag of its first field; or an empty one
    except (IndexError, InvalidMessage):
        return False
    # A name is not longer: what a client sends is not looked through letter by letter.
    fits = length <= TEXT_BYTES_MAX and start + length <= len(data)
    return fits and _could_be_a_name(data[start : start + length])


def _could_be_a_name(text: bytes) -> bool:
    try:
        return not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text.decode())
    except UnicodeDecodeError:
        return False


# --- what each method did then


def enqueue(call: UnaryCall, item: EnqueueItem) -> bytes | Status:
    name, body = item
    queue = name.decode()
    refused = call.session.may_produce(queue)
    if refused is not None:
        return of_queue(queue, refused)
    if body is None:
        return _UNFIT
    stored = call.session.enqueue(queue, [body])
    if isinstance(stored, Rejection):
        return of_queue(queue, stored)
    return b"\x0a\x24" + id_text(stored[0])


def ack(call: UnaryCall, item: SettleItem) -> bytes | Status:
    session = call.session
    return _settle(call, item, lambda queue, id, error: session.ack(queue, [id]))


def nack(call: UnaryCall, item: SettleItem) -> bytes | Status:
    session = call.session
    return _settle(call, item, lambda queue, id, error: session.nack(queue, [id], [error]))


def _settle(
    call: UnaryCall, item: SettleItem, apply: Callable[[str, bytes, str], list[int] | Rejection]
) -> bytes | Status:
    name, text, error = item
    queue = name.decode()
    refused = call.session.may_consume(queue)
    if refused is not None:
        return of_queue(queue, refused)
    id = parse_id(text)
    if id is None:
        return _not_found(queue, text)
    codes = apply(queue, id, error[:TEXT_BYTES_MAX].decode(errors="ignore"))
    if isinstance(codes, Rejection):
        return of_queue(queue, codes)
    return b"" if codes[0] == errors.OK else _not_found(queue, text)


def _not_found(queue: str, id: bytes) -> Status:
    shown = id[:64].decode(errors="replace")
    text = f'message "{shown}" of queue "{queue}" is not leased here'
    return Status(grpc_status.NOT_FOUND, text)
