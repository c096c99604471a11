"""The commit path: every durable change passes here, once, in order.

`commit` stores a turn's batches as one and calls back when they count as committed under the chosen
durability: `os` at once, `fsync` after a flush that many turns may share. A commit that fails stops
the broker: it never serves state that is ahead of the disk.
"""

from __future__ import annotations

from collections.abc import Callable

from fila.core.row_batch import RowBatch
from fila.core.turn import Committer
from fila.storage.contract import Store

__all__ = ["Committer", "FsyncCommitter", "OsCommitter"]

Committed = Callable[[], None]


class OsCommitter:
    """Durability `os`: a write the operating system has survives the death of the process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, batches: list[RowBatch], committed: Committed) -> None:
        if batches:
            self._store.write(batches)
        committed()


class FsyncCommitter:
    """Durability `fsync`: committed only when a sync that began after the write has returned.

    A state machine without a thread. Its driver looks at `wants_sync`, then calls
    `begin_sync`, lets `store.sync` run, wherever that may be, and calls `end_sync` or `fail`: the
    server's flusher with a thread, the simulator at moments of its own choosing. One sync is under
    way at a time; turns that are committed meanwhile share the next one.

    A turn that wrote nothing waits for the turns before it all the same: what it tells may rest on
    what they changed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.syncing = False
        self._covered: list[Committed] = []  # safe when the sync under way returns
        self._waiting: list[Committed] = []  # written after it began: safe with the one after
        self._failed: BaseException | None = None

    def commit(self, batches: list[RowBatch], committed: Committed) -> None:
        if self._failed is not None:
            raise self._failed
        if batches:
            self._store.write(batches)
            self._waiting.append(committed)
        elif self._waiting:
            self._waiting.append(committed)
        elif self.syncing:
            self._covered.append(committed)
        else:
            committed()

    def wants_sync(self) -> bool:
        """Whether somebody waits for a sync and none is under way."""
        return bool(self._waiting) and not self.syncing and self._failed is None

    def begin_sync(self) -> None:
        """A sync begins: it covers what was written up to now."""
        assert not self.syncing, "one sync at a time"
        self.syncing = True
        self._covered, self._waiting = self._waiting, []

    def end_sync(self) -> None:
        """The sync has returned: what it covers is committed, in order. What is committed by those
        who are told of it comes after them."""
        try:
            for committed in self._covered:
                committed()
        except BaseException as error:
            self.fail(error)
            raise
        self._covered = []
        self.syncing = False

    def fail(self, error: BaseException) -> None:
        """The sync has failed, or somebody who was told did: nothing is committed any more."""
        self._failed = error
        self.syncing = False

    def pending(self) -> bool:
        """Whether anything written is not known to be safe."""
        return self.syncing or bool(self._waiting)

    def flush(self) -> None:
        """A whole sync on this thread."""
        self.begin_sync()
        try:
            self._store.sync()
        except BaseException as error:
            self.fail(error)
            raise
        self.end_sync()
