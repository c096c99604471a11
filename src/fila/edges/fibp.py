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
from typing import Final, cast

from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, ID_AT, KEY, WEIGHT
from fila.core.rejection import Rejection
from fila.edges import failures, fibp_batches, fibp_messages, fibp_operations
from fila.edges.failures import Failures
from fila.edges.fibp_requests import Requests
from fila.edges.keepalive import keep_alive
from fila.edges.lane_fields import UNKNOWN, LaneFields
from fila.edges.limits import ConnectionLimits, Inbound
from fila.edges.reason import clipped
from fila.wire import bodies, errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.errors import FrameError, InvalidBody
from fila.wire.frames import FrameDecoder, encode_frames, frame_header
from fila.wire.message_codec import DeliveredItem
from fila.wire.states import SERVER, Refusal, State, receive

log = logging.getLogger("fila.fibp")

_MS: Final = 1_000_000
LATE_S: Final = 1.0  # before the answer to one wrong key too many


class FibpConnection(asyncio.Protocol):
    def __init__(
        self,
        sessions: Sessions,
        limits: ConnectionLimits,
        loop: asyncio.AbstractEventLoop,
        opened: Callable[[FibpConnection], None],
        closed: Callable[[FibpConnection], None],
        inbound: Inbound | None = None,
        lane_fields: LaneFields | None = None,
        failed: Failures | None = None,
    ) -> None:
        self._inbound = inbound or Inbound()
        self._lane_fields = lane_fields or LaneFields()
        self._failures = failed or Failures()
        self._buffered_bytes = 0  # this connection's part of it
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
        self._out: list[bytes] = []
        self._reading = True
        self._congested = False
        self._handshake_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self.session: Session | None = None
        # Consume request id → (queue, consumer id), and the reverse for deliveries.
        self._consumers: dict[int, tuple[str, str]] = {}
        self._requests: dict[str, int] = {}

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.session = self._sessions.open(self, f"{peer[0]}:{peer[1]}" if peer else "?")
        keep_alive(transport, self.limits)
        transport.set_write_buffer_limits(high=self.limits.unsent_bytes_max)
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
        self._open_session().hold()

    def resume_writing(self) -> None:
        self._congested = False
        self._piled_bytes = 0
        if self._transport is not None and not self._transport.is_closing():
            self._open_session().resume()
            self._unchoke()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state = State.CLOSED
        self._forget_inbound()
        self._cancel_handshake_timer()
        if self._close_timer is not None:
            self._close_timer.cancel()
        if self.session is not None:
            self.session.close()
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
        request_id = self._requests.get(delivery.consumer.id)
        if request_id is None:
            return
        consumer_queue = self._consumers[request_id][0]
        queue_field = message_codec.queue_field(consumer_queue.encode())
        leased_ms = delivery.leased_ns // _MS
        items: list[DeliveredItem] = []
        known_fields = self._lane_fields.known.get
        for entry, lane in zip(delivery.entries, delivery.lanes, strict=True):
            weight = entry[WEIGHT]
            known_weight, lane_field = known_fields(lane.prefix, UNKNOWN)
            if known_weight != weight:
                lane_field = self._lane_fields.encode(lane, weight)
            items.append(
                (
                    entry[KEY][ID_AT:],
                    queue_field,
                    entry[BODY],
                    lane_field,
                    entry[ATTEMPTS],
                    entry[ENQUEUED_NS] // _MS,
                    leased_ms,
                )
            )
        self._frame(op.DELIVERY, request_id, message_codec.encode_delivery(items), self._out.append)

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        request_id = self._requests.pop(consumer, None)
        self._open_session().forget(consumer)
        if request_id is not None:
            del self._consumers[request_id]
            try:
                error = bodies.Error(why.code, clipped(why.message), {})
                self._frame(op.ERROR, request_id, layouts.encode(error), self._out.append)
            except Exception as failure:
                self.fail_soon(failure)

    def flush(self) -> None:
        out, self._out = self._out, []
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(out[0] if len(out) == 1 else b"".join(out))
            if not self._reading:
                self._loop.call_soon(self._unchoke)

    def takes_more(self) -> bool:
        return not self._congested

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

    def count_buffered(self, buffered_bytes: int) -> None:
        """Keep the sum over all connections, and send away who takes it over the limit."""
        inbound = self._inbound
        inbound.buffered_bytes += buffered_bytes - self._buffered_bytes
        self._buffered_bytes = buffered_bytes
        if (
            inbound.buffered_bytes > self.limits.inbound_bytes_max
            and buffered_bytes > self.limits.unsent_bytes_max
            and self._state is not State.CLOSED
        ):
            text = "too many large messages are arriving at once; try again later"
            self._refuse(0, errors.CHANNEL_FULL, text, {"retry_after_ms": "1000"})
            self._end()

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
                self._handshake(request_id, body)
            elif opcode == op.CONSUME:
                self._consume(request_id, body)
            elif opcode == op.CANCEL_CONSUME:
                self._cancel(request_id)
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

    def _handshake(self, request_id: int, body: bytes) -> None:
        version, api_key = layouts.decode(bodies.Handshake, body)
        if version != layouts.PROTOCOL_VERSION:
            text = f"version {version} is not spoken here; use version {layouts.PROTOCOL_VERSION}"
            metadata = {"max_version": str(layouts.PROTOCOL_VERSION)}
            self._refuse(request_id, errors.UNSUPPORTED_VERSION, text, metadata)
            self._end()
            return
        session = self._open_session()
        refused = session.admit(api_key)
        if refused is not None:
            if session.late:
                self._refuse_late(request_id, refused)
            else:
                self._refuse(request_id, refused.code, refused.message)
                self._end()
            return
        self._cancel_handshake_timer()
        self._state = State.OPEN
        ok = bodies.HandshakeOk(layouts.PROTOCOL_VERSION, 0, self.limits.frame_bytes_max)
        self.reply(op.HANDSHAKE_OK, request_id, layouts.encode(ok))

    def _refuse_late(self, request_id: int, refused: Rejection) -> None:
        """One wrong key too many from this address: told so in a while, and nothing of it is read
        any more."""
        self._state = State.CLOSED
        self._forget_inbound()
        self._cancel_handshake_timer()

        def refuse() -> None:
            self._refuse(request_id, refused.code, f"{refused.message}; too many wrong keys")
            self.broker.after_commit(self._close)

        self._handshake_timer = self._loop.call_later(LATE_S, refuse)

    def _consume(self, request_id: int, body: bytes) -> None:
        request = layouts.decode(bodies.Consume, body)
        if request_id in self._consumers:
            text = f"request {request_id} is a consumer already; use another request id"
            self.refuse(request_id, Rejection(errors.INVALID_FRAME, text), {})
            return
        session = self._open_session()
        crowded = session.too_many_consumers(self.limits.consumers_max)
        if crowded is not None:
            self.refuse(request_id, Rejection(errors.INVALID_CONFIG_VALUE, crowded), {})
            return
        consumer = session.consume(request.queue, request.prefetch or 0)
        if isinstance(consumer, Rejection):
            self.refuse(request_id, consumer, {})
            return
        self._consumers[request_id] = (request.queue, consumer)
        self._requests[consumer] = request_id
        self.reply(op.CONSUME_OK, request_id, layouts.encode(bodies.ConsumeOk(consumer)))

    def _cancel(self, request_id: int) -> None:
        found = self._consumers.pop(request_id, None)
        if found is not None:
            _, consumer = found
            self._requests.pop(consumer, None)
            self._open_session().leave(consumer)

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
            out(encode_frames(opcode, request_id, body, self.limits.frame_bytes_max))

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
            self._consumers.clear()
            self._requests.clear()
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
        self._failures.report(failures.FIBP, self.session.peer if self.session else "?", error)
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
