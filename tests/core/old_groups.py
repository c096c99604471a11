"""A store as an older Fila left it: a queue and its dead-letter queue in two log groups."""

from __future__ import annotations

from fila.core import rows
from fila.core.row_batch import DELETE_QUEUE, PUT_QUEUE, RowBatch
from tests.core.turn import Turns


def in_two_groups() -> Turns:
    """`x.dlq` was made by hand, then `x`; its own dead-letter queue was deleted before."""
    turns = Turns()
    turns.create("x.dlq")
    turns.enqueue("x.dlq", b"old", count=3)
    turns.create("y")
    turns.enqueue("y", b"a", count=5)
    turns.enqueue("y", b"b", count=2)
    turns.consume("y", prefetch=2)
    turns.delete("y.dlq")
    row = turns.store.get(rows.QUEUES, b"y")
    assert row is not None
    ops = [(DELETE_QUEUE, b"y", b""), (DELETE_QUEUE, b"y.dlq", b""), (PUT_QUEUE, b"x", row)]
    turns.store.write([RowBatch(0, 0, ops)])
    return turns
