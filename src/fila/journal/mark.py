"""How far a run's record should go, kept where a kill cannot take it away.

A few bytes in a file that is mapped into memory: setting them is a store to memory, and the system
keeps them though the process dies at once. After a kill the next run compares them with the rows it
finds, so that events that were taken and never written are counted as a gap, to the event. The file
is locked as long as its run lives, so a running broker is never taken for a dead one.

    u64  rows the run should have written (events taken, and gap rows)
    u64  events dropped that no gap row tells of yet
    u64  time of the first of these, in ns; 0 without any
    u64  time of the last event taken, in ns
"""

from __future__ import annotations

import fcntl
import mmap
import struct
from pathlib import Path
from typing import Final, NamedTuple

from fila.journal.files import HOT

_LAYOUT: Final = struct.Struct("<4Q")
_SUFFIX: Final = ".mark"


class Reached(NamedTuple):
    rows: int
    dropped: int
    dropped_ns: int
    last_ns: int


class Mark:
    def __init__(self, root: Path, broker: str, epoch: int) -> None:
        folder = root / HOT
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{broker}-{epoch}{_SUFFIX}"
        self._file = self._path.open("w+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(bytes(_LAYOUT.size))
        self._file.flush()
        self._memory = mmap.mmap(self._file.fileno(), _LAYOUT.size)

    def set(self, rows: int, dropped: int, dropped_ns: int, last_ns: int) -> None:
        _LAYOUT.pack_into(self._memory, 0, rows, dropped, dropped_ns, last_ns)

    def close(self, whole: bool) -> None:
        """The run is over; when it has written everything it should, there is nothing to keep."""
        if whole:
            self._path.unlink(missing_ok=True)
        self._memory.close()
        self._file.close()


class Left(NamedTuple):
    """The mark of a run that lives, or that did not end in order."""

    path: Path
    broker: str
    epoch: int
    alive: bool


def left(root: Path) -> list[Left]:
    found = []
    for path in sorted((root / HOT).glob(f"*{_SUFFIX}")):
        broker, _, epoch = path.stem.rpartition("-")
        found.append(Left(path, broker, int(epoch), _locked(path)))
    return found


def read(path: Path) -> Reached:
    content = path.read_bytes()
    if len(content) < _LAYOUT.size:
        return Reached(0, 0, 0, 0)
    return Reached(*_LAYOUT.unpack_from(content))


def _locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
