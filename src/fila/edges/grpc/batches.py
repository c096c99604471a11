"""FilaBulk's LeaseBatch and BrowsePage: many messages at a time, as messages or as Arrow."""

from __future__ import annotations

from typing import Any, Final

from fila.broker import batch_operations
from fila.broker.lease_requests import LeaseRequest, Wanted
from fila.core.command import TOLD_ENTRIES, TOLD_STORED
from fila.core.effect import BatchLeased
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, Entry, message_id, ready_ns
from fila.core.rejection import Rejection
from fila.edges import arrow
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, parser
from fila.edges.grpc.message_codec import message_prefix
from fila.edges.grpc.status import DONE, Status, of_queue
from fila.edges.grpc.unary import UnaryCall
from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.edges.grpc.v1 import messages_pb2
from fila.wire import bodies
from fila.wire.forms import ALL_STATES
from fila.wire.ids import id_text
from fila.wire.message import decode_headers, payload_of

REQUEST_BYTES_MAX: Final = 65_536
_MS: Final = 1_000_000
_NS: Final = 1_000_000_000

Answer = bytes | Status | None


class LeaseCall(UnaryCall):
    """A request for a batch, which may wait; a call that ends meanwhile withdraws it."""

    _asked: LeaseRequest | None = None

    def left(self) -> None:
        super().left()
        asked, self._asked = self._asked, None  # it holds this call
        if asked is not None:
            self.session.leases.withdraw(asked)

    def ask(self, request: pb.LeaseBatchRequest) -> Status | None:
        fault = arrow.unavailable() if request.as_arrow else None
        if fault is not None:
            return grpc_status.of(fault)
        crowded = self.session.too_many_consumers(self.connection.consumers_allowed())
        if crowded is not None:
            return Status(grpc_status.RESOURCE_EXHAUSTED, crowded)

        answer = _Leased(request.as_arrow)

        def done(found: BatchLeased | Rejection) -> LeaseCall:
            # It is committed already: told at once, without a turn of its own.
            try:
                if not self.ended:
                    self._tell(found, answer)
            except Exception as error:
                self.connection.fail_soon(error)
            return self

        wanted = Wanted(
            request.max_messages,
            request.max_bytes,
            request.visibility_ms,
            request.wait_ms,
            request.count_attempt,
            TOLD_STORED if request.as_arrow else TOLD_ENTRIES,
        )
        asked = self.session.leases.lease(request.queue, request.name, wanted, done)
        if isinstance(asked, Rejection):
            return of_queue(request.queue, asked)
        self._asked = asked
        return None

    def _tell(self, found: BatchLeased | Rejection, answer: _Leased) -> None:
        if isinstance(found, Rejection):
            self.end(grpc_status.of(found))
            return
        answer.add(found)
        if not found.rest:
            told = answer.result(found)
            self.write(message_prefix(len(told)) + told)
            self.end(DONE)


def _lease_batch(call: UnaryCall, request: pb.LeaseBatchRequest) -> Answer:
    assert isinstance(call, LeaseCall)
    return call.ask(request)


def _browse_page(call: UnaryCall, request: pb.BrowsePageRequest) -> Answer:
    wanted = bodies.BrowsePage(
        request.snapshot,
        request.start,
        request.end,
        request.states or ALL_STATES,
        request.max_messages,
        request.max_bytes,
    )
    if request.as_arrow:
        stored = arrow.unavailable() or batch_operations.stored_page(call.session, wanted)
        if isinstance(stored, Rejection):
            return grpc_status.of(stored)
        count, encoded = arrow.browsed_stream(*stored, wanted.states)
        return pb.BrowsePageResponse(
            next=stored[1].next, message_count=count, arrow=encoded
        ).SerializeToString()
    found = batch_operations.page(call.session, wanted)
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


class _Leased:
    """An answer to a LeaseBatch, of one part or several."""

    def __init__(self, as_arrow: bool) -> None:
        self._arrow = arrow.LeasedStream() if as_arrow else None
        self._parts: list[bytes] = []  # encoded fields; one after the other they are the message
        self._messages = 0

    def add(self, part: BatchLeased) -> None:
        if self._arrow is not None:
            self._arrow.add(part)
            self._messages = self._arrow.messages
            return
        told = pb.LeaseBatchResponse()
        for entry, lane in zip(part.entries, part.lanes, strict=True):
            told.messages.append(
                _message(part.queue, entry, lane.key.name, lane.throttle_keys, part.leased_ns)
            )
        self._messages += len(part.entries)
        self._parts.append(told.SerializeToString())

    def result(self, last: BatchLeased) -> bytes:
        """When the last part was added."""
        answer = pb.LeaseBatchResponse(
            again=last.again,
            expires_at_ms=last.expires_ns // _MS,
            message_count=self._messages,
        )
        if self._arrow is not None:
            answer.arrow = self._arrow.stream()
        return b"".join([answer.SerializeToString(), *self._parts])


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


METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaBulk/LeaseBatch": Method(
        LeaseCall,
        parser(pb.LeaseBatchRequest),
        _lease_batch,
        "LeaseBatchRequest",
        REQUEST_BYTES_MAX,
    ),
    b"/fila.v1.FilaBulk/BrowsePage": Method(
        UnaryCall,
        parser(pb.BrowsePageRequest),
        _browse_page,
        "BrowsePageRequest",
        REQUEST_BYTES_MAX,
    ),
}
