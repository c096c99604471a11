"""A broker whose loop is turned by hand: nothing happens between two lines of a test."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from fila.broker.broker import Broker
from fila.broker.clock import Clock
from fila.broker.ids import Ids
from fila.core.effect import Delivery
from fila.core.entry import BODY
from fila.core.load import load
from fila.core.rejection import Rejection
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings
from fila.hooks.contract import Hooks, NoHooks
from fila.storage.committer import Committer
from fila.storage.memory import MemoryStore

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000


class Time:
    """Wall and monotonic time, moved by the test."""

    def __init__(self) -> None:
        self.wall_ns = START_NS
        self.monotonic_ns = 5_000_000_000

    def pass_ms(self, ms: float) -> None:
        self.wall_ns += int(ms * MS)
        self.monotonic_ns += int(ms * MS)

    def clock(self) -> Clock:
        return Clock(
            lambda: self.wall_ns, lambda: self.monotonic_ns, lambda s: self.pass_ms(s * 1_000)
        )


class Timer:
    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class StepLoop:
    """What the broker uses of an event loop: `step` runs one round of it."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.timers: list[Timer] = []

    def time(self) -> float:
        return 0.0

    def call_soon(self, call: Callable[..., None], *arguments: object) -> None:
        self.soon.append(partial(call, *arguments) if arguments else call)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        timer = Timer(delay_s, call)
        self.timers.append(timer)
        return timer

    def step(self) -> None:
        calls, self.soon = self.soon, []
        for call in calls:
            call()

    def settle(self) -> int:
        """Step until nothing is left to do; how many rounds it took."""
        for round in itertools.count():
            if not self.soon:
                return round
            self.step()
        raise AssertionError

    @property
    def next_timer(self) -> Timer:
        [timer] = [one for one in self.timers if not one.cancelled]
        return timer


class Client:
    """A sink that remembers what reached it, in order."""

    def __init__(self) -> None:
        self.got: list[object] = []
        self.flushes = 0

    def send(self, data: bytes) -> None:
        self.got.append(data)

    def deliver(self, delivery: Delivery) -> None:
        self.got.append(delivery)

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        self.got.append((consumer, why))

    def flush(self) -> None:
        self.flushes += 1

    def delivered(self) -> list[bytes]:
        """Bodies of all delivered messages."""
        found = [one for one in self.got if isinstance(one, Delivery)]
        return [entry[BODY] for one in found for entry in one.entries]


class CountingCommitter:
    """Writes at once and counts."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.commits: list[list[RowBatch]] = []

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        if batches:
            self._store.write(batches)
        self.commits.append(batches)
        committed()


class DelayingCommitter:
    """Writes at once, and calls nothing committed before it is told to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.waiting: list[Callable[[], None]] = []

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        if batches:
            self._store.write(batches)
        self.waiting.append(committed)

    def release(self, count: int = 1) -> None:
        for _ in range(count):
            self.waiting.pop(0)()


class Bench:
    """A broker on a store in memory, and everything around it."""

    def __init__(
        self,
        committer: Callable[[MemoryStore], Committer] = CountingCommitter,
        store: MemoryStore | None = None,
        settings: Settings | None = None,
        hooks: Hooks | None = None,
        time: Time | None = None,
    ) -> None:
        self.time = time or Time()
        self.loop = StepLoop()
        self.store = store or MemoryStore()
        self.committer: Any = committer(self.store)
        self.faults: list[BaseException] = []
        clock = self.time.clock()
        machine = load(self.store, settings or Settings(), clock.now_ns())
        clock.never_before(machine.state.now)
        bits = itertools.count(1)
        self.broker = Broker(
            machine,
            self.committer,
            hooks or NoHooks(),
            clock,
            Ids(lambda n: next(bits) % (1 << n), machine.state.now),
            cast(asyncio.AbstractEventLoop, self.loop),
            self.faults.append,
        )
        self.loop.settle()

    def pass_ms(self, ms: float) -> None:
        """Let time pass, and the timer ring if it is due by then."""
        self.time.pass_ms(ms)
        for timer in self.loop.timers:
            if not timer.cancelled and timer.delay_s <= ms / 1000 + 1e-9:
                timer.cancelled = True
                timer.call()
        self.loop.settle()
