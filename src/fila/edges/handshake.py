"""TLS handshakes: one per connection, by the port's present context; a refused one is told.

Owns a connection from its accept until TLS is agreed on, and what becomes of failures: counted by
kind, and logged with the client's address and OpenSSL's reason. Lines are bounded: a stranger who
tries all day must not fill the disk. The event loop itself says nothing of such failures.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

log = logging.getLogger("fila.tls")

ACCEPTED_AT_ONCE: Final = 64
LINES_MAX: Final = 20  # per period
PERIOD_S: Final = 60.0
CERTIFICATE: Final = "certificate"  # the client's, or the client did not like ours
PROTOCOL: Final = "protocol"  # no TLS, or a version or cipher that is not spoken here
TIMEOUT: Final = "timeout"
CLOSED: Final = "closed"  # by the client, in the middle of it
CROWDED: Final = "crowded"  # it was slow, and others wanted in
_ABOUT_A_CERTIFICATE: Final = ("CERTIFICATE", "CERT_", "UNKNOWN_CA")


class Refusals:
    """Counts failed handshakes, and says why, a bounded number of times per minute."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(
            (CERTIFICATE, PROTOCOL, TIMEOUT, CLOSED, CROWDED), 0
        )
        self._since_s = 0.0
        self._said = 0
        self._unsaid = 0

    def tell(self, kind: str, reason: str, peer: str, now_s: float) -> None:
        self.counts[kind] += 1
        if kind == CLOSED:
            return  # whoever only looks whether the port is open
        if now_s - self._since_s >= PERIOD_S:
            if self._unsaid:
                log.warning("more clients were refused by TLS", extra={"clients": self._unsaid})
            self._since_s, self._said, self._unsaid = now_s, 0, 0
        if self._said >= LINES_MAX:
            self._unsaid += 1
            return
        self._said += 1
        log.warning(f"a client was refused by TLS: {reason}", extra={"peer": peer, "kind": kind})


class PortTls:
    """What new handshakes on one port use. The context is replaced as a whole: what the old one
    trusted, and the sessions it would resume, are gone with it."""

    def __init__(
        self, context: ssl.SSLContext, protocols: tuple[str, ...], refusals: Refusals
    ) -> None:
        self.context = context
        self.protocols = protocols
        self.refusals = refusals


class TlsServer:
    """Accepts the connections of one address and makes a protocol for each that agrees on TLS.

    It accepts by itself, because a loop's server keeps one context for ever and does not tell whose
    handshake failed.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        tls: PortTls,
        loop: asyncio.AbstractEventLoop,
        wait_s: float,
        handshakes_max: int,
    ) -> None:
        self._make = make
        self._tls = tls
        self._loop = loop
        self._wait_s = wait_s
        self._handshakes_max = handshakes_max
        self._handshakes: dict[asyncio.Task[None], None] = {}  # the oldest first
        self.sockets: list[socket.socket] = []

    async def listen(self, host: str, port: int, backlog: int) -> None:
        """Bind and accept, at every address the host has."""
        found = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self.sockets.append(_bound(family, address, backlog))
        except OSError:
            self.close()
            raise
        for bound in self.sockets:
            self._loop.add_reader(bound, self._accept, bound)

    def close(self) -> None:
        """Accept no more; handshakes under way end with the server."""
        sockets, self.sockets = self.sockets, []
        for bound in sockets:
            self._loop.remove_reader(bound)
            bound.close()
        for task in list(self._handshakes):
            task.cancel()

    def _accept(self, bound: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file, no memory: whoever waits, waits a little longer
                log.error(f"cannot accept connections: {error.strerror}; trying again in 1 s")
                self._loop.remove_reader(bound)
                self._loop.call_later(1.0, self._resume, bound)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._loop.create_task(self._shake_hands(accepted, address))
            self._handshakes[task] = None
            task.add_done_callback(lambda task: self._handshakes.pop(task, None))
            if len(self._handshakes) > self._handshakes_max:
                self._end_oldest()

    def handshakes(self) -> int:
        """How many are under way."""
        return len(self._handshakes)

    def _end_oldest(self) -> None:
        """So many have begun and not ended that the slowest must be strangers who never will."""
        task = next(iter(self._handshakes))
        del self._handshakes[task]
        self._tls.refusals.counts[CROWDED] += 1
        task.cancel()

    def _resume(self, bound: socket.socket) -> None:
        if bound in self.sockets:
            self._loop.add_reader(bound, self._accept, bound)

    async def _shake_hands(self, accepted: socket.socket, address: tuple[Any, ...]) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._make,
                accepted,
                ssl=self._tls.context,
                ssl_handshake_timeout=self._wait_s,
            )
        except OSError as error:
            peer = f"{address[0]}:{address[1]}"
            self._tls.refusals.tell(*reason_of(error), peer, monotonic())


def _bound(family: int, address: Any, backlog: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(backlog)
    except OSError:
        made.close()
        raise
    return made


def reason_of(error: OSError) -> tuple[str, str]:
    """Of which kind a failed handshake is, and why in OpenSSL's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATE, f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        name = error.reason or "unknown"
        about = any(part in name for part in _ABOUT_A_CERTIFICATE)
        return CERTIFICATE if about else PROTOCOL, name.lower().replace("_", " ")
    if isinstance(error, ConnectionAbortedError):
        return TIMEOUT, "the handshake did not end in time"
    return CLOSED, "the client closed the connection"
