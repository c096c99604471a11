"""FIBP's requests that carry messages: Enqueue, EnqueueWith, Ack, Nack and Release.

On the hot path, so they have codecs of their own and stand outside the table's dispatch. Each
item has a code; one queue the caller may not touch refuses the whole frame, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fila.broker.options import Options
from fila.broker.session import Session, Stored
from fila.core.rejection import Rejection
from fila.edges.queue_groups import by_queue, parse_ids, spread
from fila.wire import enqueue_with_codec, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody
from fila.wire.ids import id_text

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

_new_options: Final = tuple.__new__  # a third of the cost of calling Options


def enqueue(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    _check_count(connection, body)
    items = message_codec.decode_enqueue(body)
    groups = by_queue([item[0] for item in items])
    if _forbidden(connection, request_id, groups, session.may_produce):
        return
    results: list[tuple[int, bytes]] = [(0, b"")] * len(items)
    for queue, places in groups:
        stored = session.enqueue(queue, [items[place][1] for place in places])
        if isinstance(stored, Rejection):
            for place in places:
                results[place] = (stored.code, b"")
        else:
            for place, id in zip(places, stored, strict=True):
                results[place] = (0, id_text(id)) if id else (errors.CHANNEL_FULL, b"")
    connection.reply(op.ENQUEUE_RESULT, request_id, message_codec.encode_enqueue_results(results))


def enqueue_with(
    connection: FibpConnection, session: Session, request_id: int, body: bytes
) -> None:
    _check_count(connection, body)
    items = enqueue_with_codec.decode_enqueue_with(body)
    groups = by_queue([item[0] for item in items])
    if _forbidden(connection, request_id, groups, session.may_produce):
        return
    messages = [_new_options(Options, item[1:]) for item in items]
    answers = [
        (places, session.enqueue_with(queue, [messages[place] for place in places]))
        for queue, places in groups
    ]
    if len(answers) == 1:
        stored = answers[0][1]
        if not isinstance(stored, Rejection) and {one[0] for one in stored} == {errors.OK}:
            duplicates = bytes([one[2] for one in stored])
            result = enqueue_with_codec.encode_stored([one[1] for one in stored], duplicates)
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
    connection.reply(
        op.ENQUEUE_WITH_RESULT, request_id, enqueue_with_codec.encode_enqueue_with_results(results)
    )


def ack(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    _check_count(connection, body)
    items = message_codec.decode_acks(body)
    groups = by_queue([item[0] for item in items])
    if _forbidden(connection, request_id, groups, session.may_consume):
        return
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in groups:
        known, ids = parse_ids([items[place][1] for place in places], places)
        spread(session.ack(queue, ids), known, places, codes)
    connection.reply(op.ACK_RESULT, request_id, message_codec.encode_codes(codes))


def nack(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    _check_count(connection, body)
    items = message_codec.decode_nacks(body)
    groups = by_queue([item[0] for item in items])
    if _forbidden(connection, request_id, groups, session.may_consume):
        return
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in groups:
        known, ids = parse_ids([items[place][1] for place in places], places)
        texts = [items[place][2].decode() for place in known]
        spread(session.nack(queue, ids, texts), known, places, codes)
    connection.reply(op.NACK_RESULT, request_id, message_codec.encode_codes(codes))


def release(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    _check_count(connection, body)
    items = message_codec.decode_releases(body)
    groups = by_queue([item[0] for item in items])
    if _forbidden(connection, request_id, groups, session.may_consume):
        return
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in groups:
        known, ids = parse_ids([items[place][1] for place in places], places)
        spread(session.release(queue, ids), known, places, codes)
    connection.reply(op.RELEASE_RESULT, request_id, message_codec.encode_codes(codes))


def _check_count(connection: FibpConnection, body: bytes) -> None:
    """One request must not keep the loop from all others for seconds."""
    claimed = int.from_bytes(body[:4], "big")
    messages_max = connection.limits.messages_max
    if claimed > messages_max:
        raise InvalidBody(
            f"messages: {claimed} are too many for one request; send at most {messages_max}"
        )


def _forbidden(
    connection: FibpConnection,
    request_id: int,
    groups: list[tuple[str, list[int]]],
    permit: Callable[[str], Rejection | None],
) -> bool:
    """Refuse the whole request if one of its queues is out of bounds: nothing is stored."""
    for queue, _ in groups:
        refused = permit(queue)
        if refused is not None:
            connection.refuse(request_id, refused, {})
            return True
    return False
