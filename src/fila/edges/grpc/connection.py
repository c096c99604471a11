"""One HTTP/2 connection that carries gRPC: the socket, its calls, and who makes them.

Owns the socket's two directions. Requests are handled as they come, so no inbound
queue builds up; outbound data is bounded by consumers' credit, by not letting a client send more
batches than it reads answers, and by refusing calls from a client that reads nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from fila.broker.session import Sessions
from fila.edges import failures
from fila.edges.grpc import (
    batches,
    frames,
    health,
    legacy,
    operations,
    options,
    reflection,
    service,
)
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Call, Method, NotGrpc
from fila.edges.grpc.caller import Caller
from fila.edges.grpc.fields import Request
from fila.edges.grpc.http2 import DATA, REQUEST, Http2, Http2Error, Http2Limits
from fila.edges.grpc.outflow import Stream
from fila.edges.grpc.status import RESPONSE_BLOCK, Status, trailers_block
from fila.edges.inbound import LARGE_BYTES
from fila.edges.keepalive import keep_alive
from fila.edges.limits import ConnectionLimits
from fila.edges.outbound import SLOW_BYTES, unread_bytes, write
from fila.edges.port import Port
from fila.security.keyring import digest_of

log = logging.getLogger("fila.grpc")

METHODS: Final[dict[bytes, Method]] = {
    **service.METHODS,
    **options.METHODS,
    **batches.METHODS,
    **operations.METHODS,
    **health.METHODS,
    **reflection.METHODS,
}
CONTENT_TYPES: Final = (b"application/grpc", b"application/grpc+proto")
CALLERS_MAX: Final = 64
STRANGER_CALLS_MAX: Final = 16
_FRAME_ROOM: Final = 512 * 1024  # beside the largest message: a frame, and the next one's begin
REFUSED_GLITCHES: Final = 20
LATE_GLITCHES: Final = 200  # of a wrong key when its address has shown many
WRITE_BUFFER_BYTES: Final = 64 * 1024
_STOPPING: Final = Status(grpc_status.UNAVAILABLE, "the server is stopping")


class GrpcLimits(NamedTuple):
    http2: Http2Limits = Http2Limits()
    connection: ConnectionLimits = ConnectionLimits()


class GrpcConnection(asyncio.Protocol):
    def __init__(
        self,
        sessions: Sessions,
        limits: GrpcLimits,
        loop: asyncio.AbstractEventLoop,
        opened: Callable[[GrpcConnection], None],
        closed: Callable[[GrpcConnection], None],
        port: Port | None = None,
    ) -> None:
        self.broker = sessions.broker
        self.loop = loop
        self.http2 = Http2(limits.http2, loop.time)
        self.calls: dict[int, Call] = {}
        self.limits = limits.connection
        self._buffered_bytes = 0  # of messages that are not complete
        self._rest_bytes = 0  # of a frame that is not
        self._admitted = False  # somebody was
        self._port = port or Port(limits.connection)
        self.inbound = self._port.inbound
        self.due_bytes = 0  # answers on their way to the commit
        self.shape = legacy.UNKNOWN  # of the client's messages
        self._sessions = sessions
        self._header_bytes_max = limits.http2.header_bytes_max
        self._streams_max = limits.http2.streams_max
        self._opened = opened
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._peer = "?"
        self._callers: dict[str, Caller] = {}
        self._behind: dict[int, Call] = {}
        self._called = False
        self._slow = False
        self._late = False  # many wrong keys came from this address
        self._ended = False
        self._parting = False  # the last answers are on their way, nothing new is taken
        self._paused = 0  # reasons not to read: a full socket, frames that wait for the next round
        self._opening_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        keep_alive(transport, self.limits)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._opening_timer = self.loop.call_later(self.limits.handshake_s, self._too_late)
        self._opened(self)
        self.flush()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        try:
            for kind, stream, payload, ended in self.http2.feed(data):
                if kind == DATA:
                    call = self.calls.get(stream.id)
                    if call is not None:
                        call.received(cast(bytes, payload), ended)
                        if call.is_behind():
                            self.wait_for_client(call)
                        else:
                            self.http2.give_back(stream)
                elif kind == REQUEST:
                    if self._parting:
                        continue  # it was told so
                    self._request(stream, cast(Request, payload), ended)
                else:
                    call = self.calls.get(stream.id)
                    if call is not None:
                        call.cancelled()
            self._count_rest()
        except Http2Error as error:
            self._break(error)
        except Exception as error:
            self.fail(error)
        if self.http2.more and not self._ended:
            self._pause()
            self.loop.call_soon(self._next_round)
        self.flush()

    def pause_writing(self) -> None:
        # The client does not read: take nothing from it whose answers would pile up here.
        self.http2.out.blocked = True
        self._pause()

    def resume_writing(self) -> None:
        self.http2.out.blocked = False
        self.flush()
        self._resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        for timer in (self._opening_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        for call in list(self.calls.values()):
            call.cancelled()
        for caller in self._callers.values():
            caller.close()
        self._callers.clear()
        self.count_buffered(-self._rest_bytes)
        self._port.outbound.hold(self, 0)
        self._port.strangers.known(self)
        self._closed(self)
        self._transport = None  # or it and its TLS buffers would wait for the collector

    def flush(self) -> None:
        """Write what may leave."""
        try:
            self._flush()
        except Exception as error:
            self.fail_soon(error)

    def fail_soon(self, error: Exception) -> None:
        """On a turn of its own: a turn that is being committed is no place to begin another."""
        self.loop.call_soon(self.fail, error)

    def fail(self, error: Exception) -> None:
        """The broker failed over this connection, which ends. Its own state is not in doubt: a
        command that broke off has stopped the broker already."""
        if self._ended or self.broker.stopped:
            return
        self._port.failures.report(failures.GRPC, self._peer, error)
        try:
            self._break(Http2Error(frames.INTERNAL_ERROR, "the broker failed; its log says why"))
        except Exception:
            log.exception("a connection that failed could not be ended in order")
            self._ended = True
            if self._transport is not None:
                self._transport.abort()

    def _flush(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        out = self.http2.out
        while data := out.take():
            write(transport, [data])
        if out.waiting_bytes > SLOW_BYTES or out.blocked:
            self._slow = True
            self._port.outbound.hold(self, self.unsent_bytes())
        elif self._slow:
            self._slow = False
            self._port.outbound.hold(self, 0)
        if self._behind:
            self._catch_up()
        if len(self.broker.telling) and self.takes_more():
            self.broker.telling.resume()
        if self._parting and out.idle and transport.can_write_eof():
            transport.write_eof()

    # --- stopping

    def shut_down(self) -> None:
        """The server stops: answer what was accepted, say so, close."""
        self.http2.go_away(frames.NO_ERROR, _STOPPING.message)
        self.flush()
        self.broker.begin()
        self.broker.after_commit(self._finish)

    def _finish(self) -> None:
        """The last answers may have to wait for the client's window, and would be lost on the way
        if the socket were closed over what the client still sends: read on until it hangs up."""
        calls = list(self.calls.values())
        for call in calls:
            call.end(_STOPPING)
        if not calls:
            self.flush()
            self._close()
            return
        self._parting = True
        self._close_timer = self.loop.call_later(self.limits.close_s, self._close)
        self.flush()

    def _break(self, error: Http2Error) -> None:
        log.info(f"gRPC connection closed: {error}", extra={"peer": self._peer})
        for call in list(self.calls.values()):
            call.cancelled()
        self.http2.go_away(error.code, str(error))
        self.flush()
        self._close()

    def _close(self) -> None:
        self._ended = True
        transport = self._transport
        if transport is not None:
            transport.close()
            # A client that does not read would keep its socket, and what is unsent, for ever.
            self._close_timer = self.loop.call_later(self.limits.close_s, transport.abort)

    def _too_late(self) -> None:
        if not self._called:
            log.info("no call in time, closing", extra={"peer": self._peer})
            self.http2.go_away(frames.NO_ERROR, "no call in time")
            self.flush()
            self._close()

    # --- calls

    def _request(self, stream: Stream, request: Request, ended: bool) -> None:
        if stream.closed:
            return  # cancelled by what came with it
        call = self._open(stream, request)
        if isinstance(call, bytes):
            self.http2.out.trailers(stream, call)
            return
        self.calls[stream.id] = call
        self._port.calls += 1
        if request.timeout:
            call.set_deadline(request.timeout)
        if ended and not call.ended:
            call.received(b"", True)

    def _open(self, stream: Stream, request: Request) -> Call | bytes:
        """A call, or the fields that refuse it before it begins."""
        if request.method != b"POST":
            text, body = "gRPC calls are POST requests", request.method != b"HEAD"
            return NotGrpc(self, stream, b"405", text, body)
        if request.content_type.partition(b";")[0].strip() not in CONTENT_TYPES:
            text = "the content type is not application/grpc"
            return NotGrpc(self, stream, b"415", text, True)
        if request.too_large:
            limit = self._header_bytes_max
            return _refusal(grpc_status.RESOURCE_EXHAUSTED, f"metadata may have {limit} bytes")
        method = METHODS.get(request.path)
        if method is None:
            path = request.path.decode("latin-1")
            return _refusal(grpc_status.UNIMPLEMENTED, f"no method {path}")
        if request.encoding not in (b"", b"identity"):
            encoding = request.encoding.decode("latin-1")
            return _refusal(grpc_status.UNIMPLEMENTED, f"{encoding} is not supported")
        waiting_bytes = self.http2.out.waiting_bytes + self.due_bytes
        deliveries_bytes = self.limits.unsent_bytes_max * service.UNSENT_SHARES
        if waiting_bytes > self.limits.outbound_bytes_max + 2 * deliveries_bytes:
            return _refusal(grpc_status.RESOURCE_EXHAUSTED, "read the answers you have first")
        if not self._admitted and len(self.calls) >= STRANGER_CALLS_MAX:
            text = f"{STRANGER_CALLS_MAX} calls may be open before one has a key"
            return _refusal(grpc_status.RESOURCE_EXHAUSTED, text)
        if len(self.calls) >= self._port.allowed(self._streams_max, self._port.calls):
            return _refusal(grpc_status.RESOURCE_EXHAUSTED, "too many calls are open; end some")
        caller = None if method.open_to_all else self._caller(request.authorization)
        if isinstance(caller, Status):
            self.http2.glitch(LATE_GLITCHES if self._late else REFUSED_GLITCHES)
            return _refusal(*caller)
        self._called = True
        call = method.open(self, stream, caller, method)
        if request.traceparent:
            call.traceparent = request.traceparent
        return call

    def call_ended(self, call: Call) -> None:
        if self.calls.pop(call.stream.id, None) is not None:
            self._port.calls -= 1

    def count_buffered(self, change_bytes: int) -> None:
        """Keep the sums of what has not arrived completely."""
        before = self._buffered_bytes
        self._buffered_bytes += change_bytes
        if self._admitted:
            self._port.inbound.count(self, before, self._buffered_bytes)
        else:
            self._port.strangers.heard(self, self._buffered_bytes)

    def buffers_too_much(self) -> bool:
        return self._buffered_bytes > self.limits.message_bytes_max + _FRAME_ROOM

    def make_room(self) -> None:
        """Others' messages arrive, and this connection's large ones do not."""
        for call in list(self.calls.values()):
            if call.buffered_bytes() > LARGE_BYTES:
                call.make_room()

    def give_up(self) -> None:
        """Others need the room that this one takes for nothing."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def unsent_bytes(self) -> int:
        written = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self.http2.out.waiting_bytes + written

    def taken_bytes(self) -> int:
        return self.http2.out.left_bytes - unread_bytes(self._transport)

    def _count_rest(self) -> None:
        """The frame that has not arrived whole counts as well. A stranger may send little."""
        rest_bytes = self.http2.buffered_bytes()
        if rest_bytes != self._rest_bytes:
            change_bytes, self._rest_bytes = rest_bytes - self._rest_bytes, rest_bytes
            self.count_buffered(change_bytes)
        if not self._admitted and self._buffered_bytes > self.limits.stranger_bytes_max:
            raise Http2Error(frames.ENHANCE_YOUR_CALM, "too much came before a key")

    def _admit(self) -> None:
        if not self._admitted:
            self._port.strangers.known(self)
            self._admitted = True
            self._port.inbound.count(self, 0, self._buffered_bytes)

    def takes_more(self) -> bool:
        """Whether the client has taken nearly all it was sent."""
        return self.http2.out.waiting_bytes <= self.unsent_bytes_max()

    def unsent_bytes_max(self) -> int:
        return self._port.unsent_bytes_max()

    def consumers_allowed(self) -> int:
        return self._port.allowed(self.limits.consumers_max, self.broker.consumers())

    def wait_for_client(self, call: Call) -> None:
        """Call `caught_up` once the client has taken what is unsent."""
        self._behind[call.stream.id] = call

    def _catch_up(self) -> None:
        for stream_id, call in list(self._behind.items()):
            if call.ended or not call.is_behind():
                del self._behind[stream_id]
                call.caught_up()

    # --- who calls

    def _caller(self, authorization: bytes | None) -> Caller | Status:
        secret = _bearer(authorization)
        # Without authentication all calls on the connection share one caller.
        name = digest_of(secret) if secret and self._sessions.guard.enabled else ""
        known = self._callers.get(name)
        if known is not None:
            return known
        if len(self._callers) >= CALLERS_MAX and not self._forget_idle():
            text = f"a connection may use {CALLERS_MAX} API keys at once; open another"
            return Status(grpc_status.RESOURCE_EXHAUSTED, text)
        caller = Caller(self, self._sessions, name, self._peer)
        refused = caller.admit(secret)
        if refused is not None:
            self._late = caller.session.late
            caller.close()
            return grpc_status.of(refused)
        self._callers[name] = caller
        self._admit()
        return caller

    def forget(self, name: str) -> None:
        """A caller was expelled."""
        self._callers.pop(name, None)

    def _forget_idle(self) -> bool:
        idle = [name for name, caller in self._callers.items() if not caller.calls]
        for name in idle:
            self._callers.pop(name).close()
        return bool(idle)

    # --- reading

    def _pause(self) -> None:
        self._paused += 1
        if self._paused == 1 and self._transport is not None:
            self._transport.pause_reading()

    def _resume(self) -> None:
        self._paused -= 1
        transport = self._transport
        if self._paused == 0 and transport is not None and not transport.is_closing():
            transport.resume_reading()

    def _next_round(self) -> None:
        self.data_received(b"")
        self._resume()


def _refusal(code: int, message: str) -> bytes:
    return RESPONSE_BLOCK + trailers_block(Status(code, message))


def _bearer(authorization: bytes | None) -> str | None:
    """The API key in `Bearer <key>`."""
    if authorization is None:
        return None
    scheme, _, secret = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return secret.strip().decode("utf-8", "replace")
