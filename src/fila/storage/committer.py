"""The commit path: every durable change passes here, once, in order.

`commit` stores a turn's batches as one and calls back when they count as committed under the chosen
durability: `os` at once, `fsync` after a flush that many turns may share. A commit that fails stops
the broker: it never serves state that is ahead of the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fila.core.batch import Batch
from fila.storage.contract import Store


class Committer(Protocol):
    def commit(self, batches: list[Batch], committed: Callable[[], None]) -> None:
        """Store the batches, visible to reads on return; call `committed`, in order, when safe."""
        ...


class OsCommitter:
    """Durability `os`: a write the operating system has survives the death of the process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, batches: list[Batch], committed: Callable[[], None]) -> None:
        if batches:
            self._store.write(batches)
        committed()


class FsyncCommitter:
    """Durability `fsync`: committed only after a flush to the disk. `flush` is called by whoever
    drives it: the server's flusher thread, or the simulator at moments of its own choosing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Callable[[], None]] = []

    def commit(self, batches: list[Batch], committed: Callable[[], None]) -> None:
        if batches:
            self._store.write(batches)
        elif not self._waiting:
            committed()
            return
        self._waiting.append(committed)

    def pending(self) -> bool:
        return bool(self._waiting)

    def take_waiting(self) -> list[Callable[[], None]]:
        """The commits the next sync will make safe; call them, in order, once it has returned."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def flush(self) -> None:
        """Sync and call back, on this thread."""
        waiting = self.take_waiting()
        self._store.sync()
        for committed in waiting:
            committed()
