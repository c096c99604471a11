"""A store in memory, for tests, simulation and trying things out; it can be made to fail.

It keeps what a disk would keep: rows become safe against the death of the process with `write`, and
against the loss of power with `sync`. `crash` gives back the store a restarted broker would find.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from fila.core.row_batch import DELETE, DELETE_RANGE, FAMILY_MASK, Op, RowBatch
from fila.core.rows import FAMILIES
from fila.storage.contract import StoreDamagedError, StoreError


class MemoryStore:
    def __init__(self) -> None:
        self._rows: list[dict[bytes, bytes]] = [{} for _ in FAMILIES]
        self._keys: list[list[bytes] | None] = [[] for _ in FAMILIES]  # sorted; None: out of date
        self._unsynced: list[list[Op]] = []
        self._synced: list[dict[bytes, bytes]] = [{} for _ in FAMILIES]
        self._failed = ""
        self.before_write: Callable[[], None] | None = None  # may raise StoreError: a failed commit
        self.unreadable: set[tuple[int, bytes]] = set()  # families and keys of damaged rows

    def get(self, family: int, key: bytes) -> bytes | None:
        if self.unreadable:
            self._read(family, key)
        return self._rows[family].get(key)

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        if self.unreadable:
            for key in keys:
                self._read(family, key)
        rows = self._rows[family]
        return [rows.get(key) for key in keys]

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        keys = self._sorted(family)
        rows = self._rows[family]
        found: list[tuple[bytes, bytes]] = []
        size = 0
        for at in range(bisect_left(keys, start), len(keys)):
            key = keys[at]
            if key >= end or len(found) >= rows_max or (found and size >= bytes_max):
                break
            if self.unreadable:
                self._read(family, key)
            value = rows[key]
            found.append((key, value))
            size += len(key) + len(value)
        return found

    def write(self, batches: list[RowBatch]) -> None:
        if self._failed:
            raise StoreError(self._failed)
        if self.before_write is not None:
            try:
                self.before_write()
            except StoreError as error:
                self._failed = str(error)
                raise
        ops = [op for batch in batches for op in batch.ops]
        self._apply(self._rows, ops)
        self._unsynced.append(ops)

    def snapshot(self) -> MemoryStore:
        kept = MemoryStore()
        kept._rows = [dict(rows) for rows in self._rows]
        kept._keys = [None for _ in FAMILIES]
        kept.unreadable = set(self.unreadable)
        return kept

    def sync(self, writes: int | None = None) -> None:
        """Make everything written so far safe; or so many of the unsynced writes, the oldest: what
        a sync promises that began when there were no more."""
        if self._failed:
            raise StoreError(self._failed)
        covered = self._unsynced[:writes]
        for ops in covered:
            _apply(self._synced, ops)
        self._unsynced = self._unsynced[len(covered) :]

    def close(self) -> None:
        self.sync()

    def crash(self, lost_writes: int = 0) -> MemoryStore:
        """What is found after a crash; losing power also loses the newest unsynced writes."""
        after = MemoryStore()
        kept = self._unsynced[: len(self._unsynced) - lost_writes]
        for family, rows in enumerate(self._synced):
            after._synced[family] = dict(rows)
        for ops in kept:
            _apply(after._synced, ops)
        after._rows = [dict(rows) for rows in after._synced]
        after._keys = [None for _ in FAMILIES]
        after.unreadable = set(self.unreadable)
        return after

    @property
    def unsynced_writes(self) -> int:
        return len(self._unsynced)

    def _read(self, family: int, key: bytes) -> None:
        if (family, key) in self.unreadable:
            raise StoreDamagedError(f"cannot read {FAMILIES[family]}: damaged", family, key)

    def _sorted(self, family: int) -> list[bytes]:
        keys = self._keys[family]
        if keys is None:
            keys = self._keys[family] = sorted(self._rows[family])
        return keys

    def _apply(self, tables: list[dict[bytes, bytes]], ops: list[Op]) -> None:
        _apply(tables, ops)
        for family in {op[0] & FAMILY_MASK for op in ops}:
            self._keys[family] = None


def _apply(tables: list[dict[bytes, bytes]], ops: list[Op]) -> None:
    for code, key, value in ops:
        rows = tables[code & FAMILY_MASK]
        kind = code & ~FAMILY_MASK
        if kind == DELETE:
            rows.pop(key, None)
        elif kind == DELETE_RANGE:
            for gone in [one for one in rows if key <= one < value]:
                del rows[gone]
        else:
            rows[key] = value
