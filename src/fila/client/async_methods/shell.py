"""What every method of the asynchronous client stands on.

Owns waiting: for the connection, for answers within their deadline, for everything handed over.
Logic is in the exchange, calls in `calls`, bytes in the link.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from fila.client.address import parse_address
from fila.client.aio_link import AioLink
from fila.client.calls import Call
from fila.client.deadline import Deadline
from fila.client.options import ClientOptions, Options
from fila.client.ticket import Ticket, Watched

T = TypeVar("T")
_CLOSE_S: Final = 5.0


class AsyncShell:
    def __init__(self, address: str, options: ClientOptions) -> None:
        where = parse_address(address)
        if where.tls:
            options.setdefault("tls", True)
        self._options = Options(options)
        self._link = AioLink(where, self._options)

    async def flush(self, *, timeout: float | None = None) -> None:
        """Wait for everything handed over with `*_soon`; raises the first failure since the last
        flush."""
        tally = self._link.exchange.tally
        await self._wait(tally, lambda: not tally.outstanding, "flush", self._deadline(timeout))
        error = tally.take_error()
        if error is not None:
            raise error.again()

    async def close(self) -> None:
        """Flush, say goodbye and hand unsettled messages back; raises what `flush` would."""
        try:
            await self.flush(timeout=_CLOSE_S)
        finally:
            await self._link.close()

    async def drain(self, *, timeout: float | None = None) -> None:
        """Finish and close: consumers end and hand back what nobody has read, everything under way
        is answered, new calls are refused; acks and nacks are still taken meanwhile. Raises what
        `flush` would. When `timeout` comes first, the client is closed all the same."""
        drained = self._link.drain()
        try:
            await self._wait(drained, lambda: drained.done, "drain", self._deadline(timeout))
        finally:
            await self._link.close()
        error = self._link.exchange.tally.take_error()
        if error is not None:
            raise error.again()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self._link.close()  # the error on its way says more than a failed flush would

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._link.exchange.address}>"

    async def _connected(self) -> None:
        """Wait until the broker has answered the handshake; close if it does not."""
        opened = self._link.exchange.opened
        try:
            await self._link.sleep(opened, lambda: opened.done, None)
            opened.one()
        except BaseException:
            await self._link.close()
            raise

    async def _call(self, call: Call[T], timeout: float | None) -> T:
        return await self._answer(call, self._link.ask(call), timeout)

    async def _answer(self, call: Call[T], ticket: Ticket, timeout: float | None) -> T:
        await self._complete(ticket, call.what, self._deadline(timeout))
        return call.answer(ticket.one())

    async def _complete(self, ticket: Ticket, what: str, deadline: Deadline) -> None:
        """Wait for all of a call's answers; one that is not waited for to its end is given up."""
        try:
            await self._wait(ticket, lambda: ticket.done, what, deadline)
        except BaseException:  # a cancelled task and a KeyboardInterrupt too
            self._link.abandon(ticket)
            raise

    async def _admitted(self, ticket: Ticket, what: str, deadline: Deadline) -> None:
        """Wait until what was handed in has found room; otherwise like `_complete`."""
        try:
            await self._wait(ticket, lambda: ticket.admitted, what, deadline)
        except BaseException:
            self._link.abandon(ticket)
            raise

    async def _wait(
        self, watched: Watched, ready: Callable[[], bool], what: str, deadline: Deadline
    ) -> None:
        if not await self._link.sleep(watched, ready, deadline.at):
            raise self._link.exchange.too_late(what, deadline)

    def _deadline(self, timeout: float | None) -> Deadline:
        timeout_s = self._options.timeout if timeout is None else timeout
        return Deadline(timeout_s, self._link.now())
