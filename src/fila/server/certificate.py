"""Expiry of the server's certificate: when it is, and the warnings before and after it.

Owns the date of the certificate in use and the warning about it. An expired certificate does not
keep the broker from starting: clients that check it will refuse, but those that do not, and the
operators who must mend it, still get in. It is said loudly instead: in the log at the start and
once a day, in `/readyz`, and as a metric. Never reads files: `edges.tls` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

log = logging.getLogger("fila.tls")

DAY_S: Final = 86_400.0
SOON_DAYS: Final = 14


class CertificateWatch:
    def __init__(self, now_s: Callable[[], float], interval_s: float = DAY_S) -> None:
        self._now_s = now_s
        self._interval_s = interval_s
        self._path = ""
        self._ends_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def loaded(self, path: str, ends_s: float) -> None:
        """A certificate was read, at the start or again: say at once what is wrong with it."""
        self._path = path
        self._ends_s = ends_s
        self._check()

    def remaining_s(self) -> float:
        """Until it expires; negative when it has."""
        return self._ends_s - self._now_s()

    def warning(self) -> str:
        """What is to be said about it to everybody, or nothing."""
        if not self._path:
            return ""
        on = datetime.fromtimestamp(self._ends_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        remaining_s = self.remaining_s()
        if remaining_s <= 0:
            return (
                f"the server certificate expired on {on}: clients that check it refuse this "
                "broker; replace it and send SIGHUP"
            )
        if remaining_s <= SOON_DAYS * DAY_S:
            return f"the server certificate expires on {on}; replace it and send SIGHUP"
        return ""

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        text = self.warning()
        if text:
            say = log.error if self.remaining_s() <= 0 else log.warning
            say(text, extra={"cert_file": self._path})
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._check)
