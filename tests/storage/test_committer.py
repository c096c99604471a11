from __future__ import annotations

import pytest

from fila.core.row_batch import PUT, RowBatch
from fila.core.rows import MESSAGES
from fila.storage.committer import FsyncCommitter, OsCommitter
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore


def batch(key: bytes) -> list[RowBatch]:
    return [RowBatch(1, 1, [(PUT | MESSAGES, key, b"v")])]


class Said(list[str]):
    def __call__(self, word: str) -> object:
        return lambda: self.append(word)


def full() -> None:
    raise StoreError("the disk is full")


# --- os


def test_with_os_durability_a_commit_is_safe_at_once() -> None:
    store, said = MemoryStore(), Said()
    committer = OsCommitter(store)
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    assert said == ["a"]
    assert store.get(MESSAGES, b"a") == b"v"
    assert store.crash().get(MESSAGES, b"a") == b"v"


def test_a_turn_without_writes_is_committed_at_once() -> None:
    store, said = MemoryStore(), Said()
    OsCommitter(store).commit([], said("a"))  # type: ignore[arg-type]
    assert said == ["a"]
    assert store.unsynced_writes == 0


def test_a_failed_commit_raises_and_calls_nobody_back() -> None:
    store, said = MemoryStore(), Said()
    store.before_write = full
    committer = OsCommitter(store)
    with pytest.raises(StoreError, match="the disk is full"):
        committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    store.before_write = None
    with pytest.raises(StoreError, match="the disk is full"):
        committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    assert said == []


# --- fsync


def test_with_fsync_durability_a_commit_waits_for_the_flush() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    assert said == []
    assert committer.pending()
    assert store.get(MESSAGES, b"a") == b"v"  # visible to reads already
    committer.flush()
    assert said == ["a"]
    assert not committer.pending()
    assert store.unsynced_writes == 0


def test_many_turns_share_one_flush_and_are_called_back_in_order() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    for word in ("a", "b", "c"):
        committer.commit(batch(word.encode()), said(word))  # type: ignore[arg-type]
    committer.flush()
    assert said == ["a", "b", "c"]


def test_a_turn_without_writes_waits_behind_those_with_writes() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    committer.commit([], said("empty"))  # type: ignore[arg-type]
    assert said == []
    committer.flush()
    assert said == ["a", "empty"]


def test_a_turn_without_writes_waits_for_nothing_when_nothing_waits() -> None:
    said = Said()
    committer = FsyncCommitter(MemoryStore())
    committer.commit([], said("empty"))  # type: ignore[arg-type]
    assert said == ["empty"]
    assert not committer.pending()


def test_what_is_committed_while_a_flush_is_under_way_waits_for_the_next() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    committer.begin_sync()
    committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    assert not committer.wants_sync()
    committer.end_sync()
    assert said == ["a"]
    assert committer.pending()
    committer.flush()
    assert said == ["a", "b"]


def test_a_callback_that_commits_again_waits_for_the_next_flush() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    committer.commit(
        batch(b"a"),
        lambda: committer.commit(batch(b"b"), said("b")),  # type: ignore[arg-type]
    )
    committer.flush()
    assert said == []
    committer.flush()
    assert said == ["b"]


def test_a_failed_write_is_not_called_back_by_a_later_flush() -> None:
    store, said = MemoryStore(), Said()
    committer = FsyncCommitter(store)
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    store.before_write = full
    with pytest.raises(StoreError, match="the disk is full"):
        committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="the disk is full"):
        committer.flush()
    assert said == []


def test_a_sync_is_wanted_when_somebody_waits_for_one() -> None:
    committer = FsyncCommitter(MemoryStore())
    assert not committer.wants_sync()
    committer.commit(batch(b"a"), lambda: None)
    assert committer.wants_sync()
    committer.begin_sync()
    assert not committer.wants_sync()
    committer.end_sync()
    assert not committer.wants_sync()


def test_a_turn_without_writes_is_safe_with_the_sync_that_covers_those_before_it() -> None:
    said = Said()
    committer = FsyncCommitter(MemoryStore())
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    committer.begin_sync()
    committer.commit([], said("reads a"))  # type: ignore[arg-type]
    committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    committer.commit([], said("reads b"))  # type: ignore[arg-type]
    committer.end_sync()
    assert said == ["a", "reads a"]
    committer.flush()
    assert said == ["a", "reads a", "b", "reads b"]


def test_what_is_committed_by_those_who_are_told_comes_after_them() -> None:
    said = Said()
    committer = FsyncCommitter(MemoryStore())

    def first() -> None:
        said.append("a")
        committer.commit([], said("asked by a"))  # type: ignore[arg-type]

    committer.commit(batch(b"a"), first)
    committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    committer.flush()
    assert said == ["a", "b", "asked by a"]


def test_after_a_sync_that_failed_nothing_is_committed() -> None:
    said = Said()
    committer = FsyncCommitter(MemoryStore())
    committer.commit(batch(b"a"), said("a"))  # type: ignore[arg-type]
    committer.begin_sync()
    committer.fail(StoreError("the disk is gone"))
    for batches in ([], batch(b"b")):
        with pytest.raises(StoreError, match="the disk is gone"):
            committer.commit(batches, said("b"))  # type: ignore[arg-type]
    assert said == []
    assert not committer.wants_sync()


def test_a_callback_that_raises_stops_those_after_it() -> None:
    said = Said()
    committer = FsyncCommitter(MemoryStore())
    committer.commit(batch(b"a"), full)
    committer.commit(batch(b"b"), said("b"))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="the disk is full"):
        committer.flush()
    with pytest.raises(StoreError, match="the disk is full"):
        committer.commit([], said("c"))  # type: ignore[arg-type]
    assert said == []
