"""Durability `fsync`: flushes on a thread of their own, shared by all turns that came meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fila.core.batch import Batch
from fila.storage.committer import FsyncCommitter
from fila.storage.contract import Store


class Flusher:
    """A Committer: writes on the loop's thread, syncs beside it, calls back on the loop."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._on_fault = on_fault
        self._commits = FsyncCommitter(store)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="flusher")
        self._running = False

    def commit(self, batches: list[Batch], committed: Callable[[], None]) -> None:
        self._commits.commit(batches, committed)
        if self._commits.pending() and not self._running:
            self._start()

    async def drain(self) -> None:
        """Wait until everything written is flushed."""
        while self._running:
            await asyncio.sleep(0.001)
        self._thread.shutdown()

    def _start(self) -> None:
        self._running = True
        waiting = self._commits.take_waiting()
        future = self._loop.run_in_executor(self._thread, self._store.sync)
        future.add_done_callback(lambda done: self._synced(done, waiting))

    def _synced(self, done: asyncio.Future[None], waiting: list[Callable[[], None]]) -> None:
        error = done.exception()
        if error is not None:
            self._running = False
            self._on_fault(error)
            return
        for committed in waiting:
            committed()
        self._running = False
        if self._commits.pending():
            self._start()
