"""Handlers of the table: lease batches by name, and snapshots that are browsed.

Pages have forms of their own (messages or Arrow), so the edges ask for them by `page` and
`stored_page`. A snapshot's token names its queue, and with it the permission its reader needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from fila.core.browse import Page, StoredPage
from fila.core.reader import StoreDamagedError
from fila.core.rejection import OK, Rejection, invalid_value
from fila.security.permission import CONSUME
from fila.wire import bodies as b
from fila.wire.fields import LIST_ITEMS_MAX
from fila.wire.forms import ALL_STATES

if TYPE_CHECKING:
    from fila.broker.session import Session

_MS: Final = 1_000_000
Step = Callable[[str, str, int | None, int], tuple[int, int, int] | Rejection]


def ack_batch(session: Session, request: b.AckBatch) -> Any:
    return _end(session, session.broker.ack_batch, request, b.AckBatchResult)


def extend_batch(session: Session, request: b.ExtendBatch) -> b.ExtendBatchResult | Rejection:
    done = session.broker.extend_batch(*request)
    return done if isinstance(done, Rejection) else b.ExtendBatchResult(OK, *done)


def release_batch(session: Session, request: b.ReleaseBatch) -> Any:
    return _end(session, session.broker.release_batch, request, b.ReleaseBatchResult)


def _end(
    session: Session, step: Step, request: b.AckBatch | b.ReleaseBatch, result: Callable[..., Any]
) -> Any:
    """The first step is made at once; what it leaves, with the turns to come."""
    queue, name, below = request
    reply = step(queue, name, below, 0)
    if isinstance(reply, Rejection):
        return reply
    batches, messages, rest = reply
    session.broker.work.done += messages
    if rest == 0:
        return result(OK, batches, messages)

    def others() -> Generator[None, None, Any]:
        nonlocal batches, messages, rest
        while rest:
            yield
            try:
                reply = step(queue, name, below, rest)
            except StoreDamagedError as error:
                reply = session.broker.set_apart(error)
            if isinstance(reply, Rejection):
                break  # the queue is gone: so much was done
            batches += reply[0]
            messages += reply[1]
            rest = reply[2]
            session.broker.work.done += 1 + reply[1]
        return result(OK, batches, messages)

    return others()


def list_batches(session: Session, request: b.ListBatches) -> b.ListBatchesResult | Rejection:
    """The open batches, oldest first."""
    found = session.broker.machine.view.open_batches(request.queue, LIST_ITEMS_MAX)
    if isinstance(found, Rejection):
        return found
    batches = [
        b.OpenBatch(one.name, one.messages, one.leased_ns // _MS, one.expires_ns // _MS)
        for one in found
    ]
    return b.ListBatchesResult(OK, tuple(batches))


def browse(session: Session, request: b.Browse) -> b.BrowseResult | Rejection:
    session.broker.begin()
    key = None if request.fairness_key is None else request.fairness_key.encode()
    opened = session.browser.open(request.queue, key, request.parts, request.ttl_ms)
    if isinstance(opened, Rejection):
        return opened
    ranges = tuple([b.BrowseRange(start, end) for start, end in opened.ranges])
    return b.BrowseResult(OK, opened.token, opened.expires_ms, opened.messages, ranges)


def browse_close(session: Session, request: b.BrowseClose) -> b.BrowseCloseResult | Rejection:
    """One that is gone already is fine."""
    queue = session.browser.queue_of(request.snapshot)
    if isinstance(queue, str):
        refused = session.guard.permit(session.identity, CONSUME, queue)
        if refused is not None:
            return refused
        session.browser.close(request.snapshot)
    return b.BrowseCloseResult(OK)


def page(session: Session, request: b.BrowsePage) -> tuple[str, Page] | Rejection:
    """The queue's name with the page."""
    queue = _browsed(session, request)
    if isinstance(queue, Rejection):
        return queue
    bounds = (request.start, request.end, request.states, request.max_messages, request.max_bytes)
    try:
        return queue, session.browser.page(request.snapshot, *bounds)
    except StoreDamagedError as error:
        return session.broker.set_apart(error)


def stored_page(session: Session, request: b.BrowsePage) -> tuple[str, StoredPage] | Rejection:
    """The queue's name with the page; who asked sorts the states out."""
    queue = _browsed(session, request)
    if isinstance(queue, Rejection):
        return queue
    bounds = (request.start, request.end, request.max_messages, request.max_bytes)
    try:
        return queue, session.browser.stored_page(request.snapshot, *bounds)
    except StoreDamagedError as error:
        return session.broker.set_apart(error)


def _browsed(session: Session, request: b.BrowsePage) -> str | Rejection:
    """Whose snapshot it is, if it may be read."""
    if not 1 <= request.states <= ALL_STATES:
        return invalid_value("states", f"{request.states} is no sum of 1, 2 and 4")
    queue = session.browser.queue_of(request.snapshot)
    if isinstance(queue, Rejection):
        return queue
    return session.may_consume(queue) or queue


AT_ONCE: Final[dict[Any, Callable[[Session, Any], Any]]] = {
    b.AckBatch: ack_batch,
    b.ExtendBatch: extend_batch,
    b.ReleaseBatch: release_batch,
    b.ListBatches: list_batches,
    b.Browse: browse,
    b.BrowseClose: browse_close,
}
