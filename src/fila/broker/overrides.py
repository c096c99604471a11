"""Hook limits and fail modes of single queues, kept in the runtime config.

lua:<queue>:timeout_ms            longest run of one hook call, in milliseconds
lua:<queue>:memory_limit_bytes    memory of the queue's scripts
lua:<queue>:fail_mode             what a message gets that its hook has no verdict for
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fila.core.rejection import Rejection, invalid_value
from fila.core.versions import CONFIG_PREFIX, HOOK_LIMITS, config_key
from fila.hooks.contract import FAIL_MODES
from fila.hooks.limits import MEMORY_LIMIT_BYTES_MAX, MEMORY_LIMIT_BYTES_MIN, TIMEOUT_MS_MAX

_FIELDS: Final = tuple(HOOK_LIMITS.values())
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
    fail_mode: str | None


def override_of(key: str) -> Override | None:
    """Which queue's limit or mode a config key sets; None if it is about something else."""
    if not key.startswith(CONFIG_PREFIX):
        return None
    queue, _, field = key[len(CONFIG_PREFIX) :].rpartition(":")
    return Override(queue, field) if queue and field in _FIELDS else None


def fault_of(override: Override, value: str) -> str | None:
    """Why the value cannot be the limit, if it cannot."""
    if override.field == "fail_mode":
        known = ", ".join(FAIL_MODES)
        return None if value in FAIL_MODES else f'"{value}" is none of {known}'
    low, high = _RANGES[override.field]
    number = _number(value)
    if number is None or not low <= number <= high:
        return f'"{value}" is not a whole number from {low} to {high}'
    return None


def limits_of(queue: str, config: Mapping[str, str]) -> Limits:
    return _limits(*[config.get(config_key(queue, field)) for field in _FIELDS])


def limits_in(queue: str, settings: Mapping[str, str]) -> Limits | Rejection:
    """Those among a queue's settings, or why they cannot be."""
    for name, field in HOOK_LIMITS.items():
        if settings[name]:
            fault = fault_of(Override(queue, field), settings[name])
            if fault is not None:
                return invalid_value(name, fault)
    return _limits(*[settings[name] for name in HOOK_LIMITS])


def _limits(timeout_ms: str | None, memory: str | None, fail_mode: str | None) -> Limits:
    return Limits(_number(timeout_ms), _number(memory), fail_mode or None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 16 else None
