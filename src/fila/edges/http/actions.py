"""What the JSON API does: each action is a request of a session, so it is permitted and audited."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fila.broker.no_connection import NoConnection
from fila.broker.session import Sessions
from fila.core.pause import Pause
from fila.core.rejection import Rejection
from fila.edges.http.message import Body, HttpError
from fila.edges.http.operations import answer_of, request_of
from fila.edges.http.views import key_of, paused
from fila.security.guard import Identity
from fila.wire import bodies, errors

_STATUS = {
    errors.QUEUE_NOT_FOUND: 404,
    errors.MESSAGE_NOT_FOUND: 404,
    errors.UNAUTHORIZED: 401,
    errors.FORBIDDEN: 403,
    errors.API_KEY_NOT_FOUND: 404,
    errors.SNAPSHOT_EXPIRED: 410,
    errors.STORAGE_ERROR: 503,
}
EXPLAINED_KEYS_MAX = 20
_CONFLICTS = (errors.NOT_A_DLQ, errors.PARENT_QUEUE_NOT_FOUND, errors.QUEUE_ALREADY_EXISTS)


class Actions:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def redrive(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue = text_of(fields, "queue")
        count = fields.get("count", 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise HttpError(400, "BadRequest", "count is a whole number; 0 means all")
        result = await self.do(identity, peer, bodies.Redrive(queue, count))
        return {"redriven": result.redriven}

    async def pause(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)
        reason = text_of(fields, "reason")
        if key is None:
            await self.do(identity, peer, bodies.PauseQueue(queue, reason))
        else:
            await self.do(identity, peer, bodies.PauseKey(queue, key, reason))
        return {"paused": paused(self._pause_of(queue, key))}

    async def resume(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)
        if key is None:
            await self.do(identity, peer, bodies.ResumeQueue(queue))
        else:
            await self.do(identity, peer, bodies.ResumeKey(queue, key))
        return {"paused": paused(self._pause_of(queue, key))}

    async def purge(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        queue, key = text_of(fields, "queue"), _key(fields)
        result = await self.do(identity, peer, bodies.Purge(queue, key))
        return {"purged": result.purged}

    async def operate(
        self, identity: Identity, peer: str, name: str, fields: dict[str, Any]
    ) -> Body:
        """An operation of the table, by its name."""
        return await answer_of(await self.do(identity, peer, request_of(name, fields)))

    def _pause_of(self, queue: str, key: str | None) -> Pause | None:
        name = None if key is None else key.encode()
        return self._sessions.broker.machine.view.pause_of(queue, name)

    async def explain(
        self, identity: Identity, peer: str, queue: str, key: str, message: str
    ) -> bytes:
        """Why it waits, as JSON; `key` is a ref."""
        name = _key({"key": key}) if key else None
        wanted = bodies.Explain(queue, name, message, EXPLAINED_KEYS_MAX)
        found: bodies.ExplainResult = await self.do(identity, peer, wanted)
        return found.document

    async def do(self, identity: Identity, peer: str, request: Any) -> Any:
        """Carry one request out, with a session that lasts as long as it does; its result, when it
        is committed."""
        broker = self._sessions.broker
        session = self._sessions.open(NoConnection(), peer)
        session.identity = identity
        committed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(result: Any) -> None:
            broker.begin()
            broker.after_commit(partial(tell, result))

        def tell(result: Any) -> None:
            if not committed.done():  # the browser may have gone
                committed.set_result(result)

        try:
            refuse(session.carry_out(request, done))
            result = await committed
            if isinstance(result, Rejection):
                refuse(result)
            return result
        finally:
            session.close()


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
        raise refusal(why)


def refusal(why: Rejection) -> HttpError:
    status = 409 if why.code in _CONFLICTS else _STATUS.get(why.code, 400)
    return HttpError(status, errors.name_of(why.code), why.message)


def text_of(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise HttpError(400, "BadRequest", f"{name} is missing, or no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        text = f"{name}: character {error.start} is half of a surrogate pair, not valid UTF-8"
        raise HttpError(400, "BadRequest", text) from error
    return value
