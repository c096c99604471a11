"""The JSON API: which path shows or does what, and who may (spec/http.md).

Every document is encoded once per beat of the pulse for all callers who get the same one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

from fila import __version__
from fila.edges.http.actions import Actions, refuse, text_of
from fila.edges.http.last_minutes import LastMinutes
from fila.edges.http.logins import Logins, Visitor, check_origin, check_post
from fila.edges.http.message import (
    Body,
    EventStream,
    HttpError,
    Request,
    Response,
    answer,
    encode,
    fields_of,
)
from fila.edges.http.messages import Messages
from fila.edges.http.overview import Sees, overview
from fila.edges.http.pages import Order, order_of
from fila.edges.http.paths import PATHS, ROOT, Who
from fila.edges.http.trying import Trying
from fila.edges.http.views import Views
from fila.security.guard import Guard, Identity
from fila.telemetry.history import POINTS

_VIEWS: Final = ("overview", "queue", "keys", "key")


class _Wish(NamedTuple):
    """One view with its parameters: equal wishes of equal callers share an answer."""

    view: str
    queue: str = ""
    key: str = ""
    history: int = 0
    order: Order | None = None
    live: bool = False


class Api:
    def __init__(
        self,
        guard: Guard,
        logins: Logins,
        views: Views,
        actions: Actions,
        messages: Messages,
        streams_max: int,
        last_minutes: LastMinutes,
        trying: Trying,
    ) -> None:
        self._last_minutes = last_minutes
        self._guard = guard
        self._logins = logins
        self._views = views
        self._streams_max = streams_max
        self._streams = 0
        self._tick = -1
        self._encoded: dict[tuple[str, _Wish], Body] = {}
        self._making = asyncio.Lock()
        self._explain = actions.explain
        self._operate = actions.operate
        self._messages = messages
        self._actions: dict[str, Callable[[Identity, str, dict[str, Any]], Awaitable[Any]]] = {
            "redrive": actions.redrive,
            "pause": actions.pause,
            "resume": actions.resume,
            "purge": actions.purge,
            "try-hooks": trying.try_hooks,
        }

    async def serve(self, request: Request) -> Response | EventStream:
        name = request.path.removeprefix(ROOT)
        group, _, operation = name.partition("/")
        if group == "operations":
            return await self._post(group, request, operation)
        if name in PATHS and PATHS[name].method == "POST":
            return await self._post(name, request)
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, "MethodNotAllowed", "use GET", (("Allow", "GET, HEAD"),))
        visitor = self._logins.visitor(request)
        if name == "session":
            return answer(self._session(visitor))
        if visitor is None:
            raise HttpError(401, "Unauthorized", "sign in with an API key")
        if name == "explain":
            told = [request.one(field) for field in ("queue", "key", "message")]
            return Response(200, await self._explain(visitor.identity, request.peer, *told))
        if name == "stream":
            return self._stream(visitor, request)
        if name == "messages":
            return answer(await self._messages.list(visitor.identity, request))
        if name == "message":
            return answer(self._messages.one(visitor.identity, request))
        if name == "payload":
            return self._messages.payload(visitor.identity, request)
        return Response(200, await self._document(visitor.identity, _wish(name, request, False)))

    async def _post(self, name: str, request: Request, operation: str = "") -> Response:
        if request.method != "POST":
            raise HttpError(405, "MethodNotAllowed", "use POST", (("Allow", "POST"),))
        if name == "login":
            check_origin(request)
            secret = text_of(fields_of(request), "api_key")
            visitor, cookies = self._logins.sign_in(request, secret)
            return answer(self._session(visitor), cookies)
        known = self._logins.visitor(request)
        if known is None:
            raise HttpError(401, "Unauthorized", "sign in with an API key")
        check_post(request, known)
        fields = fields_of(request)
        if name == "logout":
            return answer({}, self._logins.sign_out(request))
        if name == "operations":
            return Response(
                200, await self._operate(known.identity, request.peer, operation, fields)
            )
        return answer(await self._actions[name](known.identity, request.peer, fields))

    def _session(self, visitor: Visitor | None) -> dict[str, Any]:
        pulse = self._views.pulse
        return {
            "auth": self._logins.enabled,
            "signed_in": visitor is not None,
            "who": visitor.identity.label if visitor is not None else "",
            "superadmin": visitor is not None and visitor.identity.superadmin,
            "administers_all": visitor is not None
            and self._guard.permit_all(visitor.identity) is None,
            "csrf": visitor.csrf if visitor is not None else "",
            "version": __version__,
            "started_ms": pulse.started_ms,
            "now_ms": pulse.now_ms(),
            "interval_ms": 1000,
            "history_points": POINTS,
        }

    # --- documents

    async def _document(self, identity: Identity, wish: _Wish) -> Body:
        """The encoded document, if the caller may see it now."""
        who = PATHS[wish.view].who
        if who is Who.ADMIN_OF_ALL:
            refuse(self._guard.permit_all(identity))
        elif who is not Who.SIGNED_IN:
            refuse(self._guard.permit_admin(identity, wish.queue))
        if wish.view == "queue":
            await self._views.known(wish.queue)
        if self._tick != self._views.pulse.tick:
            self._tick = self._views.pulse.tick
            self._encoded.clear()
        # Only the overview depends on who asks.
        caller = f"{identity.superadmin} {identity.key_id}" if wish.view == "overview" else ""
        found = self._encoded.get((caller, wish))
        if found is None:
            if wish.view == "pipeline":  # reads files, and not on the loop's time
                return encode(await self._make(identity, wish))
            # One document at a time: each is made in slices, and the slices of several would add up
            # to a long hold of the loop.
            async with self._making:
                found = self._encoded.get((caller, wish))
                if found is None:
                    made = await self._make(identity, wish)
                    found = made if isinstance(made, tuple) else encode(made)
                    self._encoded[(caller, wish)] = found
        return found

    async def _make(self, identity: Identity, wish: _Wish) -> Any:
        views = self._views
        if wish.view == "overview":
            guard = self._guard
            sees = Sees(
                lambda queue: guard.sees(identity, queue),
                lambda queue: guard.permit_admin(identity, queue) is None,
            )
            return await overview(views, sees, wish.history, wish.live)
        if wish.view == "queue":
            return await views.queue(wish.queue, wish.history, wish.live)
        if wish.view == "keys":
            assert wish.order is not None
            return await views.keys(wish.queue, wish.order)
        if wish.view == "key":
            return await views.key(wish.queue, wish.key, wish.history, wish.live)
        if wish.view == "dead-letters":
            return views.dead_letters(wish.queue)
        if wish.view == "pipeline":
            return await self._last_minutes.read()
        assert wish.view == "buckets"
        return views.buckets()

    # --- live

    def _stream(self, visitor: Visitor, request: Request) -> EventStream:
        wishes = []
        for view in request.query.get("view", []):
            if view not in _VIEWS:
                raise HttpError(400, "BadRequest", f"view is one of {', '.join(_VIEWS)}")
            wishes.append(_wish(view, request, True))
        if not 1 <= len(wishes) <= len(_VIEWS):
            raise HttpError(400, "BadRequest", f"name one to {len(_VIEWS)} views")
        if self._streams >= self._streams_max:
            raise HttpError(503, "ChannelFull", "too many live streams", (("Retry-After", "5"),))
        self._streams += 1
        return EventStream(self._events(request, wishes), self._stream_closed)

    def _stream_closed(self) -> None:
        self._streams -= 1

    async def _events(self, request: Request, wishes: list[_Wish]) -> AsyncIterator[bytes]:
        pulse = self._views.pulse
        yield b"retry: 2000\n\n"
        while True:
            parts = []
            try:
                visitor = self._logins.visitor(request)
                if visitor is None:
                    raise HttpError(401, "Unauthorized", "the session has ended; sign in again")
                for wish in wishes:
                    found = await self._document(visitor.identity, wish)
                    data = found if isinstance(found, bytes) else b"".join(found)
                    parts.append(
                        b"id: %d\nevent: %b\ndata: %b\n\n" % (pulse.at_ms, wish.view.encode(), data)
                    )
            except HttpError as error:
                yield b"event: error\ndata: " + error.body() + b"\n\n"
                return
            yield b"".join(parts)
            await pulse.next_beat()


def _wish(name: str, request: Request, live: bool) -> _Wish:
    if name == "overview":
        return _Wish(name, history=0 if live else _history(request), live=live)
    if name in ("buckets", "pipeline"):
        return _Wish(name)
    queue = request.one("queue") or request.one("name")
    if name == "queue":
        queue = request.one("name") or request.one("queue")
        return _Wish(name, queue, history=0 if live else _history(request), live=live)
    if name == "keys":
        return _Wish(name, queue, order=order_of(request))
    if name == "key":
        key = request.one("key")
        return _Wish(name, queue, key, 0 if live else _history(request), live=live)
    if name == "dead-letters":
        return _Wish(name, queue)
    raise HttpError(404, "NotFound", f"no such path: {ROOT}{name[:100]}")


def _history(request: Request) -> int:
    return request.number("history", 0, 0, POINTS)
