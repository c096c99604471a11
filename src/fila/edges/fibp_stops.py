"""FIBP's explanations, pauses and purges. Failures are Error frames.

Owns the translation between bodies and the session; what any of it does is the broker's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila.broker.session import Session
from fila.core.rejection import Rejection
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

Answer = tuple[Any, ...] | Rejection | None


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one request. A body that does not parse raises InvalidBody."""
    session = connection.session
    assert session is not None
    if opcode == op.PURGE:
        answer: Answer = _purge(connection, session, request_id, body)
    else:
        answer = _HANDLERS[opcode](session, body)
    if isinstance(answer, Rejection):
        connection.refuse(request_id, answer, {})
    elif answer is not None:
        _send(connection, request_id, answer)


def _explain(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.Explain, body)
    found = session.explain(
        request.queue, request.fairness_key, request.message_id, request.keys_max
    )
    return found if isinstance(found, Rejection) else bodies.ExplainResult(errors.OK, found)


def _pause_queue(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.PauseQueue, body)
    fault = session.pause_queue(request.queue, request.reason)
    return fault or bodies.PauseQueueResult(errors.OK)


def _resume_queue(session: Session, body: bytes) -> Answer:
    fault = session.resume_queue(layouts.decode(bodies.ResumeQueue, body).queue)
    return fault or bodies.ResumeQueueResult(errors.OK)


def _pause_key(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.PauseKey, body)
    fault = session.pause_key(request.queue, request.fairness_key, request.reason)
    return fault or bodies.PauseKeyResult(errors.OK)


def _resume_key(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.ResumeKey, body)
    fault = session.resume_key(request.queue, request.fairness_key)
    return fault or bodies.ResumeKeyResult(errors.OK)


def _purge(
    connection: FibpConnection, session: Session, request_id: int, body: bytes
) -> Rejection | None:
    request = layouts.decode(bodies.Purge, body)

    def done(purged: int) -> None:
        connection.broker.begin()
        _send(connection, request_id, bodies.PurgeResult(errors.OK, purged))

    return session.purge(request.queue, request.fairness_key, done)


def _send(connection: FibpConnection, request_id: int, result: Any) -> None:
    connection.reply(layouts.opcode_of(result), request_id, layouts.encode(result))


_HANDLERS: Final[dict[int, Callable[[Session, bytes], Answer]]] = {
    op.EXPLAIN: _explain,
    op.PAUSE_QUEUE: _pause_queue,
    op.RESUME_QUEUE: _resume_queue,
    op.PAUSE_KEY: _pause_key,
    op.RESUME_KEY: _resume_key,
}
OPERATIONS: Final = frozenset((*_HANDLERS, op.PURGE))
