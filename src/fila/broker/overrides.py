"""Hook limits of single queues, kept in the runtime config.

lua:<queue>:timeout_ms            longest run of one hook call, in milliseconds
lua:<queue>:memory_limit_bytes    memory of the queue's scripts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fila.hooks.limits import MEMORY_LIMIT_BYTES_MAX, MEMORY_LIMIT_BYTES_MIN, TIMEOUT_MS_MAX

_PREFIX: Final = "lua:"
_FIELDS: Final = ("timeout_ms", "memory_limit_bytes")
_RANGES: Final = {
    "timeout_ms": (1, TIMEOUT_MS_MAX),
    "memory_limit_bytes": (MEMORY_LIMIT_BYTES_MIN, MEMORY_LIMIT_BYTES_MAX),
}


class Override(NamedTuple):
    queue: str
    field: str


class Limits(NamedTuple):
    """None: the server's default."""

    timeout_ms: int | None
    memory_limit_bytes: int | None


def override_of(key: str) -> Override | None:
    """Which queue's limit a config key sets; None if it is about something else."""
    if not key.startswith(_PREFIX):
        return None
    queue, _, field = key[len(_PREFIX) :].rpartition(":")
    return Override(queue, field) if queue and field in _FIELDS else None


def fault_of(override: Override, value: str) -> str | None:
    """Why the value cannot be the limit, if it cannot."""
    low, high = _RANGES[override.field]
    number = _number(value)
    if number is None or not low <= number <= high:
        return f'"{value}" is not a whole number from {low} to {high}'
    return None


def limits_of(queue: str, config: Mapping[str, str]) -> Limits:
    return Limits(*(_number(config.get(f"{_PREFIX}{queue}:{field}")) for field in _FIELDS))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 16 else None
