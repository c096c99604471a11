"""Work: how much requests have done in a turn, and how much they may, in messages.

A message enqueued, acknowledged, failed or released counts as one, a large one as many as it has
2 KiB, and a lane that has to be made as one more. Who finds no room waits for the next turn, so
that no turn is long, whatever clients send.
"""

from __future__ import annotations

from typing import Final

SHIFT: Final = 11  # so many bytes, 2 KiB, count as one message


class Work:
    __slots__ = ("done", "limit", "step", "whole")

    def __init__(self, limit: int) -> None:
        self.done = 0
        self.limit = limit
        self.step = max(1, limit // 2)  # of a request that is carried out in steps
        self.whole = 2 * limit  # the largest request that is not carried out in steps
