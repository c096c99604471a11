"""Everything a client does except moving bytes: the one exchange under both shells.

Owns the correlation of replies, consumer streams, and when to connect where; its sender owns
batching. Bytes, time and connection events come in as arguments; bytes to send come out of
`take_output`; calls are answered through their tickets. Never touches sockets, threads, event loops
or the clock.

A shell does three things after every call into the exchange: send `take_output()`, close the
connection when `drop_reason` is set, and come back with `tick` at `next_deadline()`.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from fila.client.address import Address
from fila.client.conversation import Conversation, Waiting, expect_reply
from fila.client.course import Course
from fila.client.deadline import Deadline
from fila.client.errors import (
    ClientClosedError,
    ConnectFailedError,
    ConnectionLostError,
    FilaError,
    NotLeaderError,
    ProtocolError,
    RequestTimeoutError,
    from_code,
)
from fila.client.event import ConnectionEvent, EventKind
from fila.client.keepalive import KeepAlive, Pulse
from fila.client.options import ASSEMBLY_BYTES_MAX, STABLE_AFTER_S, Options
from fila.client.reconnect import Backoff
from fila.client.request import Request
from fila.client.sender import InFlight, Outgoing, Sender
from fila.client.stream import Leaving, Stream
from fila.client.ticket import Tally, Ticket, single
from fila.wire import bodies, layouts, message_codec, states
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody
from fila.wire.frames import FRAME_BYTES_MAX, FrameDecoder
from fila.wire.states import State

_FRAME_BYTES_MIN: Final = 1024  # a broker that announces less could not be talked to
_RESUBSCRIBE_S: Final = 0.5
_MOVE_S: Final = 1.0  # a broker that is not the leader says so quickly
# The broker may well accept a moment later: no verdict on the request.
_TRANSIENT: Final = frozenset((codes.CHANNEL_FULL, codes.NODE_NOT_READY))
_PERMANENT: Final = frozenset((codes.UNAUTHORIZED, codes.FORBIDDEN, codes.UNSUPPORTED_VERSION))


class Exchange(Conversation):
    def __init__(self, address: Address, options: Options, jitter: Callable[[], float]) -> None:
        super().__init__()
        self._course = Course(address)
        self.events: deque[ConnectionEvent] = deque()  # for the shell to pass on
        self.opened = single()  # settled by the first HandshakeOk, or by what came instead
        self.tally = Tally()
        self.drop_reason: FilaError | None = None  # set: the shell must close the connection
        self.connect_at: float | None = 0.0  # when the shell should open a connection
        self._options = options
        self._state = State.CLOSED  # of the connection, not of the client
        self._ended: FilaError | None = None  # why no call can succeed any more
        self._last_failure = ""  # why there is no connection
        self._complaint = ""  # an Error that belongs to no request: why there will be none soon
        self._backoff = Backoff(
            options.reconnect_pause_min_ms / 1000, options.reconnect_pause_max_ms / 1000, jitter
        )
        self._since = 0.0  # the connection's present state
        self._moving_since: float | None = None  # to the leader, once what was sent is answered
        self._closing: FilaError | None = None  # drained: why nothing new is taken
        self._drained: Ticket | None = None
        self._keepalive = KeepAlive(options.keepalive_interval, options.keepalive_timeout)
        self._decoder = FrameDecoder()
        self._requests: dict[Ticket, Request] = {}  # waiting for a connection
        self._streams: dict[Stream, None] = {}
        self._sender = Sender(options, self._send_batch, self._streams)

    @property
    def address(self) -> Address:
        """Of the broker that is, or is to be, connected."""
        return self._course.current

    # Calls. Each takes a ticket and answers through it.

    def enqueue(self, messages: list[Outgoing], ticket: Ticket, now: float) -> None:
        """May leave the ticket not `admitted`: a caller who does not wait for the answer waits
        for that."""
        if self._closing is not None:
            ticket.refuse(len(messages), self._closing)
            return
        self._sender.enqueue(messages, ticket, now)
        self._refuse_if_ended()

    def ack(self, queue: str, field: bytes, ids: list[str], ticket: Ticket, now: float) -> None:
        self._sender.ack(queue, field, ids, ticket, now)
        self._refuse_if_ended()

    def nack(
        self, queue: str, field: bytes, ids: list[str], error: str, ticket: Ticket, now: float
    ) -> None:
        self._sender.nack(queue, field, ids, error, ticket, now)
        self._refuse_if_ended()

    def request(self, request: Request) -> None:
        request.ticket.expect(1)
        if self._closing is not None and request.opcode not in (op.RELEASE, op.EXTEND):
            request.ticket.settle(0, self._closing)
        elif self._ready:
            self._send_request(request)
        else:
            self._requests[request.ticket] = request
        self._refuse_if_ended()

    def subscribe(self, stream: Stream) -> None:
        stream.opened.expect(1)
        stream.opened.seal()
        refused = self._ended or self._closing
        if refused is not None:
            stream.fail(refused)
            return
        self._streams[stream] = None
        if self._ready:
            self._send_consume(stream)

    def cancel(self, stream: Stream) -> None:
        if stream in self._streams:
            del self._streams[stream]
            if self._state is State.OPEN:
                self._leave(stream)
        stream.close()

    def abandon(self, ticket: Ticket, now: float) -> None:
        """The caller no longer waits: what was not sent yet never will be."""
        ticket.abandon()
        self._sender.forget(ticket, now)
        self._requests.pop(ticket, None)
        self._look_whether_drained()

    def too_late(self, what: str, deadline: Deadline) -> RequestTimeoutError:
        text = f"{what}: no answer from {self.address} within {deadline.timeout_s:g} s"
        if self._state is not State.OPEN:
            text += f"; not connected ({self._last_failure or 'still connecting'})"
        return RequestTimeoutError(text)

    def drain(self) -> Ticket:
        """Take nothing new but what settles or extends, end the consumers, send what lingers. The
        ticket is settled when everything under way is answered."""
        if self._drained is None:
            self._closing = ClientClosedError(f"the client for {self.address} is closing")
            self._drained = single()
            for stream in list(self._streams):
                self.cancel(stream)
            self._sender.hurry()
            self._look_whether_drained()
        return self._drained

    def close(self) -> None:
        """End everything. What the shell sends after this is the Disconnect."""
        if self._state is State.OPEN:
            self._send(op.DISCONNECT, 0, b"")
        self._state = State.CLOSED
        # A client that ended by itself goes on saying why.
        self._end(self._ended or ClientClosedError(f"the client for {self.address} is closed"))

    # The connection, as the shell reports it.

    def connection_made(self, now: float) -> None:
        self._state = State.OPENING
        self._since = now
        self._keepalive.heard(now)
        self._complaint = ""
        self._decoder = FrameDecoder(assembly_bytes_max=ASSEMBLY_BYTES_MAX)
        self._frame_bytes_max = FRAME_BYTES_MAX
        self._output = []
        self.drop_reason = None
        self.connect_at = None
        hello = bodies.Handshake(layouts.PROTOCOL_VERSION, self._options.api_key)
        self._send(op.HANDSHAKE, 0, layouts.encode(hello))

    def connection_lost(self, reason: str, now: float) -> None:
        """The connection ended, or could not be opened."""
        if self._ended is not None:
            return
        cause = self.drop_reason
        was_open = self._state is State.OPEN
        moving = was_open and self._moving_since is not None
        if was_open and now - self._since >= STABLE_AFTER_S:
            self._backoff.reset()
        self._state = State.CLOSED
        self._moving_since = None
        self.drop_reason = None
        self._output = []
        self._last_failure = str(cause) if cause is not None else self._complaint or reason
        if not self.opened.done:
            why = f"cannot connect to {self.address}: {self._last_failure}"
            self._end(cause or ConnectFailedError(why))
            return
        lost = ConnectionLostError(
            f"connection to {self.address} lost before the broker answered: {self._last_failure}"
        )
        if was_open:
            self._add_event("disconnected", self._last_failure)
        self._fail_pending(lost, now)
        permanent = cause is not None and cause.code in _PERMANENT
        if permanent or not (self._options.reconnect or moving):
            self._end(cause or lost)
            return
        for stream in self._streams:
            stream.connection_lost()
        pause_s = 0.0 if moving else self._backoff.next_pause_s()
        self.connect_at = now + pause_s
        if moving:
            self._course.turn()
        elif not was_open:
            self._course.unreachable()
        self._add_event("redirected" if moving else "reconnecting", self._last_failure, pause_s)

    def receive(self, data: bytes, now: float) -> None:
        if self._state is State.CLOSED:
            return
        self._keepalive.heard(now)
        try:
            for opcode, request_id, body in self._decoder.feed(data):
                if opcode == op.DELIVERY and self._state is State.OPEN:
                    stream = self._pending.get(request_id)
                    if isinstance(stream, Stream):
                        stream.push(message_codec.decode_delivery(body))
                    elif isinstance(stream, Leaving):
                        self._release_unread(stream, message_codec.decode_delivery(body))
                else:
                    self._take_frame(opcode, request_id, body, now)
                if self.drop_reason is not None:
                    return
        except InvalidBody as why:
            self._drop(ProtocolError(f"{self.address} sent a body that does not parse: {why}"))
        except ProtocolError as error:
            self._drop(error)
        for fault in self._decoder.take_errors():
            broken = ProtocolError(f"{self.address} sent bytes that are no frame: {fault}")
            if fault.fatal:
                self._drop(broken)
            else:
                self._fail_one(fault.request_id, broken, now)
        self.pump(now)
        self._look_whether_drained()

    def pump(self, now: float) -> None:
        """Turn what has been collected into frames, as far as it is time for them."""
        if self._ready:
            self._sender.pump(now)

    def tick(self, now: float, unsent_bytes: int) -> None:
        """Time has passed: send what lingered, keep the connection alive, subscribe again.

        `unsent_bytes` is what the shell still holds of the output it took.
        """
        options = self._options
        if self._moving_since is not None and now >= self._moving_since + _MOVE_S:
            self._drop(ConnectionLostError(f"{self.address} left a request unanswered"))
        if self._state is State.OPENING and now >= self._since + options.connect_timeout:
            self._drop(
                ConnectFailedError(
                    f"{self.address} did not answer the handshake "
                    f"within {options.connect_timeout:g} s; is it a Fila broker?"
                )
            )
        if self._state is not State.OPEN:
            return
        pulse = self._keepalive.check(now, unsent_bytes)
        if pulse is Pulse.ASK:
            self._send(op.PING, self._next_id(), b"")
        elif pulse is Pulse.GONE:
            silent_s = now - self._keepalive.heard_at
            self._drop(ConnectionLostError(f"{self.address} was silent for {silent_s:.1f} s"))
            return
        for stream in list(self._streams):
            if stream.resubscribe_at is not None and now >= stream.resubscribe_at:
                self._send_consume(stream)
            for beat in stream.beat(now):
                self._send_request(beat)
            if stream.error is not None:
                self.cancel(stream)
        self.pump(now)

    def next_deadline(self) -> float | None:
        """When `tick` (or a new connection, see `connect_at`) is wanted next."""
        if self._state is State.CLOSED:
            return self.connect_at
        if self._state is State.OPENING:
            return self._since + self._options.connect_timeout
        deadline = self._keepalive.deadline()
        if self._moving_since is not None:
            deadline = min(deadline, self._moving_since + _MOVE_S)
        lingering = self._sender.next_deadline()
        if lingering is not None:
            deadline = min(deadline, lingering)
        return min([deadline, *[stream.due_at() for stream in self._streams]])

    @property
    def _ready(self) -> bool:
        """Whether requests may be sent now."""
        return self._state is State.OPEN and self._moving_since is None

    # Frames in.

    def _take_frame(self, opcode: int, request_id: int, body: bytes, now: float) -> None:
        following = states.receive(states.CLIENT, self._state, opcode)
        if isinstance(following, states.Refusal):
            if following.fatal:
                raise ProtocolError(f"{self.address} does not speak FIBP: {following.message}")
            return  # an operation of a later version: not for us
        if opcode == op.DISCONNECT:
            self._drop(ConnectionLostError(f"{self.address} closed the connection"))
        elif opcode == op.ERROR:
            code, message, metadata = layouts.decode(bodies.Error, body)
            error = from_code(code, message, "", metadata)
            if self._state is State.OPENING:
                self._drop(error)
            else:
                self._fail_one(request_id, error, now)
        elif opcode == op.HANDSHAKE_OK:
            self._welcome(layouts.decode(bodies.HandshakeOk, body), now)
        elif opcode == op.PING:
            self._send(op.PONG, request_id, b"")
        elif opcode != op.PONG:
            self._take_reply(opcode, request_id, body, now)

    def _welcome(self, welcome: bodies.HandshakeOk, now: float) -> None:
        if welcome.max_frame_size < _FRAME_BYTES_MIN:
            raise ProtocolError(
                f"{self.address} allows frames of {welcome.max_frame_size} bytes only"
            )
        self._state = State.OPEN
        self._since = now
        self._frame_bytes_max = self._decoder.frame_bytes_max = welcome.max_frame_size
        self._last_failure = ""
        self._add_event("connected", "")
        self.opened.settle(0, None)
        for stream in self._streams:
            self._send_consume(stream)
        waiting, self._requests = self._requests, {}
        for request in waiting.values():
            self._send_request(request)

    def _take_reply(self, opcode: int, request_id: int, body: bytes, now: float) -> None:
        pending = self._pending.get(request_id)
        if pending is None:
            return  # of a stream just cancelled
        if isinstance(pending, InFlight):
            expect_reply(self.address, pending.collector.opcode, opcode)
            self._sender.answered(pending, body, now)
            del self._pending[request_id]
        elif isinstance(pending, Request):
            expect_reply(self.address, pending.opcode, opcode)
            pending.ticket.settle(0, pending.decode(body))
            del self._pending[request_id]
        elif isinstance(pending, Leaving):
            # Whatever was delivered before the broker heard of the cancel has come by now.
            self._pending.pop(request_id, None)
            self._pending.pop(pending.consume_id, None)
        else:
            expect_reply(self.address, op.CONSUME, opcode)
            pending.opened.settle(0, layouts.decode(bodies.ConsumeOk, body).consumer_id)

    def _fail_one(self, request_id: int, error: FilaError, now: float) -> None:
        pending = self._pending.pop(request_id, None)
        if pending is not None and self._follows(error, pending, now):
            return
        if pending is None:
            self._complaint = str(error)
        elif isinstance(pending, InFlight):
            self._sender.refused(pending, error, now)
        elif isinstance(pending, Request):
            pending.ticket.settle(0, error)
        elif isinstance(pending, Leaving):
            self._pending.pop(pending.consume_id, None)
        elif pending.opened.done and error.code in _TRANSIENT:
            pending.request_id = None
            pending.resubscribe_at = now + _RESUBSCRIBE_S
        else:
            self._streams.pop(pending, None)
            pending.fail(error)

    def _follows(self, error: FilaError, refused: Waiting, now: float) -> bool:
        """Sent to the leader: keep what was refused for the connection to it."""
        leader = error.leader_addr if isinstance(error, NotLeaderError) else None
        if not self._course.follow(leader, now):
            return False
        if self._moving_since is None:
            self._moving_since = now
        if isinstance(refused, InFlight):
            self._sender.again(refused)
        elif isinstance(refused, Request):
            self._requests[refused.ticket] = refused
        elif isinstance(refused, Leaving):
            self._pending.pop(refused.consume_id, None)
        else:
            refused.request_id = None  # subscribes again when connected
        # What else was sent is answered by this broker first, or it would be unknown what became
        # of it.
        if not any(isinstance(other, InFlight | Request) for other in self._pending.values()):
            self._drop(ConnectionLostError(f"{self.address} sent us to {leader}"))
        return True

    # The end.

    def _refuse_if_ended(self) -> None:
        if self._ended is not None:
            self._end(self._ended)

    def _drop(self, reason: FilaError) -> None:
        self.drop_reason = self.drop_reason or reason

    def _add_event(self, kind: EventKind, reason: str, pause_s: float = 0.0) -> None:
        self.events.append(ConnectionEvent(kind, str(self.address), reason, pause_s))

    def _look_whether_drained(self) -> None:
        if self._drained is None or self._requests or self._sender.busy:
            return
        if not any(not isinstance(one, Stream) for one in self._pending.values()):
            self._drained.settle(0, None)

    def _fail_pending(self, error: FilaError, now: float) -> None:
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            if isinstance(waiting, InFlight):
                self._sender.lost(waiting, error, now)
            elif isinstance(waiting, Request):
                if waiting.repeatable and not waiting.ticket.abandoned:
                    self._requests[waiting.ticket] = waiting
                else:
                    waiting.ticket.settle(0, error)

    def _end(self, error: FilaError) -> None:
        if self._ended is None:
            self._add_event("closed", "" if isinstance(error, ClientClosedError) else str(error))
        self._ended = error
        self.connect_at = None
        self._fail_pending(error, self._keepalive.heard_at)
        self._sender.end(error)
        while self._requests:
            self._requests.popitem()[0].settle(0, error)
        for stream in list(self._streams):
            stream.fail(error)
        self._streams.clear()
        self.opened.settle(0, error)
        if self._drained is not None:
            self._drained.settle(0, error)
