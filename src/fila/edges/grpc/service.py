"""FilaService: Enqueue, StreamEnqueue, Consume, Ack and Nack on a session.

What is wrong with one message is said in its result; the others go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila.broker import stepping
from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges.grpc import legacy, message_codec, parts
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Call, Method, parser
from fila.edges.grpc.message_codec import DeliveryEncoder, EnqueueItem, Fault, SettleItem
from fila.edges.grpc.outflow import Stream
from fila.edges.grpc.parts import Parts
from fila.edges.grpc.protobuf_reader import TEXT_BYTES_MAX
from fila.edges.grpc.status import DONE, Status, of_queue
from fila.edges.grpc.unary import OneRequestCall, UnaryCall
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.edges.queue_groups import by_queue, parse_ids, runs, spread
from fila.wire import errors

if TYPE_CHECKING:
    from fila.broker.session import Session
    from fila.edges.grpc.caller import Caller
    from fila.edges.grpc.connection import GrpcConnection

UNANSWERED_MAX: Final = 8_192  # batches of one stream, before the client has to wait
UNSENT_SHARES: Final = 8  # of what one consumer may have unsent, for all of a connection
_ACCEPTED: Final = b"\x00"

Batch = tuple[list[EnqueueItem], int]  # messages, and the number of a stream's batch

_ENQUEUE_CODES: Final[dict[int, int]] = {
    errors.QUEUE_NOT_FOUND: pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND,
    errors.STORAGE_ERROR: pb.ENQUEUE_ERROR_CODE_STORAGE,
    errors.LUA_COMPILATION_ERROR: pb.ENQUEUE_ERROR_CODE_LUA,
    errors.FORBIDDEN: pb.ENQUEUE_ERROR_CODE_PERMISSION_DENIED,
}
# The same numbers in both enums: AckErrorCode and NackErrorCode.
_SETTLE_CODES: Final[dict[int, int]] = {
    errors.QUEUE_NOT_FOUND: pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND,
    errors.MESSAGE_NOT_FOUND: pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND,
    errors.STORAGE_ERROR: pb.ACK_ERROR_CODE_STORAGE,
    errors.FORBIDDEN: pb.ACK_ERROR_CODE_PERMISSION_DENIED,
}
_UNFIT: Final[Fault] = (
    pb.ENQUEUE_ERROR_CODE_INVALID_MESSAGE,
    "headers: at most 65,535 of them, of at most 65,535 bytes each",
)
_UNDECIDED: Final[Fault] = (
    pb.ENQUEUE_ERROR_CODE_LUA,
    "the queue's on_enqueue has no verdict for this message; nothing was stored; try again later",
)


_FULL: Final[Fault] = (
    pb.ENQUEUE_ERROR_CODE_STORAGE,
    "the queue, or the message's fairness key in it, is full; it was not stored; try again later",
)


class EnqueueStream(Call):
    """Batch after batch, each answered with its number when it is committed."""

    _unanswered = 0
    _half_closed = False
    _line_bytes = 0

    def __init__(
        self, connection: GrpcConnection, stream: Stream, caller: Caller | None, method: Method
    ) -> None:
        super().__init__(connection, stream, caller, method)
        legacy.note_present(connection)
        # Batches that wait for one that is carried out in parts, which is in front.
        self._line: deque[bytes] = deque()
        # At once: there are clients that wait for these fields before they send anything.
        self.begin()

    def message(self, data: bytes) -> None:
        if self._line or parts.wanted(self, data):
            self._wait(data)
            return
        batch = self.parse(data)
        if batch is None:
            return
        self._unanswered += 1
        broker = self.connection.broker
        broker.begin()
        broker.work.done += len(batch[0])
        self._answer(_enqueue_numbered(self, batch))

    def _wait(self, data: bytes) -> None:
        """Batches are carried out in the order they came."""
        self._unanswered += 1
        self._line.append(data)
        self._count(len(data))
        self._check_held()
        if len(self._line) == 1 and not self.over:
            stepping.run(self.connection.broker, parts.guarded(self, self._in_parts()))

    def _in_parts(self) -> stepping.Steps:
        while self._line:
            held = [self._line[0]]
            self._count(-len(self._line[0]))
            self._line[0] = b""
            answer = yield from parts.carried_out(self, held)
            if self.over:
                return
            self._line.popleft()
            assert isinstance(answer, bytes)
            self._answer(answer)

    def _answer(self, answer: bytes) -> None:
        self.reply(message_codec.message_prefix(len(answer)) + answer)

    def _count(self, change_bytes: int) -> None:
        self._line_bytes += change_bytes
        self.connection.count_buffered(change_bytes)

    def buffered_bytes(self) -> int:
        return super().buffered_bytes() + self._line_bytes

    def left(self) -> None:
        self._line.clear()
        self._count(-self._line_bytes)

    def half_closed(self) -> None:
        self._half_closed = True
        if self._unanswered == 0:
            self.end_after_commit(DONE)

    def released(self, data: bytes) -> None:
        super().released(data)
        if data:
            self._unanswered -= 1
            if self._half_closed and self._unanswered == 0:
                self.end(DONE)

    def is_behind(self) -> bool:
        unsent_max = self.connection.limits.unsent_bytes_max
        return (
            len(self._line) > 1
            or self._unanswered > UNANSWERED_MAX
            or self.stream.out_bytes > unsent_max
        )


class ConsumeCall(OneRequestCall):
    """A consumer for as long as the call lasts."""

    def __init__(
        self, connection: GrpcConnection, stream: Stream, caller: Caller | None, method: Method
    ) -> None:
        super().__init__(connection, stream, caller, method)
        self._consumer = ""
        self._held = False
        self._encoder: DeliveryEncoder | None = None

    def requested(self, request: Any) -> None:
        assert self.caller is not None
        if request.prefetch:
            legacy.note_present(self.connection)  # the first shape did not have it
        crowded = self.session.too_many_consumers(self.connection.consumers_allowed())
        if crowded is not None:
            self.end_after_commit(Status(grpc_status.RESOURCE_EXHAUSTED, crowded))
            return
        self.connection.broker.begin()
        consumer = self.session.consume(request.queue, request.prefetch)
        if isinstance(consumer, Rejection):
            self.end_after_commit(of_queue(request.queue, consumer))
            return
        self._consumer = consumer
        self._encoder = DeliveryEncoder(request.queue)
        self.caller.consumers[consumer] = self
        self.reply(_ACCEPTED)

    def released(self, data: bytes) -> None:
        if data == _ACCEPTED:
            self.begin()
        else:
            super().released(data)

    def deliver(self, delivery: Delivery) -> None:
        assert self._encoder is not None
        one_each = self.connection.shape != legacy.PRESENT
        try:
            self.write(self._encoder.encode(delivery, one_each))
        except Exception as error:
            self.connection.fail_soon(error)
            return
        if not self._held and self.is_behind():
            self._held = True
            self.connection.wait_for_client(self)
            self.connection.loop.call_soon(self._hold, True)

    def is_behind(self) -> bool:
        """Others have their turn while the client does not take what it has."""
        unsent_max = self.connection.unsent_bytes_max()
        return (
            self.stream.out_bytes > unsent_max
            or self.connection.http2.out.waiting_bytes > unsent_max * UNSENT_SHARES
        )

    def caught_up(self) -> None:
        self._held = False
        self.connection.loop.call_soon(self._hold, False)

    def _hold(self, held: bool) -> None:
        # On a turn of its own: a turn that is being committed is no place to begin another.
        if not self.ended:
            self.session.hold_consumer(self._consumer, held)

    def left(self) -> None:
        super().left()
        if self._consumer and self.caller is not None:
            self.caller.consumers.pop(self._consumer, None)
            self.session.leave(self._consumer)


def store(session: Session, items: list[EnqueueItem]) -> list[bytes | Fault]:
    """An id or a fault for every message, in order."""
    results: list[bytes | Fault] = [_UNFIT] * len(items)
    for queue, places in by_queue([item[0] for item in items]):
        refused = session.may_produce(queue)
        if refused is not None:
            _all(results, places, _enqueue_fault(refused))
            continue
        bodies = []
        fitting = []
        for place in places:
            body = items[place][1]
            if body is not None:
                bodies.append(body)
                fitting.append(place)
        if not bodies:
            continue
        stored = session.enqueue(queue, bodies)
        if isinstance(stored, Rejection):
            _all(results, places, _enqueue_fault(stored))
        else:
            for place, id in zip(fitting, stored, strict=True):
                results[place] = id if len(id) > 1 else _FULL if id else _UNDECIDED
    return results


def _enqueue(call: UnaryCall, batch: Batch) -> bytes:
    return message_codec.encode_enqueued(store(call.session, batch[0]), None)


def _enqueue_numbered(call: Call, batch: Batch) -> bytes:
    return message_codec.encode_enqueued(store(call.session, batch[0]), batch[1])


def _messages(batch: Batch) -> int:
    return len(batch[0])


def _one_number(parts: list[Batch]) -> list[Batch]:
    """A batch's number is that of all its parts; the last one said counts."""
    number = next((number for _, number in reversed(parts) if number), 0)
    return [(items, number) for items, _ in parts]


