"""Requests in steps whose callers have no line of requests: calls of gRPC, actions over HTTP.

Each has its turns in the rota beside the connections that wait. One step per `next`; what a step
does counts as the turn's work.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from fila.broker.rota import DONE, MORE
from fila.core.work import Work

if TYPE_CHECKING:
    from fila.broker.turns import Turns

Steps = Iterator[None]
Found = TypeVar("Found")

STEP_ITEMS: Final = 512  # of a long answer, in one step
ITEMS_OF_A_MESSAGE: Final = 2  # that cost as much as one message

log = logging.getLogger("fila.broker")


class Stepping:
    """One of them, as the rota sees it."""

    def __init__(self, turns: Turns, steps: Steps) -> None:
        self.credit = 0
        self._turns = turns
        self._steps = steps

    def go_on(self) -> int:
        work = self._turns.work
        before = work.done
        until = before + min(self.credit, work.limit - before)
        self._turns.begin()
        try:
            while work.done < until:
                next(self._steps)
        except StopIteration:
            return DONE
        except Exception as error:  # as in edges/failures.py: a bug, and it costs this request
            log.error("a request broke off between two steps", exc_info=error)
            return DONE
        self.credit -= work.done - before
        return MORE


def run(turns: Turns, steps: Steps) -> None:
    """Carry out as far as this turn has room, and the rest with the next ones."""
    one = Stepping(turns, steps)
    one.credit = may = turns.rota.newcomer()
    before = turns.work.done
    said = one.go_on()
    turns.rota.came(may, turns.work.done - before)
    if said == MORE:
        turns.rota.join(one)


def counted(work: Work, steps: Generator[int, None, Found]) -> Generator[None, None, Found]:
    """Steps that say how many items each of them looked at or made, as work of the turn."""
    while True:
        try:
            items = next(steps)
        except StopIteration as end:
            found: Found = end.value
            return found
        work.done += 1 + items // ITEMS_OF_A_MESSAGE
        yield
