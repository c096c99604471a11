"""A row batch: the ordered key-value operations that make a turn durable, for one log group."""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core import rows

PUT: Final = 0
DELETE: Final = 8
DELETE_RANGE: Final = 16
FAMILY_MASK: Final = 7

PUT_MESSAGE: Final = PUT | rows.MESSAGES
DELETE_MESSAGE: Final = DELETE | rows.MESSAGES
PUT_LEASE: Final = PUT | rows.LEASES
DELETE_LEASE: Final = DELETE | rows.LEASES
PUT_QUEUE: Final = PUT | rows.QUEUES
DELETE_QUEUE: Final = DELETE | rows.QUEUES
PUT_STATE: Final = PUT | rows.STATE
DELETE_STATE: Final = DELETE | rows.STATE

# (operation | column family, key, value; for a range delete the value is the exclusive end)
Op = tuple[int, bytes, bytes]


class RowBatch(NamedTuple):
    """What one log group writes in one turn. Applying it runs no hook and reads no clock."""

    group: int
    position: int
    ops: list[Op]

    def volatile(self) -> list[Op]:
        """Operations a replicated log may leave out: leases are rebuilt by their owner."""
        return [op for op in self.ops if op[0] & FAMILY_MASK == rows.LEASES]
