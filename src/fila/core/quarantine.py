"""Quarantine: a queue whose rows cannot be read is not served, so that the others are.

Owns what is known of such a queue and what its clients are told. A log group is quarantined as a
whole: a queue with its dead-letter queue. How a group gets there is in `quarantining.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from fila.core.rejection import STORAGE_ERROR, Rejection


class Quarantined(NamedTuple):
    name: str
    cause: str
    since_ns: int
    number: int  # of the queue; 0: its own record cannot be read
    group: int
    error: Exception | None = None  # what was raised, for the log


def refused(one: Quarantined) -> Rejection:
    """The answer to whatever is asked of it."""
    return Rejection(
        STORAGE_ERROR,
        f'queue "{one.name}" is quarantined: {one.cause}. Nothing of it was changed. Stop the '
        "broker and run `fila-server --verify`; `--salvage DIR` copies what can be read; deleting "
        "the queue drops its messages",
    )
