"""Calls that take exactly one message, and those that answer it with one.

Owns cardinality, and when a unary request is carried out: at once while the turn has room for it,
else in parts (`parts.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fila.broker import stepping
from fila.edges.grpc import parts
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Call, Method
from fila.edges.grpc.message_codec import message_prefix
from fila.edges.grpc.outflow import Stream
from fila.edges.grpc.status import DONE, Status

if TYPE_CHECKING:
    from fila.edges.grpc.caller import Caller
    from fila.edges.grpc.connection import GrpcConnection


class OneRequestCall(Call):
    """A call that takes exactly one message."""

    def __init__(
        self, connection: GrpcConnection, stream: Stream, caller: Caller | None, method: Method
    ) -> None:
        super().__init__(connection, stream, caller, method)
        self._request: bytes | None = None

    def message(self, data: bytes) -> None:
        if self._request is not None:
            self._miscounted()
            return
        # Until the client has finished, a whole message counts as an unfinished one.
        self._request = data
        self.connection.count_buffered(len(data))
        self._check_held()

    def half_closed(self) -> None:
        if self._request is None:
            self._miscounted()
            return
        request = self.parse(self._request)
        self._forget_request()
        if request is not None:
            self.requested(request)

    def left(self) -> None:
        self._forget_request()

    def make_room(self) -> None:
        self._forget_request()
        super().make_room()

    def _forget_request(self) -> None:
        if self._request:
            self.connection.count_buffered(-len(self._request))
            self._request = b""

    def buffered_bytes(self) -> int:
        return super().buffered_bytes() + len(self._request or b"")

    def requested(self, request: Any) -> None:
        raise NotImplementedError

    def _miscounted(self) -> None:
        text = f"this method takes exactly one {self.method.request}"
        self.end_after_commit(Status(grpc_status.UNIMPLEMENTED, text))


class UnaryCall(OneRequestCall):
    """One message in, one out."""

    _carried_out = False

    def half_closed(self) -> None:
        data = self._request
        if data is None or not parts.wanted(self, data):
            super().half_closed()
            return
        self._carried_out = True
        self._forget_request()
        stepping.run(self.connection.broker, parts.guarded(self, self._in_parts([data])))

    def _in_parts(self, held: list[bytes]) -> stepping.Steps:
        answer = yield from parts.carried_out(self, held)
        if answer is not None:
            self.answer(answer)

    def requested(self, request: Any) -> None:
        self._carried_out = True
        assert self.method.apply is not None
        self.connection.broker.begin()
        answer = self.method.apply(self, request)
        if self.method.parts is not None:
            self.connection.broker.work.done += self.method.parts.count(request)
        if answer is not None:
            self.answer(answer)

    def answer(self, answer: bytes | Status) -> None:
        """When the turn is committed."""
        if isinstance(answer, Status):
            self.end_after_commit(answer)
        else:
            self.connection.broker.begin()
            self.reply(message_prefix(len(answer)) + answer)

    def released(self, data: bytes) -> None:
        super().released(data)
        if data:
            self.end(DONE)

    def expel(self, why: Status) -> None:
        # A key may revoke itself: what it did with its last right is still answered.
        if not self._carried_out:
            super().expel(why)
