"""What is said about API keys at the start: those an intruder may have left, or that there is none.

It is logged; nothing is refused. Whoever switches authentication on wants it to hold.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

from fila.security.guard import Guard

log = logging.getLogger("fila.server")


BOOTSTRAP_CHARS_MIN: Final = 16


def report_keys(guard: Guard, bootstrap: str, now_ms: int) -> None:
    if not guard.enabled:
        return
    if 0 < len(bootstrap) < BOOTSTRAP_CHARS_MIN:
        log.warning(
            f"the bootstrap key has {len(bootstrap)} characters and may do everything: it can be "
            "guessed. Use a random one (openssl rand -hex 16), or make keys and start without it"
        )
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
