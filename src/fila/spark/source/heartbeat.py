"""The heart-beat of a stream: its open batches are extended as long as this process lives.

Owns one thread in the driver-side process of the source. When the query stops or the driver dies,
that process ends and the thread with it; the batches then run out by themselves.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

from fila.client.errors import FilaError
from fila.client.sync import FilaClient

_BEATS_PER_TIMEOUT: Final = 3
_EVERY: Final = (1 << 63) - 1  # more than any batch's number


class Heartbeat:
    def __init__(self, client: FilaClient, queue: str, stream: str, visibility_s: float) -> None:
        self.stream = stream
        self._client = client
        self._queue = queue
        self._visibility_s = visibility_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fila-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()

    def _run(self) -> None:
        while not self._done.wait(self._visibility_s / _BEATS_PER_TIMEOUT):
            try:
                self._client.extend_batch(
                    self._queue, self.stream, self._visibility_s, below=_EVERY
                )
            except FilaError as error:
                if self._done.is_set():
                    return
                # The next beat tries again; batches that ran out meanwhile are read again later.
                sys.stderr.write(f"fila: the heart-beat of {self.stream} failed: {error}\n")
