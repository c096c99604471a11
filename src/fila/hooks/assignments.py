"""Assignments as they come out of Lua, shared between the messages that get the same one.

Owns the packed layout on the Python side (`verdict.lua` owns it on the other) and a bounded memory
of what was unpacked. Throttle keys are sorted, so that the same set is the same lane. Checks
nothing: the Lua side has.
"""

from __future__ import annotations

from struct import Struct

from fila.core.verdict import Assignment
from fila.hooks.limits import ASSIGNMENTS_KEPT_BYTES_MAX, ASSIGNMENTS_KEPT_MAX

_HEAD = Struct(">IH")  # weight, length of the fairness key
_LENGTH = Struct(">H")


class Assignments:
    """Packed to unpacked. One for all queues, so that equal assignments are the same object."""

    __slots__ = ("_bytes", "_known")

    def __init__(self) -> None:
        self._known: dict[bytes, Assignment] = {}
        self._bytes = 0

    def read(self, packed: tuple[bytes, ...]) -> list[Assignment]:
        get = self._known.get
        return [get(one) or self._add(one) for one in packed]

    def _add(self, packed: bytes) -> Assignment:
        if (
            len(self._known) >= ASSIGNMENTS_KEPT_MAX
            or self._bytes + len(packed) > ASSIGNMENTS_KEPT_BYTES_MAX
        ):
            self._known.clear()
            self._bytes = 0
        assignment = _unpack(packed)
        self._known[packed] = assignment
        self._bytes += len(packed)
        return assignment


def _unpack(packed: bytes) -> Assignment:
    weight, size = _HEAD.unpack_from(packed)
    at = _HEAD.size + size
    fairness_key = packed[_HEAD.size : at]
    throttle_keys = []
    while at < len(packed):
        (size,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size + size
        throttle_keys.append(packed[at - size : at])
    return Assignment(fairness_key, weight, tuple(sorted(throttle_keys)))
