"""A made-up day at a broker: the core itself, driven by a seed, and what really happened in it.

Tenants of different weights send, one of them through a throttled provider; workers ack, fail, let
leases run out; dead letters are redriven; the broker restarts in between. Keeps its own books, for
the tables to be compared with.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

from fila.core.effect import Event
from fila.core.verdict import FailureVerdict
from fila.journal import files
from fila.journal.columns import events_batch
from fila.journal.files import Stream
from tests.core.turn import DEAD_LETTER, MS, SECOND, Outcome, Turns

KEYS = {b"noisy": 1, b"gold": 3, b"quiet": 1, b"mailer": 1, b"flaky": 1}
QUEUES = ("jobs", "mails")
WINDOW_NS = 10 * SECOND
EPOCHS = (1_000, 2_000)
BROKER = "b1"


class Scenario:
    def __init__(self, seed: int, seconds: int = 70, sign_of_life: bool = True) -> None:
        self.rng = random.Random(seed)
        self.runs: dict[int, list[Event]] = {}
        self._turns = Turns(journal=True)
        self._turns.create("jobs", visibility_ms=5_000)
        self._turns.create("mails", visibility_ms=5_000)
        self._turns.limit("sms", 3, 3)
        for epoch in EPOCHS:
            self._events: list[Event] = []
            self._held: dict[str, list[bytes]] = {queue: [] for queue in QUEUES}
            self._snapshot()
            for queue in QUEUES:
                self._note(self._turns.consume(queue, "c", prefetch=4))
            self._work(seconds)
            self.runs[epoch] = self._events
            self._turns = self._turns.restart(after_ns=3 * SECOND)
        # A sign of life later on, so that every period above is over; not in the books.
        self._turns.wait(320 * SECOND)
        self._events = []
        if sign_of_life:
            self._snapshot()
        self._last = self._events

    @property
    def events(self) -> list[tuple[int, Event]]:
        return [(epoch, event) for epoch, events in self.runs.items() for event in events]

    def write(self, root: Path, part_events: int = 400, broker: str = BROKER) -> None:
        """The whole record as sealed parts."""
        runs = {**self.runs, EPOCHS[-1] + 1_000: self._last}
        for epoch, events in runs.items():
            for first in range(0, len(events), part_events):
                some = events[first : first + part_events]
                batch = events_batch(some, first + 1, broker, epoch)
                files.seal(root, Stream("events", broker, epoch), [batch])

    # --- its own books

    def counts(self) -> Counter[tuple[int, str, str, str]]:
        """By (epoch, queue, key, event); what moves is counted where it comes from."""
        found: Counter[tuple[int, str, str, str]] = Counter()
        for epoch, event in self.events:
            queue = event.source_queue or event.queue
            if event.event not in ("dead_lettered", "redriven"):
                queue = event.queue
            found[epoch, queue, event.fairness_key.decode(), event.event] += 1
        return found

    def held_us(self) -> dict[tuple[int, str, str], int]:
        """By (epoch, queue, key) how long messages were leased within the run, up to the end of the
        window of the key's last event."""
        found: dict[tuple[int, str, str], int] = defaultdict(int)
        for epoch, events in self.runs.items():
            last: dict[tuple[str, bytes], int] = {}
            held: dict[tuple[str, bytes], dict[bytes, int]] = defaultdict(dict)
            for one in events:
                key = (one.queue, one.fairness_key)
                if one.event == "snapshot" and key not in last:
                    for number in range(one.key_leased):  # from before the run
                        held[key][number.to_bytes(16, "little")] = _window(one.ts_ns)
                last[key] = one.ts_ns
                if one.event == "delivered":
                    held[key][one.message_id] = one.ts_ns
                elif one.event in ("acked", "nacked", "expired", "released"):
                    since = held[key].pop(one.message_id, None)
                    if since is None:
                        since = held[key].pop(next(iter(held[key])))
                    us = (one.ts_ns - since) // 1_000
                    found[epoch, one.queue, one.fairness_key.decode()] += us
            for (queue, name), ts_ns in last.items():
                for since in held[queue, name].values():
                    end = _window(ts_ns) + WINDOW_NS
                    found[epoch, queue, name.decode()] += (end - since) // 1_000
        return {key: us for key, us in found.items() if us}

    # --- what happens

    def _work(self, seconds: int) -> None:
        rng, turns = self.rng, self._turns
        for step in range(seconds * 4):
            if step % 240 == 239:
                self._snapshot()
            for _ in range(rng.choice((0, 1, 1, 2))):
                key = rng.choice((b"noisy", b"noisy", b"noisy", *KEYS))
                throttle = (b"sms",) if key == b"mailer" else ()
                delay_ms = rng.choice((0, 0, 0, 700))
                queue = rng.choice(QUEUES)
                message = turns.messages(
                    queue, key, rng.randint(1, 3), KEYS[key], throttle, delay_ms, rng.randint(8, 90)
                )
                self._note(turns.turn(message))
            for queue in QUEUES:
                self._settle(queue)
            if step % 100 == 99:
                self._note(turns.redrive("jobs.dlq", 2, b"flaky"))
            self._note(turns.wait(250 * MS + rng.randint(0, 1_000)))

    def _settle(self, queue: str) -> None:
        rng, turns = self.rng, self._turns
        for message in list(self._held[queue]):
            chance = rng.random()
            if message not in turns.queue(queue).leased:
                self._held[queue].remove(message)  # it ran out
            elif chance < 0.5:
                self._held[queue].remove(message)
                self._note(turns.ack(queue, [message]))
            elif chance < 0.6:
                self._held[queue].remove(message)
                verdict = rng.choice((DEAD_LETTER, FailureVerdict(False, 300)))
                self._note(turns.nack(queue, [message], verdict))

    def _snapshot(self) -> None:
        turns = self._turns
        turns.driven.begin(turns.now)
        list(turns.machine.record_snapshot(10_000))
        turns.driven.end()
        self._events += turns.trail.expand()

    def _note(self, outcome: Outcome) -> None:
        self._events += outcome.events
        for delivery in outcome.deliveries:
            self._held[delivery.consumer.queue.name] += Outcome(
                [], [], [delivery], [], [], []
            ).ids()


def _window(ts_ns: int) -> int:
    return ts_ns // WINDOW_NS * WINDOW_NS
