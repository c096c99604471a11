"""Permissions: a kind and a pattern of queue names.

kinds      produce, consume, admin (which implies neither of the others)
patterns   "orders" that queue; "orders.*" every queue whose name begins with "orders."; "*" all
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

PRODUCE: Final = "produce"
CONSUME: Final = "consume"
ADMIN: Final = "admin"
KINDS: Final = (PRODUCE, CONSUME, ADMIN)
ALL: Final = "*"
PATTERN_BYTES_MAX: Final = 258


class Permission(NamedTuple):
    kind: str
    pattern: str


def fault_of(permission: Permission) -> str | None:
    """What is wrong with a permission somebody wants to grant, if anything."""
    kind, pattern = permission
    if kind not in KINDS:
        return f'invalid permission kind "{kind}"; use produce, consume or admin'
    stem = pattern.removesuffix(".*")
    if pattern == ALL:
        return None
    if not stem or "*" in stem or len(pattern.encode()) > PATTERN_BYTES_MAX:
        return f'invalid pattern "{pattern}"; use a queue name, "prefix.*" or "*"'
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in pattern):
        return f"invalid pattern {pattern!r}; it holds a control character"
    return None


class Grants:
    """What a key's permissions allow, found by name: the same cost for one of them and a thousand.

    A pattern `orders.*` matches every name that begins with `orders.`, so a name is looked up with
    everything that stands before one of its dots.
    """

    __slots__ = ("_everywhere", "_named", "_within", "kinds")

    def __init__(self, permissions: Iterable[Permission]) -> None:
        self.kinds: set[str] = set()  # of which there is any
        self._everywhere: set[str] = set()
        self._named: set[Permission] = set()
        self._within: set[Permission] = set()
        for one in permissions:
            kind, pattern = one
            self.kinds.add(kind)
            if pattern == ALL:
                self._everywhere.add(kind)
            elif pattern.endswith(".*"):
                self._within.add(Permission(kind, pattern[:-1]))
            else:
                self._named.add(one)

    def allow(self, kind: str, queue: str) -> bool:
        """Whether a permission of this kind names the queue."""
        if kind not in self.kinds:
            return False
        if kind in self._everywhere or (kind, queue) in self._named:
            return True
        return self._begins(kind, queue)

    def administer(self, pattern: str) -> bool:
        """Whether one admin permission names every queue that the pattern does."""
        if ADMIN in self._everywhere:
            return True
        if pattern == ALL:
            return False
        return (ADMIN, pattern) in self._named or self._begins(ADMIN, pattern)

    def _begins(self, kind: str, name: str) -> bool:
        if self._within:
            dot = name.find(".")
            while dot >= 0:
                if (kind, name[: dot + 1]) in self._within:
                    return True
                dot = name.find(".", dot + 1)
        return False


NOTHING: Final = Grants(())
