"""What the JSON API does: each action is a request of a session, so it is permitted and audited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.pause import Pause
from fila.core.rejection import Rejection
from fila.edges.http.message import HttpError
from fila.edges.http.views import key_of, paused
from fila.security.guard import Identity
from fila.wire import errors

_STATUS = {
    errors.QUEUE_NOT_FOUND: 404,
    errors.MESSAGE_NOT_FOUND: 404,
    errors.UNAUTHORIZED: 401,
    errors.FORBIDDEN: 403,
}
EXPLAINED_KEYS_MAX = 20
_CONFLICTS = (errors.NOT_A_DLQ, errors.PARENT_QUEUE_NOT_FOUND)


class Actions:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def redrive(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue = text_of(fields, "queue")
        count = fields.get("count", 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise HttpError(400, "BadRequest", "count is a whole number; 0 means all")
        moved = await self._do(
            identity, peer, lambda session, done: session.redrive(queue, count, done)
        )
        return {"redriven": moved}

    async def pause(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)
        reason = text_of(fields, "reason")

        def act(session: Session, done: Callable[[int], None]) -> Rejection | None:
            if key is None:
                return self._then(session.pause_queue(queue, reason), done)
            return self._then(session.pause_key(queue, key, reason), done)

        await self._do(identity, peer, act)
        return {"paused": paused(self._pause_of(queue, key))}

    async def resume(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)

        def act(session: Session, done: Callable[[int], None]) -> Rejection | None:
            if key is None:
                return self._then(session.resume_queue(queue), done)
            return self._then(session.resume_key(queue, key), done)

        await self._do(identity, peer, act)
        return {"paused": paused(self._pause_of(queue, key))}

    async def purge(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)
        purged = await self._do(
            identity, peer, lambda session, done: session.purge(queue, key, done)
        )
        return {"purged": purged}

    def _then(self, refused: Rejection | None, done: Callable[[int], None]) -> Rejection | None:
        """Done when what the turn did is committed."""
        if refused is None:
            self._sessions.broker.begin()
            self._sessions.broker.after_commit(lambda: done(0))
        return refused

    def _pause_of(self, queue: str, key: str | None) -> Pause | None:
        name = None if key is None else key.encode()
        return self._sessions.broker.machine.view.pause_of(queue, name)

    def explain(self, identity: Identity, peer: str, queue: str, key: str, message: str) -> bytes:
        """Why it waits, as JSON; `key` is a ref."""
        session = self._sessions.open(_NoDoor(), peer)
        session.identity = identity
        try:
            name = _key({"key": key}) if key else None
            found = session.explain(queue, name, message, EXPLAINED_KEYS_MAX)
            if isinstance(found, Rejection):
                refuse(found)
                raise AssertionError("a rejection is refused")
            return found
        finally:
            session.close()

    async def _do(
        self,
        identity: Identity,
        peer: str,
        act: Callable[[Session, Callable[[int], None]], Rejection | None],
    ) -> int:
        """Run one request of a session that lasts as long as it does."""
        session = self._sessions.open(_NoDoor(), peer)
        session.identity = identity
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def finish(value: int) -> None:
            if not done.done():
                done.set_result(value)

        try:
            refuse(act(session, finish))
            return await done
        finally:
            session.close()


class _NoDoor:
    """Nothing is ever delivered to an action."""

    def send(self, data: bytes) -> None: ...

    def deliver(self, delivery: Delivery) -> None: ...

    def consumer_ended(self, consumer: str, why: Rejection) -> None: ...

    def flush(self) -> None: ...

    def expelled(self, why: Rejection) -> None: ...


def _key(fields: dict[str, Any]) -> str | None:
    """The fairness key an action is about, if it is about one."""
    if fields.get("key") is None:
        return None
    try:
        return key_of(text_of(fields, "key")).decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, "BadRequest", "a key that is no text cannot be named here") from error


def refuse(why: Rejection | None) -> None:
    """Raise what the broker says no to."""
    if why is not None:
        status = 409 if why.code in _CONFLICTS else _STATUS.get(why.code, 400)
        raise HttpError(status, errors.name_of(why.code), why.message)


def text_of(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise HttpError(400, "BadRequest", f"{name} is missing, or no text")
    return value
