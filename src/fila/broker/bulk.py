"""A session's bulk half: options, releases, lease batches and browsing. May it? Then it is done.

Owns which permission each of these takes, and the requests of a connection that wait for a batch.
Both protocols stand on this layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fila.broker.browser import Opened
from fila.broker.options import Options, fits
from fila.core import rejection
from fila.core.browse import Page, StoredPage
from fila.core.command import TOLD_ENTRIES
from fila.core.effect import BatchLeased
from fila.core.figures import OpenBatch
from fila.core.rejection import Rejection, invalid_value

if TYPE_CHECKING:
    from fila.broker.broker import Sink
    from fila.broker.session import Session

BATCHES_LISTED_MAX = 65_535

Done = Callable[[BatchLeased | Rejection], "Sink"]

# (code, message id, duplicate) of an enqueue with options
Stored = tuple[int, bytes, bool]


class Wanted(NamedTuple):
    """What a request for a batch asks for; zero: the default."""

    max_messages: int
    max_bytes: int
    visibility_ms: int
    wait_ms: int
    count_attempt: bool
    told: int = TOLD_ENTRIES


class Bulk:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._broker = session.broker
        # Requests that wait for a batch: its queue and name, and who is told.
        self._waiting: dict[int, tuple[str, str, Done]] = {}

    def enqueue(self, queue: str, messages: list[Options]) -> list[Stored] | Rejection:
        """After `may_produce` said nothing."""
        fitting = [at for at, one in enumerate(messages) if fits(one)]
        if len(fitting) == len(messages):
            stored = self._broker.enqueue_with(queue, messages)
            if isinstance(stored, Rejection):
                return stored
            return [(rejection.OK, id, duplicate) for id, duplicate in stored]
        results: list[Stored] = [(rejection.INVALID_CONFIG_VALUE, b"", False)] * len(messages)
        stored = self._broker.enqueue_with(queue, [messages[at] for at in fitting])
        if isinstance(stored, Rejection):
            return stored
        for at, (id, duplicate) in zip(fitting, stored, strict=True):
            results[at] = (rejection.OK, id, duplicate)
        return results

    def release(self, queue: str, ids: list[bytes]) -> list[int] | Rejection:
        """After `may_consume` said nothing."""
        return self._broker.release(queue, ids, self._session.number)

    # --- lease batches

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

        def told(leased: BatchLeased) -> Sink:
            self._waiting.pop(leased.request, None)
            return done(rejection.queue_not_found(queue) if leased.gone else leased)

        request = self._broker.lease_batch(queue, name, wanted, told)
        if not isinstance(request, Rejection):
            self._waiting[request] = (queue, name, done)
        return request

    def withdraw(self, request: int) -> None:
        """Nobody waits for this answer any more."""
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
                self._broker.after_commit(partial(_tell, done, refused))

    def ack_batch(self, queue: str, name: str, below: int | None) -> tuple[int, int] | Rejection:
        refused = self._session.may_consume(queue)
        return refused or self._broker.ack_batch(queue, name, below)

    def extend_batch(
        self, queue: str, name: str, visibility_ms: int, below: int | None
    ) -> tuple[int, int] | Rejection:
        refused = self._session.may_consume(queue)
        return refused or self._broker.extend_batch(queue, name, visibility_ms, below)

    def release_batch(
        self, queue: str, name: str, below: int | None
    ) -> tuple[int, int] | Rejection:
        refused = self._session.may_consume(queue)
        return refused or self._broker.release_batch(queue, name, below)

    def batches(self, queue: str) -> list[OpenBatch] | Rejection:
        """The open batches, oldest first."""
        refused = self._session.may_look_at(queue)
        return refused or self._broker.machine.view.open_batches(queue, BATCHES_LISTED_MAX)

    # --- browsing

    def browse(
        self, queue: str, fairness_key: str | None, parts: int, ttl_ms: int
    ) -> Opened | Rejection:
        refused = self._session.may_consume(queue)
        if refused is not None:
            return refused
        self._broker.begin()
        key = fairness_key.encode() if fairness_key is not None else None
        opened = self._session.browser.open(queue, key, parts, ttl_ms)
        if not isinstance(opened, Rejection):
            self._session.done(f'browse queue "{queue}"')
        return opened

    def page(
        self, token: str, start: bytes, end: bytes, states: int, rows_max: int, bytes_max: int
    ) -> tuple[str, Page] | Rejection:
        """The queue's name with the page."""
        queue = self._browsed(token, states)
        if isinstance(queue, Rejection):
            return queue
        browser = self._session.browser
        return queue, browser.page(token, start, end, states, rows_max, bytes_max)

    def stored_page(
        self, token: str, start: bytes, end: bytes, states: int, rows_max: int, bytes_max: int
    ) -> tuple[str, StoredPage] | Rejection:
        """The queue's name with the page; who asked sorts the states out."""
        queue = self._browsed(token, states)
        if isinstance(queue, Rejection):
            return queue
        return queue, self._session.browser.stored_page(token, start, end, rows_max, bytes_max)

    def close_snapshot(self, token: str) -> Rejection | None:
        """One that is gone already is fine."""
        browser = self._session.browser
        queue = browser.queue_of(token)
        if isinstance(queue, Rejection):
            return None
        refused = self._session.may_consume(queue)
        if refused is None:
            browser.close(token)
        return refused

    def _browsed(self, token: str, states: int) -> str | Rejection:
        """Whose snapshot it is, if it may be read."""
        if not 1 <= states <= 7:
            return invalid_value("states", f"{states} is no sum of 1, 2 and 4")
        queue = self._session.browser.queue_of(token)
        if isinstance(queue, Rejection):
            return queue
        return self._session.may_consume(queue) or queue


def _tell(done: Done, refused: Rejection) -> None:
    done(refused).flush()
