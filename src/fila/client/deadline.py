"""How long a call may take.

Owns the arithmetic between "within so many seconds" and a point in time. Never reads the clock.
"""


class Deadline:
    """`timeout_s` as the caller gave it, None for ever; `at` on the shell's clock."""

    __slots__ = ("at", "timeout_s")

    def __init__(self, timeout_s: float | None, now: float) -> None:
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(f"timeout must be positive, not {timeout_s!r}")
        self.timeout_s = timeout_s
        self.at = None if timeout_s is None else now + timeout_s

    def remaining_s(self, now: float) -> float | None:
        return None if self.at is None else self.at - now
