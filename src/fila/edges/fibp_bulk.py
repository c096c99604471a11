"""FIBP's bulk operations: enqueues with options, releases, lease batches and browsing.

Failures are Error frames, but for EnqueueWith and Release, which have a code per item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila.broker.bulk import Stored, Wanted
from fila.broker.options import Options
from fila.broker.session import Session
from fila.core.browse import Seen
from fila.core.command import TOLD_COUNTED, TOLD_ENTRIES, TOLD_STORED
from fila.core.effect import BatchLeased
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, message_id, ready_ns
from fila.core.rejection import Rejection, invalid_value
from fila.edges import arrow
from fila.edges.items import by_queue, parse_ids, spread
from fila.edges.lane_fields import LaneFields
from fila.wire import bodies, bulk, errors, hot, layouts
from fila.wire import opcodes as op
from fila.wire.forms import ARROW, COUNT, MESSAGES
from fila.wire.ids import id_text

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

_MS: Final = 1_000_000
_new_options: Final = tuple.__new__  # a third of the cost of calling Options
_TOLD: Final = {MESSAGES: TOLD_ENTRIES, ARROW: TOLD_STORED, COUNT: TOLD_COUNTED}

Answer = tuple[Any, ...] | Rejection


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one bulk request. A body that does not parse raises InvalidBody."""
    session = connection.session
    assert session is not None
    if opcode == op.ENQUEUE_WITH:
        _enqueue_with(connection, session, request_id, body)
    elif opcode == op.RELEASE:
        _release(connection, session, request_id, body)
    elif opcode == op.LEASE_BATCH:
        _lease_batch(connection, session, request_id, body)
    else:
        answer = _HANDLERS[opcode](session, body)
        if isinstance(answer, Rejection):
            connection.refuse(request_id, answer, {})
        else:
            connection.reply(layouts.opcode_of(answer), request_id, layouts.encode(answer))


def _enqueue_with(
    connection: FibpConnection, session: Session, request_id: int, body: bytes
) -> None:
    connection.check_count(body)
    items = bulk.decode_enqueue_with(body)
    groups = by_queue([item[0] for item in items])
    if connection.forbidden(request_id, groups, session.may_produce):
        return
    messages = [_new_options(Options, item[1:]) for item in items]
    answers = [
        (places, session.bulk.enqueue(queue, [messages[place] for place in places]))
        for queue, places in groups
    ]
    if len(answers) == 1:
        stored = answers[0][1]
        if not isinstance(stored, Rejection) and {one[0] for one in stored} == {errors.OK}:
            duplicates = bytes([one[2] for one in stored])
            result = bulk.encode_stored([one[1] for one in stored], duplicates)
            connection.reply(op.ENQUEUE_WITH_RESULT, request_id, result)
            return
    results: list[Stored] = [(errors.OK, b"", False)] * len(items)
    for places, stored in answers:
        for at, place in enumerate(places):
            if isinstance(stored, Rejection):
                results[place] = (stored.code, b"", False)
            else:
                code, id, duplicate = stored[at]
                results[place] = (code, id_text(id) if id else b"", duplicate)
    connection.reply(op.ENQUEUE_WITH_RESULT, request_id, bulk.encode_enqueue_with_results(results))


