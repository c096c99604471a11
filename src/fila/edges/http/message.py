"""Requests and answers as plain values; what a mistake looks like to the client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
Fields = tuple[tuple[str, str], ...]
NO_STORE: Final = ("Cache-Control", "no-store")


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # names in lower case
    body: bytes
    peer: str  # address without port
    secure: bool
    target: str = ""  # path and query as they came

    def one(self, name: str, default: str = "") -> str:
        """A query parameter; the first if it is given more than once."""
        return self.query.get(name, [default])[0]

    def number(self, name: str, default: int, low: int, high: int) -> int:
        text = self.one(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or not low <= int(text[:9]) <= high:
            raise HttpError(400, "BadRequest", f"{name} is a number from {low} to {high}")
        return int(text[:9])


Body = bytes | tuple[bytes, ...]  # in parts, where it is large: they are never joined


class Response(NamedTuple):
    status: int
    body: Body = b""
    content_type: str = JSON
    headers: Fields = (NO_STORE,)


class EventStream(NamedTuple):
    """Server-sent events until the iterator ends or the client leaves."""

    events: AsyncIterator[bytes]
    closed: Callable[[], None]


class HttpError(Exception):
    """A client's mistake: status, code and a message to act on."""

    def __init__(self, status: int, code: str, message: str, headers: Fields = ()) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers

    def body(self) -> bytes:
        return encode({"error": {"code": self.code, "message": str(self)}})

    def response(self) -> Response:
        return Response(self.status, self.body(), JSON, (NO_STORE, *self.headers))


def encode(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def answer(document: Any, headers: Fields = ()) -> Response:
    return Response(200, encode(document), JSON, (NO_STORE, *headers))


def fields_of(request: Request) -> dict[str, Any]:
    """The JSON object a POST carries."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise HttpError(400, "BadRequest", f"send {JSON}")
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, "BadRequest", "the body is no JSON") from error
    if not isinstance(found, dict):
        raise HttpError(400, "BadRequest", "the body is no JSON object")
    return found