def _ack(call: UnaryCall, items: list[SettleItem]) -> bytes:
    session = call.session
    return _settle(session, items, lambda queue, ids, places: session.ack(queue, ids))


def _nack(call: UnaryCall, items: list[SettleItem]) -> bytes:
    session = call.session

    def nack(queue: str, ids: list[bytes], places: list[int]) -> list[int] | Rejection:
        return session.nack(queue, ids, [_error_text(items[place][2]) for place in places])

    return _settle(session, items, nack)


def _nack_runs(
    call: Call, items: list[SettleItem], bytes_max: int
) -> list[tuple[list[SettleItem], int]]:
    found = runs(call.session, items, bytes_max)
    return [(items[start:end], size) for start, end, size in found]


def _settle(
    session: Session,
    items: list[SettleItem],
    apply: Callable[[str, list[bytes], list[int]], list[int] | Rejection],
) -> bytes:
    faults: list[Fault | None] = [None] * len(items)
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in by_queue([item[0] for item in items]):
        refused = session.may_consume(queue)
        if refused is not None:
            _all(faults, places, _settle_fault(refused))
            continue
        known, ids = parse_ids([items[place][1] for place in places], places)
        reply = apply(queue, ids, known)
        if isinstance(reply, Rejection):
            _all(faults, places, _settle_fault(reply))
            continue
        spread(reply, known, places, codes)
        for place in places:
            if codes[place] != errors.OK:
                faults[place] = _not_found(queue, items[place][1])
    return message_codec.encode_settled(faults)


