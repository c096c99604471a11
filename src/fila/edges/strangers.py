"""Strangers: connections on which nobody has been admitted yet.

They have room of their own, apart from everybody else's: so many connections, so many bytes. Beyond
it the oldest goes. Whoever has a key is admitted within a moment, and is never the oldest for long.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Stranger(Protocol):
    def give_up(self) -> None:
        """Close at once."""
        ...


class Strangers:
    def __init__(self, count_max: int = 1_000, bytes_max: int = 16 * 1024 * 1024) -> None:
        self.count_max = count_max
        self.bytes_max = bytes_max
        self.bytes = 0
        self.given_up = 0  # connections, since the start
        self._held: OrderedDict[Stranger, int] = OrderedDict()  # the oldest first

    def __len__(self) -> int:
        return len(self._held)

    def met(self, one: Stranger) -> None:
        """A new connection."""
        self._held[one] = 0
        if len(self._held) > self.count_max:
            self._give_up_oldest()

    def heard(self, one: Stranger, buffered_bytes: int) -> None:
        """It has sent so much that means nothing yet."""
        before = self._held.get(one)
        if before is not None and before != buffered_bytes:
            self._held[one] = buffered_bytes
            self.bytes += buffered_bytes - before
            while self.bytes > self.bytes_max:
                self._give_up_oldest()

    def known(self, one: Stranger) -> None:
        """It is no stranger any more, or has gone."""
        self.bytes -= self._held.pop(one, 0)

    def _give_up_oldest(self) -> None:
        one, held_bytes = self._held.popitem(last=False)
        self.bytes -= held_bytes
        self.given_up += 1
        one.give_up()
