"""Handlers of the table: lease batches by name, and snapshots that are browsed.

Pages have forms of their own (messages or Arrow), so the edges ask for them by `page` and
`stored_page`. A snapshot's token names its queue, and with it the permission its reader needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

from fila.broker.stepping import ITEMS_OF_A_MESSAGE, STEP_ITEMS
from fila.core.browse import Page, StoredPage
from fila.core.figures import OpenBatch
from fila.core.reader import StoreDamagedError
from fila.core.rejection import OK, Rejection, invalid_value
from fila.core.work import Work
from fila.security.permission import CONSUME
from fila.wire import bodies as b
from fila.wire.fields import LIST_ITEMS_MAX
from fila.wire.forms import ALL_STATES
from fila.wire.ids import parse_id

if TYPE_CHECKING:
    from fila.broker.browser import Opened
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


def extend(session: Session, request: b.Extend) -> Any:
    """Some ids at a time, the first at once; the rest with the turns to come."""
    queue, texts, visibility_ms = request
    settings = session.broker.machine.view.settings
    missing: list[str] = []

    def step(at: int) -> Rejection | None:
        some = texts[at : at + settings.extend_messages]
        ids = [parse_id(text.encode()) or b"" for text in some]
        codes = session.broker.extend(queue, ids, visibility_ms, session.number)
        if isinstance(codes, Rejection):
            return codes
        session.broker.work.done += len(ids)
        missing.extend([text for text, code in zip(some, codes, strict=True) if code != OK])
        return None

    fault = step(0)
    if fault is not None:
        return fault
    lasting_ms = visibility_ms or session.broker.machine.view.visibility_ms(queue)
    if len(texts) <= settings.extend_messages:
        return b.ExtendResult(OK, lasting_ms, tuple(missing))

    def others() -> Generator[None, None, b.ExtendResult]:
        for at in range(settings.extend_messages, len(texts), settings.extend_messages):
            yield
            if step(at) is not None:  # the queue is gone
                missing.extend(texts[at:])
                break
        return b.ExtendResult(OK, lasting_ms, tuple(missing))

    return others()


def list_batches(session: Session, request: b.ListBatches) -> Any:
    """The open batches, oldest first."""
    view = session.broker.machine.view
    found = view.open_batches(request.queue, LIST_ITEMS_MAX, STEP_ITEMS)
    return found if isinstance(found, Rejection) else _list_batches(session.broker.work, found)


def _list_batches(
    work: Work, found: Iterator[list[OpenBatch]]
) -> Generator[None, None, b.ListBatchesResult]:
    batches: list[b.OpenBatch] = []
    for some in found:
        batches += [
            b.OpenBatch(one.name, one.messages, one.leased_ns // _MS, one.expires_ns // _MS)
            for one in some
        ]
        if len(some) == STEP_ITEMS:
            work.done += STEP_ITEMS // ITEMS_OF_A_MESSAGE
            yield
    return b.ListBatchesResult(OK, tuple(batches))


def browse(session: Session, request: b.Browse) -> Any:
    session.broker.begin()
    key = None if request.fairness_key is None else request.fairness_key.encode()
    steps = session.browser.open(request.queue, key, request.parts, request.ttl_ms)
    return steps if isinstance(steps, Rejection) else _browse(steps)


def _browse(
    steps: Generator[None, None, Opened | Rejection],
) -> Generator[None, None, b.BrowseResult | Rejection]:
    opened = yield from steps
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
    b.Extend: extend,
    b.ListBatches: list_batches,
    b.Browse: browse,
    b.BrowseClose: browse_close,
}
