"""A session: one caller on one connection; its permissions are checked, then the broker acts.

Both protocols stand on this layer; it knows neither's bytes. Owns who the caller is and when its
key runs out, its consumers, and the audit log. What carries messages has methods here; everything
else is an operation of the table (`carry_out`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from fila.backup.backups import Backups
from fila.broker import operations
from fila.broker.broker import Broker, Sink
from fila.broker.browser import BrowseLimits, Browser
from fila.broker.lease_requests import LeaseRequests
from fila.broker.limits import Limit
from fila.broker.no_connection import GONE
from fila.broker.options import Options, fits
from fila.broker.stepping import Steps
from fila.core.rejection import CHANNEL_FULL, INVALID_CONFIG_VALUE, OK, Rejection
from fila.security.attempts import Attempts
from fila.security.guard import Guard, Identity
from fila.security.permission import CONSUME, PRODUCE
from fila.telemetry.spans import OpenSpan, Tracer

audit = logging.getLogger("fila.audit")

Reply = TypeVar("Reply")

# (code, message id, duplicate) of an enqueue with options
Stored = tuple[int, bytes, bool]

_EXPIRY_CHECK_S_MAX = 86_400.0


class ClientConnection(Sink, Protocol):
    """A connection as its session sees it."""

    def expelled(self, why: Rejection) -> None:
        """The caller's key is no longer valid: say so and close."""

    def takes_more(self) -> bool:
        """Whether the client has taken nearly all it was sent."""


class Sessions:
    """All open sessions, so that a change of keys reaches them at once."""

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        random_hex: Callable[[int], str],
        now_ms: Callable[[], int],
        browse_limits: BrowseLimits | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        self.attempts = attempts or Attempts()
        self.browser = Browser(broker, browse_limits or BrowseLimits(), random_hex, now_ms)
        self.broker = broker
        self.guard = guard
        self.random_hex = random_hex
        self.now_ms = now_ms
        self.tracer: Tracer | None = None
        self.limits: Callable[[], list[Limit]] = list  # how near each is
        self.backups: Backups | None = None
        self._open: set[Session] = set()

    def open(self, connection: ClientConnection, peer: str) -> Session:
        session = Session(self, connection, peer)
        self._open.add(session)
        return session

    def close(self, session: Session) -> None:
        self._open.discard(session)

    def everybody(self) -> dict[int, Session]:
        """Who is here, by number of connection."""
        return {session.number: session for session in self._open}

    def keys_changed(self, key_id: str) -> None:
        """A key was revoked or may do other things now."""
        for session in [one for one in self._open if one.identity.key_id == key_id]:
            session.recheck()


