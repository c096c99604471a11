"""How long a call may take.

Owns the arithmetic between "within so many seconds" and a point in time or the milliseconds of
the wire. Never reads the clock.
"""


class Deadline:
    """`timeout_s` as the caller gave it, None for ever; `at` on the shell's clock."""

    __slots__ = ("at", "timeout_s")

    def __init__(self, timeout_s: float | None, now: float) -> None:
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(f"timeout must be positive, not {timeout_s!r}")
        self.timeout_s = timeout_s
        self.at = None if timeout_s is None else now + timeout_s


def milliseconds(seconds: float | None, what: str) -> int:
    """None and 0 are 0: not given."""
    if not seconds:
        return 0
    if seconds < 0:
        raise ValueError(f"{what} must not be negative, not {seconds!r}")
    return max(1, round(seconds * 1000))
