"""A broker with its default settings that is being abused, and what it costs: its peak of memory,
and what an ordinary client sees meanwhile.

Owns the measuring. The kernel keeps the peak itself (VmHWM), so no moment is missed.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.e2e.process import Broker
from tests.http.visitor import HttpBroker

MiB = 1 << 20
CEILING_BYTES = 512 * 10**6  # with the default settings, whatever anybody does
PAYLOAD = b"x" * 4_000


class Measured(NamedTuple):
    peak_bytes: int
    rounds: int  # of somebody else's client
    slowest_s: float
    fault: str


class Victim:
    """Ends its broker and every socket that an abuse has opened."""

    def __init__(self, directory: Path, settings: Mapping[str, object], scale: float) -> None:
        """`scale` 1 is the size the abuses were found with; tests take less."""
        told = {"log.level": "warning", **settings}
        self.broker = HttpBroker(directory / "data", told)
        self.scale = scale
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self.sockets:
            one.close()
        self.broker.__exit__(kind, error, trace)

    # --- what abuses need

    def scaled(self, count: int, least: int = 1) -> int:
        return max(least, int(count * self.scale))

    def connect(self, http: bool = False) -> socket.socket:
        """A connection that stays open, with a small buffer, and that nobody need read."""
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        made.settimeout(30)
        made.connect(self.broker.http_address if http else self.broker.address)
        self.sockets.append(made)
        return made

    def fill(self, queue: str, total_bytes: int, payload: bytes = PAYLOAD) -> int:
        """Put a backlog into a queue; how many messages."""
        count = max(1, total_bytes // len(payload))
        per_request = max(1, MiB // len(payload))
        with self.broker.peer() as peer:
            if queue not in peer.queues():
                peer.create_queue(queue)
            asked = []
            for start in range(0, count, per_request):
                batch = [payload] * min(per_request, count - start)
                asked.append(peer.post_enqueue(queue, batch))
                if len(asked) > 4:
                    peer.enqueue_results(asked.pop(0))
            for request in asked:
                peer.enqueue_results(request)
        return count

    def settle(self, still_s: float = 0.7, most_s: float = 60) -> None:
        """Wait until the broker has done what it was asked: it uses no processor any more."""
        end = time.monotonic() + most_s
        used, since = self.broker.cpu_s(), time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.1)
            now = self.broker.cpu_s()
            if now - used > 0.1:
                used, since = now, time.monotonic()
            elif time.monotonic() - since > still_s:
                return

    # --- what it costs

    def peak_bytes(self) -> int:
        for line in Path(f"/proc/{self.broker.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM: has the broker ended?\n" + self.broker.log())


class Bystander(threading.Thread):
    """Somebody else's client: enqueue, receive, ack, over and over, on one connection."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self._peer = broker.peer()
        self._peer.create_queue("bystander")
        self.stopping = threading.Event()
        self.rounds = 0
        self.slowest_s = 0.0
        self.fault = ""

    def run(self) -> None:
        try:
            stream = self._peer.consume("bystander", prefetch=10)
            while not self.stopping.is_set():
                began = time.monotonic()
                self._peer.enqueue("bystander", b"x")
                message = self._peer.take_one(stream, timeout_s=60)
                self._peer.ack("bystander", message.id)
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.rounds += 1
                self.stopping.wait(0.005)
        except Exception as error:
            self.fault = f"round {self.rounds}: {error!r}"

    def stop(self) -> None:
        self.stopping.set()
        self.join(90)
        self._peer.close()


def measure(
    directory: Path,
    abuse: Callable[[Victim], None],
    settings: Mapping[str, object],
    scale: float,
) -> Measured:
    """Do it to a broker of its own; what it cost."""
    with Victim(directory, settings, scale) as victim:
        other = Bystander(victim.broker)
        other.start()
        abuse(victim)
        other.stop()
        assert victim.broker.alive(), victim.broker.log()[-3_000:]
        return Measured(victim.peak_bytes(), other.rounds, other.slowest_s, other.fault)
