"""What a policy hook decides about one message. The machine sees the verdict, never the hook."""

from __future__ import annotations

from typing import Final, NamedTuple

WEIGHT_MAX: Final = 4_294_967_295
DELAY_MS_MAX: Final = 366 * 24 * 3600 * 1000


class Assignment(NamedTuple):
    """`on_enqueue`: where the message stands. Keys are UTF-8 bytes, as they travel."""

    fairness_key: bytes
    weight: int
    throttle_keys: tuple[bytes, ...]


class FailureVerdict(NamedTuple):
    """`on_failure`: try again after `delay_ms`, or move to the dead-letter queue."""

    dead_letter: bool
    delay_ms: int
    reason: str = ""  # of a dead letter, if it was not the hook


# One failed message: its 16-byte id, its attempts, the error, and its body.
FailedItem = tuple[bytes, int, bytes, bytes]

DEFAULT_ASSIGNMENT: Final = Assignment(b"default", 1, ())
RETRY_NOW: Final = FailureVerdict(False, 0)
BY_LIMIT: Final = "max_attempts"
DEAD: Final = FailureVerdict(True, 0, BY_LIMIT)
