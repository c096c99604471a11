"""The requests of one connection that wait for a lease batch.

Owns which request is answered when a batch is leased, and which is refused when the caller loses
its permission or its connection ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fila.core import rejection
from fila.core.command import TOLD_ENTRIES
from fila.core.effect import BatchLeased
from fila.core.rejection import Rejection

if TYPE_CHECKING:
    from fila.broker.broker import Sink
    from fila.broker.session import Session

Done = Callable[[BatchLeased | Rejection], "Sink"]


class Wanted(NamedTuple):
    """What a request for a batch asks for; zero: the default."""

    max_messages: int
    max_bytes: int
    visibility_ms: int
    wait_ms: int
    count_attempt: bool
    told: int = TOLD_ENTRIES


class LeaseRequests:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._broker = session.broker
        # Requests that wait for a batch: its queue and name, and whom to answer.
        self._waiting: dict[int, tuple[str, str, Done]] = {}

    def lease(
        self,
        queue: str,
        name: str,
        wanted: Wanted,
        done: Done,
    ) -> Rejection | int:
        """Ask for a batch. `done` gets it once it is committed; the number is for `withdraw`."""
        refused = self._session.may_consume(queue)
        if refused is not None:
            return refused

        def answered(leased: BatchLeased) -> Sink:
            self._waiting.pop(leased.request, None)
            return done(rejection.queue_not_found(queue) if leased.gone else leased)

        request = self._broker.lease_batch(queue, name, wanted, answered)
        if not isinstance(request, Rejection):
            self._waiting[request] = (queue, name, done)
        return request

    def withdraw(self, request: int) -> None:
        """The answer is no longer waited for."""
        found = self._waiting.pop(request, None)
        if found is not None:
            self._broker.withdraw(found[0], found[1], request)

    def withdraw_all(self) -> None:
        for request in list(self._waiting):
            self.withdraw(request)

    def recheck(self) -> None:
        """Turn away who waits for a batch it may no longer have."""
        for request, (queue, _, done) in list(self._waiting.items()):
            refused = self._session.may_consume(queue)
            if refused is not None:
                self.withdraw(request)
                self._broker.begin()
                self._broker.after_commit(partial(_refuse, done, refused))


def _refuse(done: Done, refused: Rejection) -> None:
    done(refused).flush()
