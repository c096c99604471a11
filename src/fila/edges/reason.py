"""Why something was refused, short enough to travel: reasons quote what clients sent."""

from __future__ import annotations

from typing import Final

REASON_BYTES_MAX: Final = 1_024


def clipped(reason: str) -> str:
    """The reason, or its beginning and end around the part that is left out."""
    raw = reason.encode(errors="replace")
    if len(raw) <= REASON_BYTES_MAX:
        return raw.decode()  # what cannot be written is a question mark by now
    half = REASON_BYTES_MAX // 2 - 8
    return raw[:half].decode(errors="ignore") + " ... " + raw[-half:].decode(errors="ignore")
