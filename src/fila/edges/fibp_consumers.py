"""FIBP's Consume and CancelConsume. A client knows a consumer by the request that opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila.broker.session import Session
from fila.core.rejection import Rejection
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection


def consume(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.Consume, body)
    if request_id in connection.consumers:
        text = f"request {request_id} is a consumer already; use another request id"
        connection.refuse(request_id, Rejection(errors.INVALID_FRAME, text), {})
        return
    crowded = session.too_many_consumers(connection.consumers_allowed())
    if crowded is not None:
        connection.refuse(request_id, Rejection(errors.INVALID_CONFIG_VALUE, crowded), {})
        return
    consumer = session.consume(request.queue, request.prefetch or 0)
    if isinstance(consumer, Rejection):
        connection.refuse(request_id, consumer, {})
        return
    connection.consumers[request_id] = (request.queue, consumer)
    connection.consumer_requests[consumer] = request_id
    connection.reply(op.CONSUME_OK, request_id, layouts.encode(bodies.ConsumeOk(consumer)))


def cancel(connection: FibpConnection, session: Session, request_id: int) -> None:
    found = connection.consumers.pop(request_id, None)
    if found is not None:
        _, consumer = found
        connection.consumer_requests.pop(consumer, None)
        session.leave(consumer)
