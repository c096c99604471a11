"""A log that answers late: turns go on meanwhile, and read what is not committed yet.

The store holds only what the log has answered for; `PendingStore` shows the rest. Up to 16 turns
are under way. When the broker dies, some of them, the oldest, have reached the log unheard, and the
others never happened: whoever was told of one of those would have been told too soon.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from fila.core.row_batch import RowBatch
from fila.storage.pending import PendingStore

UNDER_WAY_MAX = 16

Committed = Callable[[], None]


class LateCommitter:
    def __init__(self, store: PendingStore) -> None:
        self._store = store
        self._under: deque[tuple[list[int], Committed]] = deque()
        self._told = 0  # of the oldest: it is in the store, and whoever waits is being told

    def commit(self, batches: list[RowBatch], committed: Committed) -> None:
        if not batches and not self._under:
            committed()
            return
        self._store.propose(batches)
        self._under.append(([batch.group for batch in batches], committed))

    def under_way(self) -> int:
        return len(self._under)

    def answer(self) -> None:
        """The log has the oldest."""
        groups, committed = self._under[0]
        self._store.commit(groups)
        self._told = 1
        committed()
        self._under.popleft()
        self._told = 0

    def die(self, rng: Random) -> int:
        """How many of those under way the log turns out to have, the oldest; the rest is lost."""
        kept = rng.randint(self._told, len(self._under))
        for groups, _ in list(self._under)[self._told : kept]:
            self._store.commit(groups)
        return kept
