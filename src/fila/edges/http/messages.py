"""A queue's messages for people: pages of a snapshot, searched, and one message whole.

Reads alone and takes nothing: a snapshot is opened as over FIBP, with the permission to consume,
and read some rows at a time with the loop's other work in between. A cursor names the snapshot and
the place in it; a snapshot whose time is up is refused, and the list begins anew.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any, Final, NamedTuple

from fila.broker import batch_operations
from fila.broker.no_connection import NoConnection
from fila.broker.session import Session, Sessions
from fila.core.browse import Page, Seen
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, KEY, WEIGHT, message_id, ready_ns
from fila.core.rejection import Rejection
from fila.edges.http.actions import refusal, refuse
from fila.edges.http.message import HttpError, Request, Response
from fila.edges.http.views import key_of, named
from fila.security.guard import Identity
from fila.wire import bodies, forms
from fila.wire.ids import id_text
from fila.wire.message import decode_headers, payload_of

LIMIT_MAX: Final = 200  # messages in an answer
LOOKED_MAX: Final = 10_000  # messages a search looks at before it asks whether to go on
PREVIEW_BYTES: Final = 512  # of a payload in a list
WHOLE_BYTES: Final = 256 * 1024  # of a payload that is shown; more of it is downloaded
SEARCHED_BYTES: Final = 64 * 1024  # of a payload
HEADERS_MAX: Final = 32  # of a message in a list
VALUE_CHARS: Final = 512  # of a header in a list
TTL_MS: Final = 120_000
_PAGE_ROWS: Final = 256
_PAGE_BYTES: Final = 512 * 1024
_MS: Final = 1_000_000
_STATES: Final = {"ready": forms.READY, "delayed": forms.DELAYED, "leased": forms.LEASED}
_STATE_NAMES: Final = {number: name for name, number in _STATES.items()}

Do = Callable[[Identity, str, Any], Awaitable[Any]]


class _Place(NamedTuple):
    """Where a list goes on."""

    snapshot: str
    range: int
    start: bytes


class Messages:
    def __init__(self, sessions: Sessions, do: Do) -> None:
        self._sessions = sessions
        self._do = do

    async def list(self, identity: Identity, request: Request) -> dict[str, Any]:
        """Messages from a cursor, or from the beginning of a new snapshot."""
        limit = request.number("limit", 50, 1, LIMIT_MAX)
        text = request.one("q").casefold()
        states = _states(request)
        cursor = request.one("cursor")
        if cursor:
            place = _place(cursor)
        else:
            key = request.one("key")
            fairness_key = _text(key_of(key)) if key else None
            opened: bodies.BrowseResult = await self._do(
                identity,
                request.peer,
                bodies.Browse(request.one("queue"), fairness_key, 1, TTL_MS),
            )
            place = _Place(opened.snapshot, 0, b"")
        shown: list[dict[str, Any]] = []
        looked = 0
        following: _Place | None = place
        with self._session(identity, request.peer) as session:
            while following is not None and len(shown) < limit and looked < LOOKED_MAX:
                place = following
                queue, page, following = _read(session, place, states)
                for seen in page.messages:
                    looked += 1
                    if text and not _matches(seen, text):
                        continue
                    shown.append(_row(seen))
                    if len(shown) == limit:
                        behind = seen.entry[KEY] + b"\0"
                        following = place._replace(start=behind)
                        break
                await asyncio.sleep(0)
        return {
            "queue": queue,
            "snapshot": place.snapshot,
            "messages": shown,
            "looked": looked,
            "next": _cursor(following) if following is not None else "",
        }

    def one(self, identity: Identity, request: Request) -> dict[str, Any]:
        """A message whole; of a long payload the beginning."""
        seen = self._one(identity, request)
        body = seen.entry[BODY]
        payload = payload_of(body)
        return {
            **_facts(seen),
            "headers": decode_headers(body),
            "payload": b64encode(payload[:WHOLE_BYTES]).decode(),
            "payload_bytes": len(payload),
        }

    def payload(self, identity: Identity, request: Request) -> Response:
        """The payload alone, to be saved."""
        seen = self._one(identity, request)
        name = id_text(message_id(seen.entry)).decode()
        disposition = ("Content-Disposition", f'attachment; filename="{name}.bin"')
        headers = (("Cache-Control", "no-store"), disposition)
        return Response(200, payload_of(seen.entry[BODY]), "application/octet-stream", headers)

    def _one(self, identity: Identity, request: Request) -> Seen:
        at = _hex(request.one("at"))
        wanted = bodies.BrowsePage(request.one("snapshot"), at, at + b"\0", max_messages=1)
        with self._session(identity, request.peer) as session:
            _, page = _refused(batch_operations.page(session, wanted))
        if not page.messages:
            raise HttpError(404, "NotFound", "no such message in the snapshot; list it anew")
        return page.messages[0]

    def _session(self, identity: Identity, peer: str) -> closing[Session]:
        session = self._sessions.open(NoConnection(), peer)
        session.identity = identity
        return closing(session)


def _read(session: Session, place: _Place, states: int) -> tuple[str, Page, _Place | None]:
    """The queue's name, a page, and where the next one starts."""
    ranges = session.browser.ranges_of(place.snapshot)
    if isinstance(ranges, Rejection):
        raise refusal(ranges)
    if not ranges:  # a key without messages
        queue = session.browser.queue_of(place.snapshot)
        refuse(session.may_consume(str(queue)))
        return str(queue), Page([], b""), None
    if place.range >= len(ranges):
        raise _no_cursor()
    start, end = ranges[place.range]
    wanted = bodies.BrowsePage(
        place.snapshot, max(start, place.start), end, states, _PAGE_ROWS, _PAGE_BYTES
    )
    queue, page = _refused(batch_operations.page(session, wanted))
    if page.next:
        return queue, page, place._replace(start=page.next)
    if place.range + 1 < len(ranges):
        return queue, page, _Place(place.snapshot, place.range + 1, b"")
    return queue, page, None


