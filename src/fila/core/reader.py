"""What the core asks of a store: to read committed rows, now or as they were at one moment."""

from __future__ import annotations

from typing import Protocol


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

    def snapshot(self) -> Reader:
        """The rows of messages, leases and state as they are now, whatever is written later; a
        snapshot's own is itself. Drop the reference to free its resources, and before the store
        is closed."""
        ...
