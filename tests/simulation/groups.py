"""Every batch of rows belongs to one log group, and what a turn writes of a queue is in its own.

Promised: a queue and its dead-letter queue share a group whichever came first; a batch of a group
touches rows of its queues alone; group 0, the catalogue, is written when the catalogue, config or a
bucket's level changes, and otherwise not. So a group can be kept in a log of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from fila.core import rows
from fila.core.command import CreateQueue, DeleteQueue, SetConfig, UpdateQueue
from fila.core.row_batch import FAMILY_MASK, RowBatch

from .turn import Violation

PROMISE = "log groups"
_OF_CATALOGUE = (CreateQueue, DeleteQueue, SetConfig, UpdateQueue)


def check_batches(batches: list[RowBatch], commands: Sequence[object], damaged: bool) -> None:
    """The rows of one turn. `damaged`: a group is quarantined with it, as the catalogue knows."""
    groups: dict[int, int] = {}  # of queue numbers, as far as they are met
    numbers = [batch.group for batch in batches]
    if len(set(numbers)) != len(numbers):
        raise Violation(PROMISE, f"a turn has two batches of one group: {numbers}")
    for batch in batches:
        for code, key, _ in batch.ops:
            number = rows.owner_of(code & FAMILY_MASK, key)
            if number is None:
                continue
            if batch.group == 0:
                raise Violation(PROMISE, f"the catalogue's batch writes a row of queue {number}")
            if groups.setdefault(number, batch.group) != batch.group:
                raise Violation(PROMISE, f"two groups write rows of queue {number}")
        if batch.group == 0 and not damaged:
            _check_catalogue(batch, commands)


def _check_catalogue(batch: RowBatch, commands: Sequence[object]) -> None:
    """Deliveries write levels of buckets. All else is somebody's wish."""
    if any(isinstance(one, _OF_CATALOGUE) for one in commands):
        return
    for code, key, _ in batch.ops:
        own = (rows.BUCKET_PREFIX, rows.LEDGER_PREFIX)
        if code & FAMILY_MASK != rows.STATE or rows.kind_of(key) not in own:
            raise Violation(PROMISE, f"nobody asked the catalogue to write {key!r}: {commands}")


def check_rows(queues: dict[str, int]) -> None:
    """`queues`: the group of each, by name."""
    for name, group in queues.items():
        kin = queues.get(name + ".dlq", group)
        if kin != group:
            raise Violation(PROMISE, f"{name} is in group {group}, its dead letters in {kin}")