def _release(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    connection.check_count(body)
    items = bulk.decode_releases(body)
    groups = by_queue([item[0] for item in items])
    if connection.forbidden(request_id, groups, session.may_consume):
        return
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in groups:
        known, ids = parse_ids([items[place][1] for place in places], places)
        spread(session.bulk.release(queue, ids), known, places, codes)
    connection.reply(op.RELEASE_RESULT, request_id, hot.encode_codes(codes))


def _lease_batch(
    connection: FibpConnection, session: Session, request_id: int, body: bytes
) -> None:
    request = layouts.decode(bodies.LeaseBatch, body)

    def done(found: BatchLeased | Rejection) -> FibpConnection:
        if isinstance(found, Rejection):
            connection.refuse_now(request_id, found)
        else:
            result = layouts.encode(_leased(found, request.form))
            connection.reply_now(op.LEASE_BATCH_RESULT, request_id, result)
        return connection

    fault = None if request.form == COUNT else _form_fault(request.form)
    if fault is None:
        wanted = Wanted(
            request.max_messages,
            request.max_bytes,
            request.visibility_ms,
            request.wait_ms,
            request.count_attempt,
            _TOLD[request.form],
        )
        asked = session.bulk.lease(request.queue, request.name, wanted, done)
        fault = asked if isinstance(asked, Rejection) else None
    if fault is not None:
        connection.refuse(request_id, fault, {})


def _leased(found: BatchLeased, form: int) -> bodies.LeaseBatchResult:
    if form == ARROW:
        body = arrow.leased_stream(found)
    elif form == COUNT:
        body = b""
    else:
        queue = hot.queue_field(found.queue.encode())
        leased_ms = found.leased_ns // _MS
        fields = LaneFields()
        body = hot.encode_delivery(
            [
                (
                    message_id(entry),
                    queue,
                    entry[BODY],
                    fields.of(lane, entry[WEIGHT]),
                    entry[ATTEMPTS],
                    entry[ENQUEUED_NS] // _MS,
                    leased_ms,
                )
                for entry, lane in zip(found.entries, found.lanes, strict=True)
            ]
        )
    return bodies.LeaseBatchResult(
        errors.OK, found.again, found.messages, found.expires_ns // _MS, form, body
    )


def _ack_batch(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.AckBatch, body)
    done = session.bulk.ack_batch(*request)
    return done if isinstance(done, Rejection) else bodies.AckBatchResult(errors.OK, *done)


def _extend_batch(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.ExtendBatch, body)
    done = session.bulk.extend_batch(*request)
    return done if isinstance(done, Rejection) else bodies.ExtendBatchResult(errors.OK, *done)


def _release_batch(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.ReleaseBatch, body)
    done = session.bulk.release_batch(*request)
    return done if isinstance(done, Rejection) else bodies.ReleaseBatchResult(errors.OK, *done)


def _list_batches(session: Session, body: bytes) -> Answer:
    found = session.bulk.batches(layouts.decode(bodies.ListBatches, body).queue)
    if isinstance(found, Rejection):
        return found
    batches = tuple(
        bodies.OpenBatch(one.name, one.messages, one.leased_ns // _MS, one.expires_ns // _MS)
        for one in found
    )
    return bodies.ListBatchesResult(errors.OK, batches)


def _browse(session: Session, body: bytes) -> Answer:
    opened = session.bulk.browse(*layouts.decode(bodies.Browse, body))
    if isinstance(opened, Rejection):
        return opened
    token, expires_ms, messages, ranges = opened
    found = tuple(bodies.BrowseRange(*one) for one in ranges)
    return bodies.BrowseResult(errors.OK, token, expires_ms, messages, found)


def _browse_page(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.BrowsePage, body)
    fault = _form_fault(request.form)
    if fault is not None:
        return fault
    if request.form == ARROW:
        stored = session.bulk.stored_page(*request[:6])
        if isinstance(stored, Rejection):
            return stored
        count, encoded = arrow.browsed_stream(*stored, request.states)
        return bodies.BrowsePageResult(errors.OK, count, stored[1].next, ARROW, encoded)
    found = session.bulk.page(*request[:6])
    if isinstance(found, Rejection):
        return found
    queue, page = found
    encoded = bulk.encode_browsed(hot.queue_field(queue.encode()), _browsed(page.messages))
    return bodies.BrowsePageResult(errors.OK, len(page.messages), page.next, MESSAGES, encoded)


def _browse_close(session: Session, body: bytes) -> Answer:
    refused = session.bulk.close_snapshot(layouts.decode(bodies.BrowseClose, body).snapshot)
    return refused or bodies.BrowseCloseResult(errors.OK)


def _browsed(messages: list[Seen]) -> list[bulk.BrowsedItem]:
    fields: dict[tuple[int, int], bytes] = {}  # by lane row and weight: constant for most of a page
    items: list[bulk.BrowsedItem] = []
    for entry, lane, state in messages:
        key = (id(lane), entry[WEIGHT])
        field = fields.get(key)
        if field is None:
            field = hot.lane_field(lane.fairness_key, entry[WEIGHT], lane.throttle_keys)
            fields[key] = field
        items.append(
            (
                message_id(entry),
                entry[BODY],
                field,
                entry[ATTEMPTS],
                entry[ENQUEUED_NS] // _MS,
                ready_ns(entry) // _MS,
                state,
            )
        )
    return items


def _form_fault(form: int) -> Rejection | None:
    if form == ARROW:
        return arrow.unavailable()
    if form != MESSAGES:
        return invalid_value("form", f"{form} is neither 0, messages, nor 1, Arrow")
    return None


_HANDLERS: Final[dict[int, Callable[[Session, bytes], Answer]]] = {
    op.ACK_BATCH: _ack_batch,
    op.EXTEND_BATCH: _extend_batch,
    op.RELEASE_BATCH: _release_batch,
    op.LIST_BATCHES: _list_batches,
    op.BROWSE: _browse,
    op.BROWSE_PAGE: _browse_page,
    op.BROWSE_CLOSE: _browse_close,
}

OPERATIONS: Final = frozenset((op.ENQUEUE_WITH, op.RELEASE, op.LEASE_BATCH, *_HANDLERS))