def _refused(found: tuple[str, Page] | Rejection) -> tuple[str, Page]:
    if isinstance(found, Rejection):
        raise refusal(found)
    return found


def _matches(seen: Seen, text: str) -> bool:
    """Whether it holds this text: its id, its key, a header, or its payload as text."""
    if text in seen.lane.fairness_key.decode(errors="replace").casefold():
        return True
    if text in id_text(message_id(seen.entry)).decode():
        return True
    body = seen.entry[BODY]
    headers = decode_headers(body)
    if any(text in name.casefold() or text in value.casefold() for name, value in headers.items()):
        return True
    return text in payload_of(body)[:SEARCHED_BYTES].decode(errors="replace").casefold()


def _facts(seen: Seen) -> dict[str, Any]:
    entry = seen.entry
    return {
        "id": id_text(message_id(entry)).decode(),
        "at": entry[KEY].hex(),
        "state": _STATE_NAMES[seen.state],
        "key": named(seen.lane.fairness_key),
        "throttle_keys": [named(one) for one in seen.lane.throttle_keys],
        "weight": entry[WEIGHT],
        "attempts": entry[ATTEMPTS],
        "enqueued_ms": entry[ENQUEUED_NS] // _MS,
        "ready_ms": ready_ns(entry) // _MS,
    }


def _row(seen: Seen) -> dict[str, Any]:
    body = seen.entry[BODY]
    headers = decode_headers(body)
    payload = payload_of(body)
    some = list(headers.items())[:HEADERS_MAX]
    return {
        **_facts(seen),
        "headers": {name[:VALUE_CHARS]: value[:VALUE_CHARS] for name, value in some},
        "headers_total": len(headers),
        "preview": b64encode(payload[:PREVIEW_BYTES]).decode(),
        "payload_bytes": len(payload),
    }


def _states(request: Request) -> int:
    states = 0
    for name in request.query.get("state", []):
        if name not in _STATES:
            raise HttpError(400, "BadRequest", f"state is one of {', '.join(_STATES)}")
        states |= _STATES[name]
    return states or forms.ALL_STATES


def _cursor(place: _Place) -> str:
    return f"{place.snapshot}.{place.range}.{place.start.hex()}"


def _place(cursor: str) -> _Place:
    snapshot, _, rest = cursor.partition(".")
    number, _, start = rest.partition(".")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise _no_cursor()
    return _Place(snapshot, int(number), _hex(start))


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise _no_cursor() from error


def _no_cursor() -> HttpError:
    return HttpError(400, "BadRequest", "that is no place this API has named")


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, "BadRequest", "a key that is no text cannot be named here") from error
