"""How many files the process may have open, and how many of them may be connections.

A store that cannot open a file stops the broker; so clients must never be able to use them all up.
"""

from __future__ import annotations

import logging
import resource

from fila.storage.rocks import RocksSettings

log = logging.getLogger("fila.server")

# What the store may hold open, and room for its logs, new tables, the journal and the program.
RESERVED = RocksSettings().max_open_files + 128
_WANTED = 1 << 16


def connections_allowed(wanted: int) -> int:
    """Raise the limit on open files as far as it goes, and leave the store its share of them."""
    files = _raise_limit(wanted + RESERVED)
    allowed = max(1, min(wanted, files - RESERVED))
    if allowed < wanted:
        log.warning(
            f"the limit of {files} open files allows {allowed} connections; "
            "raise it (ulimit -n, LimitNOFILE) for more",
            extra={"max_connections": wanted},
        )
    return allowed


def _raise_limit(wanted: int) -> int:
    """The limit in force afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return max(wanted, _WANTED)
    target = wanted if hard == resource.RLIM_INFINITY else min(hard, max(wanted, _WANTED))
    if soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (OSError, ValueError):
            return soft
        return target
    return soft
