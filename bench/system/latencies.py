"""What a worker notes about each message, and where the crew finds it afterwards."""

from __future__ import annotations

from array import array

from bench.system.board import Seat


class Latencies:
    """Nanoseconds by round."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._found: dict[int, array[int]] = {}

    def add(self, elapsed_ns: int) -> None:
        found = self._found.get(self._seat.round)
        if found is None:
            found = self._found.setdefault(self._seat.round, array("Q"))
        found.append(max(elapsed_ns, 0))

    def write(self, path: str) -> None:
        for round_number, found in self._found.items():
            with open(f"{path}.{round_number}", "ab") as file:
                found.tofile(file)
