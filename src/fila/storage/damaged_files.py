"""Table files that cannot be read: noted in the data directory, so that no compaction meets them.

A compaction that reads a damaged block makes RocksDB refuse every further write, whichever queue it
is for. So from the first damaged block on, automatic compaction stays off, after a restart too,
until the noted files can be read again or are gone. The store then grows more than it would, and
the queues whose rows are sound are served.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

DAMAGED: Final = "DAMAGED"  # the file with their names
_NAME: Final = re.compile(r"(\d+\.sst)\b")


class DamagedFiles:
    def __init__(self, directory: Path) -> None:
        self._note = directory / DAMAGED
        self.names = self._noted()

    def add(self, fault: str) -> bool:
        """Note the files a fault names; whether there is one that was not noted before."""
        fresh = set(_NAME.findall(fault)) - self.names
        if fresh:
            self.names |= fresh
            self._write()
        return bool(fresh)

    def remove(self, name: str) -> None:
        self.names.discard(name)
        self._write()

    def _noted(self) -> set[str]:
        try:
            return set(_NAME.findall(self._note.read_text(errors="replace")))
        except OSError:
            return set()  # opening the store says what is wrong

    def _write(self) -> None:
        if not self.names:
            self._note.unlink(missing_ok=True)
            return
        beside = self._note.with_name(DAMAGED + ".new")
        with beside.open("w") as file:
            file.write("\n".join(sorted(self.names)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._note)
