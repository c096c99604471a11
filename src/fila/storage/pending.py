"""Rows that are under way: shown to whoever reads, before the store may hold them.

A log that keeps batches elsewhere answers later than a disk does. The core reads the rows of its
last turns at once, and the store is to hold only what is committed: so that what the log refuses
never happened, without anything to undo. `propose` makes batches visible, `commit` writes the
oldest of a group into the store, `drop` forgets all of a group that are under way.

Groups write different rows (`core/grouping.py`), so each can be committed or dropped by itself.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from fila.core import rows
from fila.core.reader import Reader
from fila.core.row_batch import DELETE, DELETE_RANGE, FAMILY_MASK, RowBatch
from fila.storage.contract import Store

_LANE_BYTES: Final = 12  # of a message's key: what all messages of a lane begin with


class _Row(NamedTuple):
    at: int  # when it was proposed; counts operations
    value: bytes | None  # None: deleted


class _Range(NamedTuple):
    at: int
    family: int
    start: bytes
    end: bytes
    group: int


class PendingStore:
    """A store's rows with those under way on top of them."""

    def __init__(self, base: Store) -> None:
        self._base = base
        self._at = 0
        self._under: dict[int, deque[tuple[int, RowBatch]]] = {}  # by group: up to which operation
        self._rows: list[dict[bytes, _Row]] = [{} for _ in rows.FAMILIES]
        self._lanes: dict[bytes, dict[bytes, None]] = {}  # message keys in `_rows`, by lane
        self._ranges: list[_Range] = []

    def propose(self, batches: list[RowBatch]) -> None:
        """A turn's batches, visible from now on."""
        at = self._at
        for batch in batches:
            for code, key, value in batch.ops:
                at += 1
                family = code & FAMILY_MASK
                kind = code & ~FAMILY_MASK
                if kind == DELETE_RANGE:
                    self._ranges.append(_Range(at, family, key, value, batch.group))
                    continue
                self._rows[family][key] = _Row(at, None if kind == DELETE else value)
                if family == rows.MESSAGES:
                    self._lanes.setdefault(key[:_LANE_BYTES], {})[key] = None
            self._under.setdefault(batch.group, deque()).append((at, batch))
        self._at = at

    def commit(self, groups: list[int]) -> None:
        """The oldest batch of each of these groups is safe: into the store, with one write."""
        oldest = [self._under[group].popleft() for group in groups]
        if oldest:
            self._base.write([batch for _, batch in oldest])
        for at, batch in oldest:
            self._forget(at, batch)
            if not self._under[batch.group]:
                del self._under[batch.group]

    def drop(self, group: int) -> None:
        """What is under way of the group never happened."""
        for at, batch in self._under.pop(group, ()):
            self._forget(at, batch)

    def under_way(self, group: int) -> int:
        """How many batches of the group wait for their answer."""
        return len(self._under.get(group, ()))

    def _forget(self, upto: int, batch: RowBatch) -> None:
        for code, key, _ in batch.ops:
            family = code & FAMILY_MASK
            found = self._rows[family].get(key)
            if code & ~FAMILY_MASK == DELETE_RANGE or found is None or found.at > upto:
                continue
            del self._rows[family][key]
            if family == rows.MESSAGES:
                lane = self._lanes[key[:_LANE_BYTES]]
                del lane[key]
                if not lane:
                    del self._lanes[key[:_LANE_BYTES]]
        if self._ranges:
            self._ranges = [
                one for one in self._ranges if one.group != batch.group or one.at > upto
            ]

    # --- reading

    def get(self, family: int, key: bytes) -> bytes | None:
        found = self._rows[family].get(key)
        if found is not None:
            gone = found.value is None or self._is_gone(family, key, found.at)
            return None if gone else found.value
        if self._is_gone(family, key, 0):
            return None
        return self._base.get(family, key)

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        over = self._rows[family]
        if not over and not self._ranges:
            return self._base.get_many(family, keys)
        below = [key for key in keys if key not in over and not self._is_gone(family, key, 0)]
        found = dict(zip(below, self._base.get_many(family, below), strict=True))
        return [found[key] if key in found else self.get(family, key) for key in keys]

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        over = sorted([key for key in self._candidates(family, start, end) if start <= key < end])
        if not over and not self._ranges:
            return self._base.scan(family, start, end, rows_max, bytes_max)
        found: list[tuple[bytes, bytes]] = []
        size = at = 0
        following = start
        page: list[tuple[bytes, bytes]] = []
        below = 0
        ended = False
        while len(found) < rows_max and not (found and size >= bytes_max):
            if below == len(page) and not ended:
                page = self._base.scan(family, following, end, rows_max, bytes_max)
                below = 0
                ended = not page
                if page:
                    following = page[-1][0] + b"\0"
            stored = page[below][0] if below < len(page) else None
            if at < len(over) and (stored is None or over[at] <= stored):
                key = over[at]
                at += 1
                below += key == stored
                value = self.get(family, key)
            elif stored is not None:
                key, row = page[below]
                below += 1
                value = None if self._is_gone(family, key, 0) else row
            else:
                break
            if value is not None:
                found.append((key, value))
                size += len(key) + len(value)
        return found

    def snapshot(self) -> Reader:
        kept = PendingStore(_Frozen(self._base.snapshot()))
        kept._rows = [dict(one) for one in self._rows]
        kept._lanes = {lane: dict(keys) for lane, keys in self._lanes.items()}
        kept._ranges = list(self._ranges)
        return kept

    def _candidates(self, family: int, start: bytes, end: bytes) -> list[bytes]:
        """Keys that may lie between: of a lane's messages only the lane's are looked at."""
        lane = start[:_LANE_BYTES]
        within = len(start) >= _LANE_BYTES and end <= rows.after(lane)
        if family == rows.MESSAGES and within:
            return list(self._lanes.get(lane, ()))
        return list(self._rows[family])

    def _is_gone(self, family: int, key: bytes, at: int) -> bool:
        """Whether a range was deleted with it after that operation."""
        if not self._ranges:
            return False
        return any(
            one.family == family and one.at > at and one.start <= key < one.end
            for one in self._ranges
        )


class _Frozen:
    """A snapshot in the place of a store: there is nothing to write."""

    def __init__(self, reader: Reader) -> None:
        self.get = reader.get
        self.get_many = reader.get_many
        self.scan = reader.scan
        self._reader = reader

    def snapshot(self) -> Reader:
        return self._reader

    def write(self, batches: list[RowBatch]) -> None:
        raise AssertionError("a snapshot is not written")

    def sync(self) -> None: ...

    def close(self) -> None: ...
