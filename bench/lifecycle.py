"""The life of messages through the core, without sockets: the broker's own turns (`core/turn.py`).

A turn enqueues a batch, acknowledges what the turn before delivered, delivers as much again, and
commits all of it once. The queue keeps a standing backlog over all its fairness keys, so that every
key is active in every turn. Only what a broker does is timed; making up the load is not. Time is
CPU time of this thread, which a busy machine stretches far less than the clock on the wall.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from time import thread_time_ns

from fila.core.command import Ack, Command, Consume, CreateQueue, Enqueue
from fila.core.effect import Delivery
from fila.core.effects import Effects
from fila.core.entry import message_id
from fila.core.load import load
from fila.core.policy import Defaults
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings
from fila.core.turn import Turn
from fila.core.verdict import Assignment
from fila.storage.committer import OsCommitter
from fila.storage.contract import Store

BATCH = 100
PAYLOAD_BYTES = 1024
TURN_NS = 1_000_000
_HEAD = b"\0\0" + PAYLOAD_BYTES.to_bytes(4, "big")  # no headers, then the payload
_NOISE = os.urandom(1 << 20)  # payloads are cut from it: each an object of its own, incompressible

# Everything stays in memory, so that the core can be timed on its own.
ALL_IN_MEMORY = Settings(window_messages=1 << 30, window_bytes_total=1 << 40)


class NullStore:
    """A store that forgets: what is left is the cost of the core."""

    def get(self, family: int, key: bytes) -> bytes | None:
        return None

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        return []

    def write(self, batches: list[RowBatch]) -> None:
        pass

    def snapshot(self) -> NullStore:
        return self

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class Deliveries:
    """An outlet that keeps what the last turn delivered."""

    def __init__(self) -> None:
        self.last: list[Delivery] = []

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        self.last = effects.deliveries
        return _nothing

    def ids(self) -> list[bytes]:
        return [message_id(entry) for one in self.last for entry in one.entries]


def _nothing() -> None:
    pass


class Lifecycle:
    """One queue with `keys` active fairness keys, and one consumer that takes a batch at a time."""

    def __init__(
        self,
        store: Store,
        keys: int,
        backlog: int,
        settings: Settings | None = None,
        batch: int = BATCH,
        beside: tuple[int, int] = (0, 0),
    ) -> None:
        """`beside`: so many messages of so many keys lie idle in another queue."""
        self.batch = batch
        self.now = 1_700_000_000_000_000_000
        self.machine = load(store, settings or Settings(), self.now)
        self.delivered = Deliveries()
        self.turn = Turn(self.machine, Defaults(), OsCommitter(store), self.delivered)
        self.store = store
        self._next_id = 1
        self._held: list[bytes] = []
        self._assignments = [Assignment(b"tenant-%06d" % at, 1, ()) for at in range(keys)]
        self._turn_of_keys: Iterator[Assignment] = cycle(self._assignments)
        self.turn.begin(self.now)
        self.turn.apply(CreateQueue("q", visibility_ms=3_600_000))
        state = self.machine.state
        queue = state.queues["q"]
        # All lanes first, so that they lie in memory alike whatever the order of delivery.
        self.lane_of = {
            one.fairness_key: state.lane(queue, one.fairness_key, ()) for one in self._assignments
        }
        self.turn.end()
        if beside[1]:
            self._fill_beside(*beside)
        for _ in range(backlog // 1_000):
            self.fill(1_000)
        self.turn.apply(Consume("q", "c", 1, batch, 1 << 40))

    def _fill_beside(self, count: int, keys: int) -> None:
        self.do(CreateQueue("idle"))
        own = [Assignment(b"idle-%06d" % at, 1, ()) for at in range(keys)]
        for at in range(count // 1_000):
            command = self.enqueue(1_000)
            these = [own[(at * 1_000 + place) % keys] for place in range(1_000)]
            self.do(command._replace(queue="idle", assignments=these))

    def enqueue(self, count: int) -> Enqueue:
        ids = [number.to_bytes(16, "big") for number in range(self._next_id, self._next_id + count)]
        self._next_id += count
        first = self._next_id
        room = len(_NOISE) - PAYLOAD_BYTES
        starts = [number * 251 % room for number in range(first, first + count)]
        bodies = [_HEAD + _NOISE[at : at + PAYLOAD_BYTES] for at in starts]
        return Enqueue("q", ids, bodies, list(islice(self._turn_of_keys, count)))

    def fill(self, count: int) -> None:
        """Enqueue so many in a turn of their own."""
        command = self.enqueue(count)
        self.arrived(command)
        self.do(command)

    def do(self, *commands: Command) -> list[bytes]:
        """A turn at the present time. Returns the ids of what it delivered."""
        self.turn.begin(self.now)
        for command in commands:
            self.turn.apply(command)
        self.turn.end()
        return self.delivered.ids()

    def turns(self, count: int) -> int:
        """Run that many turns. Returns the CPU nanoseconds they took."""
        turn = self.turn
        commands = [self.enqueue(self.batch) for _ in range(count)]
        held = self._held
        spent = 0
        for command in commands:
            ack = Ack("q", held, 1)
            self.now += TURN_NS
            start = thread_time_ns()
            turn.begin(self.now)
            turn.apply(command)
            self.arrived(command)
            if held:
                turn.apply(ack)
            turn.end()
            spent += thread_time_ns() - start
            held = self.delivered.ids()
            assert len(held) == self.batch, "every turn delivers a whole batch"
        self._held = held
        return spent

    def arrived(self, command: Enqueue) -> None:
        """Messages were enqueued; whoever delivers in another order notes it here."""

    @property
    def keys_active(self) -> int:
        return self.machine.state.queues["q"].ring.keys
