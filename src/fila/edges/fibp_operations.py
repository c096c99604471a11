"""FIBP's cold operations: a body to a record, the session's answer to a frame.

Everything comes from the table: which record a body is, and whether a failure stands inside the
result or is an Error frame. A refusal of the guard is always an Error frame, and so is an answer
that the layouts cannot carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fila.broker.stepping import Steps, counted
from fila.core.rejection import Rejection
from fila.edges.reason import clipped
from fila.error_codes import FORBIDDEN, INVALID_CONFIG_VALUE
from fila.wire import layouts
from fila.wire.errors import UnencodableField
from fila.wire.operation import IN_RESULT

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

REQUESTS: Final[dict[int, Any]] = {
    row.opcode: request for request, row in layouts.OPERATIONS.items() if not row.by_hand
}


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one request. A body that does not parse raises InvalidBody."""
    request_type = REQUESTS[opcode]
    request = layouts.decode(request_type, body)
    session = connection.session
    assert session is not None

    def done(result: Any) -> Steps | None:
        connection.broker.begin()
        if isinstance(result, Rejection):
            _fail(connection, request_id, request_type, result)
            return None
        if layouts.is_large(result):
            return _send_in_steps(connection, request_id, result)
        _send(connection, request_id, result)
        return None

    def in_steps(steps: Steps) -> None:
        connection.requests.in_steps(request_id, steps)

    fault = session.carry_out(request, done, in_steps)
    if fault is not None:
        _fail(connection, request_id, request_type, fault)


def _fail(connection: FibpConnection, request_id: int, request_type: Any, fault: Rejection) -> None:
    if layouts.OPERATIONS[request_type].failures == IN_RESULT and fault.code != FORBIDDEN:
        result_type = layouts.RESULTS[request_type]
        _send(connection, request_id, result_type(fault.code, message=clipped(fault.message)))
    else:
        connection.refuse(request_id, fault, {})


def _send(connection: FibpConnection, request_id: int, result: Any) -> None:
    try:
        body = layouts.encode(result)
    except UnencodableField as error:
        _refuse(connection, request_id, error)
        return
    connection.reply(layouts.opcode_of(result), request_id, body)


def _send_in_steps(connection: FibpConnection, request_id: int, result: Any) -> Steps:
    """The same of an answer too long for one turn."""
    try:
        body = yield from counted(connection.broker.work, layouts.encode_in_steps(result))
    except UnencodableField as error:
        _refuse(connection, request_id, error)
        return
    connection.reply(layouts.opcode_of(result), request_id, body)


def _refuse(connection: FibpConnection, request_id: int, error: UnencodableField) -> None:
    # Half a list would look like the whole one.
    text = f"the answer does not fit into FIBP: {error}; ask for less of it, or over gRPC"
    connection.refuse(request_id, Rejection(INVALID_CONFIG_VALUE, text), {})
