"""The board: counters in memory that the processes of one crew share.

The parent writes what is to happen (run, stop, round), each worker writes how far it is, all read
everything. One writer per slot, eight bytes each, so there are no locks.

    slot 0 RUN · 1 STOP · 2 ROUND · then per worker: READY, SENT, STORED, ACKED
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Final

RUN: Final = 0
STOP: Final = 1
ROUND: Final = 2
_SEATS_AT: Final = 8
_SEAT_SLOTS: Final = 8
READY: Final = 0
SENT: Final = 1
STORED: Final = 2
ACKED: Final = 3
SEATS_MAX: Final = 32
_BYTES: Final = (_SEATS_AT + SEATS_MAX * _SEAT_SLOTS) * 8
PAUSE_S: Final = 0.002


class Board:
    def __init__(self, path: Path, seats: int) -> None:
        assert seats <= SEATS_MAX, f"{seats} workers, the board has room for {SEATS_MAX}"
        if not path.exists():
            path.write_bytes(bytes(_BYTES))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self.slots = memoryview(self._map).cast("Q")
        self._seats = range(seats)

    def total(self, what: int) -> int:
        """A counter, summed over the workers."""
        slots = self.slots
        return sum([slots[_SEATS_AT + seat * _SEAT_SLOTS + what] for seat in self._seats])


class Seat:
    """A worker's place at the board."""

    def __init__(self, path: Path, seats: int, seat: int) -> None:
        self.board = Board(path, seats)
        self._slots = self.board.slots
        self._at = _SEATS_AT + seat * _SEAT_SLOTS

    def ready(self) -> None:
        self._slots[self._at + READY] = 1

    def add_sent(self, count: int) -> None:
        self._slots[self._at + SENT] += count

    def add_stored(self, count: int) -> None:
        self._slots[self._at + STORED] += count

    def add_acked(self, count: int) -> None:
        self._slots[self._at + ACKED] += count

    @property
    def running(self) -> bool:
        return self._slots[RUN] != 0

    @property
    def stopped(self) -> bool:
        return self._slots[STOP] != 0

    @property
    def round(self) -> int:
        return self._slots[ROUND]

    @property
    def unsettled(self) -> int:
        """Messages of the whole crew that were sent and are not acknowledged yet."""
        return self.board.total(SENT) - self.board.total(ACKED)

    def wait_to_run(self) -> bool:
        """Sleep while the crew is paused. False when it is over."""
        while not self.running and not self.stopped:
            time.sleep(PAUSE_S)
        return not self.stopped
