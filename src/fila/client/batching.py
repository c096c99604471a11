"""Collects small calls into frames: the automatic batching.

Owns the decision when what has been collected becomes a frame. Time is an argument; sending and
correlating are the exchange's part.

- auto: at once when nothing of this kind is under way or when there is enough for a frame of its
  own, else when an answer comes. Adds no latency to a lone call and makes large batches under load.
- linger: when the oldest item has waited `linger_s` or the batch is full.
- off: one frame per call.
"""

from typing import Final

from fila.client.options import BatchMode
from fila.client.ticket import Ticket

# (the item's bytes in pieces, their sum, ticket, index in the ticket, queue, message id or "")
Item = tuple[tuple[bytes, ...], int, Ticket, int, str, str]
_BYTES: Final = 1
ENOUGH: Final = 100  # items that need not wait for more


class Collector:
    """Items of one kind (enqueues, acks or nacks) waiting for their frame."""

    def __init__(
        self, opcode: int, mode: BatchMode, items_max: int, bytes_max: int, linger_s: float
    ) -> None:
        self.opcode = opcode
        self.frames_in_flight = 0
        self._mode = mode
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._linger_s = linger_s
        self._items: list[Item] = []
        self._bytes = 0
        self._oldest_at = 0.0
        self._gone = 0  # items of callers who have gone, at most, see `forget`
        self._gone_bytes = 0

    def add(self, items: list[Item], now: float) -> None:
        if not self._items:
            self._oldest_at = now
        self._items += items
        for item in items:
            self._bytes += item[_BYTES]

    def take_due(self, now: float) -> list[Item] | None:
        """The next frame's items, if it is time for one."""
        if not self._items:
            return None
        full = len(self._items) >= self._items_max or self._bytes >= self._bytes_max
        if not full:
            if self._mode == "auto" and self.frames_in_flight and len(self._items) < ENOUGH:
                return None
            if self._mode == "linger" and now < self._oldest_at + self._linger_s:
                return None
        return self._take()

    @property
    def busy(self) -> bool:
        return bool(self._items) or self.frames_in_flight > 0

    def hurry(self) -> None:
        """From now on no item waits for others."""
        self._linger_s = 0.0

    def put_back(self, items: list[Item]) -> None:
        """To the head of the line."""
        self._items = items + self._items
        for item in items:
            self._bytes += item[_BYTES]

    def take_all(self) -> list[Item]:
        items, self._items, self._bytes = self._items, [], 0
        self._gone = self._gone_bytes = 0
        return items

    def forget(self, count: int, size: int) -> int:
        """A caller has gone, and up to so many items and bytes here are its. They are never sent,
        but dropped only once they may be an eighth of what waits: thousands of callers can reach
        their deadline in one moment, and looking for each one's items would take all of them the
        square of that. Returns the bytes that were dropped."""
        self._gone += count
        self._gone_bytes += size
        if 8 * self._gone < len(self._items) and 8 * self._gone_bytes <= self._bytes:
            return 0
        self._gone = self._gone_bytes = 0
        before = self._bytes
        self._items = [item for item in self._items if not item[2].abandoned]
        self._bytes = sum([item[_BYTES] for item in self._items])
        return before - self._bytes

    @property
    def has_gone(self) -> bool:
        """Whether items of callers who have gone may be here."""
        return self._gone > 0

    def next_deadline(self) -> float | None:
        if self._mode == "linger" and self._items:
            return self._oldest_at + self._linger_s
        return None

    def _take(self) -> list[Item]:
        items = self._items
        if len(items) <= self._items_max and self._bytes <= self._bytes_max:
            return self.take_all()
        size = 0
        count = 0
        for item in items:
            size += item[_BYTES]
            if count and (count >= self._items_max or size > self._bytes_max):
                size -= item[_BYTES]
                break
            count += 1
        taken = items[:count]
        self._items = items[count:]
        self._bytes -= size
        return taken


def split(items: list[Item]) -> list[list[Item]]:
    """A refused frame as smaller ones: one per queue, or halves of a single queue's."""
    by_queue: dict[str, list[Item]] = {}
    for item in items:
        by_queue.setdefault(item[4], []).append(item)
    if len(by_queue) > 1:
        return list(by_queue.values())
    middle = len(items) // 2
    return [items[:middle], items[middle:]]
