"""What a producer may say of a message beside its body: delay, idempotency key, assignment.

Owns the limits on these options. An assignment (fairness key, weight, throttle keys) counts only
in a queue without an on_enqueue hook: a hook is the operator's policy and decides alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from fila.core.verdict import DEFAULT_ASSIGNMENT, DELAY_MS_MAX, Assignment
from fila.hooks.limits import FAIRNESS_KEY_BYTES_MAX, THROTTLE_KEY_BYTES_MAX, THROTTLE_KEYS_MAX

IDEMPOTENCY_KEY_BYTES_MAX: Final = 255


class Options(NamedTuple):
    """Zero or empty: not given."""

    body: bytes
    delay_ms: int = 0
    idempotency_key: bytes = b""
    fairness_key: bytes = b""
    weight: int = 0
    throttle_keys: tuple[bytes, ...] = ()


def fits(one: Options) -> bool:
    """Whether everything is within its bounds."""
    return (
        one[1] <= DELAY_MS_MAX
        and len(one[2]) <= IDEMPOTENCY_KEY_BYTES_MAX
        and len(one[3]) <= FAIRNESS_KEY_BYTES_MAX
        and len(one[5]) <= THROTTLE_KEYS_MAX
        and (not one[5] or _keys_fit(one[5]))
    )


def assignment_of(one: Options) -> Assignment:
    """Where the message wants to stand."""
    return _assignment(one[3], one[4], one[5])


def _keys_fit(throttle_keys: tuple[bytes, ...]) -> bool:
    # Not remembered: a client's keys may be as long as a request.
    return max(map(len, throttle_keys)) <= THROTTLE_KEY_BYTES_MAX and b"" not in throttle_keys


@lru_cache(maxsize=1_024)  # bulk writers repeat a few assignments often
def _assignment(fairness_key: bytes, weight: int, throttle_keys: tuple[bytes, ...]) -> Assignment:
    if not (fairness_key or weight or throttle_keys):
        return DEFAULT_ASSIGNMENT
    keys = tuple(sorted(set(throttle_keys))) if throttle_keys else ()
    return Assignment(fairness_key or DEFAULT_ASSIGNMENT.fairness_key, weight or 1, keys)
