"""The race: the same messages through a FIFO queue and a fair one, one worker each.

Owns the tenants, what was sent, and what the workers saw. Prints nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from fila.cli.failure import Failure

FIFO: Final = "fifo"
FAIR: Final = "fair"
NOISY: Final = "noisy-corp"
QUIET: Final = ("acme", "globex", "initech")
TENANTS: Final = (NOISY, *QUIET)

ON_ENQUEUE: Final = """function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"] }
end"""

# Few enough that a message's turn is decided shortly before it is handled.
_PREFETCH: Final = 20
_TICK_S: Final = 0.01
_PATIENCE_S: Final = 10.0


class Delivered(NamedTuple):
    tenant: str
    arrived_as: int  # position in arrival order, from 1
    waited_ms: int  # from being stored to being handled


class Race:
    def __init__(self, noisy: int, quiet: int, rate: int) -> None:
        self.noisy = noisy
        self.quiet = quiet
        self.rate = rate
        # The noisy tenant is there first; the quiet ones come after it, taking turns.
        self.arrivals = [NOISY] * noisy + list(QUIET) * quiet
        self.delivered: dict[str, list[Delivered]] = {FIFO: [], FAIR: []}
        self._faults: list[BaseException] = []
        self._stopping = threading.Event()

    def sent_by(self, tenant: str) -> int:
        return self.noisy if tenant == NOISY else self.quiet

    @property
    def finished(self) -> bool:
        return all(len(seen) == len(self.arrivals) for seen in self.delivered.values())

    def check(self) -> None:
        """Raises what stopped a worker, if anything did."""
        if self._faults:
            raise self._faults[0]

    def fill(self, addr: str) -> None:
        """Create both queues and store every message in both, in the same order."""
        from fila.client.sync import FilaClient

        with FilaClient(addr) as client:
            client.create_queue(FIFO)
            client.create_queue(FAIR, on_enqueue=ON_ENQUEUE)
            client.enqueue_many(
                (queue, {"tenant": tenant}, str(position))
                for position, tenant in enumerate(self.arrivals, 1)
                for queue in (FIFO, FAIR)
            )

    @contextmanager
    def running(self, addr: str) -> Iterator[None]:
        """Two workers at work, until the block ends."""
        workers = [
            threading.Thread(target=self._work_or_report, args=(addr, queue), daemon=True)
            for queue in (FIFO, FAIR)
        ]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            self._stopping.set()
            for worker in workers:
                worker.join()

    def _work_or_report(self, addr: str, queue: str) -> None:
        try:
            self._work(addr, queue)
        except BaseException as error:
            self._faults.append(error)

    def _work(self, addr: str, queue: str) -> None:
        """Handle messages one after the other, `rate` of them per second."""
        from fila.client.sync import FilaClient

        seen = self.delivered[queue]
        with FilaClient(addr, reconnect=False) as client:
            consumer = client.consume(queue, prefetch=_PREFETCH)
            started_at = time.monotonic()
            while len(seen) < len(self.arrivals) and not self._stopping.is_set():
                due = int((time.monotonic() - started_at) * self.rate) - len(seen)
                if due < 1:
                    time.sleep(_TICK_S)
                    continue
                messages = consumer.receive_many(min(due, _PREFETCH), _PATIENCE_S)
                if not messages:
                    raise Failure(f'queue "{queue}" delivered nothing for {_PATIENCE_S:.0f} s')
                now_ms = int(time.time() * 1000)
                seen += [
                    Delivered(
                        message.headers["tenant"],
                        int(message.payload),
                        max(0, now_ms - message.enqueued_at_ms),
                    )
                    for message in messages
                ]
                client.ack_many(queue, [message.id for message in messages])
