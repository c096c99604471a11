"""TLS handshakes that fail: a client whose certificate is refused is worth a line in the log.

Owns what is logged of a failed handshake, in OpenSSL's words, and how often: repeated attempts
must not fill the disk. The event loop itself says nothing of such failures.
"""

from __future__ import annotations

import logging
import ssl
from time import monotonic
from typing import Final

log = logging.getLogger("fila.tls")

LINES_MAX: Final = 20  # per period
PERIOD_S: Final = 60.0
_ABOUT_THE_CERTIFICATE: Final = ("CERTIFICATE", "CERT_", "UNKNOWN_CA")


class Complaints:
    """Says why clients were refused, a bounded number of times per minute."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._said = 0
        self._unsaid = 0

    def refused(self, reason: str, now_s: float) -> None:
        if now_s - self._since_s >= PERIOD_S:
            if self._unsaid:
                log.warning("more clients were refused by TLS", extra={"clients": self._unsaid})
            self._since_s, self._said, self._unsaid = now_s, 0, 0
        if self._said >= LINES_MAX:
            self._unsaid += 1
            return
        self._said += 1
        log.warning(f"a client was refused by TLS: {reason}")


complaints = Complaints()


class ObservedHandshake(ssl.SSLObject):
    """One connection's TLS, made by a context whose `sslobject_class` this is."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = reason_of(error)
            if reason:
                complaints.refused(reason, monotonic())
            raise


def reason_of(error: ssl.SSLError) -> str:
    """What OpenSSL says about a client's certificate; nothing when it is about something else."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    name = error.reason or ""
    if any(part in name for part in _ABOUT_THE_CERTIFICATE):
        return name.lower().replace("_", " ")
    return ""
