"""What the clients of a storm know: the truth a broker that was killed is held to.

Every message carries a token that is sent once and never again, so a token stands for one message:

    sent         an Enqueue is on its way; nobody knows
    stored       the broker has acknowledged it: from now on it must be consumed at least once
    consumed     it was delivered, at least once
    finished     its ack was acknowledged: from now on it must not come back
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from tests.e2e.peer import Received

# Both sides of a lease read the same machine's clock; the broker's may be a little ahead.
_CLOCKS_APART_MS = 10


class Ledger:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: set[str] = set()
        self.stored: dict[str, str] = {}  # token → id
        self.consumed: dict[str, int] = {}  # token → deliveries
        self.finished: dict[str, int] = {}  # token → when its ack was known, wall ms
        self.maybe_finished: set[str] = set()  # its ack was sent, its result never came
        self.broken: list[str] = []  # promises that were not kept
        self.config_sent = 0
        self.config_stored = 0

    def sending(self, tokens: Iterable[str]) -> None:
        with self._lock:
            self.sent.update(tokens)

    def was_stored(self, tokens: Sequence[str], ids: Sequence[str]) -> None:
        with self._lock:
            self.stored.update(zip(tokens, ids, strict=True))

    def was_delivered(self, messages: Sequence[Received]) -> None:
        with self._lock:
            for message in messages:
                token = message.payload.decode()
                self.consumed[token] = self.consumed.get(token, 0) + 1
                if token not in self.sent:
                    self.broken.append(f"{token} was never sent")
                known = self.stored.get(token)
                if known is not None and known != message.id:
                    self.broken.append(f"{token} is {known} and came as {message.id}")
                done_ms = self.finished.get(token)
                # A delivery that was on its way before the ack, to a client that was slow to read
                # it, is no return; a lease made after it is.
                if done_ms is not None and message.leased_at_ms > done_ms + _CLOCKS_APART_MS:
                    late_ms = message.leased_at_ms - done_ms
                    self.broken.append(f"{token} came back {late_ms} ms after its ack")

    def acking(self, tokens: Iterable[str]) -> None:
        with self._lock:
            self.maybe_finished.update(tokens)

    def was_acked(self, tokens: Iterable[str]) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            for token in tokens:
                if token in self.finished:
                    self.broken.append(f"{token} was acked twice with success")
                self.finished[token] = now_ms

    def missing(self) -> list[str]:
        """Stored and never consumed."""
        with self._lock:
            return [token for token in self.stored if token not in self.consumed]

    def unfinished(self) -> list[str]:
        """Stored, and neither certainly nor possibly acked."""
        with self._lock:
            done = self.finished.keys() | self.maybe_finished
            return [token for token in self.stored if token not in done]
