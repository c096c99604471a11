"""Durability `fsync`: committed means flushed, in order, and a failed flush ends everything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from fila.core import rows
from fila.core.row_batch import PUT, RowBatch
from fila.server.flusher import Flusher
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore
from tests import loops

ROW = [RowBatch(0, 1, [(PUT | rows.DEFAULT, b"key", b"value")])]


class SlowStore(MemoryStore):
    """A disk whose flushes last until the test lets them end, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.fails = False
        self.syncs = 0

    def sync(self, writes: int | None = None) -> None:
        self.syncs += 1
        self.began.release()
        assert self.may_end.acquire(timeout=10)
        if self.fails:
            raise StoreError("the disk is gone")


class Bench:
    def __init__(self) -> None:
        self.store = SlowStore()
        self.faults: list[BaseException] = []
        self.flusher = Flusher(self.store, asyncio.get_running_loop(), self.faults.append)
        self.told: list[str] = []

    def commit(self, name: str, batches: list[RowBatch]) -> None:
        self.flusher.commit(batches, lambda: self.told.append(name))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.001)

    async def end_sync(self) -> None:
        told = len(self.told)
        self.store.may_end.release()
        await self.until(lambda: len(self.told) > told or self.faults)


def test_nothing_is_committed_before_the_flush_returns() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("a", ROW)
        assert bench.store.began.acquire(timeout=10)
        await asyncio.sleep(0.05)
        assert bench.told == []
        await bench.end_sync()
        assert bench.told == ["a"]
        await bench.flusher.drain()

    loops.run(run())


def test_commits_that_come_during_a_flush_share_the_next_one() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("a", ROW)
        assert bench.store.began.acquire(timeout=10)
        for name in "bcdef":
            bench.commit(name, ROW)
        await bench.end_sync()
        assert bench.told == ["a"]
        assert bench.store.began.acquire(timeout=10)
        await bench.end_sync()
        assert bench.told == list("abcdef")
        assert bench.store.syncs == 2
        await bench.flusher.drain()

    loops.run(run())


def test_a_turn_without_changes_does_not_overtake_and_needs_no_flush_of_its_own() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("alone", [])
        assert bench.told == ["alone"]
        bench.commit("a", ROW)
        bench.commit("reads a", [])
        assert bench.told == ["alone"]
        await bench.end_sync()
        assert bench.told == ["alone", "a", "reads a"]
        assert bench.store.syncs == 1
        await bench.flusher.drain()

    loops.run(run())


def test_a_turn_without_changes_waits_for_every_turn_before_it() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("a", ROW)
        bench.commit("b", ROW)
        bench.commit("reads b", [])
        await bench.end_sync()
        assert bench.told == ["a"]
        await bench.end_sync()
        assert bench.told == ["a", "b", "reads b"]
        await bench.flusher.drain()

    loops.run(run())


def test_draining_waits_for_what_was_written() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("a", ROW)
        bench.commit("b", ROW)
        bench.store.may_end.release(2)
        await bench.flusher.drain()
        assert bench.told == ["a", "b"]

    loops.run(run())


def test_a_flush_that_fails_is_a_fault_and_nothing_is_committed_any_more() -> None:
    async def run() -> None:
        bench = Bench()
        bench.commit("a", ROW)
        bench.commit("b", ROW)
        bench.store.fails = True
        await bench.end_sync()
        assert [str(fault) for fault in bench.faults] == ["the disk is gone"]
        assert bench.told == []
        for batches in (ROW, []):
            with pytest.raises(StoreError, match="the disk is gone"):
                bench.commit("c", batches)
        assert bench.told == []
        await bench.flusher.drain()

    loops.run(run())


def test_a_callback_that_breaks_is_a_fault_too() -> None:
    async def run() -> None:
        bench = Bench()

        def broken() -> None:
            raise AssertionError("a bug")

        bench.flusher.commit(ROW, broken)
        await bench.end_sync()
        assert [str(fault) for fault in bench.faults] == ["a bug"]
        await bench.flusher.drain()

    loops.run(run())
