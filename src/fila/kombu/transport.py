"""The Kombu transport `fila://`: one SDK client a connection, and the loop that drains it.

Owns the connection's client, its inbox and what Celery's event loop has to know. A connection
belongs to the process that opened it: a forked child drops it without a word to the broker.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any, Final

from kombu.transport import virtual

from fila import FilaClient, __version__
from fila.client.errors import FilaError
from fila.kombu import tasks
from fila.kombu.bindings import Bindings
from fila.kombu.channel import Channel
from fila.kombu.inbox import Inbox

DEFAULT_PORT: Final = 5555
_TLS_NAMES: Final = (
    ("tls_ca", "ca_certs"),
    ("tls_cert", "certfile"),
    ("tls_key", "keyfile"),
)

if "celery" in sys.modules:
    tasks.connect()


class Transport(virtual.Transport):
    Channel = Channel
    default_port = DEFAULT_PORT
    driver_type = "fila"
    driver_name = "fila"
    connection_errors = (*virtual.Transport.connection_errors, FilaError)
    implements = virtual.Transport.implements.extend(
        asynchronous=True,
        exchange_type=frozenset(("direct", "topic", "fanout")),
        heartbeats=False,
    )
    secure = False

    fila: FilaClient
    bindings: Bindings
    inbox: Inbox[tuple[Any, str, Any]]  # channel, queue, what came

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.unacknowledged: set[str] = set()  # queues consumed without acknowledgement
        self._pid = 0
        self._loop: Any = None

    def driver_version(self) -> str:
        return __version__

    @property
    def forked(self) -> bool:
        return self._pid != os.getpid()

    def establish_connection(self) -> Any:
        self.fila = self._open()
        self._pid = os.getpid()
        self.bindings = Bindings(self.fila)
        self.inbox = Inbox()
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        if self._loop is not None:
            self._loop.on_tick.discard(self.deliver)
            self._loop.remove_reader(self.inbox.fileno())
            self._loop = None
        if self.forked:
            return  # the parent has the connection, and its threads are not here
        super().close_connection(connection)
        self.fila.close()
        self.inbox.close()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        while not self.deliver():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise socket.timeout  # noqa: UP041  what Kombu's callers catch
            self.inbox.wait(left)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self._loop = loop
        loop.add_reader(self.inbox.fileno(), self.deliver)

    def collect(self) -> None:
        """Hand everything that has been brought to its channel."""
        self.inbox.quiet()
        for channel, queue, what in self.inbox.take_all():
            channel.accept(queue, what)

    def deliver(self) -> int:
        self.collect()
        return sum(channel.deliver_waiting() for channel in list(self.channels))

    def _open(self) -> FilaClient:
        info = self.client
        tls = info.ssl or {}
        given = tls if isinstance(tls, dict) else {}
        return FilaClient(
            f"{info.hostname or 'localhost'}:{info.port or self.default_port}",
            api_key=info.password or info.userid or None,
            tls=self.secure or bool(tls),
            connect_timeout=info.connect_timeout or 10.0,
            **{ours: given[theirs] for ours, theirs in _TLS_NAMES if given.get(theirs)},
        )


class SecureTransport(Transport):
    """`filas://`"""

    secure = True
