"""Durability `fsync`: the thread that syncs. When, and for whom, `storage/committer.py` says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fila.core.row_batch import RowBatch
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
        self._committer = FsyncCommitter(store)
        self._loop = loop
        self._on_fault = on_fault
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="flusher")

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        self._committer.commit(batches, committed)
        self._drive()

    async def drain(self) -> None:
        """Wait until everything written is flushed."""
        while self._committer.syncing:
            await asyncio.sleep(0.001)
        self._thread.shutdown()

    def _drive(self) -> None:
        if self._committer.wants_sync():
            self._committer.begin_sync()
            sync = self._loop.run_in_executor(self._thread, self._store.sync)
            sync.add_done_callback(self._synced)

    def _synced(self, done: asyncio.Future[None]) -> None:
        try:
            done.result()
            self._committer.end_sync()
        except BaseException as error:
            self._committer.fail(error)
            self._on_fault(error)
            return
        self._drive()
