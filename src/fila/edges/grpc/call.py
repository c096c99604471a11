"""One gRPC call: messages out of the stream's bytes, an answer when the turn is committed, an end.

Owns the length-prefixed framing of messages, cardinality, deadlines and how a call ends. What a
method does is in `service`, `operations`, `options`, `batches`, `health` and `reflection`. A
call is a Sink of the broker: its answers go through the turn's outbox, so nothing is answered
before it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.bulk_codec import check_count
from fila.edges.grpc.outflow import Stream
from fila.edges.grpc.protobuf_reader import InvalidMessage
from fila.edges.grpc.status import (
    OK_BLOCK,
    RESPONSE_BLOCK,
    Status,
    http_block,
    trailers_block,
)
from fila.edges.inbound import LARGE_BYTES, TOO_MUCH

if TYPE_CHECKING:
    from fila.broker.session import Session
    from fila.edges.grpc.caller import Caller
    from fila.edges.grpc.connection import GrpcConnection
    from fila.edges.grpc.parts import Parts
    from fila.edges.grpc.unary import UnaryCall

_PREFIX: Final = Struct(">BI")
_DEADLINE: Final = Status(grpc_status.DEADLINE_EXCEEDED, "the deadline passed")
_UNITS_S: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_DEADLINE_S_MAX: Final = 30 * 86_400.0  # a longer deadline counts as none


class Method(NamedTuple):
    """What stands behind a path."""

    open: Callable[[GrpcConnection, Stream, Caller | None, Method], Call]
    # Bytes to a request of at most so many items; raises InvalidMessage.
    parse: Callable[[bytes, int], Any]
    # Carry a unary request out: the response, a status, or nothing yet.
    apply: Callable[[UnaryCall, Any], bytes | Status | None] | None
    request: str  # the name of the request, for error texts
    request_bytes_max: int  # 0: as large as a message may be
    open_to_all: bool = False  # asks for no API key
    parts: Parts | None = None  # how a large request is carried out in parts


def parser(request: type[Message]) -> Callable[[bytes, int], Any]:
    """Bytes to a generated class."""

    def parse(data: bytes, items_max: int) -> Message:
        check_count(data, items_max)
        try:
            return request.FromString(data)
        except DecodeError as error:
            raise InvalidMessage(str(error)) from error

    return parse


class Call:
    traceparent = b""  # of the request's metadata

    def __init__(
        self, connection: GrpcConnection, stream: Stream, caller: Caller | None, method: Method
    ) -> None:
        self.connection = connection
        self.stream = stream
        self.caller = caller
        self.method = method
        self.ended = False
        self._closing: Status | None = None  # ends with this once what came before is answered
        self._begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._rest = bytearray()
        self._needed = _PREFIX.size
        if caller is not None:
            caller.calls.add(self)

    @property
    def session(self) -> Session:
        assert self.caller is not None, "a call that needs a session has a caller"
        session = self.caller.session
        session.traceparent = self.traceparent  # calls share the session: this one's turn
        return session

    # --- what a method does

    def message(self, data: bytes) -> None:
        """One message of the client's."""
        raise NotImplementedError

    def half_closed(self) -> None:
        """The client sends no more messages."""
        raise NotImplementedError

    def left(self) -> None:
        """The call ended, for whatever reason: release what it holds."""

    def expel(self, why: Status) -> None:
        """The caller's key is no longer valid."""
        self.end_after_commit(why)

    def is_behind(self) -> bool:
        """Whether the client has to catch up before it gets, or may send, more."""
        return False

    def caught_up(self) -> None:
        """It did."""
        self.connection.http2.give_back(self.stream)

    # --- bytes in

    def received(self, data: bytes, ended: bool) -> None:
        if self.over:
            return
        rest = self._rest
        if rest:
            rest += data
            self.connection.count_buffered(len(data))
            if not self._rest:
                return  # others needed the room
            if len(rest) < self._needed:
                self._check_held()
                data = b""
            elif self._needed > LARGE_BYTES and len(rest) == self._needed:
                # The usual end of a large message: copied once.
                message = bytes(memoryview(rest)[_PREFIX.size :])
                self._let_go()
                self._needed = _PREFIX.size
                del rest
                self.message(message)
                data = message = b""
            else:
                data = bytes(rest)
                self._let_go()
        if data:
            self._cut(data)
        if ended and not self.over:
            if self._rest:
                self.end_after_commit(
                    Status(grpc_status.INVALID_ARGUMENT, "a message is cut short")
                )
            else:
                self.half_closed()

    def _cut(self, data: bytes) -> None:
        """Hand out the whole messages, keep the rest."""
        position = 0
        size = len(data)
        self._needed = _PREFIX.size
        limit = self.method.request_bytes_max or self.connection.limits.message_bytes_max
        while size - position >= _PREFIX.size:
            compressed, length = _PREFIX.unpack_from(data, position)
            if compressed:
                self.end_after_commit(
                    Status(grpc_status.UNIMPLEMENTED, "compressed messages are not supported")
                )
                return
            if length > limit:
                self._refuse_size()
                return
            start = position + _PREFIX.size
            end = start + length
            if end > size:
                self._needed = end - position
                break
            self.message(data[start:end])
            if self.over:
                return
            position = end
        if position < size:
            self._rest = bytearray(data[position:])
            self.connection.count_buffered(len(self._rest))
            self._check_held()

    def make_room(self) -> None:
        """Others' messages arrive, this one does not: forget what there is of it."""
        self._let_go()
        self.end_after_commit(Status(grpc_status.RESOURCE_EXHAUSTED, TOO_MUCH))

    def _check_held(self) -> None:
        if self.connection.buffers_too_much():
            self.end_after_commit(Status(grpc_status.RESOURCE_EXHAUSTED, TOO_MUCH))

    def _refuse_size(self) -> None:
        limit = self.method.request_bytes_max or self.connection.limits.message_bytes_max
        self.end_after_commit(
            Status(
                grpc_status.RESOURCE_EXHAUSTED,
                f"{self.method.request} may have {limit} bytes; send less at once",
            )
        )

    @property
    def over(self) -> bool:
        """Nothing more is to be done for it: it has ended, or will with this turn's commit."""
        return self.ended or self._closing is not None

    def buffered_bytes(self) -> int:
        """What has arrived and is not complete."""
        return len(self._rest)

    def _let_go(self) -> None:
        self.connection.count_buffered(-len(self._rest))
        self._rest = bytearray()

    # --- the deadline

    def set_deadline(self, timeout: bytes) -> None:
        """`timeout` is the value of grpc-timeout, such as `1500m`."""
        unit = _UNITS_S.get(timeout[-1:])
        digits = timeout[:-1]
        if unit is None or not digits.isdigit() or len(digits) > 8:
            self.end(Status(grpc_status.INVALID_ARGUMENT, "grpc-timeout is not a duration"))
            return
        seconds = int(digits) * unit
        if seconds <= 0:
            self.end(_DEADLINE)
        elif seconds < _DEADLINE_S_MAX:
            self._timer = self.connection.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        self.end(_DEADLINE)
        self.connection.flush()

    # --- the end

    def end_after_commit(self, status: Status) -> None:
        """End when everything this turn did is committed, behind the answers that came before."""
        if self._closing is None:
            self._closing = status
            self.connection.broker.begin()
            self.reply(b"")

    def end(self, status: Status) -> None:
        """End now."""
        if self.ended:
            return
        self._finish()
        out = self.connection.http2.out
        if status.code == grpc_status.OK:
            self.begin()
            out.trailers(self.stream, OK_BLOCK)
        elif self._begun:
            out.trailers(self.stream, trailers_block(status))
        else:
            out.trailers(self.stream, RESPONSE_BLOCK + trailers_block(status))

    def cancelled(self) -> None:
        """The client is gone, or no longer interested."""
        if not self.ended:
            self._finish()

    def _finish(self) -> None:
        self.ended = True
        self._let_go()
        if self._timer is not None:
            self._timer.cancel()
        self.connection.call_ended(self)
        if self.caller is not None:
            self.caller.calls.discard(self)
        self.left()

    # --- bytes out (Sink)

    def begin(self) -> None:
        """The response's header fields, which also say that the call was accepted."""
        if not self._begun:
            self._begun = True
            self.connection.http2.out.headers(self.stream, RESPONSE_BLOCK)

    def write(self, message: bytes) -> None:
        """One message, its prefix in front."""
        self.begin()
        self.connection.http2.out.data(self.stream, message)

    def reply(self, data: bytes) -> None:
        """Send it when the turn is committed."""
        self.connection.due_bytes += len(data)
        self.connection.broker.reply(self, data)

    def send(self, data: bytes) -> None:
        """What the turn's commit releases. A failure over it costs this connection: others' answers
        are released by the same commit."""
        self.connection.due_bytes -= len(data)
        if not self.ended:
            try:
                self.released(data)
            except Exception as error:
                self.connection.fail_soon(error)

    def released(self, data: bytes) -> None:
        """A message, or with nothing in it the end."""
        if data:
            self.write(data)
        else:
            assert self._closing is not None
            self.end(self._closing)

    def deliver(self, delivery: Delivery) -> None:
        raise AssertionError("deliveries come through the caller")

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        raise AssertionError("consumers end through the caller")

    def flush(self) -> None:
        self.connection.flush()

    def parse(self, data: bytes) -> Any:
        """The request, or None after the call was ended for what it is."""
        try:
            return self.method.parse(data, self.connection.limits.messages_max)
        except InvalidMessage as error:
            self.invalid(error)
            return None

    def invalid(self, error: InvalidMessage) -> None:
        """A request that does not parse changes nothing."""
        text = f"this is not a valid {self.method.request}: {error}"
        self.end_after_commit(Status(grpc_status.INVALID_ARGUMENT, text))


def _nothing(data: bytes, items_max: int) -> None:
    raise InvalidMessage("no method takes this")


_NO_METHOD: Final = Method(Call, _nothing, None, "request", 0)


class NotGrpc(Call):
    """A request that is not gRPC: told so, as HTTP tells such things, once it has arrived whole."""

    def __init__(
        self, connection: GrpcConnection, stream: Stream, status: bytes, text: str, body: bool
    ) -> None:
        super().__init__(connection, stream, None, _NO_METHOD)
        self._status = status
        self._text = text
        self._body = body

    def received(self, data: bytes, ended: bool) -> None:
        if ended and not self.ended:
            self._finish()
            out = self.connection.http2.out
            out.headers(self.stream, http_block(self._status, self._text))
            if self._body:
                out.data(self.stream, self._text.encode() + b"\n")
            out.trailers(self.stream, b"")