def _all(results: list[Any], places: list[int], fault: Fault) -> None:
    for place in places:
        results[place] = fault


def _enqueue_fault(why: Rejection) -> Fault:
    return _ENQUEUE_CODES.get(why.code, pb.ENQUEUE_ERROR_CODE_UNSPECIFIED), why.message


def _settle_fault(why: Rejection) -> Fault:
    return _SETTLE_CODES.get(why.code, pb.ACK_ERROR_CODE_UNSPECIFIED), why.message


def _not_found(queue: str, id: bytes) -> Fault:
    shown = id[:64].decode(errors="replace")
    return (
        pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND,
        f'message "{shown}" of queue "{queue}" is not leased here',
    )


def _error_text(error: bytes) -> str:
    """As much of it as FIBP can carry."""
    return error[:TEXT_BYTES_MAX].decode(errors="ignore")


METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaService/Enqueue": legacy.either_shape(
        Method(
            UnaryCall,
            message_codec.decode_enqueue,
            _enqueue,
            "EnqueueRequest",
            0,
            parts=Parts(message_codec.decode_enqueue, _messages, _enqueue),
        ),
        message_codec.read_enqueue_item,
        legacy.enqueue,
    ),
    b"/fila.v1.FilaService/StreamEnqueue": Method(
        EnqueueStream,
        message_codec.decode_enqueue,
        None,
        "StreamEnqueueRequest",
        0,
        parts=Parts(message_codec.decode_enqueue, _messages, _enqueue_numbered, _one_number),
    ),
    b"/fila.v1.FilaService/Consume": Method(
        ConsumeCall, parser(pb.ConsumeRequest), None, "ConsumeRequest", 65_536
    ),
    b"/fila.v1.FilaService/Ack": legacy.either_shape(
        Method(
            UnaryCall,
            message_codec.decode_settlements,
            _ack,
            "AckRequest",
            0,
            parts=Parts(message_codec.decode_settlements, len, _ack),
        ),
        message_codec.read_settle_item,
        legacy.ack,
    ),
    b"/fila.v1.FilaService/Nack": legacy.either_shape(
        Method(
            UnaryCall,
            message_codec.decode_settlements,
            _nack,
            "NackRequest",
            0,
            parts=Parts(message_codec.decode_settlements, len, _nack, runs=_nack_runs),
        ),
        message_codec.read_settle_item,
        legacy.nack,
    ),
}
