"""The outbox: what waits for the commit, and to whom it goes then.

Owns the replies of the turn under way, the sinks of all consumers, and who waits for which lease
batch. Nothing is sent before the committer calls the turn safe; after a fault nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from fila.core.effect import BatchLeased, Delivery
from fila.core.effects import Effects
from fila.core.rejection import Rejection
from fila.core.trail import Trail
from fila.core.verdict import FailureVerdict


class Sink(Protocol):
    """Where effects go once they are committed: one client connection."""

    def send(self, data: bytes) -> None: ...

    def deliver(self, delivery: Delivery) -> None: ...

    def consumer_ended(self, consumer: str, why: Rejection) -> None: ...

    def flush(self) -> None: ...


class Recorder(Protocol):
    """Who wants to know what happened, once it is committed: the journal."""

    wants_messages: bool

    def record(self, trail: Trail) -> None: ...

    def record_messages(
        self, queue: str, now_ns: int, ids: list[bytes], bodies: list[bytes]
    ) -> None: ...


class Watcher(Protocol):
    """Who measures: told once per committed turn what went out, and per batch what failed."""

    def delivered(self, deliveries: list[Delivery]) -> None: ...

    def failed(
        self, queue: str, ids: list[bytes], errors: list[str], verdicts: list[FailureVerdict]
    ) -> None: ...


class Outbox:
    def __init__(self, recorder: Recorder | None) -> None:
        self.replies: list[tuple[Sink, bytes]] = []  # of the turn under way
        self.sinks: dict[str, Sink] = {}  # by consumer
        # Who waits for a batch; None: it is answered later.
        self.leasing: dict[int, Callable[[BatchLeased], Sink | None]] = {}
        self.recorder = recorder
        self.watcher: Watcher | None = None
        self.stopped = False

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        """A turn is over: its effects, as one call to make when it is committed."""
        replies, self.replies = self.replies, []
        return partial(self._send, replies, effects, calls)

    def _send(
        self,
        replies: list[tuple[Sink, bytes]],
        effects: Effects,
        calls: list[Callable[[], None]],
    ) -> None:
        if self.stopped:
            return
        served: dict[Sink, None] = {}
        dirty: dict[Sink, None] = {}
        for sink, data in replies:
            sink.send(data)
            dirty[sink] = None
        for delivery in effects.deliveries:
            to = self.sinks.get(delivery.consumer.id)
            if to is not None:
                to.deliver(delivery)
                served[to] = None
        for sink in served:
            sink.flush()  # a waiting consumer comes before a producer's answer
            dirty.pop(sink, None)
        for leased in effects.batches_leased:
            done = self.leasing.pop(leased.request, None)
            answered = done(leased) if done is not None else None
            if answered is not None:
                dirty[answered] = None
        for ended in effects.ended:
            to = self.sinks.pop(ended.consumer.id, None)
            if to is not None:
                to.consumer_ended(ended.consumer.id, ended.why)
                dirty[to] = None
        for sink in dirty:
            sink.flush()
        if effects.deliveries and self.watcher is not None:
            self.watcher.delivered(effects.deliveries)
        if effects.events and self.recorder is not None:
            self.recorder.record(effects.events)
        for call in calls:
            call()
