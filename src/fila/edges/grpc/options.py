"""FilaBulk's EnqueueWith and Release: messages with options, and leased ones handed back.

What is wrong with one message is said in its result; the others go on.
"""

from __future__ import annotations

from typing import Final

from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.bulk_codec import ItemWith, decode_enqueue_with, decode_release
from fila.edges.grpc.call import Method
from fila.edges.grpc.parts import Answer, Parts
from fila.edges.grpc.status import of_queue
from fila.edges.grpc.unary import UnaryCall
from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.edges.queue_groups import by_queue, parse_ids, runs, spread
from fila.wire import errors
from fila.wire.ids import id_text


def _enqueue_with(call: UnaryCall, items: list[ItemWith]) -> Answer:
    results = [pb.EnqueueWithResult() for _ in items]
    for queue, places in by_queue([item[0] for item in items]):
        refused = call.session.may_produce(queue)
        if refused is not None:
            _refuse(results, places, refused.code, refused.message)
            continue
        fitting = []
        options = []
        for place in places:
            one = items[place][1]
            if one is None:
                _refuse(results, [place], errors.INVALID_CONFIG_VALUE, _UNFIT)
            else:
                options.append(one)
                fitting.append(place)
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


def _one_queue(parts: list[tuple[bytes, list[bytes]]]) -> list[tuple[bytes, list[bytes]]]:
    """A release's queue is that of all its parts; the last one said counts."""
    queue = next((name for name, _ in reversed(parts) if name), b"")
    return [(queue, ids) for _, ids in parts]


def _release(call: UnaryCall, request: tuple[bytes, list[bytes]]) -> Answer:
    name, texts = request
    queue = name.decode()
    refused = call.session.may_consume(queue)
    if refused is not None:
        return grpc_status.of(refused)
    codes = [errors.MESSAGE_NOT_FOUND] * len(texts)
    known, ids = parse_ids(texts, list(range(len(texts))))
    found = call.session.release(queue, ids)
    if isinstance(found, Rejection):
        return of_queue(queue, found)
    spread(found, known, known, codes)
    return pb.ReleaseResponse(codes=codes).SerializeToString()


def _release_runs(
    call: UnaryCall, request: tuple[bytes, list[bytes]], bytes_max: int
) -> list[tuple[tuple[bytes, list[bytes]], int]]:
    queue, ids = request
    found = runs(call.session, [(queue, id) for id in ids], bytes_max)
    return [((queue, ids[start:end]), size) for start, end, size in found]


def _refuse(
    results: list[pb.EnqueueWithResult], places: list[int], code: int, message: str
) -> None:
    for place in places:
        results[place].code = code
        results[place].message = message


_UNFIT: Final = "headers: at most 65,535 of them, of at most 65,535 bytes each"
_WHY: Final = {
    errors.QUEUE_FULL: "the queue, or the message's fairness key in it, is full; it was not "
    "stored; try again later",
    errors.CHANNEL_FULL: "the queue's on_enqueue has no verdict for this message; nothing was "
    "stored; try again later",
}

METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaBulk/EnqueueWith": Method(
        UnaryCall,
        decode_enqueue_with,
        _enqueue_with,
        "EnqueueWithRequest",
        0,
        parts=Parts(decode_enqueue_with, len, _enqueue_with),
    ),
    b"/fila.v1.FilaBulk/Release": Method(
        UnaryCall,
        decode_release,
        _release,
        "ReleaseRequest",
        0,
        parts=Parts(
            decode_release,
            lambda request: len(request[1]),
            _release,
            _one_queue,
            runs=_release_runs,
        ),
    ),
}
