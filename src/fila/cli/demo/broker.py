"""The demo's own broker: a process on a free port, on a directory that goes away with it.

Owns telling the user when it does not start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from fila.cli.failure import Failure
from fila.testing.failure import BrokerError
from fila.testing.process import broker


@contextmanager
def own_broker() -> Iterator[str]:
    """Yields the address of a broker that lives as long as the `with` block."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(broker())
        except BrokerError as error:
            raise Failure(str(error)) from error
        yield running.address
