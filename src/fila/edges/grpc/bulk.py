"""FilaBulk: enqueues with options, releases, lease batches and browsing on a session.

The twins of FIBP's bulk operations; what is not hot is left to the generated classes.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import Message

from fila.broker.bulk import Wanted
from fila.broker.options import Options
from fila.core.command import TOLD_ENTRIES, TOLD_STORED
from fila.core.effect import BatchLeased
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, Entry, message_id, ready_ns
from fila.core.rejection import Rejection
from fila.edges import arrow
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, UnaryCall, parser
from fila.edges.grpc.hot import message_prefix
from fila.edges.grpc.service import by_queue, of_queue
from fila.edges.grpc.status import DONE, Status
from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.edges.grpc.v1 import messages_pb2
from fila.wire import errors
from fila.wire.errors import UnencodableField
from fila.wire.ids import id_text, parse_id
from fila.wire.message import decode_headers, message_body, payload_of

_MS: Final = 1_000_000
_NS: Final = 1_000_000_000
_ALL_STATES: Final = 7

Answer = bytes | Status | None


class LeaseCall(UnaryCall):
    """A request for a batch, which may wait; a call that ends meanwhile withdraws it."""

    _request_number = 0

    def left(self) -> None:
        super().left()
        if self._request_number:
            self.session.bulk.withdraw(self._request_number)

    def ask(self, request: pb.LeaseBatchRequest) -> Status | None:
        fault = arrow.unavailable() if request.as_arrow else None
        if fault is not None:
            return grpc_status.of(fault)

        def done(found: BatchLeased | Rejection) -> LeaseCall:
            # It is committed already: told at once, without a turn of its own.
            if not self.ended:
                if isinstance(found, Rejection):
                    self.end(grpc_status.of(found))
                else:
                    answer = _leased(found, request.as_arrow)
                    self.write(message_prefix(len(answer)) + answer)
                    self.end(DONE)
            return self

        wanted = Wanted(
            request.max_messages,
            request.max_bytes,
            request.visibility_ms,
            request.wait_ms,
            request.count_attempt,
            TOLD_STORED if request.as_arrow else TOLD_ENTRIES,
        )
        asked = self.session.bulk.lease(request.queue, request.name, wanted, done)
        if isinstance(asked, Rejection):
            return of_queue(request.queue, asked)
        self._request_number = asked
        return None


def _lease_batch(call: UnaryCall, request: pb.LeaseBatchRequest) -> Answer:
    assert isinstance(call, LeaseCall)
    return call.ask(request)


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
        stored = call.session.bulk.enqueue(queue, options)
        if isinstance(stored, Rejection):
            _refuse(results, fitting, stored.code, stored.message)
            continue
        for place, (code, id, duplicate) in zip(fitting, stored, strict=True):
            if code == errors.OK:
                results[place].message_id = id_text(id).decode()
                results[place].duplicate = duplicate
            else:
                _refuse(results, [place], code, "an option is out of bounds")
    return pb.EnqueueWithResponse(results=results).SerializeToString()


def _release(call: UnaryCall, request: pb.ReleaseRequest) -> Answer:
    refused = call.session.may_consume(request.queue)
    if refused is not None:
        return grpc_status.of(refused)
    codes = [errors.MESSAGE_NOT_FOUND] * len(request.message_ids)
    places = []
    ids = []
    for place, text in enumerate(request.message_ids):
        id = parse_id(text.encode())
        if id is not None:
            places.append(place)
            ids.append(id)
    found = call.session.bulk.release(request.queue, ids)
    if isinstance(found, Rejection):
        return of_queue(request.queue, found)
    for place, code in zip(places, found, strict=True):
        codes[place] = code
    return pb.ReleaseResponse(codes=codes).SerializeToString()


def _ack_batch(call: UnaryCall, request: pb.BatchSelection) -> Answer:
    found = call.session.bulk.ack_batch(request.queue, request.name, _below(request))
    return _counted(request.queue, found)


def _extend_batch(call: UnaryCall, request: pb.ExtendBatchRequest) -> Answer:
    found = call.session.bulk.extend_batch(
        request.queue, request.name, request.visibility_ms, _below(request)
    )
    return _counted(request.queue, found)


def _release_batch(call: UnaryCall, request: pb.BatchSelection) -> Answer:
    found = call.session.bulk.release_batch(request.queue, request.name, _below(request))
    return _counted(request.queue, found)


def _list_batches(call: UnaryCall, request: pb.ListBatchesRequest) -> Answer:
    found = call.session.bulk.batches(request.queue)
    if isinstance(found, Rejection):
        return of_queue(request.queue, found)
    batches = [
        pb.OpenBatch(
            name=one.name,
            messages=one.messages,
            leased_at_ms=one.leased_ns // _MS,
            expires_at_ms=one.expires_ns // _MS,
        )
        for one in found
    ]
    return pb.ListBatchesResponse(batches=batches).SerializeToString()


def _browse(call: UnaryCall, request: pb.BrowseRequest) -> Answer:
    key = request.fairness_key if request.HasField("fairness_key") else None
    opened = call.session.bulk.browse(request.queue, key, request.parts or 1, request.ttl_ms)
    if isinstance(opened, Rejection):
        return of_queue(request.queue, opened)
    return pb.BrowseResponse(
        snapshot=opened.token,
        expires_at_ms=opened.expires_ms,
        message_count=opened.messages,
        ranges=[pb.BrowseRange(start=start, end=end) for start, end in opened.ranges],
    ).SerializeToString()


def _browse_page(call: UnaryCall, request: pb.BrowsePageRequest) -> Answer:
    states = request.states or _ALL_STATES
    place = (request.snapshot, request.start, request.end, states)
    sizes = (request.max_messages, request.max_bytes)
    bulk = call.session.bulk
    if request.as_arrow:
        stored = arrow.unavailable() or bulk.stored_page(*place, *sizes)
        if isinstance(stored, Rejection):
            return grpc_status.of(stored)
        count, encoded = arrow.browsed_stream(*stored, states)
        return pb.BrowsePageResponse(
            next=stored[1].next, message_count=count, arrow=encoded
        ).SerializeToString()
    found = bulk.page(*place, *sizes)
    if isinstance(found, Rejection):
        return grpc_status.of(found)
    queue, page = found
    answer = pb.BrowsePageResponse(next=page.next, message_count=len(page.messages))
    for entry, lane, state in page.messages:
        answer.messages.append(
            pb.BrowsedMessage(
                message=_message(queue, entry, lane.fairness_key, lane.throttle_keys, 0),
                ready_at_ms=ready_ns(entry) // _MS,
                state=state,
            )
        )
    return answer.SerializeToString()


def _browse_close(call: UnaryCall, request: pb.BrowseCloseRequest) -> Answer:
    refused = call.session.bulk.close_snapshot(request.snapshot)
    if refused is not None:
        return grpc_status.of(refused)
    return pb.BrowseCloseResponse().SerializeToString()


def _leased(found: BatchLeased, as_arrow: bool) -> bytes:
    answer = pb.LeaseBatchResponse(
        again=found.again,
        expires_at_ms=found.expires_ns // _MS,
        message_count=found.messages,
    )
    if as_arrow:
        answer.arrow = arrow.leased_stream(found)
    else:
        for entry, lane in zip(found.entries, found.lanes, strict=True):
            message = _message(
                found.queue, entry, lane.key.name, lane.throttle_keys, found.leased_ns
            )
            answer.messages.append(message)
    return answer.SerializeToString()


def _message(
    queue: str,
    entry: Entry,
    fairness_key: bytes,
    throttle_keys: tuple[bytes, ...],
    leased_ns: int,
) -> messages_pb2.Message:
    message = messages_pb2.Message(
        id=id_text(message_id(entry)).decode(),
        headers=decode_headers(entry[BODY]),
        payload=payload_of(entry[BODY]),
        metadata=messages_pb2.MessageMetadata(
            fairness_key=fairness_key.decode(),
            weight=entry[WEIGHT],
            throttle_keys=[key.decode() for key in throttle_keys],
            attempt_count=entry[ATTEMPTS],
            queue_id=queue,
        ),
    )
    _set_time(message.timestamps.enqueued_at, entry[ENQUEUED_NS])
    if leased_ns:
        _set_time(message.timestamps.leased_at, leased_ns)
    return message


def _set_time(field: Any, at_ns: int) -> None:
    field.seconds, field.nanos = divmod(at_ns, _NS)


def _options(item: pb.MessageWithOptions) -> Options:
    return Options(
        message_body(dict(item.headers), item.payload),
        item.delay_ms,
        item.idempotency_key.encode(),
        item.fairness_key.encode(),
        item.weight,
        tuple([key.encode() for key in item.throttle_keys]),
    )


def _below(request: pb.BatchSelection | pb.ExtendBatchRequest) -> int | None:
    return request.below if request.HasField("below") else None


def _counted(queue: str, found: tuple[int, int] | Rejection) -> Answer:
    if isinstance(found, Rejection):
        return of_queue(queue, found)
    batches, messages = found
    return pb.BatchCount(batches=batches, messages=messages).SerializeToString()


def _refuse(
    results: list[pb.EnqueueWithResult], places: list[int], code: int, message: str
) -> None:
    for place in places:
        results[place].code = code
        results[place].message = message


def _method(request: type[Message], apply: Any, large: bool = False) -> Method:
    return Method(
        LeaseCall if apply is _lease_batch else UnaryCall,
        parser(request),
        apply,
        request.__name__,
        0 if large else 65_536,
    )


_APPLIED: Final[dict[str, Method]] = {
    "EnqueueWith": _method(pb.EnqueueWithRequest, _enqueue_with, large=True),
    "Release": _method(pb.ReleaseRequest, _release, large=True),
    "LeaseBatch": _method(pb.LeaseBatchRequest, _lease_batch),
    "AckBatch": _method(pb.BatchSelection, _ack_batch),
    "ExtendBatch": _method(pb.ExtendBatchRequest, _extend_batch),
    "ReleaseBatch": _method(pb.BatchSelection, _release_batch),
    "ListBatches": _method(pb.ListBatchesRequest, _list_batches),
    "Browse": _method(pb.BrowseRequest, _browse),
    "BrowsePage": _method(pb.BrowsePageRequest, _browse_page),
    "BrowseClose": _method(pb.BrowseCloseRequest, _browse_close),
}

METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaBulk/" + name.encode(): method for name, method in _APPLIED.items()
}
