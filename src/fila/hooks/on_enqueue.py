"""`on_enqueue`: how messages go into its batches and assignments come out."""

from __future__ import annotations

from collections.abc import Sequence

from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment
from fila.hooks.contract import ON_ENQUEUE
from fila.hooks.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX
from fila.hooks.script import Script


class EnqueueScript(Script[bytes, Assignment]):
    """`on_enqueue`: bodies in, assignments out."""

    hook = ON_ENQUEUE

    def _default(self) -> Assignment:
        return DEFAULT_ASSIGNMENT

    def _part(self, items: Sequence[bytes], start: int) -> Sequence[bytes]:
        step = min(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX // self._head_bytes)
        return items if not start and len(items) <= step else items[start : start + step]

    def _pack(self, items: Sequence[bytes], head_bytes: int) -> bytes:
        return b"".join([body[:head_bytes] for body in items])

    def _bodies(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return items

    def _read(self, packed: tuple[bytes, ...]) -> list[Assignment]:
        return self._host.assignments.read(packed)
