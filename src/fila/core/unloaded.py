"""Unloaded: a queue of the catalogue that is not in memory; others are served.

Owns what is known of such a queue and what its clients are told. How a group gets there is in
`unloading.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from fila.core.rejection import NODE_NOT_READY, Rejection


class Unloaded(NamedTuple):
    """A queue of the catalogue that is not in memory."""

    name: str
    group: int
    why: str


def refused(one: Unloaded) -> Rejection:
    """The answer to whatever is asked of it."""
    return Rejection(
        NODE_NOT_READY, f'queue "{one.name}" is not served here: {one.why}. Try again in a moment'
    )
