"""A synchronous shell's connection: one socket, one thread, one lock.

Owns the socket of a synchronous client and the thread that reads it. Calling threads write to the
socket themselves, without blocking, so that sending costs no hand-over; what the socket does not
take at once, the thread sends when it can. A caller that waits sleeps on a lock of its own, which
the thread releases when the answer is there. Everything else is the exchange's; the lock guards
both. Nothing ever blocks while it holds the lock, so reading goes on when writing is stuck.
"""

import atexit
import contextlib
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from random import random
from time import monotonic
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from fila.client.address import Address
from fila.client.errors import why_not_connected
from fila.client.event import notify
from fila.client.exchange import Exchange
from fila.client.link import Link
from fila.client.options import RECEIVE_BYTES, Options
from fila.client.stream import Stream
from fila.client.ticket import Watched
from fila.client.tls import client_context

if TYPE_CHECKING:
    import ssl

_GOODBYE_S: Final = 1.0

_open_links: "WeakSet[SyncLink]" = WeakSet()


class SyncLink(Link):
    def __init__(self, address: Address, options: Options) -> None:
        self.lock = threading.Lock()
        self.exchange = Exchange(address, options, random)
        self._options = options
        self._context: ssl.SSLContext | None = client_context(options) if options.tls else None
        self._socket: socket.socket | None = None
        self._would_block: tuple[type[BaseException], ...] = (BlockingIOError, InterruptedError)
        self._unsent = memoryview(b"")
        self._failure: str | None = None  # of the present socket
        self._orphans: deque[Stream] = deque()  # streams whose consumer was garbage-collected
        self._closing = False
        self._wakes_at: float | None = None  # when the thread looks at the exchange by itself
        self._connect_due = False
        self._watched = 0  # what the selector looks for at the socket
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._runner = threading.Thread(target=self._run, name=f"fila {address}", daemon=True)
        self._runner.start()
        _open_links.add(self)

    # For callers.

    def now(self) -> float:
        return monotonic()

    def push(self, now: float) -> None:
        """Send what is due, as far as the socket takes it."""
        self.exchange.pump(now)
        self._write()
        if self._failure is not None or self._unsent:
            self._nudge()
            return
        deadline = self.exchange.next_deadline()
        if deadline is not None and (self._wakes_at is None or deadline < self._wakes_at):
            self._nudge()

    def sleep(self, watched: Watched, ready: Callable[[], bool], until: float | None) -> bool:
        """Wait until `ready()`; False when the time came first."""
        bell = threading.Lock()
        bell.acquire()

        def wake() -> None:  # called with the lock held: no two release the bell at once
            if bell.locked():
                bell.release()

        with self.lock:
            if ready():
                return True
            watched.watch(wake)
        try:
            while not ready():
                if until is None:
                    bell.acquire()
                elif (left_s := until - monotonic()) <= 0:
                    return False
                else:
                    bell.acquire(timeout=left_s)
            return True
        finally:
            watched.unwatch(wake)

    def orphan(self, stream: Stream) -> None:
        # No lock here: the collector may be running inside a thread that holds it.
        self._orphans.append(stream)
        self._nudge()

    def close_soon(self) -> None:
        """Ask the thread to disconnect and end. Safe inside a garbage collection."""
        self._closing = True
        self._nudge()

    def close(self) -> None:
        self.close_soon()
        if threading.current_thread() is not self._runner:
            self._runner.join(_GOODBYE_S + 1.0)

    def _nudge(self) -> None:
        """Wake the thread. Safe anywhere."""
        with contextlib.suppress(OSError):  # full: it is awake already; closed: it is gone
            self._wake_writer.send(b"\0")

    # The thread.

    def _run(self) -> None:
        timeout_s: float | None = 0.0
        try:
            while not self._closing:
                timeout_s = self._turn(self._selector.select(timeout_s))
                if self._connect_due:
                    self._connect()
                    timeout_s = 0.0
                self._notify_listener()
        finally:
            # After a fault as well: no caller may wait for a thread that has ended.
            self._disconnect_properly()

    def _turn(self, events: list[tuple[selectors.SelectorKey, int]]) -> float | None:
        """Do what the events and the time ask for; returns how long to sleep then."""
        with self.lock:
            exchange = self.exchange
            now = monotonic()
            for key, _ in events:
                if key.fileobj is self._wake_reader:
                    self._drain_wakes()
                elif self._socket is not None:
                    self._read(now)
            while self._orphans:
                exchange.cancel(self._orphans.popleft())
            if self._wakes_at is not None and now >= self._wakes_at:
                exchange.tick(now, len(self._unsent))
            self._write()
            dropped = exchange.drop_reason is not None or self._failure is not None
            if dropped and self._socket is not None:
                reason = self._failure or ""
                self._hang_up()
                exchange.connection_lost(reason, now)
            self._watch()
            connect_at = exchange.connect_at
            self._connect_due = connect_at is not None and now >= connect_at
            self._wakes_at = exchange.next_deadline()
            return None if self._wakes_at is None else max(self._wakes_at - now, 0.0)

    def _connect(self) -> None:
        address = self.exchange.address
        try:
            sock = socket.create_connection(
                (address.host, address.port), self._options.connect_timeout
            )
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._context is not None:
                    import ssl

                    self._would_block = (
                        BlockingIOError,
                        InterruptedError,
                        ssl.SSLWantReadError,
                        ssl.SSLWantWriteError,
                    )
                    sock = self._context.wrap_socket(sock, server_hostname=address.host)
                sock.setblocking(False)
            except BaseException:
                sock.close()
                raise
        except (OSError, ValueError) as error:
            with self.lock:
                self.exchange.connection_lost(why_not_connected(error), monotonic())
            return
        with self.lock:
            self._socket = sock
            self._failure = None
            self._unsent = memoryview(b"")
            self._selector.register(sock, selectors.EVENT_READ)
            self._watched = selectors.EVENT_READ
            self.exchange.connection_made(monotonic())
            self._write()

    def _read(self, now: float) -> None:
        sock = self._socket
        assert sock is not None
        while True:
            try:
                data = sock.recv(RECEIVE_BYTES)
            except self._would_block:
                return
            except OSError as error:
                self._failure = self._failure or str(error)
                return
            if not data:
                self._failure = self._failure or "the broker closed the connection"
                return
            self.exchange.receive(data, now)
            if self._context is None:
                return  # under TLS decrypted bytes may wait where no selector sees them

    def _write(self) -> None:
        sock = self._socket
        if sock is None or self._failure is not None:
            return
        while True:
            if not self._unsent:
                if not self.exchange.has_output:
                    return
                self._unsent = memoryview(self.exchange.take_output())
            try:
                sent = sock.send(self._unsent)
            except self._would_block:
                return
            except OSError as error:
                self._failure = str(error)
                return
            self._unsent = self._unsent[sent:]

    def _watch(self) -> None:
        """Let the selector report when the socket is writable, while there is more to send."""
        wanted = (
            selectors.EVENT_READ | selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ
        )
        if self._socket is not None and wanted != self._watched:
            self._selector.modify(self._socket, wanted)
            self._watched = wanted

    def _drain_wakes(self) -> None:
        with contextlib.suppress(OSError):
            while self._wake_reader.recv(4096):
                pass

    def _hang_up(self) -> None:
        sock = self._socket
        if sock is not None:
            self._socket = None
            self._selector.unregister(sock)
            sock.close()
            self._unsent = memoryview(b"")
            self._failure = None

    def _disconnect_properly(self) -> None:
        with self.lock:
            self.exchange.close()
            self._write()
            sock = None if self._failure is not None else self._socket
            unsent = self._unsent
            if sock is not None:
                self._socket = None  # from here on it is the thread's alone
            else:
                self._hang_up()
        if sock is not None:
            _part(sock, unsent)
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()
        self._notify_listener()

    def _notify_listener(self) -> None:
        notify(self._options.on_event, self._options.logger, self.exchange.events)


def _part(sock: socket.socket, unsent: memoryview) -> None:
    """Let the Disconnect reach the broker: closing with unread bytes would reset the connection."""
    deadline = monotonic() + _GOODBYE_S
    with sock, contextlib.suppress(OSError):  # gone already
        sock.settimeout(_GOODBYE_S)
        if unsent:
            sock.sendall(unsent)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(RECEIVE_BYTES) and monotonic() < deadline:
            pass


@atexit.register
def _close_all() -> None:
    links = list(_open_links)
    for link in links:
        link.close_soon()  # all at once, so that one stuck broker does not hold up the others
    for link in links:
        link.close()
