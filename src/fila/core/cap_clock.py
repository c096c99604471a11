"""Which part of the time a lane stood parked it stood at a cap, and not at a bucket.

A lane has one clock of parked time (`Lane.throttled_ns`), and every message keeps its reading of
the moment it became ready. This clock says for each such reading how much of it was at caps: marks,
where one cause gave way to the other, with straight lines between them. So the split of a wait is
exact back to the oldest mark that is kept, and its sum always is.

A restart keeps the sum alone: of a lane with throttle keys what was before counts as throttled.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

MARKS_MAX: Final = 64


class CapClock:
    __slots__ = ("_at_cap", "_marks", "_readings")

    def __init__(self, parked_ns: int, capped_ns: int) -> None:
        self._readings = [0, parked_ns] if parked_ns else [0]  # of the clock of parked time
        self._marks = [0, capped_ns] if parked_ns else [0]  # how much of it was at caps
        self._at_cap = capped_ns > 0

    def add(self, parked_ns: int, at_cap: bool) -> None:
        """The clock of parked time has come to `parked_ns`, and this was why."""
        readings, marks = self._readings, self._marks
        passed = parked_ns - readings[-1]
        if passed <= 0:
            return
        capped = marks[-1] + (passed if at_cap else 0)
        if len(marks) > 1 and at_cap == self._at_cap:
            readings[-1] = parked_ns
            marks[-1] = capped
            return
        self._at_cap = at_cap
        readings.append(parked_ns)
        marks.append(capped)
        if len(marks) > MARKS_MAX:
            del readings[1], marks[1]  # what lies before is shared out evenly

    def at(self, parked_ns: int) -> int:
        """How much of the first `parked_ns` was at caps."""
        readings, marks = self._readings, self._marks
        if parked_ns <= 0:
            return 0  # of a message that came from another lane
        if parked_ns >= readings[-1]:
            return marks[-1]
        at = bisect_right(readings, parked_ns)
        first, last = readings[at - 1], readings[at]
        return marks[at - 1] + (marks[at] - marks[at - 1]) * (parked_ns - first) // (last - first)
