"""One FIBP connection: frames in, commands to the broker, committed effects out.

Owns the socket's two directions and their limits; which request is carried out when is
`fibp_requests.py`'s. A client that does not read gets no more deliveries once a little is unsent,
while its requests go on; when their replies pile up too, it is not read from any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import cast

from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges import (
    failures,
    fibp_batches,
    fibp_consumers,
    fibp_deliveries,
    fibp_handshake,
    fibp_messages,
    fibp_operations,
)
from fila.edges.fibp_requests import Requests
from fila.edges.inbound import TOO_MUCH
from fila.edges.keepalive import keep_alive
from fila.edges.limits import ConnectionLimits
from fila.edges.outbound import SLOW_BYTES, unread_bytes, write
from fila.edges.port import Port
from fila.edges.reason import clipped
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.errors import FrameError, InvalidBody
from fila.wire.frames import FrameDecoder, frame_header, frame_pieces, frame_views
from fila.wire.states import SERVER, Refusal, State, receive

log = logging.getLogger("fila.fibp")


class FibpConnection(asyncio.Protocol):
    def __init__(
        self,
        sessions: Sessions,
        limits: ConnectionLimits,
        loop: asyncio.AbstractEventLoop,
        opened: Callable[[FibpConnection], None],
        closed: Callable[[FibpConnection], None],
        port: Port | None = None,
    ) -> None:
        self._port = port = port or Port(limits)
        self.inbound = port.inbound
        self._lane_fields = port.lane_fields
        self._buffered_bytes = 0  # of messages that are not complete
        self.broker = sessions.broker
        self._sessions = sessions
        self.limits = limits
        self._loop = loop
        self._opened = opened
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._state = State.OPENING
        self.requests = Requests(
            self,
            FrameDecoder(
                limits.frame_bytes_max, limits.assembly_streams_max, limits.message_bytes_max
            ),
        )
        self._due_bytes = 0  # replies on their way to the commit
        self._piled_bytes = 0  # replies made since the client fell behind with reading
        self._slow_bytes = 0  # written while it was behind
        self._out: list[bytes | memoryview] = []
        self._reading = True
        self._congested = False
        self._handshake_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self.session: Session | None = None
        # Consume request id → (queue, consumer id), and the reverse for deliveries.
        self.consumers: dict[int, tuple[str, str]] = {}
        self.consumer_requests: dict[str, int] = {}

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.session = self._sessions.open(self, f"{peer[0]}:{peer[1]}" if peer else "?")
        keep_alive(transport, self.limits)
        transport.set_write_buffer_limits(high=SLOW_BYTES)
        self._handshake_timer = self._loop.call_later(self.limits.handshake_s, self._too_late)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        if self._state is State.CLOSED:
            return
        try:
            self.requests.received(data)
            buffered_bytes = self.requests.decoder.buffered_bytes
            if buffered_bytes != self._buffered_bytes:
                self.count_buffered(buffered_bytes)
        except Exception as error:
            self.fail(error)

    def pause_writing(self) -> None:
        self._congested = True

    def resume_writing(self) -> None:
        self._congested = False
        self._piled_bytes = 0
        self._port.outbound.hold(self, 0)
        if self._transport is not None and not self._transport.is_closing():
            self._open_session().resume()
            self._unchoke()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state = State.CLOSED
        self._forget_inbound()
        self._port.outbound.hold(self, 0)
        self._port.strangers.known(self)
        self._cancel_handshake_timer()
        if self._close_timer is not None:
            self._close_timer.cancel()
        if self.session is not None:
            self.session.close()
        self.requests.lost()
        self._closed(self)
        # A TLS transport and its protocol hold each other, with buffers of a hundred KiB; the
        # collector, which runs rarely here, must not be what frees them.
        self._transport = None

    # --- what the broker sends (Sink)

    def send(self, data: bytes) -> None:
        self._due_bytes -= len(data)
        if self._congested:
            self._piled_bytes += len(data)
        self._out.append(data)

    def deliver(self, delivery: Delivery) -> None:
        try:
            self._deliver(delivery)
        except Exception as error:
            self.fail_soon(error)

    def _deliver(self, delivery: Delivery) -> None:
        request_id = self.consumer_requests.get(delivery.consumer.id)
        if request_id is None:
            return
        body = fibp_deliveries.encode(self.consumers[request_id][0], delivery, self._lane_fields)
        if len(body) + 6 <= self.limits.frame_bytes_max:
            self._frame(op.DELIVERY, request_id, body, self._out.append)
        else:
            self._out += frame_views(op.DELIVERY, request_id, body, self.limits.frame_bytes_max)

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        request_id = self.consumer_requests.pop(consumer, None)
        self._open_session().forget(consumer)
        if request_id is not None:
            del self.consumers[request_id]
            try:
                error = bodies.Error(why.code, clipped(why.message), {})
                self._frame(op.ERROR, request_id, layouts.encode(error), self._out.append)
            except Exception as failure:
                self.fail_soon(failure)

    def flush(self) -> None:
        out, self._out = self._out, []
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if self._congested:
                self._slow_bytes += sum(map(len, out))
            write(transport, out)
            if self._congested:
                self._fall_behind(transport.get_write_buffer_size())
            if not self._reading:
                self._loop.call_soon(self._unchoke)

    def takes_more(self) -> bool:
        if not self._congested:
            return True
        return self.unsent_bytes() <= self._port.unsent_bytes_max()

    # --- stopping

    def shut_down(self) -> None:
        """The server stops: say so after the replies that are due, then close."""
        if self._state is State.OPEN:
            self.broker.begin()
            self.reply(op.DISCONNECT, 0, b"")
        self._end()

    # --- requests

    def reply(self, opcode: int, request_id: int, body: bytes) -> None:
        """Answer when the turn is committed."""
        self._frame(opcode, request_id, body, self._reply_frame)

    def refuse(self, request_id: int, fault: Rejection, metadata: dict[str, str]) -> None:
        """An Error frame when the turn is committed."""
        error = bodies.Error(fault.code, clipped(fault.message), metadata)
        self.reply(op.ERROR, request_id, layouts.encode(error))

    def reply_now(self, opcode: int, request_id: int, body: bytes) -> None:
        """Answer with what is committed already; the caller sees to the flush."""
        if self._state is State.OPEN:
            self._frame(opcode, request_id, body, self._out.append)

    def refuse_now(self, request_id: int, fault: Rejection) -> None:
        error = bodies.Error(fault.code, clipped(fault.message), {})
        self.reply_now(op.ERROR, request_id, layouts.encode(error))

    def _reply_frame(self, data: bytes) -> None:
        self._due_bytes += len(data)
        self.broker.reply(self, data)

    def _fall_behind(self, unsent_bytes: int) -> None:
        """The client does not take what is written as fast as it is."""
        self._port.outbound.hold(self, unsent_bytes)
        if not self.takes_more():
            self._open_session().hold()

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def taken_bytes(self) -> int:
        return self._slow_bytes - unread_bytes(self._transport)

    def count_buffered(self, buffered_bytes: int) -> None:
        """Keep the sums over all connections of what has not arrived whole."""
        if self._state is State.OPENING:
            self._port.strangers.heard(self, buffered_bytes)
            if buffered_bytes > self.limits.stranger_bytes_max:
                text = f"send a handshake, of at most {self.limits.stranger_bytes_max} bytes, first"
                self._refuse(0, errors.INVALID_FRAME, text)
                self._end()
            return
        before, self._buffered_bytes = self._buffered_bytes, buffered_bytes
        self._port.inbound.count(self, before, buffered_bytes)

    def make_room(self) -> None:
        if self._state is not State.CLOSED:
            self._refuse(0, errors.CHANNEL_FULL, TOO_MUCH, {"retry_after_ms": "1000"})
            self._end()

    def give_up(self) -> None:
        """Others need the room that this one takes for nothing."""
        if self._transport is not None:
            self._transport.abort()

    def _unchoke(self) -> None:
        """Replies have left."""
        if self._state is not State.CLOSED:
            try:
                self.requests.unchoked()
                self.count_buffered(self.requests.decoder.buffered_bytes)
            except Exception as error:
                self.fail(error)

    def has_room(self) -> bool:
        """Whether the client may have more replies made for it."""
        return (
            self._due_bytes <= self.limits.unsent_bytes_max
            and self._piled_bytes <= self.limits.outbound_bytes_max
        )

    def read(self, on: bool) -> None:
        """Read from the socket, or leave there what the client sends."""
        transport = self._transport
        if on is not self._reading and transport is not None and not transport.is_closing():
            self._reading = on
            if on:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def refuse_frames(self, refused: list[FrameError]) -> None:
        """What could not be cut into frames, or joined to messages."""
        for error in refused:
            self._refuse(error.request_id, error.code, error.message)
            if error.fatal:
                self._end()

    def invalid(self, request_id: int, error: InvalidBody) -> None:
        """A request that does not parse changes nothing."""
        self._refuse(request_id, errors.INVALID_FRAME, str(error))
        if self._state is State.OPENING:
            self._end()

    def handle(
        self,
        opcode: int,
        request_id: int,
        body: bytes,
        kind: fibp_messages.Kind | None,
        count: int,
    ) -> None:
        """Carry a request out, or begin to: of so many messages, if it is of a kind with any."""
        state = self._state
        if state is State.CLOSED:
            return
        if kind is None or state is not State.OPEN:
            following = receive(SERVER, state, opcode)
            if isinstance(following, Refusal):
                self._refuse(request_id, following.code, following.message)
                if following.fatal:
                    self._end()
                return
        self.broker.begin()
        try:
            if kind is not None:
                fibp_messages.handle(self, self._open_session(), kind, request_id, body, count)
            elif opcode == op.HANDSHAKE:
                fibp_handshake.handshake(self, self._open_session(), request_id, body)
            elif opcode == op.CONSUME:
                fibp_consumers.consume(self, self._open_session(), request_id, body)
            elif opcode == op.CANCEL_CONSUME:
                fibp_consumers.cancel(self, self._open_session(), request_id)
            elif opcode == op.PING:
                self.reply(op.PONG, request_id, b"")
            elif opcode == op.DISCONNECT:
                self._open_session().leave_all(release=True)
                self._end()
            elif opcode == op.LEASE_BATCH:
                fibp_batches.lease_batch(self, self._open_session(), request_id, body)
            elif opcode == op.BROWSE_PAGE:
                fibp_batches.browse_page(self, self._open_session(), request_id, body)
            elif opcode != op.PONG:
                fibp_operations.handle(self, opcode, request_id, body)
        except InvalidBody as error:
            self.invalid(request_id, error)

    def admitted(self) -> None:
        """The caller has shown who it is."""
        self._cancel_handshake_timer()
        self._port.strangers.known(self)
        self._state = State.OPEN

    def turn_away(self, request_id: int, why: Rejection, metadata: dict[str, str]) -> None:
        """It did not, or speaks something else: told so, and closed."""
        self._refuse(request_id, why.code, why.message, metadata)
        self._end()

    def turn_away_late(self, request_id: int, why: Rejection, delay_s: float) -> None:
        """The same in a while; nothing of it is read any more."""
        self._state = State.CLOSED
        self._forget_inbound()
        self._cancel_handshake_timer()

        def refuse() -> None:
            self._refuse(request_id, why.code, why.message)
            self.broker.after_commit(self._close)

        self._handshake_timer = self._loop.call_later(delay_s, refuse)

    def consumers_allowed(self) -> int:
        return self._port.allowed(self.limits.consumers_max, self.broker.consumers())

    # --- who is there

    def expelled(self, why: Rejection) -> None:
        """The caller's key is no longer valid: say so, then close."""
        if self._state is not State.CLOSED:
            self._refuse(0, why.code, why.message)
            self._end()

    def _open_session(self) -> Session:
        assert self.session is not None, "a connection has a session from its first moment"
        return self.session

    # --- bytes out

    def _frame(
        self, opcode: int, request_id: int, body: bytes, out: Callable[[bytes], None]
    ) -> None:
        if len(body) + 6 <= self.limits.frame_bytes_max:
            out(frame_header(opcode, 0, request_id, len(body)))
            out(body)
        else:
            for piece in frame_pieces(opcode, request_id, body, self.limits.frame_bytes_max):
                out(piece)

    def _refuse(
        self, request_id: int, code: int, message: str, metadata: dict[str, str] | None = None
    ) -> None:
        """An Error frame that justifies nothing: it need not wait for the commit, but it does
        wait its turn behind the replies that came before it."""
        self.broker.begin()
        self.refuse(request_id, Rejection(code, message), metadata or {})

    def _end(self) -> None:
        """Close after what is on its way has been sent."""
        if self._state is not State.CLOSED:
            self._state = State.CLOSED
            # From here on no delivery would arrive: consumers end now, not with the socket.
            self.consumers.clear()
            self.consumer_requests.clear()
            self._open_session().leave_all(release=False)
            self._forget_inbound()
            self.broker.begin()
            self.broker.after_commit(self._close)

    def fail_soon(self, error: Exception) -> None:
        """On a turn of its own: a turn that is being committed is no place to begin another."""
        self._loop.call_soon(partial(self.fail, error))

    def fail(self, error: Exception) -> None:
        """The broker failed over this connection, which ends. Its own state is not in doubt: a
        command that broke off has stopped the broker already."""
        if self._state is State.CLOSED or self.broker.stopped:
            return
        self._port.failures.report(failures.FIBP, self.session.peer if self.session else "?", error)
        try:
            text = "the broker failed to handle this; its log says why"
            self._refuse(0, errors.INTERNAL_ERROR, text)
            self._end()
        except Exception:
            log.exception("a connection that failed could not be ended in order")
            if self._transport is not None:
                self._transport.abort()

    def _forget_inbound(self) -> None:
        self.requests.close()
        self.count_buffered(0)

    def _close(self) -> None:
        transport = self._transport
        if transport is not None:
            transport.close()
            # A client that does not read would keep its socket, and what is unsent, for ever.
            self._close_timer = self._loop.call_later(self.limits.close_s, transport.abort)

    def _too_late(self) -> None:
        log.info("no handshake in time, closing", extra={"peer": self._open_session().peer})
        self._end()

    def _cancel_handshake_timer(self) -> None:
        if self._handshake_timer is not None:
            self._handshake_timer.cancel()
            self._handshake_timer = None
