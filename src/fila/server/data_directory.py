"""The data directory under a running broker: deleted or replaced, it stops the broker.

RocksDB goes on writing into files that nobody can reach any more, and what is acknowledged then is
gone at the next start. So the watch looks, every second, whether the store's files are still there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fila.storage.contract import StoreDamagedError

LOOK_S: Final = 1.0
_HELD: Final = "LOCK"  # there from the store's opening to its end, never replaced


class DirectoryWatch:
    def __init__(self, path: str, on_fault: Callable[[BaseException], None]) -> None:
        self._path = path
        self._held = Path(path) / _HELD
        self._on_fault = on_fault
        self._seen: tuple[int, int] | None = None
        self._seen = self._look()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._check)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        if self._look() == self._seen:
            self.start()
            return
        self._on_fault(
            StoreDamagedError(
                f"the data directory {self._path} was deleted or replaced while the broker used "
                "it; stopped, because nothing more could be kept",
                advice="What it held is lost unless it was moved elsewhere: put it back, or start "
                "with another --data-dir",
            )
        )

    def _look(self) -> tuple[int, int] | None:
        """Which file lies where the store keeps its lock."""
        try:
            found = os.stat(self._held)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return self._seen  # it cannot be looked at just now; the store says so if that matters
        return found.st_dev, found.st_ino
