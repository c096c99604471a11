"""A blocking shell's connection: one socket, one thread, one lock.

Owns the socket of a synchronous client. Whoever waits for something reads the socket: a calling
thread that waits takes the reading over from the link's own thread and keeps it for as long as
calls follow one another, so that a request and its reply cost no hand-over between threads. The
link's thread reads when nobody else does, connects, keeps the connection alive and sends what the
socket did not take at once. Everything else is the exchange's; the lock guards both. Nothing ever
blocks while it holds the lock.
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
from fila.client.deadline import Deadline
from fila.client.errors import why_not_connected
from fila.client.exchange import Exchange
from fila.client.options import RECEIVE_BYTES, Options
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.client.tls import client_context

if TYPE_CHECKING:
    import ssl

_GOODBYE_S: Final = 1.0
_CHECK_S: Final = 0.05  # how often the thread looks whether callers still read
_ABSENT_S: Final = 0.025  # after so long without a reading caller the thread reads again
_RESTING_S: Final = 1.0  # a caller that waits longer than this says itself when it is done

_open_links: "WeakSet[Link]" = WeakSet()


class Link:
    def __init__(self, address: Address, options: Options) -> None:
        self.lock = threading.Lock()
        self.exchange = Exchange(address, options, random)
        self.orphans: deque[Stream] = deque()  # streams whose consumer was garbage-collected
        self._address = address
        self._options = options
        self._context: ssl.SSLContext | None = client_context(options) if options.tls else None
        self._socket: socket.socket | None = None
        self._would_block: tuple[type[BaseException], ...] = (BlockingIOError, InterruptedError)
        self._unsent = memoryview(b"")
        self._failure: str | None = None  # of the present socket
        self._closing = False
        self._ended = False
        self._wakes_at: float | None = None
        # Who reads: a caller that waits, or else the thread. `_attended`: the thread keeps off the
        # socket because callers read, or did a moment ago.
        self._caller_reads = False
        self._attended = False
        self._checking = False  # the thread looks every moment whether they still do
        self._read_since = self._read_until = 0.0  # the last caller's turn at reading
        self._waiting = 0  # callers asleep until somebody reads what they wait for
        self._selector = selectors.DefaultSelector()
        self._watched = 0  # what the selector looks for at the socket
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._polling = False  # a caller sleeps on its own selector: `stir` wakes it
        self._caller_selector = selectors.DefaultSelector()
        self._stir_reader, self._stir_writer = socket.socketpair()
        self._stir_reader.setblocking(False)
        self._stir_writer.setblocking(False)
        self._caller_selector.register(self._stir_reader, selectors.EVENT_READ)
        self._runner = threading.Thread(target=self._run, name=f"fila {address}", daemon=True)
        self._runner.start()
        _open_links.add(self)

    # For callers, with the lock held.

    def push(self, now: float) -> None:
        """Send what is due, as far as the socket takes it."""
        if (
            self._attended
            and not self._caller_reads
            and self._socket is not None
            and self._failure is None
        ):
            self._read(now)  # nobody else does: look first whether the broker is gone
            if self._failure is not None or self.exchange.drop_reason is not None:
                self.nudge()
                return
        self.exchange.pump(now)
        self._write()
        if self._failure is not None or self._unsent:
            self.nudge()
            return
        deadline = self.exchange.next_deadline()
        if deadline is not None and (self._wakes_at is None or deadline < self._wakes_at):
            self.nudge()

    def wait(
        self, ticket: Ticket, ready: Callable[[], bool], what: str, deadline: Deadline
    ) -> None:
        """Sleep until the ticket is ready; after the deadline raise."""
        if ready():
            return
        condition = threading.Condition(self.lock)
        wake = self.waker(condition)
        ticket.watch(wake)
        try:
            while not ready():
                remaining_s = deadline.remaining_s(monotonic())
                if remaining_s is not None and remaining_s <= 0:
                    raise self.exchange.too_late(what, deadline)
                self.rest(condition, ready, remaining_s)
        finally:
            ticket.unwatch(wake)

    def waker(self, condition: threading.Condition) -> Callable[[], None]:
        """What wakes somebody who rests; to be called with the lock held."""

        def wake() -> None:
            condition.notify_all()
            if self._polling:
                self._send_byte(self._stir_writer)

        return wake

    def rest(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout_s: float | None
    ) -> None:
        """Sleep until the condition may have changed: reading the socket, unless another does."""
        sock = self._socket
        if sock is None or self._caller_reads or self._failure is not None:
            self._waiting += 1
            try:
                condition.wait(timeout_s)
            finally:
                self._waiting -= 1
            return
        if not self._attended:
            self._attended = True
            self._watch()
        self._caller_reads = True
        self._read_since = now = monotonic()
        until = None if timeout_s is None else now + timeout_s
        try:
            while not ready():
                readable = self._poll(sock, None if until is None else until - now)
                now = monotonic()
                if self._socket is not sock:
                    return  # the thread has hung up
                if readable:
                    self._read(now)
                    self._write()
                    if self._failure is not None or self.exchange.drop_reason is not None:
                        self.nudge()  # hanging up is the thread's part
                        return
                    if self._unsent:
                        self.nudge()
                elif until is not None and now >= until:
                    return
        finally:
            self._caller_reads = False
            self._read_until = monotonic()
            if self._ended:
                self._close_caller_side()
            elif self._waiting:
                self._attended = False  # somebody else still waits: the thread reads on
                self.nudge()
            elif not self._checking:
                self.nudge()

    def _poll(self, sock: socket.socket, timeout_s: float | None) -> bool:
        """Wait without the lock for bytes, or to be stirred. True: there are bytes."""
        self._polling = True
        self.lock.release()
        try:
            events = self._caller_selector.select(None if timeout_s is None else max(timeout_s, 0))
        finally:
            self.lock.acquire()
            self._polling = False
        readable = False
        for key, _ in events:
            if key.fileobj is sock:
                readable = True
            else:
                self._drain(self._stir_reader)
        return readable

    def complete(
        self, ticket: Ticket, ready: Callable[[], bool], what: str, deadline: Deadline
    ) -> None:
        """Like `wait`, and a call that is not waited for to its end is given up."""
        try:
            self.wait(ticket, ready, what, deadline)
        except BaseException:  # KeyboardInterrupt too
            self.exchange.abandon(ticket)
            raise

    # For callers, without the lock.

    def nudge(self) -> None:
        """Wake the thread. Safe anywhere, also inside a garbage collection."""
        self._send_byte(self._wake_writer)

    def close_soon(self) -> None:
        """Ask the thread to say goodbye and end. Safe inside a garbage collection."""
        self._closing = True
        self.nudge()

    def close(self) -> None:
        self.close_soon()
        if threading.current_thread() is not self._runner:
            self._runner.join(_GOODBYE_S + 1.0)

    # The thread.

    def _run(self) -> None:
        while not self._closing:
            with self.lock:
                now = monotonic()
                connect_at = self.exchange.connect_at
                self._wakes_at = self.exchange.next_deadline()
                wakes_at = self._next_look(now)
            if self._socket is None and connect_at is not None and now >= connect_at:
                self._connect()
                continue
            self._wait_for_events(None if wakes_at is None else wakes_at - now)
        self._say_goodbye()

    def _next_look(self, now: float) -> float | None:
        """When to wake: for the exchange, or to see whether callers still read."""
        sock = self._socket
        absent = not self._caller_reads and now - self._read_until >= _ABSENT_S
        if self._attended and absent:
            self._attended = False
        if sock is not None and not self._attended:
            self._watch()
        # A caller that has waited long will say when it is done: no need to look.
        resting = self._caller_reads and now - self._read_since >= _RESTING_S
        self._checking = self._attended and not resting
        if not self._checking:
            return self._wakes_at
        look_at = now + _CHECK_S
        return look_at if self._wakes_at is None else min(look_at, self._wakes_at)

    def _wait_for_events(self, timeout_s: float | None) -> None:
        events = self._selector.select(None if timeout_s is None else max(timeout_s, 0))
        with self.lock:
            now = monotonic()
            for key, _ in events:
                if key.fileobj is self._wake_reader:
                    self._drain(self._wake_reader)
                elif self._socket is not None and not self._caller_reads:
                    self._read(now)
            while self.orphans:
                self.exchange.cancel(self.orphans.popleft())
            if self._wakes_at is not None and now >= self._wakes_at:
                self.exchange.tick(now, len(self._unsent))
            self._write()
            if self._socket is not None:
                self._watch()
                if self.exchange.drop_reason is not None or self._failure is not None:
                    reason = self._failure or ""
                    self._hang_up()
                    self.exchange.connection_lost(reason, now)

    def _connect(self) -> None:
        address = self._address
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
            self._attended = False
            self._caller_selector.register(sock, selectors.EVENT_READ)
            self._watch()
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
        """Let the thread's selector look for what the thread is to do."""
        sock = self._socket
        assert sock is not None
        wanted = 0 if self._attended else selectors.EVENT_READ
        if self._unsent:
            wanted |= selectors.EVENT_WRITE
        if wanted == self._watched:
            return
        if not wanted:
            self._selector.unregister(sock)
        elif not self._watched:
            self._selector.register(sock, wanted)
        else:
            self._selector.modify(sock, wanted)
        self._watched = wanted

    def _send_byte(self, writer: socket.socket) -> None:
        with contextlib.suppress(OSError):  # full: it is awake already; closed: it is gone
            writer.send(b"\0")

    def _drain(self, reader: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while reader.recv(4096):
                pass

    def _hang_up(self) -> None:
        sock = self._socket
        if sock is not None:
            self._socket = None
            self._caller_selector.unregister(sock)
            if self._watched:
                self._selector.unregister(sock)
                self._watched = 0
            sock.close()
            if self._polling:
                self._send_byte(self._stir_writer)
            self._unsent = memoryview(b"")
            self._failure = None

    def _say_goodbye(self) -> None:
        with self.lock:
            self.exchange.close()
            self._write()
            sock = self._socket
            if sock is not None and self._failure is None:
                self._part(sock)
            self._hang_up()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()
        with self.lock:
            self._ended = True
            if not self._caller_reads:
                self._close_caller_side()

    def _close_caller_side(self) -> None:
        self._caller_selector.close()
        self._stir_reader.close()
        self._stir_writer.close()

    def _part(self, sock: socket.socket) -> None:
        """Let the goodbye reach the broker: closing with unread bytes would cut it off."""
        deadline = monotonic() + _GOODBYE_S
        try:
            sock.settimeout(_GOODBYE_S)
            if self._unsent:
                sock.sendall(self._unsent)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(RECEIVE_BYTES) and monotonic() < deadline:
                pass
        except OSError:
            pass  # gone already


@atexit.register
def _close_all() -> None:
    links = list(_open_links)
    for link in links:
        link.close_soon()  # all at once, so that one stuck broker does not hold up the others
    for link in links:
        link.close()
