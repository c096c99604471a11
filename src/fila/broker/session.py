"""A session: one caller on one connection. May it? Then the broker does it.

Both protocols stand on this layer; it knows neither's bytes. Permission is asked before anything is
looked up, so a refusal tells nothing about what exists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from fila.broker import explaining
from fila.broker.broker import Broker, Sink
from fila.broker.browser import BrowseLimits, Browser
from fila.broker.bulk import Bulk
from fila.core.rejection import Rejection, invalid_value
from fila.core.stats import QueueStats, QueueSummary
from fila.security.guard import Guard, Identity
from fila.security.keyring import NAME_BYTES_MAX, PERMISSIONS_MAX, ApiKey
from fila.security.permission import CONSUME, PRODUCE, Permission
from fila.telemetry.spans import OpenSpan, Tracer

audit = logging.getLogger("fila.audit")

Reply = TypeVar("Reply")


class Door(Sink, Protocol):
    """A connection as its session sees it."""

    def expelled(self, why: Rejection) -> None:
        """The caller's key is no longer valid: say so and close."""


class Sessions:
    """Everybody who is here, so that a change of keys reaches them at once."""

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        random_hex: Callable[[int], str],
        now_ms: Callable[[], int],
        browse_limits: BrowseLimits | None = None,
    ) -> None:
        self.browser = Browser(broker, browse_limits or BrowseLimits(), random_hex, now_ms)
        self.broker = broker
        self.guard = guard
        self.random_hex = random_hex
        self.now_ms = now_ms
        self.tracer: Tracer | None = None
        self._open: set[Session] = set()

    def open(self, door: Door, peer: str) -> Session:
        session = Session(self, door, peer)
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
    def __init__(self, sessions: Sessions, door: Door, peer: str) -> None:
        self._sessions = sessions
        self._broker = sessions.broker
        self._guard = sessions.guard
        self._door = door
        self.peer = peer
        self.number = self._broker.next_connection()
        self.identity = Identity("", False, "nobody yet")
        self._consumers: dict[str, str] = {}  # consumer id → queue
        self._left: set[str] = set()  # queues of consumers that were cancelled
        self._held = False
        self.traceparent = b""  # of the request under way, where the protocol has one
        self.bulk = Bulk(self)

    @property
    def broker(self) -> Broker:
        return self._broker

    @property
    def browser(self) -> Browser:
        return self._sessions.browser

    # --- who

    def admit(self, secret: str | None) -> Rejection | None:
        identity = self._guard.admit(secret, self._sessions.now_ms())
        if isinstance(identity, Rejection):
            return self._refused("connect", identity)
        self.identity = identity
        return None

    def expires_ms(self) -> int:
        """When the caller's key runs out; 0 for never."""
        key = self._guard.keyring.get(self.identity.key_id) if self.identity.key_id else None
        return key.expires_ms if key is not None else 0

    def recheck(self) -> None:
        """Expel a caller whose key is gone; end consumers it may no longer have."""
        gone = self._guard.still_valid(self.identity, self._sessions.now_ms())
        if gone is not None:
            self.leave_all(release=False)
            self._door.expelled(gone)
            return
        self.bulk.recheck()
        for consumer, queue in list(self._consumers.items()):
            refused = self._guard.permit(self.identity, CONSUME, queue)
            if refused is not None:
                self.leave(consumer)
                self._broker.begin()
                self._broker.after_commit(
                    lambda consumer=consumer, refused=refused: self._end(consumer, refused)  # type: ignore[misc]
                )

    def close(self) -> None:
        """The connection is gone; what it holds stays leased."""
        self.leave_all(release=False)
        self._sessions.close(self)

    def may_look_at(self, queue: str) -> Rejection | None:
        """Consume, or administer: what either may know of a queue."""
        if self._guard.permit(self.identity, CONSUME, queue) is None:
            return None
        refused = self._guard.permit_admin(self.identity, queue)
        return self._refused("list batches", refused) if refused else None

    def done(self, what: str) -> None:
        """Write down in the audit log what the caller did."""
        self._done(what, None)

    # --- messages

    def may_produce(self, queue: str) -> Rejection | None:
        refused = self._guard.permit(self.identity, PRODUCE, queue)
        return self._refused("enqueue", refused) if refused else None

    def may_consume(self, queue: str) -> Rejection | None:
        refused = self._guard.permit(self.identity, CONSUME, queue)
        return self._refused("consume", refused) if refused else None

    def enqueue(self, queue: str, bodies: list[bytes]) -> list[bytes] | Rejection:
        """After `may_produce` said nothing."""
        span = self._span("enqueue", queue, len(bodies), bodies)
        return self._traced(span, self._broker.enqueue(queue, bodies))

    def ack(self, queue: str, ids: list[bytes]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        span = self._span("ack", queue, len(ids))
        return self._traced(span, self._broker.ack(queue, ids, self.number))

    def nack(self, queue: str, ids: list[bytes], errors: list[str]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        span = self._span("nack", queue, len(ids))
        return self._traced(span, self._broker.nack(queue, ids, errors, self.number))

    def consume(self, queue: str, prefetch: int) -> str | Rejection:
        refused = self.may_consume(queue)
        if refused is not None:
            return refused
        consumer = self._broker.consume(queue, self.number, self._door, prefetch)
        if not isinstance(consumer, Rejection):
            self._consumers[consumer] = queue
            if self._held:
                self._broker.hold(queue, consumer, True)
        return consumer

    def hold(self) -> None:
        """The client does not read: its consumers get nothing more, others have their turn."""
        if not self._held:
            self._held = True
            for consumer, queue in self._consumers.items():
                self._broker.hold(queue, consumer, True)

    def resume(self) -> None:
        """It reads again."""
        if self._held:
            self._held = False
            for consumer, queue in self._consumers.items():
                self._broker.hold(queue, consumer, False)

    def leave(self, consumer: str) -> None:
        """End one consumer; what it holds stays leased."""
        queue = self._consumers.pop(consumer, None)
        if queue is not None:
            self._broker.leave(queue, consumer, release=False)
            self._left.add(queue)

    def leave_all(self, release: bool) -> None:
        self.bulk.withdraw_all()
        consumers, self._consumers = self._consumers, {}
        for consumer, queue in consumers.items():
            self._broker.leave(queue, consumer, release)
        if release:
            for queue in self._left:
                self._broker.hand_back(queue, self.number)

    def forget(self, consumer: str) -> None:
        """The broker ended the consumer."""
        self._consumers.pop(consumer, None)

    # --- queues and config

    def create_queue(
        self, queue: str, on_enqueue: str | None, on_failure: str | None, visibility_ms: int
    ) -> Rejection | None:
        what = f'create queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.create_queue(queue, on_enqueue, on_failure, visibility_ms)
        )

    def delete_queue(self, queue: str) -> Rejection | None:
        what = f'delete queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.delete_queue(queue)
        )

    def stats(self, queue: str, keys_max: int) -> QueueStats | Rejection:
        what = f'stats of queue "{queue}"'
        refused = self._forbidden(what, self._guard.permit_admin(self.identity, queue))
        return refused or self._broker.machine.view.stats(queue, keys_max)

    def queues(self) -> list[QueueSummary]:
        found = self._broker.machine.view.summaries()
        return [one for one in found if self._guard.sees(self.identity, one.name)]

    def set_config(self, key: str, value: str) -> Rejection | None:
        what = f'set config "{key}"'
        return self._forbidden(what, self._guard.permit_all(self.identity)) or self._done(
            what, self._broker.set_config(key, value)
        )

    def get_config(self, key: str) -> str | Rejection:
        refused = self._forbidden("get config", self._guard.permit_all(self.identity))
        return refused or self._broker.machine.view.config.get(key, "")

    def list_config(self, prefix: str) -> list[tuple[str, str]] | Rejection:
        refused = self._forbidden("list config", self._guard.permit_all(self.identity))
        if refused is not None:
            return refused
        config = self._broker.machine.view.config
        return [(key, value) for key, value in sorted(config.items()) if key.startswith(prefix)]

    def redrive(self, queue: str, count: int, done: Callable[[int], None]) -> Rejection | None:
        what = f'redrive "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.redrive(queue, count, done)
        )

    def explain(
        self, queue: str, fairness_key: str | None, message_id: str, keys_max: int
    ) -> bytes | Rejection:
        """Why it waits, as JSON. Without a queue: all that the caller sees, in short."""
        if not queue:
            names = [one.name for one in self.queues()]
            return explaining.as_json(explaining.queues_in_short(self._broker, names))
        what = f'explain queue "{queue}"'
        refused = self._forbidden(what, self._guard.permit_admin(self.identity, queue))
        found = refused or explaining.explanation(
            self._broker, queue, fairness_key, message_id, keys_max
        )
        return found if isinstance(found, Rejection) else explaining.as_json(found)

    def pause_queue(self, queue: str, reason: str) -> Rejection | None:
        what = f'pause queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.pause_queue(queue, reason, self.identity.label)
        )

    def resume_queue(self, queue: str) -> Rejection | None:
        what = f'resume queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.resume_queue(queue, self.identity.label)
        )

    def pause_key(self, queue: str, key: str, reason: str) -> Rejection | None:
        what = f'pause key "{key}" of queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.pause_key(queue, key.encode(), reason, self.identity.label)
        )

    def resume_key(self, queue: str, key: str) -> Rejection | None:
        what = f'resume key "{key}" of queue "{queue}"'
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.resume_key(queue, key.encode(), self.identity.label)
        )

    def purge(self, queue: str, key: str | None, done: Callable[[int], None]) -> Rejection | None:
        what = f'purge queue "{queue}"' if key is None else f'purge key "{key}" of "{queue}"'
        name = None if key is None else key.encode()
        return self._forbidden(what, self._guard.permit_admin(self.identity, queue)) or self._done(
            what, self._broker.purge(queue, name, self.identity.label, done)
        )

    # --- keys

    def create_key(
        self, name: str, expires_ms: int, superadmin: bool
    ) -> tuple[ApiKey, str] | Rejection:
        """A new key and its secret, which is shown this once."""
        refused = self._forbidden(
            "create API key", self._guard.may_create(self.identity, superadmin)
        )
        if refused is not None:
            return refused
        if not name or len(name.encode()) > NAME_BYTES_MAX or not name.isprintable():
            return invalid_value("API key name", f"use 1 to {NAME_BYTES_MAX} printable bytes")
        now_ms = self._sessions.now_ms()
        if 0 < expires_ms <= now_ms:
            return invalid_value("expiry", "it lies in the past")
        keyring = self._guard.keyring
        key, secret, row = keyring.create(
            name, expires_ms, superadmin, now_ms, self._sessions.random_hex
        )
        self._broker.store_auth(row.key, row.value)
        self._done(f'create API key {key.id} "{name}"', None)
        return key, secret

    def revoke_key(self, id: str) -> Rejection | None:
        what = f"revoke API key {id!r}"
        refused = self._forbidden(what, self._guard.may_revoke(self.identity, id))
        found = refused or self._guard.key(id)
        if isinstance(found, Rejection):
            return found
        row = self._guard.keyring.revoke(id)
        self._broker.store_auth(row.key, row.value)
        self._sessions.keys_changed(id)
        return self._done(what, None)

    def keys(self) -> list[ApiKey] | Rejection:
        refused = self._forbidden("list API keys", self._guard.permit_all(self.identity))
        return refused or self._guard.keyring.all()

    def set_acl(self, id: str, permissions: tuple[Permission, ...]) -> Rejection | None:
        what = f"set ACL of key {id!r}"
        if len(permissions) > PERMISSIONS_MAX:
            return invalid_value("ACL", f"a key may have {PERMISSIONS_MAX} permissions")
        refused = self._guard.may_set_acl(self.identity, id, permissions)
        if refused is not None:
            return self._refused(what, refused)
        found = self._guard.key(id)
        if isinstance(found, Rejection):
            return found
        row = self._guard.keyring.set_permissions(id, permissions)
        self._broker.store_auth(row.key, row.value)
        self._sessions.keys_changed(id)
        return self._done(what, None)

    def get_acl(self, id: str) -> ApiKey | Rejection:
        refused = self._forbidden("get ACL", self._guard.permit_all(self.identity))
        return refused or self._guard.key(id)

    # --- traces

    def _span(
        self, name: str, queue: str, count: int, bodies: Sequence[bytes] = ()
    ) -> OpenSpan | None:
        tracer = self._sessions.tracer
        if tracer is None:
            return None
        return tracer.begin(name, queue, count, self.traceparent, bodies)

    def _traced(self, span: OpenSpan | None, reply: Reply) -> Reply:
        """The span ends when what the request did is committed."""
        if span is not None:
            if isinstance(reply, Rejection):
                span.error = reply.message
            self._broker.begin()
            self._broker.after_commit(span.end)
        return reply

    # --- the audit log

    def _forbidden(self, what: str, refused: Rejection | None) -> Rejection | None:
        return self._refused(what, refused) if refused is not None else None

    def _refused(self, what: str, why: Rejection) -> Rejection:
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

    def _done(self, what: str, reply: Rejection | None) -> Rejection | None:
        if reply is None:
            audit.info(
                "done", extra={"who": self.identity.label, "peer": self.peer, "action": what}
            )
        return reply

    def _end(self, consumer: str, why: Rejection) -> None:
        self._door.consumer_ended(consumer, why)
        self._door.flush()
