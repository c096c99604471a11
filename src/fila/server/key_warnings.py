"""What is said about API keys at the start: those an intruder may have left, or that there is none.

It is logged; nothing is refused. Whoever switches authentication on wants it to hold.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from fila.security.guard import Guard

log = logging.getLogger("fila.server")


def report_keys(guard: Guard, now_ms: int) -> None:
    if not guard.enabled:
        return
    for key in guard.made_open(now_ms):
        made = datetime.fromtimestamp(key.created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        log.error(
            f'API key {key.id} "{key.name}" may do everything and was made on {made}, while '
            "authentication was off: anybody could have made it. Unless it is yours, revoke it "
            f"(fila auth revoke {key.id}); if it is, replace it by one made now",
            extra={"key_id": key.id},
        )
    if not guard.has_bootstrap and not guard.keyring.all():
        log.error(
            "authentication is on, but there is no API key and no bootstrap key: nobody can "
            "connect. Start once with FILA_BOOTSTRAP_APIKEY to make the first key"
        )
