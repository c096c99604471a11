"""What the core asks of a store: to read committed rows, now or as they were at one moment.

Owns how a store says that it cannot: every store raises these errors.
"""

from __future__ import annotations

import struct
from typing import Final, Protocol

from fila.core.rows import CorruptRowError

WHAT_TO_DO: Final = (
    "Nothing was changed. `fila-server --verify` lists what is damaged, `fila-server --salvage "
    "DIR` copies what can be read into a new directory"
)


class StoreError(Exception):
    """The store could not do what it was asked; the message says what and where."""


class StoreDamagedError(StoreError):
    """What the store holds cannot be read, or is not what was written. Nothing was changed.

    `cause` is the fault alone, for whoever says more about it; `family` and `key` tell where it was
    met, if that is known.
    """

    def __init__(
        self,
        cause: str,
        family: int = -1,
        key: bytes = b"",
        where: str = "",
        advice: str = WHAT_TO_DO,
    ) -> None:
        super().__init__(f"{where}{cause}. {advice}")
        self.cause = cause
        self.family = family
        self.key = key


# What reading a row, and making something of it, may raise.
UNREADABLE: Final = (StoreDamagedError, CorruptRowError, struct.error, IndexError, ValueError)


def missing(what: str, family: int, key: bytes) -> StoreDamagedError:
    """A row that other rows speak of is not there."""
    return StoreDamagedError(f"the row of {what} is missing ({key.hex()})", family, key)


class Reader(Protocol):
    """The committed rows, as the core may read them. Implemented by every store.

    Raises StoreDamagedError when a row cannot be read: none is ever left out.
    """

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

    def snapshot(self) -> Reader:
        """The rows of messages, leases and state as they are now, whatever is written later; a
        snapshot's own is itself. Drop the reference to free its resources, and before the store
        is closed."""
        ...
