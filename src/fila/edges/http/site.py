"""The whole site: health, metrics, the API, and the dashboard's files for every other path."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from fila.edges.http.api import Api
from fila.edges.http.files import Files
from fila.edges.http.logins import Logins
from fila.edges.http.message import (
    NO_STORE,
    TEXT,
    Body,
    EventStream,
    HttpError,
    Request,
    Response,
)
from fila.edges.http.paths import ROOT
from fila.security.guard import Guard


class Site:
    def __init__(
        self,
        guard: Guard,
        logins: Logins,
        api: Api,
        files: Files,
        metrics: Callable[[], Awaitable[tuple[Body, str]]],
    ) -> None:
        self._guard = guard
        self._logins = logins
        self._api = api
        self._files = files
        self._metrics = metrics
        self.not_ready = "starting"  # why; empty: ready
        self.warnings: Callable[[], list[str]] = list  # what an operator should know all the same
        self.loopback = False  # bound where only this machine can reach it

    async def serve(self, request: Request) -> Response | EventStream:
        try:
            if self.loopback and not _is_local(request.headers.get("host", "")):
                # A page elsewhere whose name was made to point here must not read this broker.
                text = "this port is for the machine itself: use localhost"
                raise HttpError(421, "BadRequest", text)
            if request.path.startswith(ROOT):
                return await self._api.serve(request)
            if request.method not in ("GET", "HEAD"):
                raise HttpError(405, "MethodNotAllowed", "use GET", (("Allow", "GET, HEAD"),))
            if request.path == "/healthz":
                return Response(200, b"ok\n", TEXT)
            if request.path == "/readyz":
                why = self.not_ready
                lines = [why or "ready", *(f"warning: {text}" for text in self.warnings())]
                return Response(503 if why else 200, "\n".join([*lines, ""]).encode(), TEXT)
            if request.path == "/metrics":
                return await self._scrape(request)
            return self._files.find(request.path)
        except HttpError as error:
            return error.response()

    async def _scrape(self, request: Request) -> Response:
        visitor = self._logins.visitor(request)
        if visitor is None:
            text = "send an API key with admin on * as bearer"
            raise HttpError(401, "Unauthorized", text, (("WWW-Authenticate", "Bearer"),))
        refused = self._guard.permit_all(visitor.identity)
        if refused is not None:
            raise HttpError(403, "Forbidden", refused.message)
        body, kind = await self._metrics()
        return Response(200, body, kind, (NO_STORE,))


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name.lower() == "localhost" or name.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
