"""The promise behind a call: how many answers it waits for, and what they were.

Owns the results of one call until the shell fetches them. Knows nothing of threads or event loops:
a link that wants to sleep until something changes leaves a `wake` (`Watched`).
"""

from collections.abc import Callable
from typing import Any

from fila.client.errors import FilaError, raise_refused

_PENDING: Any = object()


class Watched:
    """Something to sleep on. `watch` and `notify` need the link's lock, `unwatch` does not."""

    __slots__ = ("wakes",)

    def __init__(self) -> None:
        self.wakes: list[Callable[[], None]] | None = None  # of those asleep

    def watch(self, wake: Callable[[], None]) -> None:
        if self.wakes is None:
            self.wakes = []
        self.wakes.append(wake)

    def unwatch(self, wake: Callable[[], None]) -> None:
        if self.wakes is not None:
            self.wakes.remove(wake)

    def notify(self) -> None:
        if self.wakes:
            for wake in self.wakes.copy():  # a thread may `unwatch` meanwhile
                wake()


class Ticket(Watched):
    """Collects one result per expected item; an exception is a result like any other."""

    __slots__ = ("abandoned", "admitted", "bytes", "outstanding", "results", "sealed", "tally")

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Any] = []
        self.outstanding = 0
        self.sealed = False  # no more items will be expected
        self.admitted = True  # everything handed in so far has found room
        self.abandoned = False  # the caller no longer waits
        self.bytes = 0  # of the messages handed in so far
        self.tally: Tally | None = None  # of the calls without a waiting caller

    @property
    def done(self) -> bool:
        return self.sealed and not self.outstanding

    def expect(self, count: int) -> int:
        """Make place for so many more results; returns the index of the first."""
        first = len(self.results)
        self.results.extend([_PENDING] * count)
        self.outstanding += count
        return first

    def refuse(self, count: int, error: FilaError) -> None:
        """So many more, and this is what became of each."""
        first = self.expect(count)
        for index in range(first, first + count):
            self.settle(index, error)

    def seal(self) -> None:
        self.sealed = True
        if not self.outstanding and not self.abandoned:
            self._finish()

    def settle(self, index: int, result: Any) -> None:
        if self.results[index] is not _PENDING:
            return
        self.results[index] = result
        self.outstanding -= 1
        if not self.outstanding and self.sealed:
            self._finish()

    def fail(self, error: FilaError) -> None:
        """Settle all that is still open with one error."""
        if not self.outstanding:
            return
        for index, result in enumerate(self.results):
            if result is _PENDING:
                self.results[index] = error
        self.outstanding = 0
        if self.sealed:
            self._finish()
        else:
            self.notify()

    def abandon(self) -> None:
        self.abandoned = True
        if self.tally is not None:
            self.tally.finished(self)
            self.tally = None

    def one(self) -> Any:
        """The result of a call with one item, or its exception raised."""
        result = self.results[0]
        if isinstance(result, FilaError):
            raise result.again()
        return result

    def all(self) -> list[Any]:
        """The results of a batch; if any is an exception, a BatchError that holds all."""
        raise_refused(self.results)
        return self.results

    def none(self) -> None:
        """Like `all`, for a batch that has nothing to tell when it worked."""
        self.all()

    def admit(self) -> None:
        self.admitted = True
        self.notify()

    def _finish(self) -> None:
        if self.tally is not None:
            self.tally.finished(self)
            self.tally = None
        self.notify()


def single() -> Ticket:
    """A ticket for exactly one result."""
    ticket = Ticket()
    ticket.expect(1)
    ticket.seal()
    return ticket


class Tally(Watched):
    """Counts calls without a waiting caller, so that `flush` can wait for all of them at once."""

    __slots__ = ("failed", "first_error", "outstanding")

    def __init__(self) -> None:
        super().__init__()
        self.outstanding = 0
        self.failed = 0
        self.first_error: FilaError | None = None

    def open(self) -> Ticket:
        ticket = Ticket()
        self.count(ticket)
        return ticket

    def count(self, ticket: Ticket) -> None:
        """Wait for this one too; to be called before the ticket is sealed."""
        ticket.tally = self
        self.outstanding += 1

    def finished(self, ticket: Ticket) -> None:
        self.outstanding -= 1
        for result in ticket.results:
            if isinstance(result, FilaError):
                self.failed += 1
                self.first_error = self.first_error or result
        if not self.outstanding:
            self.notify()

    def take_error(self) -> FilaError | None:
        """The first failure since the last call, and forget about all of them."""
        error = self.first_error
        self.failed = 0
        self.first_error = None
        return error
