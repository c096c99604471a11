"""The browsing of the asynchronous client: looking at messages without taking any.

Owns the shape of these methods and nothing else; what is sent and what comes back is in `browsing`.
"""

from collections.abc import AsyncGenerator, Iterable

from fila.client import browsing
from fila.client.async_methods.shell import AsyncShell
from fila.client.browsing import BrowsedMessage, Page, Snapshot
from fila.client.deadline import milliseconds


class AsyncBrowseMethods(AsyncShell):
    async def browse(
        self,
        queue: str,
        *,
        states: Iterable[str] = (),
        fairness_key: str | None = None,
        page_messages: int = 1_000,
        ttl: float | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[BrowsedMessage, None]:
        """Look at a queue's messages as they are now, without taking any. `states` are some of
        "ready", "delayed" and "leased"; none means all."""
        states = tuple(states)
        browsing.state_bits(states)
        snapshot = await self.browse_open(
            queue, fairness_key=fairness_key, ttl=ttl, timeout=timeout
        )
        try:
            for start, end in snapshot.ranges:
                while start:
                    page = await self.browse_page(
                        snapshot.token,
                        start,
                        end,
                        states=states,
                        max_messages=page_messages,
                        timeout=timeout,
                    )
                    for message in page.messages:
                        yield message
                    start = page.next
        finally:
            await self.browse_close(snapshot.token, timeout=timeout)

    async def browse_open(
        self,
        queue: str,
        *,
        fairness_key: str | None = None,
        parts: int = 1,
        ttl: float | None = None,
        timeout: float | None = None,
    ) -> Snapshot:
        """Take a snapshot in at most `parts` ranges that may be read in parallel, also by other
        clients, for `ttl` seconds (None: ten minutes). Close it when done."""
        ttl_ms = milliseconds(ttl, "ttl")
        return await self._call(browsing.browse_open(queue, fairness_key, parts, ttl_ms), timeout)

    async def browse_page(
        self,
        token: str,
        start: bytes,
        end: bytes,
        *,
        states: Iterable[str] = (),
        max_messages: int = 0,
        max_bytes: int = 0,
        arrow: bool = False,
        bodies: bool = True,
        timeout: float | None = None,
    ) -> Page:
        """Read on from `start`; the page's `next` is where to go on, empty at the range's end.
        SnapshotExpiredError when the snapshot's time is up. `arrow` puts the messages into `.arrow`
        as an Arrow IPC stream, without `bodies` less the columns payload and headers."""
        bounds = (max_messages, max_bytes)
        call = browsing.browse_page(token, start, end, states, *bounds, arrow, bodies)
        return await self._call(call, timeout)

    async def browse_pages(
        self,
        token: str,
        start: bytes,
        end: bytes,
        *,
        states: Iterable[str] = (),
        arrow: bool = False,
        bodies: bool = True,
        first: int = 0,
        timeout: float | None = None,
    ) -> AsyncGenerator[Page, None]:
        """All pages of a range; the next one is under way while this one is looked at. With `first`
        so many messages at first, and twice as many from page to page: for one who may stop."""
        states = tuple(states)
        call = browsing.browse_page(token, start, end, states, first, 0, arrow, bodies)
        ticket = self._link.ask(call)
        while True:
            page = await self._answer(call, ticket, timeout)
            if not page.next:
                yield page
                return
            first = min(2 * first, browsing.PAGE_MAX)
            call = browsing.browse_page(token, page.next, end, states, first, 0, arrow, bodies)
            ticket = self._link.ask(call)
            yield page

    async def browse_close(self, token: str, *, timeout: float | None = None) -> None:
        """Let go of a snapshot; one that is gone already is fine."""
        await self._call(browsing.browse_close(token), timeout)
