"""One HTTP/1.1 connection: bytes to requests, answers to bytes. The only module that imports h11.

Owns the limits on what a client may send and how slowly. One request is served at a time; what the
client sends meanwhile waits, within a bound. Knows nothing of paths.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qs, unquote

import h11

from fila.edges import failures
from fila.edges.failures import Failures
from fila.edges.http.message import EventStream, Fields, HttpError, Request, Response
from fila.edges.inbound import TOO_MUCH, Inbound
from fila.edges.outbound import SLOW_BYTES, Outbound, unread_bytes, write

log = logging.getLogger("fila.http")

Serve = Callable[[Request], Awaitable[Response | EventStream]]

PART_BYTES: Final = 256 * 1024  # of a large answer, written at a time
# Headers of answers that browsers get.
PAGES: Final[Fields] = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'",
    ),
)


class HttpLimits(NamedTuple):
    head_bytes_max: int = 16 * 1024
    body_bytes_max: int = 64 * 1024
    ahead_bytes_max: int = 64 * 1024  # sent by the client before the last answer was made
    query_fields_max: int = 32
    request_s: float = 10.0  # from its first byte, or the connection's start, to its last
    idle_s: float = 30.0  # between requests
    stuck_s: float = 30.0  # a client that takes nothing of its answer
    half_closed: bool = True  # whether who has said its last word is still answered
    connections_max: int = 256
    streams_max: int = 64


class HttpConnection(asyncio.Protocol):
    def __init__(
        self,
        serve: Serve,
        limits: HttpLimits,
        loop: asyncio.AbstractEventLoop,
        used: Callable[[HttpConnection], None],
        closed: Callable[[HttpConnection], None],
        failed: Failures,
        outbound: Outbound,
        inbound: Inbound,
        always: Fields = PAGES,
    ) -> None:
        self._serve = serve
        self._limits = limits
        self._loop = loop
        self._used = used
        self._closed = closed
        self._failures = failed
        self._outbound = outbound
        self._inbound = inbound
        self._always = always  # headers of every answer
        self._counted = 0  # bytes of a body that has not arrived whole, counted with all others …
        self._kept = 0  # … and of one that has, until it is answered
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._half_closed = False
        self._streaming = False
        self._unwritten = 0  # bytes of an answer that is sent in parts
        self._written = 0

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=SLOW_BYTES)
        self._wait(self._limits.request_s)
        self._used(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._receive(data)
        except Exception as error:
            self._fail(error)

    def _receive(self, data: bytes) -> None:
        if self._task is None and self._request is None and not self._h11.trailing_data[0]:
            self._wait(self._limits.request_s)  # a new request begins
        try:
            self._h11.receive_data(data)
        except h11.RemoteProtocolError:
            self._abort()
            return
        if self._task is None:
            self._advance()
        elif len(self._h11.trailing_data[0]) > self._limits.ahead_bytes_max:
            self._abort()

    def eof_received(self) -> bool:
        self._half_closed = True
        # An answer is still to go out; a stream has no end, so its client is simply gone.
        return self._task is not None and not self._streaming and self._limits.half_closed

    def pause_writing(self) -> None:
        self._writable.clear()
        self._watch(-1 << 62)

    def resume_writing(self) -> None:
        self._writable.set()
        self._outbound.hold(self, 0)
        if self._stuck is not None:
            self._stuck.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._stuck):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._transport = None
        self._outbound.hold(self, 0)
        self._keep(0)
        self._closed(self)

    def shut_down(self) -> None:
        """The server stops."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.close()

    def is_idle(self) -> bool:
        """Whether nothing is being answered: it has sent no request, or half of one."""
        return self._task is None

    def is_slow(self) -> bool:
        """Whether its client does not read its answer."""
        return not self._writable.is_set()

    def unsent_bytes(self) -> int:
        written = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return written + self._unwritten

    def taken_bytes(self) -> int:
        return self._written - unread_bytes(self._transport)

    def make_room(self) -> None:
        """Others need the room, and its request does not arrive."""
        self._refuse(HttpError(503, "ChannelFull", TOO_MUCH, (("Retry-After", "1"),)))

    def _count(self, size: int) -> None:
        before, self._counted = self._counted, size
        self._inbound.count(self, before, size)

    def _keep(self, size: int) -> None:
        """A body has arrived whole, or is no longer needed."""
        if self._counted:
            self._count(0)
        change, self._kept = size - self._kept, size
        if change:
            self._inbound.keep(change)

    def give_up(self) -> None:
        """Others need the room."""
        self._abort()

    # --- requests

    def _advance(self) -> None:
        """Take what has arrived; begin to serve a request that is whole."""
        try:
            while True:
                event = self._h11.next_event()
                if isinstance(event, h11.Request):
                    self._head(event)
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > self._limits.body_bytes_max:
                        limit = self._limits.body_bytes_max
                        raise HttpError(413, "TooLarge", f"a body may have {limit} bytes")
                    self._count(len(self._body))
                elif isinstance(event, h11.EndOfMessage):
                    self._begin()
                    return
                else:  # more bytes are needed, or the client has closed
                    if isinstance(event, h11.ConnectionClosed):
                        self._close()
                    return
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            code = "TooLarge" if status == 431 else "BadRequest"
            self._refuse(HttpError(status, code, str(error)))
        except HttpError as error:
            self._refuse(error)

    def _head(self, request: h11.Request) -> None:
        names = [name for name, _ in request.headers]
        size = len(request.target) + sum([len(n) + len(v) + 4 for n, v in request.headers])
        if size > self._limits.head_bytes_max:  # h11 limits only what has not arrived whole
            limit = self._limits.head_bytes_max
            raise HttpError(431, "TooLarge", f"a request's head may have {limit} bytes")
        if b"transfer-encoding" in names and b"content-length" in names:
            raise HttpError(400, "BadRequest", "either Content-Length or Transfer-Encoding")
        if names.count(b"host") != 1 and request.http_version != b"1.0":
            raise HttpError(400, "BadRequest", "one Host header is needed")
        for name, value in request.headers:
            if name == b"content-length" and int(value) > self._limits.body_bytes_max:
                limit = self._limits.body_bytes_max
                raise HttpError(413, "TooLarge", f"a body may have {limit} bytes")
        self._request = request
        self._body.clear()
        if self._h11.they_are_waiting_for_100_continue:
            self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        head = self._request
        assert head is not None and self._transport is not None
        if self._transport.is_closing():  # it had to make room for others
            return
        request = self._parse(head)
        self._keep(len(self._body))
        self._body.clear()
        self._used(self)
        self._task = self._loop.create_task(self._answer(request))

    def _parse(self, head: h11.Request) -> Request:
        assert self._transport is not None
        path, _, query = head.target.decode("latin-1").partition("?")
        try:
            found = parse_qs(
                query,
                keep_blank_values=True,
                errors="strict",
                max_num_fields=self._limits.query_fields_max,
            )
        except UnicodeDecodeError as error:
            raise HttpError(400, "BadRequest", "the query is not valid UTF-8") from error
        except ValueError as error:
            raise HttpError(400, "BadRequest", "too many query parameters") from error
        return Request(
            head.method.decode("latin-1"),
            unquote(path, errors="replace"),
            found,
            {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
            bytes(self._body),
            self._peer(),
            self._transport.get_extra_info("ssl_object") is not None,
            head.target.decode("latin-1"),
        )

    async def _answer(self, request: Request) -> None:
        try:
            answer = await self._serve(request)
            if isinstance(answer, EventStream):
                await self._stream(answer)
            else:
                for _ in self._sending(answer, request.method == "HEAD"):
                    # One answer at a time is kept for who does not read.
                    await self._writable.wait()
                    await asyncio.sleep(0)
                await self._writable.wait()
            self._task = None
            self._keep(0)
            self._next()
        except (asyncio.CancelledError, h11.LocalProtocolError):
            self._close()
        except Exception as error:
            self._task = None
            self._fail(error)

    def _next(self) -> None:
        """The next request on this connection, if there is to be one."""
        if (
            self._half_closed
            or self._h11.our_state is not h11.DONE
            or self._h11.their_state is not h11.DONE
        ):
            self._close()
            return
        self._h11.start_next_cycle()
        self._request = None
        waiting = bool(self._h11.trailing_data[0])
        self._wait(self._limits.request_s if waiting else self._limits.idle_s)
        self._advance()

    # --- answers

    def _sending(self, response: Response, head_only: bool) -> Iterator[None]:
        """Send an answer, a large one in parts; what is not written yet counts as unsent."""
        body = response.body
        parts = body if isinstance(body, tuple) else (body,)
        self._unwritten = size = sum(map(len, parts))
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(size)),
            *response.headers,
            *self._always,
        ]
        send = self._h11.send
        out = send(h11.Response(status_code=response.status, headers=headers)) or b""
        try:
            if size <= SLOW_BYTES or head_only:
                self._unwritten = 0
                data = b"" if head_only else send(h11.Data(data=b"".join(parts))) or b""
                self._write(out + data + (send(h11.EndOfMessage()) or b""))
                return
            self._write(out)
            for part in parts:
                for start in range(0, len(part), PART_BYTES):
                    piece = part[start : start + PART_BYTES]
                    self._unwritten -= len(piece)
                    self._write(send(h11.Data(data=piece)))
                    yield
            self._write(send(h11.EndOfMessage()))
        finally:
            self._unwritten = 0

    async def _stream(self, stream: EventStream) -> None:
        headers = [
            ("Content-Type", "text/event-stream; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("X-Accel-Buffering", "no"),
            ("Connection", "close"),
            *self._always,
        ]
        self._streaming = True
        try:
            self._write(self._h11.send(h11.Response(status_code=200, headers=headers)))
            async for event in stream.events:
                await self._writable.wait()  # events that come meanwhile are not kept
                self._write(self._h11.send(h11.Data(data=event)))
            self._write(self._h11.send(h11.EndOfMessage()))
        finally:
            stream.closed()

    def _refuse(self, error: HttpError) -> None:
        """Answer a request that cannot be understood, and close."""
        try:
            if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                response = error.response()
                closing = response._replace(headers=(*response.headers, ("Connection", "close")))
                for _ in self._sending(closing, False):
                    pass  # it is short
        except h11.LocalProtocolError:
            pass
        self._close()

    def _fail(self, error: Exception) -> None:
        """The broker failed over this connection: told so if that is still possible, and closed."""
        self._failures.report(failures.HTTP, self._peer(), error)
        try:
            text = "the broker failed to answer; its log says why"
            self._refuse(HttpError(500, "InternalError", text))
        except Exception:
            self._abort()

    def _peer(self) -> str:
        transport = self._transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        return str(peer[0]) if peer else "?"

    def _write(self, data: bytes | None) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._written += len(data)
            write(self._transport, [data])
            if not self._writable.is_set():
                self._outbound.hold(self, self.unsent_bytes())

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._request is not None or self._h11.trailing_data[0]:
            self._refuse(HttpError(408, "BadRequest", "the request did not arrive in time"))
        else:
            self._close()

    def _watch(self, taken_before: int) -> None:
        """End a client that takes nothing of its answer; one that is slow may go on."""
        taken = self.taken_bytes()
        if taken <= taken_before:
            self._abort()
        else:
            self._stuck = self._loop.call_later(self._limits.stuck_s, self._watch, taken)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
