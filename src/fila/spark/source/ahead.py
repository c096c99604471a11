"""A batch leased ahead: while Spark works on one, the broker makes the next one ready.

Owns one thread in the driver-side process of the source, which asks once and ends. What it leased
has its name already, so a run that ends before it is used finds it again like any other batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple


class Leased(NamedTuple):
    messages: int
    full: bool  # it is as large as may be: there may be more


NOTHING: Final = Leased(0, False)


class Ahead:
    """The batch with this number, or that there is none yet."""

    def __init__(self, number: int, lease: Callable[[], Leased]) -> None:
        self.number = number
        self._lease = lease
        self._leased = NOTHING
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="fila-ahead", daemon=True)
        self._thread.start()

    def result(self) -> Leased:
        """What was leased; waits for the broker, and raises what the thread met."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._leased

    def _run(self) -> None:
        try:
            self._leased = self._lease()
        except Exception as error:
            self._error = error
