"""Witnesses: messages a hook decided well, kept to tell a broken script from a bad message.

Owns which are kept: few, of different origins, and taken rarely, so that nobody can fill the list
with a burst of their own. What a witness is asked, and when, is `script.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from fila.hooks.limits import CALLS_PER_WITNESS, WITNESSES_MAX

Item = TypeVar("Item")


class Witnesses(Generic[Item]):
    __slots__ = ("_calls", "_items")

    def __init__(self) -> None:
        self._calls = 0
        self._items: dict[bytes, Item] = {}  # by origin

    def wanted(self) -> int | None:
        """For each call: None, or a number that says which of its messages to keep."""
        self._calls = calls = self._calls + 1
        if calls & (CALLS_PER_WITNESS - 1) and calls > 2 * WITNESSES_MAX:
            return None
        return calls

    def keep(self, origin: bytes, item: Item) -> None:
        self._items.pop(origin, None)
        if len(self._items) >= WITNESSES_MAX:
            del self._items[next(iter(self._items))]
        self._items[origin] = item

    def all(self) -> list[Item]:
        return list(self._items.values())

    def besides(self, origin: bytes) -> Iterator[Item]:
        """Those of other origins, the oldest first: it is the least likely to be of one burst."""
        return (item for whose, item in self._items.items() if whose != origin)
