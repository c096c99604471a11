"""Who is calling: API keys as bearers, or session cookies made from them.

Owns the sign-ins (in memory) and their CSRF tokens. What a visitor may do is asked of the guard
with every request.
"""

from __future__ import annotations

import hmac
import logging
from collections import OrderedDict
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple

from fila.core.rejection import Rejection
from fila.edges.http.message import Fields, HttpError, Request
from fila.security.attempts import Attempts
from fila.security.guard import Guard, Identity

audit = logging.getLogger("fila.audit")

COOKIE: Final = "fila_session"
CSRF_HEADER: Final = "x-fila-csrf"
LOGINS_MAX: Final = 1_000


class Visitor(NamedTuple):
    identity: Identity
    csrf: str  # what a POST must show; empty: nothing, a bearer cannot be tricked


class _Login(NamedTuple):
    identity: Identity
    csrf: str
    until_ms: int


class Logins:
    def __init__(
        self,
        guard: Guard,
        token: Callable[[], str],
        now_ms: Callable[[], int],
        ttl_ms: int,
        attempts: Attempts,
    ) -> None:
        self._guard = guard
        self._attempts = attempts
        self._token = token
        self._now_ms = now_ms
        self._ttl_ms = ttl_ms
        self._open_csrf = token()  # shared by all, where authentication is off
        self._logins: OrderedDict[str, _Login] = OrderedDict()

    @property
    def enabled(self) -> bool:
        return self._guard.enabled

    def visitor(self, request: Request) -> Visitor | None:
        """Who it is; None without a sign-in. Raises for a bearer key that is not valid."""
        now_ms = self._now_ms()
        if not self._guard.enabled:
            identity = self._guard.admit(None, now_ms)
            assert isinstance(identity, Identity)
            return Visitor(identity, self._open_csrf)
        authorization = request.headers.get("authorization")
        if authorization is not None:
            return Visitor(self._admit(request.peer, _bearer(authorization)), "")
        login = self._logins.get(_cookie(request))
        if login is None:
            return None
        if login.until_ms <= now_ms or self._guard.still_valid(login.identity, now_ms) is not None:
            del self._logins[_cookie(request)]
            return None
        return Visitor(login.identity, login.csrf)

    def sign_in(self, request: Request, secret: str) -> tuple[Visitor, Fields]:
        """A new session and the cookie for it."""
        if not self._guard.enabled:
            visitor = self.visitor(request)
            assert visitor is not None
            return visitor, ()
        identity = self._admit(request.peer, secret)
        self.sign_out(request)
        token = self._token()
        login = _Login(identity, self._token(), self._now_ms() + self._ttl_ms)
        self._logins[token] = login
        while len(self._logins) > LOGINS_MAX:
            self._logins.popitem(last=False)
        cookie = _set_cookie(token, request.secure, self._ttl_ms // 1000)
        return Visitor(identity, login.csrf), (("Set-Cookie", cookie),)

    def sign_out(self, request: Request) -> Fields:
        self._logins.pop(_cookie(request), None)
        return (("Set-Cookie", _set_cookie("", request.secure, 0)),)

    def _admit(self, peer: str, secret: str) -> Identity:
        """The right key opens at any time, however many wrong ones came from its address."""
        now_ms = self._now_ms()
        identity = self._guard.admit(secret, now_ms)
        if not isinstance(identity, Rejection):
            return identity
        wait_ms = self._attempts.wrong(peer, now_ms)
        if self._attempts.may_tell(wait_ms, now_ms):
            told = {"who": "nobody yet", "peer": peer, "action": "sign in", "why": identity.message}
            audit.warning("refused", extra=told)
        if wait_ms:
            wait_s = wait_ms // 1000 + 1
            text = f"too many wrong keys from {peer}; try again in {wait_s} s"
            raise HttpError(429, "TooManyAttempts", text, (("Retry-After", str(wait_s)),))
        raise HttpError(401, "Unauthorized", identity.message)


def check_post(request: Request, visitor: Visitor) -> None:
    """A POST must come from our own pages, or from a program with a bearer key."""
    check_origin(request)
    if visitor.csrf:
        shown = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(shown.encode(), visitor.csrf.encode()):
            text = f"the header {CSRF_HEADER} does not match; read /api/v1/session again"
            raise HttpError(403, "CsrfMissing", text)


def check_origin(request: Request) -> None:
    origin = request.headers.get("origin")
    if origin is not None:
        scheme = "https" if request.secure else "http"
        if origin.lower() != f"{scheme}://{request.headers.get('host', '')}".lower():
            raise HttpError(403, "CsrfMissing", f"a request from {origin[:200]} is not served")


def _bearer(authorization: str) -> str:
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _set_cookie(token: str, secure: bool, age_s: int) -> str:
    tail = "; Secure" if secure else ""
    return f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{tail}"
