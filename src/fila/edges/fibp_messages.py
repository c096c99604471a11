"""FIBP's requests that carry messages: Enqueue, EnqueueWith, Ack, Nack and Release.

On the hot path, so they have codecs of their own and stand outside the table's dispatch. Each
item has a code; one queue the caller may not touch refuses the whole frame, and nothing is stored.

A request that is larger than a turn is read, checked and carried out in steps, each in a turn of
its own, and answered when the last one is committed. A broker that dies before that has stored, or
finished, a part of it; nothing of it was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.broker.options import Options
from fila.broker.session import Session, Stored
from fila.core.rejection import Rejection
from fila.core.work import SHIFT
from fila.edges.queue_groups import by_queue, parse_ids, runs, spread
from fila.wire import enqueue_with_codec, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.enqueue_with_codec import EnqueuedWithItem
from fila.wire.errors import InvalidBody
from fila.wire.ids import id_text
from fila.wire.message_codec import FIRST, EnqueuedItem

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

_new_options: Final = tuple.__new__  # a third of the cost of calling Options


# One step of a request per `next`; its reply is made by the last one.
Steps = Iterator[None]
Groups = list[tuple[str, list[int]]]
Permit = Callable[[Session, str], Rejection | None]


class WholeRefusedError(Exception):
    """Nothing of a request was stored, for a reason that tells more than a code."""

    def __init__(self, why: Rejection) -> None:
        super().__init__(why.message)
        self.why = why


class Kind(NamedTuple):
    """One of the five requests."""

    # So many items of a body from a position on, the first of this number; and where they end.
    read: Callable[[bytes, int, int, int], tuple[list[Any], int]]
    permit: Permit
    # Items, by their queues, to the body of a result.
    carry_out: Callable[[Session, list[Any], Groups], bytes]
    result: int
    # The fixed work of a request that reads stored messages and writes them again: reading a few
    # costs nearly as much as reading many. 0: it does not read them.
    reads: int = 0
    # A result that says of so many items that they were refused.
    refusals: Callable[[int, int], bytes] | None = None


def handle(
    connection: FibpConnection,
    session: Session,
    kind: Kind,
    request_id: int,
    body: bytes,
    count: int,
) -> None:
    """Carry a request of so many messages out, or begin to."""
    messages_max = connection.limits.messages_max
    if count > messages_max:
        raise InvalidBody(
            f"messages: {count} are too many for one request; send at most {messages_max}"
        )
    whole = connection.broker.work.whole
    if count > whole or len(body) >> SHIFT > whole:
        steps = _in_steps(connection, session, kind, request_id, body, count)
        connection.requests.in_steps(request_id, steps, len(body))
        return
    items, _ = kind.read(body, FIRST, count, 0)
    if kind.reads:
        work = connection.broker.work
        named_bytes = sum(size for _, _, size in runs(session, items, work.step << SHIFT))
        if named_bytes >> SHIFT > work.whole:
            steps = _in_steps(connection, session, kind, request_id, body, count)
            connection.requests.in_steps(request_id, steps, len(body))
            return
        work.done += named_bytes >> SHIFT
    groups = by_queue([item[0] for item in items])
    for queue, _ in groups:
        refused = kind.permit(session, queue)
        if refused is not None:
            connection.refuse(request_id, refused, {})
            return
    try:
        answer = kind.carry_out(session, items, groups)
    except WholeRefusedError as refused:
        connection.refuse(request_id, refused.why, dict(refused.why.metadata))
        return
    connection.reply(kind.result, request_id, answer)


def _in_steps(
    connection: FibpConnection,
    session: Session,
    kind: Kind,
    request_id: int,
    body: bytes,
    count: int,
) -> Steps:
    """The same, a part at a time: all of it is read and checked before anything is done."""
    work = connection.broker.work
    parts: list[tuple[list[Any], int]] = []  # items and bytes of each step
    queues: dict[bytes, None] = {}
    position = FIRST
    index = 0
    while index < count:
        # Few large messages make a step as well as many small ones.
        step = (work.step << SHIFT) * (count - index) // max(1, len(body) - position)
        step = max(1, min(work.step, count - index, step))
        items, end = kind.read(body, position, step, index)
        position_before = position
        parts.append((items, end - position))
        queues.update(dict.fromkeys([item[0] for item in items]))
        position = end
        index += step
        # A large message is copied here: it is stored with the next turn.
        work.done += max(1 + step // 4, (end - position_before) >> SHIFT)
        yield
    for at, queue in enumerate(queues):
        refused = kind.permit(session, queue.decode())
        if refused is not None:
            connection.refuse(request_id, refused, {})
            return
        if at % work.step == work.step - 1:
            work.done += 1 + work.step // 4
            yield
    answers = [body[:FIRST]]
    body = b""
    for at, (whole, size) in enumerate(parts):
        parts[at] = ([], 0)
        cut = [(0, len(whole), size)]
        if kind.reads:
            cut = runs(session, whole, work.step << SHIFT)
        for start, end, run_bytes in cut:
            items = whole[start:end] if len(cut) > 1 else whole
            groups = by_queue([item[0] for item in items])
            try:
                answers.append(kind.carry_out(session, items, groups)[FIRST:])
            except WholeRefusedError as refused:  # of this step: others may fit
                assert kind.refusals is not None, "it stores messages"
                answers.append(kind.refusals(len(items), refused.why.code)[FIRST:])
            work.done += max(len(items), run_bytes >> SHIFT)
            if at < len(parts) - 1 or end < len(whole):
                yield
    connection.reply(kind.result, request_id, b"".join(answers))


def _enqueue(session: Session, items: list[EnqueuedItem], groups: Groups) -> bytes:
    results: list[tuple[int, bytes]] = [(0, b"")] * len(items)
    for queue, places in groups:
        stored = session.enqueue(queue, [items[place][1] for place in places])
        if isinstance(stored, Rejection):
            if stored.metadata and len(groups) == 1:
                raise WholeRefusedError(stored)
            for place in places:
                results[place] = (stored.code, b"")
        else:
            for place, id in zip(places, stored, strict=True):
                code = id[0] if id else errors.CHANNEL_FULL
                results[place] = (0, id_text(id)) if len(id) > 1 else (code, b"")
    return message_codec.encode_enqueue_results(results)


def _enqueue_with(session: Session, items: list[EnqueuedWithItem], groups: Groups) -> bytes:
    messages = [_new_options(Options, item[1:]) for item in items]
    answers = [
        (places, session.enqueue_with(queue, [messages[place] for place in places]))
        for queue, places in groups
    ]
    if len(answers) == 1:
        stored = answers[0][1]
        if isinstance(stored, Rejection) and stored.metadata:
            raise WholeRefusedError(stored)
        if not isinstance(stored, Rejection) and {one[0] for one in stored} == {errors.OK}:
            duplicates = bytes([one[2] for one in stored])
            return enqueue_with_codec.encode_stored([one[1] for one in stored], duplicates)
    results: list[Stored] = [(errors.OK, b"", False)] * len(items)
    for places, stored in answers:
        for at, place in enumerate(places):
            if isinstance(stored, Rejection):
                results[place] = (stored.code, b"", False)
            else:
                code, id, duplicate = stored[at]
                results[place] = (code, id_text(id) if id else b"", duplicate)
    return enqueue_with_codec.encode_enqueue_with_results(results)


def _ack(session: Session, items: list[tuple[bytes, bytes]], groups: Groups) -> bytes:
    return _settle(items, groups, lambda queue, ids, known: session.ack(queue, ids))


def _nack(session: Session, items: list[tuple[bytes, bytes, bytes]], groups: Groups) -> bytes:
    def nack(queue: str, ids: list[bytes], known: list[int]) -> list[int] | Rejection:
        return session.nack(queue, ids, [items[place][2].decode() for place in known])

    return _settle(items, groups, nack)


def _release(session: Session, items: list[tuple[bytes, bytes]], groups: Groups) -> bytes:
    return _settle(items, groups, lambda queue, ids, known: session.release(queue, ids))


def _settle(
    items: Sequence[tuple[bytes, ...]],
    groups: Groups,
    settle: Callable[[str, list[bytes], list[int]], list[int] | Rejection],
) -> bytes:
    """A code for each item. `settle` gets a queue's ids, and where they stand among the items."""
    codes = [errors.MESSAGE_NOT_FOUND] * len(items)
    for queue, places in groups:
        known, ids = parse_ids([items[place][1] for place in places], places)
        spread(settle(queue, ids, known), known, places, codes)
    return message_codec.encode_codes(codes)


