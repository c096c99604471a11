"""Permissions: a kind and a pattern of queue names.

kinds      produce, consume, admin (which implies neither of the others)
patterns   "orders" that queue; "orders.*" every queue whose name begins with "orders."; "*" all
"""

from __future__ import annotations

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


def matches(pattern: str, queue: str) -> bool:
    """Whether the pattern names this queue."""
    if pattern == ALL:
        return True
    if pattern.endswith(".*"):
        return queue.startswith(pattern[:-1])
    return queue == pattern


def covers(wide: str, narrow: str) -> bool:
    """Whether every queue that `narrow` names is named by `wide` too."""
    if wide == ALL:
        return True
    if narrow == ALL:
        return False
    if wide.endswith(".*"):
        return narrow.startswith(wide[:-1])
    return wide == narrow


def grants(permissions: tuple[Permission, ...], kind: str, queue: str) -> bool:
    return any(one.kind == kind and matches(one.pattern, queue) for one in permissions)


def administers(permissions: tuple[Permission, ...], pattern: str) -> bool:
    """Whether one admin permission covers the whole pattern."""
    return any(one.kind == ADMIN and covers(one.pattern, pattern) for one in permissions)
