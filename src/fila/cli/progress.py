"""How far a long command is, on stderr, for a person who watches.

Owns one line that is rewritten in place. Silent unless stderr is a terminal, and for the first half
second, so that scripts and short commands never see it.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

_SILENT_S: Final = 0.5
_INTERVAL_S: Final = 0.1
_CLEAR_LINE: Final = "\r\x1b[K"


class Progress:
    """`with Progress("enqueued", total) as progress: progress.add(1)`."""

    def __init__(self, verb: str, total: int | None = None, enabled: bool = True) -> None:
        self._verb = verb
        self._total = total
        self._enabled = enabled and sys.stderr.isatty()
        self._done = 0
        self._drawn = False
        self._started_at = time.monotonic()
        self._next_at = self._started_at + _SILENT_S

    def add(self, count: int) -> None:
        self._done += count
        if self._enabled:
            now = time.monotonic()
            if now >= self._next_at:
                self._next_at = now + _INTERVAL_S
                self._draw(now)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()

    def _draw(self, now: float) -> None:
        of_total = f" of {self._total:,}" if self._total else ""
        rate = self._done / (now - self._started_at)
        sys.stderr.write(f"{_CLEAR_LINE}{self._verb} {self._done:,}{of_total} ({rate:,.0f}/s)")
        sys.stderr.flush()
        self._drawn = True