def _none_stored(count: int, code: int) -> bytes:
    return message_codec.encode_enqueue_results([(code, b"")] * count)


def _none_stored_with(count: int, code: int) -> bytes:
    return enqueue_with_codec.encode_enqueue_with_results([(code, b"", False)] * count)


ENQUEUE: Final = Kind(
    message_codec.enqueue_items,
    Session.may_produce,
    _enqueue,
    op.ENQUEUE_RESULT,
    refusals=_none_stored,
)
ENQUEUE_WITH: Final = Kind(
    enqueue_with_codec.enqueue_with_items,
    Session.may_produce,
    _enqueue_with,
    op.ENQUEUE_WITH_RESULT,
    refusals=_none_stored_with,
)
ACK: Final = Kind(message_codec.ack_items, Session.may_consume, _ack, op.ACK_RESULT)
NACK: Final = Kind(message_codec.nack_items, Session.may_consume, _nack, op.NACK_RESULT, reads=4)
RELEASE: Final = Kind(
    message_codec.release_items, Session.may_consume, _release, op.RELEASE_RESULT, reads=4
)
KINDS: Final = {
    op.ENQUEUE: ENQUEUE,
    op.ACK: ACK,
    op.NACK: NACK,
    op.ENQUEUE_WITH: ENQUEUE_WITH,
    op.RELEASE: RELEASE,
}
