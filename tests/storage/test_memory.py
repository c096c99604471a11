from __future__ import annotations

import pytest

from fila.core.row_batch import PUT, RowBatch
from fila.core.rows import MESSAGES
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore


def write(store: MemoryStore, *keys: bytes) -> None:
    store.write([RowBatch(1, 1, [(PUT | MESSAGES, key, b"v") for key in keys])])


def keys(store: MemoryStore) -> list[bytes]:
    return [key for key, _ in store.scan(MESSAGES, b"", b"\xff", 1 << 40, 1 << 40)]


def test_the_death_of_the_process_loses_nothing_written() -> None:
    store = MemoryStore()
    write(store, b"a")
    write(store, b"b")
    assert keys(store.crash()) == [b"a", b"b"]


def test_the_loss_of_power_loses_the_newest_unsynced_writes_as_wholes() -> None:
    store = MemoryStore()
    write(store, b"a")
    store.sync()
    write(store, b"b", b"c")
    write(store, b"d")
    assert store.unsynced_writes == 2
    assert keys(store.crash(lost_writes=1)) == [b"a", b"b", b"c"]
    assert keys(store.crash(lost_writes=2)) == [b"a"]


def test_what_was_synced_is_never_lost() -> None:
    store = MemoryStore()
    write(store, b"a")
    store.sync()
    assert store.unsynced_writes == 0
    assert keys(store.crash()) == [b"a"]


def test_after_a_crash_the_old_store_and_the_new_one_are_apart() -> None:
    store = MemoryStore()
    write(store, b"a")
    after = store.crash()
    write(store, b"old")
    write(after, b"new")
    assert keys(store) == [b"a", b"old"]
    assert keys(after) == [b"a", b"new"]


def test_a_failed_write_changes_nothing_and_the_store_takes_no_further_ones() -> None:
    store = MemoryStore()
    write(store, b"a")

    def fail() -> None:
        raise StoreError("the disk is full")

    store.before_write = fail
    with pytest.raises(StoreError, match="the disk is full"):
        write(store, b"b")
    store.before_write = None
    with pytest.raises(StoreError, match="the disk is full"):
        write(store, b"c")
    with pytest.raises(StoreError, match="the disk is full"):
        store.sync()
    assert keys(store) == [b"a"]
    assert keys(store.crash()) == [b"a"]
