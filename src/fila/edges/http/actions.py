"""What the JSON API does: each action is a request of a session, so it is permitted and audited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges.http.message import HttpError
from fila.security.guard import Identity
from fila.wire import errors

_STATUS = {
    errors.QUEUE_NOT_FOUND: 404,
    errors.MESSAGE_NOT_FOUND: 404,
    errors.UNAUTHORIZED: 401,
    errors.FORBIDDEN: 403,
}
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
