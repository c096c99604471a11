"""The store contract. Every implementation passes tests/storage/test_contract.py."""

from __future__ import annotations

from typing import Protocol

from fila.core.reader import Reader
from fila.core.reader import StoreDamagedError as StoreDamagedError
from fila.core.reader import StoreError as StoreError
from fila.core.row_batch import RowBatch


class Store(Protocol):
    """Rows in column families, written in atomic batches, read in key order.

    `write` makes all of the batches visible and crash-safe as one (against the death of the
    process); `sync` returns when everything written so far survives the loss of power. Both raise
    StoreError when they fail; after that the store takes no further writes. Reads raise
    StoreDamagedError when a row cannot be read: they never leave one out.
    """

    def get(self, family: int, key: bytes) -> bytes | None: ...

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]: ...

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]: ...

    def write(self, batches: list[RowBatch]) -> None: ...

    def snapshot(self) -> Reader:
        """The rows of messages, leases and state as they are now, whatever is written later. Drop
        the reference to free its resources, and before the store is closed."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None: ...
