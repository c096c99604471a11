"""A batch: the ordered key-value operations that make one change durable, for one log group."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

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


class Batch(NamedTuple):
    """What one log group writes in one turn. Applying it runs no hook and reads no clock."""

    group: int
    position: int
    ops: list[Op]

    def volatile(self) -> list[Op]:
        """Operations a replicated log may leave out: leases are rebuilt by their owner."""
        return [op for op in self.ops if op[0] & FAMILY_MASK == rows.LEASES]


class Reader(Protocol):
    """The committed rows, as the core may read them. Implemented by every store."""

    def get(self, family: int, key: bytes) -> bytes | None: ...

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        """What `get` says of each key, in their order."""
        ...

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        """Rows with start <= key < end in key order; stops after rows_max or bytes_max.

        At least one row comes back if there is one, whatever its size.
        """
        ...
