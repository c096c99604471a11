"""Leased messages are read again whole, however they stand in the store."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fila.core import reread, rows
from fila.core.reader import Reader
from fila.core.row_batch import PUT_MESSAGE, RowBatch
from fila.storage.memory import MemoryStore


class Counting:
    """A reader that counts the rows which scans and reads by key touch."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.scanned = self.looked_up = 0

    def get(self, family: int, key: bytes) -> bytes | None:
        return self._store.get(family, key)

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        self.looked_up += len(keys)
        return self._store.get_many(family, keys)

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        found = self._store.scan(family, start, end, rows_max, bytes_max)
        self.scanned += len(found)
        return found

    def snapshot(self) -> Reader:
        return self._store.snapshot()


def key_of(lane: int, stamp: int) -> bytes:
    return rows.MESSAGE_KEY.pack(1, lane, stamp, stamp.to_bytes(16, "big"))


def store_of(keys: list[bytes]) -> Counting:
    store = MemoryStore()
    store.write([RowBatch(1, 1, [(PUT_MESSAGE, key, b"value of " + key) for key in keys])])
    return Counting(store)


places = st.tuples(st.integers(1, 3), st.integers(0, 400))


@given(st.sets(places, max_size=200), st.randoms(use_true_random=False), st.floats(0.0, 1.0))
def test_every_wanted_row_comes_back_in_order(
    stored: set[tuple[int, int]], random: Random, share: float
) -> None:
    keys = [key_of(*place) for place in sorted(stored)]
    wanted = [key for key in keys if random.random() < share]
    random.shuffle(wanted)
    assert reread.stored(store_of(keys), wanted) == [b"value of " + key for key in wanted]


def test_a_lease_that_stands_together_is_one_scan() -> None:
    keys = [key_of(1, stamp) for stamp in range(1_000)]
    store = store_of(keys)
    reread.stored(store, keys[200:700])
    assert (store.scanned, store.looked_up) == (500, 0)


def test_rows_of_others_between_are_walked_over_to_a_limit_only() -> None:
    keys = [key_of(1, stamp) for stamp in range(10_000)]
    store = store_of(keys)
    wanted = keys[:10] + keys[9_990:]
    assert reread.stored(store, wanted) == [b"value of " + key for key in wanted]
    assert (store.scanned, store.looked_up) == (40, 10)
