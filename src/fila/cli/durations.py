"""Durations on the command line: `500ms`, `30s`, `15m`, `12h`, `7d`, or a bare number.

Owns the units. What a bare number means is the option's: milliseconds where it always did.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_FORM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhd]?)")


def milliseconds(low_ms: int = 0) -> Callable[[str], int]:
    """Reads a duration of at least so many milliseconds; a bare number counts milliseconds."""

    def read(text: str) -> int:
        found = _ms(text, "ms")
        if found is None or found < low_ms or found != int(found):
            least = f" of at least {low_ms} ms" if low_ms else ""
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a duration{least} such as 500ms, 30s or 5m"
            )
        return int(found)

    return read


def seconds(text: str) -> float:
    """Reads a duration above zero; a bare number counts seconds."""
    found = _ms(text, "s")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 5s, 2m, 1h or 7d")
    return found / 1_000


def _ms(text: str, bare: str) -> float | None:
    found = _FORM.fullmatch(text.strip())
    return float(found[1]) * _UNIT_MS[found[2] or bare] if found else None
