"""The rota: who has more to do than the turn has room for, served in turn with the next ones.

Owns the order in which connections go on, and how much each may do before the next one has its
turn, half of what a turn takes: deficit round robin, as between fairness keys. A newcomer with
little is served at once while others wait with much, up to a reserve, so that no ping waits behind
thousands of messages.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from fila.core.work import Work

FIRST: Final = 32  # that a newcomer may move although others wait …
RESERVE: Final = 256  # … and all newcomers of a turn together

# What a worker says when it stops.
DONE: Final = 0
MORE: Final = 1
FULL: Final = 2  # what comes next needs a turn of its own


class Worker(Protocol):
    """A connection with requests that wait."""

    credit: int  # what it may do now; below 0: it did more than its share

    def go_on(self) -> int:
        """Carry out what waits, within its credit and the turn's room."""
        ...


class Rota:
    def __init__(self, work: Work) -> None:
        self._work = work
        self.waiting: OrderedDict[Worker, None] = OrderedDict()
        self._reserve = RESERVE  # what is left of it

    def begin(self) -> None:
        """Another turn begins."""
        self._reserve = RESERVE

    def newcomer(self) -> int:
        """How much somebody may do who does not wait yet; `came` tells how much it did."""
        work = self._work
        room = work.limit - work.done
        if room > FIRST:
            return room
        return max(room, min(FIRST, self._reserve))

    def came(self, may: int, did: int) -> None:
        """A newcomer was allowed `may` and did `did`. It was taken out of the reserve if the turn
        had little room otherwise."""
        if may <= FIRST:
            self._reserve -= did

    def join(self, worker: Worker) -> None:
        """Wait for the next turn."""
        worker.credit = min(worker.credit, 0)
        self.waiting[worker] = None

    def leave(self, worker: Worker) -> None:
        """It has gone."""
        self.waiting.pop(worker, None)

    def serve(self) -> None:
        """Let those who wait go on, one after the other, while the turn has room."""
        waiting = self.waiting
        work = self._work
        while waiting and work.done < work.limit:
            one, _ = waiting.popitem(last=False)
            one.credit += work.step
            said = MORE
            if one.credit > 0:
                said = one.go_on()
            if said != DONE:
                waiting[one] = None
            if said == FULL:
                waiting.move_to_end(one, last=False)
                one.credit -= work.step
                return
