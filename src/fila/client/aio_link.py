"""An asynchronous shell's connection: one asyncio transport and the task that keeps it open.

Owns the transport of an asynchronous client. Everything else is the exchange's; all of it runs on
the event loop's thread, so its lock locks nothing.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from random import random
from typing import Final, cast

from fila.client.address import Address
from fila.client.errors import why_not_connected
from fila.client.event import notify
from fila.client.exchange import Exchange
from fila.client.link import Link
from fila.client.options import Options
from fila.client.stream import Stream
from fila.client.ticket import Watched
from fila.client.tls import client_context

_GOODBYE_S: Final = 1.0


class AioLink(Link, asyncio.Protocol):
    def __init__(self, address: Address, options: Options) -> None:
        self.lock = nullcontext()
        self.exchange = Exchange(address, options, random)
        self.loop = asyncio.get_running_loop()
        self._options = options
        self._context = client_context(options) if options.tls else None
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._lost = asyncio.Event()
        self._flush_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._keeper = self.loop.create_task(self._keep_connected(), name=f"fila {address}")

    # For the client.

    def now(self) -> float:
        return self.loop.time()

    def push(self, now: float) -> None:
        """Send what is due when the present turn of the loop is over, so that calls made in one
        turn share a frame."""
        if self._options.batch == "off":
            self._flush()
        elif not self._flush_scheduled:
            self._flush_scheduled = True
            self.loop.call_soon(self._flush)

    async def sleep(self, watched: Watched, ready: Callable[[], bool], until: float | None) -> bool:
        """Wait until `ready()`; False when the time came first."""
        if ready():
            return True
        arrival: asyncio.Future[None] | None = None
        late = False

        def wake() -> None:
            if arrival is not None and not arrival.done():
                arrival.set_result(None)

        def expire() -> None:
            nonlocal late
            late = True
            wake()

        timer = None if until is None else self.loop.call_at(until, expire)
        watched.watch(wake)
        try:
            while not ready():
                if late:
                    return False
                arrival = self.loop.create_future()
                await arrival
            return True
        finally:
            watched.unwatch(wake)
            if timer is not None:
                timer.cancel()

    def orphan(self, stream: Stream) -> None:
        if not self.loop.is_closed():
            # Not here: the collector may be running inside the exchange.
            self.loop.call_soon_threadsafe(self.cancel, stream)

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        transport = self._transport
        if transport is None:
            return
        # Closing with unread bytes would lose the Disconnect: let the broker close first.
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()
        try:
            await asyncio.wait_for(self._lost.wait(), _GOODBYE_S)
        except TimeoutError:
            transport.abort()

    # For the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: other event loops bring transport classes of their own.
        self._transport = cast(asyncio.Transport, transport)
        self._paused = False
        self._lost.clear()
        self.exchange.connection_made(self.loop.time())
        self._flush()

    def data_received(self, data: bytes) -> None:
        self.exchange.receive(data, self.loop.time())
        self._flush()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        reason = str(error) if error is not None else "the broker closed the connection"
        self.exchange.connection_lost(reason, self.loop.time())
        self._notify_listener()
        self._lost.set()

    # Inside.

    async def _keep_connected(self) -> None:
        try:
            await self._stay_connected()
        finally:
            # Closed, or cancelled because the loop is ending: the broker should know either way.
            # A loop that was closed over a client has taken the connection with it.
            if not self.loop.is_closed():
                if self._timer is not None:
                    self._timer.cancel()
                self.exchange.close()
                self._paused = False
                self._write()
                self._notify_listener()

    async def _stay_connected(self) -> None:
        while (connect_at := self.exchange.connect_at) is not None:
            await asyncio.sleep(max(connect_at - self.loop.time(), 0))
            address = self.exchange.address
            try:
                async with asyncio.timeout(self._options.connect_timeout):
                    await self.loop.create_connection(
                        lambda: self, address.host, address.port, ssl=self._context
                    )
            except (OSError, ValueError) as error:
                self.exchange.connection_lost(why_not_connected(error), self.loop.time())
                continue
            await self._lost.wait()

    def _flush(self) -> None:
        self._flush_scheduled = False
        exchange = self.exchange
        exchange.pump(self.loop.time())
        self._write()
        if exchange.drop_reason is not None and self._transport is not None:
            self._transport.abort()
        self._arm()
        self._notify_listener()

    def _notify_listener(self) -> None:
        notify(self._options.on_event, self._options.logger, self.exchange.events)

    def _write(self) -> None:
        # A paused transport holds enough; the rest waits in the exchange, which has a bound.
        if self._transport is not None and not self._paused and self.exchange.has_output:
            self._transport.write(self.exchange.take_output())

    def _arm(self) -> None:
        """Keep a timer no later than the exchange's next deadline."""
        deadline = self.exchange.next_deadline()
        if self._transport is None or deadline is None:
            return
        timer = self._timer
        if timer is not None:
            if not timer.cancelled() and timer.when() <= deadline:
                return
            timer.cancel()
        self._timer = self.loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        unsent = 0 if self._transport is None else self._transport.get_write_buffer_size()
        self.exchange.tick(self.loop.time(), unsent)
        self._flush()