class Session:
    def __init__(self, sessions: Sessions, connection: ClientConnection, peer: str) -> None:
        self.sessions = sessions
        self.broker = sessions.broker
        self.browser = sessions.browser
        self.guard = sessions.guard
        self._connection: ClientConnection = connection
        self.peer = peer
        self.number = self.broker.next_connection()
        self.identity = Identity("", False, "nobody yet")
        self._consumers: dict[str, str] = {}  # consumer id → queue
        self._left: set[str] = set()  # queues of consumers that were cancelled
        self._held = False
        self.late = False  # it showed a wrong key, and its address many before
        self._expiry_timer: asyncio.TimerHandle | None = None
        self.traceparent = b""  # of the request under way, where the protocol has one
        self.leases = LeaseRequests(self)

    # --- who

    def admit(self, secret: str | None) -> Rejection | None:
        """Let the caller in by its key. The right one opens at any time; `late` says that it was
        one wrong key too many, and had better be answered late."""
        now_ms = self.sessions.now_ms()
        identity = self.guard.admit(secret, now_ms)
        if isinstance(identity, Rejection):
            attempts = self.sessions.attempts
            wait_ms = attempts.wrong(self.peer.rpartition(":")[0], now_ms)
            self.late = wait_ms > 0
            if attempts.may_tell(wait_ms, now_ms):
                self.refused("connect", identity)
            return identity
        self.welcome(identity)
        return None

    def welcome(self, identity: Identity) -> None:
        """The caller is known: it was admitted, here or by another sign than its key."""
        self.identity = identity
        self._watch_expiry()

    def recheck(self) -> bool:
        """Expel a caller whose key is gone; end consumers it may no longer have. Whether it may
        stay."""
        gone = self.guard.still_valid(self.identity, self.sessions.now_ms())
        if gone is not None:
            self.leave_all(release=False)
            self._connection.expelled(gone)
            return False
        self.leases.recheck()
        for consumer, queue in list(self._consumers.items()):
            refused = self.guard.permit(self.identity, CONSUME, queue)
            if refused is not None:
                self.leave(consumer)
                self.broker.begin()
                self.broker.after_commit(
                    lambda consumer=consumer, refused=refused: self._end(consumer, refused)  # type: ignore[misc]
                )
        return True

    def close(self) -> None:
        """The connection is gone; what it holds stays leased."""
        self.leave_all(release=False)
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        self.sessions.close(self)
        # They hold each other, and the collector is not what should free a connection.
        self._connection = GONE
        self.leases.close()

    def _watch_expiry(self) -> None:
        """Be there when the caller's key runs out."""
        key = self.guard.keyring.get(self.identity.key_id) if self.identity.key_id else None
        if key is not None and key.expires_ms:
            left_s = (key.expires_ms - self.sessions.now_ms()) / 1000
            wait_s = min(max(left_s, 0.0) + 0.001, _EXPIRY_CHECK_S_MAX)
            self._expiry_timer = self.broker.call_later(wait_s, self._expires)

    def _expires(self) -> None:
        self._expiry_timer = None
        if self.recheck():
            self._watch_expiry()

    # --- operations of the table

    def carry_out(
        self,
        request: Any,
        done: operations.Done,
        in_steps: Callable[[Steps], None] | None = None,
    ) -> Rejection | None:
        """Do what a request asks; `done` gets the result's record, unless it is refused."""
        return operations.carry_out(self, request, done, in_steps)

    # --- messages

    def may_produce(self, queue: str) -> Rejection | None:
        refused = self.guard.permit(self.identity, PRODUCE, queue)
        return self.refused("enqueue", refused) if refused else None

    def may_consume(self, queue: str) -> Rejection | None:
        refused = self.guard.permit(self.identity, CONSUME, queue)
        return self.refused("consume", refused) if refused else None

    def enqueue(self, queue: str, bodies: list[bytes]) -> list[bytes] | Rejection:
        """After `may_produce` said nothing. A message without an id was refused
        (ChannelFull), and so was one with FULL instead (QueueFull)."""
        span = self._span("enqueue", queue, len(bodies), bodies)
        return self._traced(span, self.broker.enqueue(queue, bodies))

    def enqueue_with(self, queue: str, messages: list[Options]) -> list[Stored] | Rejection:
        """After `may_produce` said nothing. Messages whose options are out of bounds are refused,
        the others stored."""
        places = [place for place, one in enumerate(messages) if fits(one)]
        if len(places) == len(messages):
            stored = self.broker.enqueue_with(queue, messages)
            if isinstance(stored, Rejection):
                return stored
            return [_stored(id, duplicate) for id, duplicate in stored]
        results: list[Stored] = [(INVALID_CONFIG_VALUE, b"", False)] * len(messages)
        stored = self.broker.enqueue_with(queue, [messages[place] for place in places])
        if isinstance(stored, Rejection):
            return stored
        for place, (id, duplicate) in zip(places, stored, strict=True):
            results[place] = _stored(id, duplicate)
        return results

    def ack(self, queue: str, ids: list[bytes]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        span = self._span("ack", queue, len(ids))
        return self._traced(span, self.broker.ack(queue, ids, self.number))

    def nack(self, queue: str, ids: list[bytes], errors: list[str]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        span = self._span("nack", queue, len(ids))
        return self._traced(span, self.broker.nack(queue, ids, errors, self.number))

    def leased_bytes(self, queue: str, ids: list[bytes]) -> list[int]:
        """How large each of them is: what a nack or a release of it reads and stores."""
        return self.broker.machine.view.leased_bytes(queue, ids)

    def release(self, queue: str, ids: list[bytes]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        return self.broker.release(queue, ids, self.number)

    # --- consumers, and requests for lease batches, which wait as they do

    def too_many_consumers(self, consumers_max: int) -> str | None:
        """Why there may be no more of them on this connection, if so."""
        if len(self._consumers) + len(self.leases) < consumers_max:
            return None
        return (
            f"a connection may have {consumers_max} consumers and waiting lease requests; open "
            "another"
        )

    def takes_more(self) -> bool:
        """Whether the client has taken nearly all it was sent."""
        return self._connection.takes_more()

    def consume(self, queue: str, prefetch: int, prefetch_bytes: int = 0) -> str | Rejection:
        refused = self.may_consume(queue)
        if refused is not None:
            return refused
        consumer = self.broker.consume(
            queue, self.number, self._connection, prefetch, prefetch_bytes
        )
        if not isinstance(consumer, Rejection):
            self._consumers[consumer] = queue
            if self._held:
                self.broker.hold(queue, consumer, True)
        return consumer

    def hold(self) -> None:
        """The client does not read: its consumers get nothing more, others have their turn."""
        if not self._held:
            self._held = True
            for consumer, queue in self._consumers.items():
                self.broker.hold(queue, consumer, True)

    def resume(self) -> None:
        """It reads again."""
        self.broker.telling.resume()
        if self._held:
            self._held = False
            for consumer, queue in self._consumers.items():
                self.broker.hold(queue, consumer, False)

    def hold_consumer(self, consumer: str, held: bool) -> None:
        """The same for one consumer, where each has a stream of its own."""
        queue = self._consumers.get(consumer)
        if queue is not None:
            self.broker.hold(queue, consumer, held)

    def leave(self, consumer: str) -> None:
        """End one consumer; what it holds stays leased."""
        queue = self._consumers.pop(consumer, None)
        if queue is not None:
            self.broker.leave(queue, consumer, release=False)
            self._left.add(queue)

    def depart(self, consumer: str) -> bool:
        """The same, but what is on its way to it still arrives, before the turn is committed.
        Whether it was there."""
        queue = self._consumers.pop(consumer, None)
        if queue is not None:
            self.broker.depart(queue, consumer)
            self._left.add(queue)
        return queue is not None

    def leave_all(self, release: bool) -> None:
        self.leases.withdraw_all()
        consumers, self._consumers = self._consumers, {}
        for consumer, queue in consumers.items():
            self.broker.leave(queue, consumer, release)
        if release:
            for queue in self._left:
                self.broker.hand_back(queue, self.number)

    def forget(self, consumer: str) -> None:
        """The broker ended the consumer."""
        self._consumers.pop(consumer, None)

    # --- traces

    def _span(
        self, name: str, queue: str, count: int, bodies: Sequence[bytes] = ()
    ) -> OpenSpan | None:
        tracer = self.sessions.tracer
        if tracer is None:
            return None
        return tracer.begin(name, queue, count, self.traceparent, bodies)

    def _traced(self, span: OpenSpan | None, reply: Reply) -> Reply:
        """The span ends when what the request did is committed."""
        if span is not None:
            if isinstance(reply, Rejection):
                span.error = reply.message
            self.broker.begin()
            self.broker.after_commit(span.end)
        return reply

    # --- the audit log

    def refused(self, what: str, why: Rejection) -> Rejection:
        """Write down what the caller was not allowed to do."""
        audit.warning(
            "refused",
            extra={
                "who": self.identity.label,
                "peer": self.peer,
                "action": what,
                "why": why.message,
            },
        )
        return why

    def done(self, what: str) -> None:
        """Write down what the caller did."""
        audit.info("done", extra={"who": self.identity.label, "peer": self.peer, "action": what})

    def _end(self, consumer: str, why: Rejection) -> None:
        self._connection.consumer_ended(consumer, why)
        self._connection.flush()


def _stored(id: bytes, duplicate: bool) -> Stored:
    if len(id) > 1:
        return OK, id, duplicate
    return id[0] if id else CHANNEL_FULL, b"", duplicate
