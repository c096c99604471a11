"""FIBP's requests for many messages at a time: LeaseBatch and BrowsePage, as messages or as Arrow.

What a batch or a page is, is the core's; here it gets its bytes. Failures are Error frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fila.broker import batch_operations
from fila.broker.lease_requests import Wanted
from fila.broker.session import Session
from fila.core.browse import Seen
from fila.core.command import TOLD_COUNTED, TOLD_ENTRIES, TOLD_STORED
from fila.core.effect import BatchLeased
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, message_id, ready_ns
from fila.core.rejection import Rejection, invalid_value
from fila.edges import arrow
from fila.edges.lane_fields import LaneFields
from fila.wire import bodies, browse_codec, errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.forms import ARROW, ARROW_HEADS, COUNT, MESSAGES
from fila.wire.message_codec import FIRST

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

_MS: Final = 1_000_000
_TOLD: Final = {MESSAGES: TOLD_ENTRIES, ARROW: TOLD_STORED, COUNT: TOLD_COUNTED}


def lease_batch(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.LeaseBatch, body)

    answer = _Leased(request.form)

    def done(found: BatchLeased | Rejection) -> FibpConnection:
        try:
            if isinstance(found, Rejection):
                connection.refuse_now(request_id, found)
            else:
                answer.add(found)
                if not found.rest:
                    result = layouts.encode(answer.result(found))
                    connection.reply_now(op.LEASE_BATCH_RESULT, request_id, result)
        except Exception as error:
            connection.fail_soon(error)
        return connection

    fault = None if request.form == COUNT else _form_fault(request.form)
    crowded = session.too_many_consumers(connection.consumers_allowed())
    if crowded is not None:
        fault = Rejection(errors.CHANNEL_FULL, crowded)
    if fault is None:
        wanted = Wanted(
            request.max_messages,
            request.max_bytes,
            request.visibility_ms,
            request.wait_ms,
            request.count_attempt,
            _TOLD[request.form],
        )
        asked = session.leases.lease(request.queue, request.name, wanted, done)
        fault = asked if isinstance(asked, Rejection) else None
    if fault is not None:
        connection.refuse(request_id, fault, {})


class _Leased:
    """An answer to a LeaseBatch, of one part or several."""

    def __init__(self, form: int) -> None:
        self._form = form
        self._arrow = arrow.LeasedStream() if form == ARROW else None
        self._parts: list[bytes] = []
        self._messages = 0

    def add(self, part: BatchLeased) -> None:
        if self._arrow is not None:
            self._arrow.add(part)
            self._messages = self._arrow.messages
        elif self._form == COUNT:
            self._messages = part.messages
        else:
            self._messages += len(part.entries)
            self._parts.append(_delivery(part)[FIRST:])

    def result(self, last: BatchLeased) -> bodies.LeaseBatchResult:
        """When the last part was added."""
        body = b""
        if self._arrow is not None:
            body = self._arrow.stream()
        elif self._form != COUNT:
            body = b"".join([self._messages.to_bytes(FIRST, "big"), *self._parts])
        return bodies.LeaseBatchResult(
            errors.OK, last.again, self._messages, last.expires_ns // _MS, self._form, body
        )


def _delivery(found: BatchLeased) -> bytes:
    queue = message_codec.queue_field(found.queue.encode())
    leased_ms = found.leased_ns // _MS
    fields = LaneFields()
    return message_codec.encode_delivery(
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


def browse_page(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    answer = _page(session, layouts.decode(bodies.BrowsePage, body))
    if isinstance(answer, Rejection):
        connection.refuse(request_id, answer, {})
    else:
        connection.reply(op.BROWSE_PAGE_RESULT, request_id, layouts.encode(answer))


def _page(session: Session, request: bodies.BrowsePage) -> bodies.BrowsePageResult | Rejection:
    form = request.form
    fault = _form_fault(ARROW if form == ARROW_HEADS else form)
    if fault is not None:
        return fault
    if form != MESSAGES:
        stored = batch_operations.stored_page(session, request)
        if isinstance(stored, Rejection):
            return stored
        count, encoded = arrow.browsed_stream(*stored, request.states, form == ARROW)
        return bodies.BrowsePageResult(errors.OK, count, stored[1].next, form, encoded)
    found = batch_operations.page(session, request)
    if isinstance(found, Rejection):
        return found
    queue, page = found
    encoded = browse_codec.encode_browsed(
        message_codec.queue_field(queue.encode()), _browsed(page.messages)
    )
    return bodies.BrowsePageResult(errors.OK, len(page.messages), page.next, MESSAGES, encoded)


def _browsed(messages: list[Seen]) -> list[browse_codec.BrowsedItem]:
    fields: dict[tuple[int, int], bytes] = {}  # by lane row and weight: constant for most of a page
    items: list[browse_codec.BrowsedItem] = []
    for entry, lane, state in messages:
        key = (id(lane), entry[WEIGHT])
        field = fields.get(key)
        if field is None:
            field = message_codec.lane_field(lane.fairness_key, entry[WEIGHT], lane.throttle_keys)
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
