"""Durability `fsync`: flushes on a thread of their own, shared by all turns that came meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fila.core.batch import Batch
from fila.storage.contract import Store

Committed = Callable[[], None]


class Flusher:
    """A Committer: writes on the loop's thread, syncs beside it, calls back on the loop, in order.

    A turn that changed nothing waits for the turns before it all the same: what it tells may rest
    on what they changed.
    """

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._on_fault = on_fault
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="flusher")
        self._syncing = False
        self._synced_next: list[Committed] = []  # safe when the sync under way returns
        self._waiting: list[Committed] = []  # written after it began: safe with the one after
        self._failed: BaseException | None = None

    def commit(self, batches: list[Batch], committed: Committed) -> None:
        if self._failed is not None:
            raise self._failed
        if batches:
            self._store.write(batches)
            self._waiting.append(committed)
            if not self._syncing:
                self._start()
        elif self._waiting:
            self._waiting.append(committed)
        elif self._syncing:
            self._synced_next.append(committed)
        else:
            committed()

    async def drain(self) -> None:
        """Wait until everything written is flushed."""
        while self._syncing:
            await asyncio.sleep(0.001)
        self._thread.shutdown()

    def _start(self) -> None:
        self._syncing = True
        self._synced_next, self._waiting = self._waiting, []
        self._loop.run_in_executor(self._thread, self._store.sync).add_done_callback(self._synced)

    def _synced(self, done: asyncio.Future[None]) -> None:
        try:
            done.result()
            for committed in self._synced_next:
                committed()
        except BaseException as error:
            self._failed = error
            self._syncing = False
            self._on_fault(error)
            return
        self._synced_next = []
        self._syncing = False
        if self._waiting:
            self._start()
