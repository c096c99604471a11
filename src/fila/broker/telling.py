"""Open lease batches that are to be read and told: one of each connection at a time, in parts, so
many bytes with each turn.

The answer to a request of forty bytes may be sixteen megabytes. So whoever asks for a batch that is
open stands in line: it is read when its connection has taken the answers before it, and when what
all connections are being told is little enough. Nothing of an answer is in memory before.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

PARTS: Final = 2  # that are read with one turn

if TYPE_CHECKING:
    from fila.broker.lease_requests import LeaseRequest, LeaseRequests


class Telling:
    def __init__(self, turn_bytes: int, under_way_bytes: int, wake: Callable[[], None]) -> None:
        """`turn_bytes` are read with one turn, one part always is; `under_way_bytes` may be read
        and not yet handed to their connections; `wake` asks for a turn."""
        self._turn_bytes = turn_bytes
        self._under_way_bytes = under_way_bytes
        self._wake = wake
        self._line: OrderedDict[LeaseRequests, deque[LeaseRequest]] = OrderedDict()
        self._bytes = 0  # that are read and not yet handed over

    def __len__(self) -> int:
        """How many connections wait."""
        return len(self._line)

    def ask(self, requests: LeaseRequests, request: LeaseRequest) -> None:
        """Stand in line."""
        self._line.setdefault(requests, deque()).append(request)
        self._wake()

    def go_on(self, requests: LeaseRequests, request: LeaseRequest) -> None:
        """A part was told: the next one comes before what else its connection waits for."""
        self._line.setdefault(requests, deque()).appendleft(request)
        self._wake()

    def leave(self, requests: LeaseRequests, request: LeaseRequest) -> None:
        """The answer is no longer waited for."""
        own = self._line.get(requests)
        if own is not None and request in own:
            own.remove(request)
            if not own:
                del self._line[requests]

    def resume(self) -> None:
        """A connection takes answers again."""
        if self._line:
            self._wake()

    def step(self) -> bool:
        """With a turn open, read what may be read. Whether more could be with the next turn."""
        left = self._turn_bytes
        parts = PARTS
        for requests in list(self._line):
            if left <= 0 or parts <= 0:
                return True
            own = self._line[requests]
            if not requests.takes_more(own[0]):
                continue
            if self._bytes >= self._under_way_bytes and not requests.is_told(own[0]):
                continue
            parts -= 1
            request = own.popleft()
            if own:
                self._line.move_to_end(requests)
            else:
                del self._line[requests]
            left -= requests.read(request)
        return False

    def begun(self, size: int) -> None:
        """So much is being read for somebody."""
        self._bytes += size

    def told(self, size: int) -> None:
        """And was handed to its connection."""
        self._bytes -= size
        if self._line:
            self._wake()
