"""FilaBulk's EnqueueWith and Release: messages with options, and leased ones handed back.

What is wrong with one message is said in its result; the others go on.
"""

from __future__ import annotations

from typing import Final

from fila.broker.options import Options
from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, UnaryCall, parser
from fila.edges.grpc.status import Status, of_queue
from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.edges.queue_groups import by_queue, parse_ids, spread
from fila.wire import errors
from fila.wire.errors import UnencodableField
from fila.wire.ids import id_text
from fila.wire.message import message_body

Answer = bytes | Status | None


def _enqueue_with(call: UnaryCall, request: pb.EnqueueWithRequest) -> Answer:
    items = list(request.messages)
    if len(items) > call.connection.limits.messages_max:
        text = f"a request may hold {call.connection.limits.messages_max} messages; send several"
        return Status(grpc_status.INVALID_ARGUMENT, text)
    results = [pb.EnqueueWithResult() for _ in items]
    for queue, places in by_queue([item.queue.encode() for item in items]):
        refused = call.session.may_produce(queue)
        if refused is not None:
            _refuse(results, places, refused.code, refused.message)
            continue
        fitting = []
        options = []
        for place in places:
            try:
                options.append(_options(items[place]))
                fitting.append(place)
            except UnencodableField as error:
                _refuse(results, [place], errors.INVALID_CONFIG_VALUE, str(error))
        stored = call.session.enqueue_with(queue, options)
        if isinstance(stored, Rejection):
            _refuse(results, fitting, stored.code, stored.message)
            continue
        for place, (code, id, duplicate) in zip(fitting, stored, strict=True):
            if code == errors.OK:
                results[place].message_id = id_text(id).decode()
                results[place].duplicate = duplicate
            else:
                _refuse(results, [place], code, _WHY.get(code, "an option is out of bounds"))
    return pb.EnqueueWithResponse(results=results).SerializeToString()


def _release(call: UnaryCall, request: pb.ReleaseRequest) -> Answer:
    refused = call.session.may_consume(request.queue)
    if refused is not None:
        return grpc_status.of(refused)
    codes = [errors.MESSAGE_NOT_FOUND] * len(request.message_ids)
    texts = [text.encode() for text in request.message_ids]
    known, ids = parse_ids(texts, list(range(len(texts))))
    found = call.session.release(request.queue, ids)
    if isinstance(found, Rejection):
        return of_queue(request.queue, found)
    spread(found, known, known, codes)
    return pb.ReleaseResponse(codes=codes).SerializeToString()


def _options(item: pb.MessageWithOptions) -> Options:
    return Options(
        message_body(dict(item.headers), item.payload),
        item.delay_ms,
        item.idempotency_key.encode(),
        item.fairness_key.encode(),
        item.weight,
        tuple([key.encode() for key in item.throttle_keys]),
    )


def _refuse(
    results: list[pb.EnqueueWithResult], places: list[int], code: int, message: str
) -> None:
    for place in places:
        results[place].code = code
        results[place].message = message


_WHY: Final = {
    errors.CHANNEL_FULL: "the queue's on_enqueue has no verdict for this message; nothing was "
    "stored; try again later",
}

METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaBulk/EnqueueWith": Method(
        UnaryCall, parser(pb.EnqueueWithRequest), _enqueue_with, "EnqueueWithRequest", 0
    ),
    b"/fila.v1.FilaBulk/Release": Method(
        UnaryCall, parser(pb.ReleaseRequest), _release, "ReleaseRequest", 0
    ),
}
