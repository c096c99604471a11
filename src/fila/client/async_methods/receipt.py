"""What an asynchronous client gives for a call that nobody waits for.

Owns asking later how it went.
"""

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from fila.client.async_methods.shell import AsyncShell
from fila.client.ticket import Ticket

T = TypeVar("T")


class AsyncReceipt(Generic[T]):
    """What became of a call that nobody waited for."""

    __slots__ = ("_answer", "_client", "_ticket")

    def __init__(self, client: AsyncShell, ticket: Ticket, answer: Callable[[Ticket], T]) -> None:
        self._client = client
        self._ticket = ticket
        self._answer = answer

    @property
    def done(self) -> bool:
        return self._ticket.done

    async def result(self, timeout: float | None = None) -> T:
        """What the call would have returned or raised; waits for it."""
        ticket = self._ticket
        client = self._client
        await client._wait(ticket, lambda: ticket.done, "receipt", client._deadline(timeout))
        return self._answer(ticket)

    # async only
    def __await__(self) -> Generator[Any, None, T]:
        return self.result().__await__()
