"""Messages that were not stored for want of room, among those that were."""

from __future__ import annotations

from typing import Final

from fila.core.rejection import QUEUE_FULL

FULL: Final = bytes([QUEUE_FULL])  # in place of an id: there was no room


def with_refused(stored: list[tuple[bytes, bool]], refused: list[int]) -> list[tuple[bytes, bool]]:
    """The results of what was stored, with FULL at the places of what was not."""
    results = list(stored)
    for at in refused:
        results.insert(at, (FULL, False))
    return results
