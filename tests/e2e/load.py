"""Load: a connection that keeps the broker busy while a test looks at something else."""

from __future__ import annotations

import threading

from tests.e2e.peer import Closed
from tests.e2e.process import Broker, wait_until

_PAYLOADS = [b"x" * 256] * 100


class busy:  # noqa: N801  reads as a word: `with busy(broker, queue)`
    """Enqueue, deliver and ack as fast as it goes, in frames of 100, until the block is left."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self.rounds = 0
        self._queue = queue
        self._peer = broker.peer()
        self._peer.create_queue(queue)
        self._stream = self._peer.consume(queue, prefetch=1_000)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        peer = self._peer
        try:
            while not self._stop.is_set():
                peer.enqueue(self._queue, *_PAYLOADS)
                messages = peer.take(self._stream, len(_PAYLOADS))
                peer.ack(self._queue, *(message.id for message in messages))
                self.rounds += 1
        except (Closed, OSError):
            pass  # the broker was stopped meanwhile

    def __enter__(self) -> busy:
        self._thread.start()
        wait_until(lambda: self.rounds > 0, 10, "the load to begin")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._peer.close()
