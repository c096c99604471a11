"""Drives turns of a real machine on a real in-memory store, so that tests read as stories.

Time stands still unless a test lets it pass. Turns are `fila.core.turn.Turn`, as in the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fila.core.applies import Reply
from fila.core.command import (
    Ack,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    Leave,
    Nack,
    Redrive,
    SetConfig,
)
from fila.core.effect import BatchLeased, Delivery, Ended, Event
from fila.core.effects import Effects
from fila.core.entry import Entry, message_id
from fila.core.load import load
from fila.core.machine import Machine
from fila.core.queue import Queue
from fila.core.rejection import OK
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings
from fila.core.trail import Trail
from fila.core.turn import Turn
from fila.core.verdict import RETRY_NOW, Assignment, FailedItem, FailureVerdict
from fila.core.waits import Waits
from fila.storage.memory import MemoryStore

US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND

DEAD_LETTER = FailureVerdict(dead_letter=True, delay_ms=0)


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Outcome(NamedTuple):
    """What one or more turns let go."""

    replies: list[Reply]
    batches: list[RowBatch]
    deliveries: list[Delivery]
    ended: list[Ended]
    events: list[Event]
    batches_leased: list[BatchLeased]

    def entries(self, consumer: str | None = None) -> list[Entry]:
        return [
            entry
            for delivery in self.deliveries
            if consumer is None or delivery.consumer.id == consumer
            for entry in delivery.entries
        ]

    def ids(self, consumer: str | None = None) -> list[bytes]:
        return [message_id(entry) for entry in self.entries(consumer)]

    def keys(self) -> list[bytes]:
        """The fairness keys, in the order they were served."""
        return [lane.key.name for delivery in self.deliveries for lane in delivery.lanes]

    def extend(self, later: Outcome) -> None:
        self.replies.extend(later.replies)
        self.batches.extend(later.batches)
        self.deliveries.extend(later.deliveries)
        self.ended.extend(later.ended)
        self.events.extend(later.events)
        self.batches_leased.extend(later.batches_leased)

    def waits(self) -> list[Waits]:
        return [wait for delivery in self.deliveries for wait in delivery.waits]


class Decided:
    """A policy: what the failure hook says of every message, and what it was asked."""

    def __init__(self) -> None:
        self.on_failure_says = RETRY_NOW
        self.on_enqueue_says = Assignment(b"k", 1, ())
        self.failed: list[FailedItem] = []

    def has_on_enqueue(self, queue: str) -> bool:
        return True

    def has_on_failure(self, queue: str) -> bool:
        return True

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        return [self.on_enqueue_says] * len(bodies)

    def undecided(self, queue: str) -> list[int]:
        return []

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        self.failed += items
        return [self.on_failure_says] * len(items)


class Turns:
    """Drives one machine; its committer and its outlet, too: everything is safe at once."""

    def __init__(
        self,
        settings: Settings | None = None,
        store: MemoryStore | None = None,
        now: int = START,
        first_id: int = 1,
        journal: bool = False,
        policy: Decided | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.store = store or MemoryStore()
        self.now = now
        self.next_id = first_id
        self.journal = journal
        self.policy = policy or Decided()
        self.machine: Machine = load(self.store, self.settings, now)
        self.machine.record_events(journal)
        self.driven = Turn(self.machine, self.policy, self, self)
        self._batches: list[RowBatch] = []
        self._effects: Effects

    # --- what the turn gives

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        self._batches = batches
        if batches:
            self.store.write(batches)
        committed()

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        def let_go() -> None:
            self._effects = effects
            for call in calls:
                call()

        return let_go

    # --- turns

    def turn(self, *commands: Command) -> Outcome:
        """One turn at the present time, and further ones while a delivery pass was cut short."""
        outcome, more = self.one_pass(*commands)
        while more:
            part, more = self.one_pass()
            outcome.extend(part)
        return outcome

    def one_pass(self, *commands: Command) -> tuple[Outcome, bool]:
        """One turn, and whether its delivery pass was cut short."""
        driven = self.driven
        driven.begin(self.now)
        replies = [driven.apply(command) for command in commands]
        driven.end()
        effects = self._effects
        outcome = Outcome(
            replies,
            self._batches,
            effects.deliveries,
            effects.ended,
            effects.events.expand(),
            effects.batches_leased,
        )
        return outcome, driven.more

    @property
    def trail(self) -> Trail:
        """The last turn's events as the journal gets them."""
        return self._effects.events

    def wait(self, ns: int) -> Outcome:
        """Let time pass; the machine is woken exactly when it asked to be, as the broker does."""
        until = self.now + ns
        outcome = Outcome([], [], [], [], [], [])
        while True:
            at_ns = self.driven.due_ns()
            if at_ns == 0 or at_ns > until:
                break
            self.now = max(self.now, at_ns)
            outcome.extend(self.turn())
        self.now = until
        return outcome

    def restart(self, after_ns: int = 0, settings: Settings | None = None) -> Turns:
        """Die, and come back from what the store holds, some time later."""
        now = self.now + after_ns
        store = self.store.crash()
        return Turns(settings or self.settings, store, now, self.next_id, self.journal, self.policy)

    # --- commands, each in a turn of its own

    def create(self, queue: str, visibility_ms: int = 0) -> None:
        assert self.turn(CreateQueue(queue, visibility_ms=visibility_ms)).replies == [None]

    def delete(self, queue: str) -> Outcome:
        return self.turn(DeleteQueue(queue))

    def set(self, key: str, value: str) -> Outcome:
        return self.turn(SetConfig(key, value))

    def limit(self, throttle_key: str, rate: float, burst: float) -> None:
        assert self.set(f"throttle.{throttle_key}", f"{rate},{burst}").replies == [None]

    def messages(
        self,
        queue: str,
        key: bytes = b"k",
        count: int = 1,
        weight: int = 1,
        throttle: tuple[bytes, ...] = (),
        delay_ms: int = 0,
        body_bytes: int = 8,
    ) -> Enqueue:
        """An Enqueue of `count` like messages with the next ids."""
        ids = [id_of(self.next_id + at) for at in range(count)]
        self.next_id += count
        assignment = Assignment(key, weight, throttle)
        bodies = [id[-8:].ljust(body_bytes, b".") for id in ids]
        return Enqueue(queue, ids, bodies, [assignment] * count, [delay_ms] * count)

    def enqueue(
        self,
        queue: str,
        key: bytes = b"k",
        count: int = 1,
        weight: int = 1,
        throttle: tuple[bytes, ...] = (),
        delay_ms: int = 0,
        body_bytes: int = 8,
    ) -> list[bytes]:
        """The ids of messages that are now stored; what they set off is dropped."""
        command = self.messages(queue, key, count, weight, throttle, delay_ms, body_bytes)
        assert self.turn(command).replies == [None]
        return command.ids

    def consume(
        self,
        queue: str,
        consumer: str = "c",
        prefetch: int = 0,
        connection: int = 1,
        prefetch_bytes: int = 0,
    ) -> Outcome:
        outcome = self.turn(Consume(queue, consumer, connection, prefetch, prefetch_bytes))
        assert outcome.replies == [None]
        return outcome

    def leave(self, queue: str, consumer: str = "c", release: bool = False) -> Outcome:
        return self.turn(Leave(queue, consumer, release))

    def ack(self, queue: str, ids: list[bytes], connection: int = 1) -> Outcome:
        """Finish messages, which must all be there to finish."""
        outcome = self.turn(Ack(queue, ids, connection))
        assert outcome.replies == [[OK] * len(ids)]
        return outcome

    def nack(
        self,
        queue: str,
        ids: list[bytes],
        verdict: FailureVerdict = RETRY_NOW,
        connection: int = 1,
    ) -> Outcome:
        count = len(ids)
        outcome = self.turn(Nack(queue, ids, ["failed"] * count, [verdict] * count, connection))
        assert outcome.replies == [[OK] * count]
        return outcome

    def redrive(self, dlq: str, count: int, key: bytes = b"k", weight: int = 1) -> Outcome:
        oldest = self.machine.oldest(dlq, count)
        ids = [message_id(entry) for entry in oldest]
        return self.turn(Redrive(dlq, ids, [Assignment(key, weight, ())] * len(ids)))

    def drain(self, queue: str, consumer: str = "c", connection: int = 1) -> Outcome:
        """Consume and ack until nothing more comes, at the present time. One at a time."""
        outcome = self.consume(queue, consumer, prefetch=1, connection=connection)
        last = outcome
        while ids := last.ids():
            last = self.ack(queue, ids, connection)
            outcome.extend(last)
        return outcome

    # --- looking inside

    def queue(self, name: str) -> Queue:
        return self.machine.state.queues[name]

    def rows(self, family: int, prefix: bytes = b"") -> list[tuple[bytes, bytes]]:
        found = self.store.scan(family, prefix, b"\xff" * 64, 1 << 40, 1 << 40)
        return [(key, value) for key, value in found if key.startswith(prefix)]
