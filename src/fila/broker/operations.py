"""Carrying out the operations of the table: the permission check, then the handler.

Owns the order of checks, the same for every operation and all protocols: whether its texts are
UTF-8; permission, before anything is looked up, so that a refusal tells nothing about what exists;
then the values of the request; then the broker. Owns what the audit log says of it, too. What an
operation does is in its handler: `queue_operations`, `key_operations`, `batch_operations` and
`backup_operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from fila.broker import (
    backup_operations,
    batch_operations,
    key_operations,
    queue_operations,
    stepping,
)
from fila.broker.stepping import Steps
from fila.core.reader import StoreDamagedError
from fila.core.rejection import Rejection, invalid_value
from fila.error_codes import FORBIDDEN
from fila.security.permission import CONSUME
from fila.wire import layouts, operation
from fila.wire.operation import Operation

if TYPE_CHECKING:
    from fila.broker.session import Session

# Takes the result: at once, or when a job of many turns is done; or why there is none, if steps
# found that out. What it gives back is carried out in steps: an answer too large for one turn.
Done = Callable[[Any], Steps | None]

# The result, why there is none, or steps that end with either.
AT_ONCE: Final[dict[Any, Callable[[Session, Any], Any]]] = {
    **queue_operations.AT_ONCE,
    **key_operations.AT_ONCE,
    **batch_operations.AT_ONCE,
    **backup_operations.AT_ONCE,
}
# Why it was not begun, if so; the result comes later.
LATER: Final = {**queue_operations.LATER, **backup_operations.LATER}


def carry_out(
    session: Session, request: Any, done: Done, in_steps: Callable[[Steps], None] | None = None
) -> Rejection | None:
    """Do what a request of the table asks; `done` gets the result, unless it is refused. What is
    larger than a turn goes to `in_steps`, or among those that take turns with connections."""
    row = layouts.OPERATIONS[type(request)]
    fields = request._asdict()
    fault = text_fault(fields)
    if fault is not None:
        return fault
    refused = permitted(session, row, fields)
    if refused is not None:
        return session.refused(operation.text(row.action, fields), refused)
    later = LATER.get(type(request))
    try:
        if later is not None:
            answer: Any = later(session, request, done)
        else:
            answer = AT_ONCE[type(request)](session, request)
    except StoreDamagedError as error:
        answer = session.broker.set_apart(error)
    if isinstance(answer, Rejection):
        if answer.code == FORBIDDEN:  # what only the handler could find out
            session.refused(operation.text(row.action, fields), answer)
        return answer
    if isinstance(answer, Generator):
        steps: Steps | None = _stepped(session, row, fields, answer, done)
    else:
        steps = _finish(session, row, fields, answer, done)
    if steps is not None:
        if in_steps is not None:
            in_steps(steps)
        else:
            stepping.run(session.broker, steps)
    return None


def _stepped(
    session: Session,
    row: Operation,
    fields: dict[str, Any],
    steps: Generator[None, None, Any],
    done: Done,
) -> Generator[None, None, None]:
    try:
        answer = yield from steps
    except StoreDamagedError as error:
        answer = session.broker.set_apart(error)
    if isinstance(answer, Rejection):
        sending = done(answer)
    else:
        sending = _finish(session, row, fields, answer, done)
    if sending is not None:
        yield from sending


def _finish(
    session: Session, row: Operation, fields: dict[str, Any], answer: Any, done: Done
) -> Steps | None:
    """Audit it and pass the result on; None where it comes later."""
    if row.changes:
        if answer is not None:
            fields = {**answer._asdict(), **fields}
        session.done(operation.text(row.action, fields))
    return done(answer) if answer is not None else None


def text_fault(fields: dict[str, Any]) -> Rejection | None:
    """Text that is no UTF-8 can be neither stored nor sent: JSON lets half a character through."""
    for name, value in fields.items():
        texts = (value,) if isinstance(value, str) else ()
        if isinstance(value, dict):
            texts = (*value, *value.values())
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return invalid_value(
                    name, f"character {error.start} is half of a surrogate pair, not valid UTF-8"
                )
    return None


def permitted(session: Session, row: Operation, fields: dict[str, Any]) -> Rejection | None:
    """Why the caller may not, as far as the table tells."""
    guard = session.guard
    if row.on == operation.BROKER:
        return guard.permit_all(session.identity)
    queue = fields.get(row.on)
    if queue is None:
        return None
    if row.unnamed and not queue:
        return guard.permit_some(session.identity)
    if row.permission == operation.ADMIN:
        return guard.permit_admin(session.identity, queue)
    if row.permission == operation.CONSUME_OR_ADMIN:
        if guard.permit(session.identity, CONSUME, queue) is None:
            return None
        return guard.permit_admin(session.identity, queue)
    return guard.permit(session.identity, row.permission, queue)
