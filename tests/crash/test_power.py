"""Power cuts at the store: whatever was not flushed may be gone, whatever was told must not be.

The broker is real, its disk is simulated: writes reach it at once, and a cut loses any number of
the newest ones that no flush has covered. With durability `os` a cut is the death of the process
alone, and loses nothing that was written.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fila.core import rows
from fila.core.effect import Delivery
from fila.core.entry import message_id
from fila.core.rejection import OK
from fila.storage.committer import FsyncCommitter, OsCommitter
from fila.storage.memory import MemoryStore
from tests.broker.turns import Bench, Client, Time

QUEUES = ("q", "r")
STEPS = ("enqueue", "enqueue", "settle", "settle", "turn", "flush", "time")


class Truth:
    """What clients were told, over all cuts."""

    def __init__(self) -> None:
        self.sent: set[bytes] = set()
        self.stored: set[bytes] = set()
        self.ack_sent: set[bytes] = set()
        self.acked: set[bytes] = set()


class Session:
    """One life of the broker between two cuts."""

    def __init__(self, bench: Bench, chance: random.Random, truth: Truth, cut: list[bool]) -> None:
        self.bench = bench
        self.chance = chance
        self.truth = truth
        self.cut = cut  # after the cut nobody is told anything
        self.clients = {queue: Client() for queue in QUEUES}
        self.settled: set[bytes] = set()
        for number, queue in enumerate(QUEUES):
            if queue not in bench.broker.machine.state.queues:
                bench.broker.create_queue(queue, None, None, 1_000)
            bench.broker.consume(queue, number + 1, self.clients[queue], 50)

    def step(self) -> None:
        kind = self.chance.choice(
            ("enqueue", "enqueue", "settle", "settle", "turn", "flush", "time")
        )
        if kind == "enqueue":
            self.enqueue()
        elif kind == "settle":
            self.settle()
        elif kind == "turn":
            self.bench.loop.step()
        elif kind == "flush" and isinstance(self.bench.committer, FsyncCommitter):
            self.bench.committer.flush()
        elif kind == "time":
            self.bench.pass_ms(self.chance.choice((1, 100, 1_100)))

    def enqueue(self) -> None:
        queue = self.chance.choice(QUEUES)
        ids = self.bench.broker.enqueue(queue, [b"x"] * self.chance.choice((1, 3, 20)))
        assert isinstance(ids, list)
        self.truth.sent.update(ids)
        self.tell(lambda: self.truth.stored.update(ids))

    def settle(self) -> None:
        for number, (queue, client) in enumerate(self.clients.items()):
            found = [one for one in client.got if isinstance(one, Delivery)]
            ids = [message_id(entry) for one in found for entry in one.entries]
            client.got.clear()
            acks = [id for id in ids if self.chance.random() < 0.7]
            nacks = [id for id in ids if id not in set(acks) and self.chance.random() < 0.5]
            self.truth.ack_sent.update(acks)
            codes = self.bench.broker.ack(queue, acks, number + 1)
            assert isinstance(codes, list)
            done = [id for id, code in zip(acks, codes, strict=True) if code == OK]
            self.tell(lambda done=done: self.truth.acked.update(done))  # type: ignore[misc]
            self.bench.broker.nack(queue, nacks, ["no"] * len(nacks), number + 1)

    def tell(self, call: Callable[[], None]) -> None:
        cut = self.cut
        self.bench.broker.after_commit(lambda: None if cut[0] else call())


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("seed", range(3))
def test_cuts_lose_nothing_that_was_told(durability: str, seed: int) -> None:
    chance = random.Random(seed)
    truth, time, store = Truth(), Time(), MemoryStore()
    lost = 0
    for _ in range(60):
        cut = [False]
        committer = FsyncCommitter if durability == "fsync" else OsCommitter
        bench = Bench(committer, store=store, time=time)
        check(bench, store, truth)
        session = Session(bench, chance, truth, cut)
        for _ in range(chance.randrange(40)):
            session.step()
        assert bench.faults == []
        cut[0] = True
        losable = store.unsynced_writes if durability == "fsync" else 0
        lost_writes = chance.randint(0, losable)
        lost += lost_writes
        store = store.crash(lost_writes)
        time.pass_ms(chance.choice((1, 500, 3_000)))
    assert len(truth.stored) > 200
    assert len(truth.acked) > 50
    assert (lost > 0) is (durability == "fsync")


def check(bench: Bench, store: MemoryStore, truth: Truth) -> None:
    """The store after a cut, and the broker that was started on it, against what was told."""
    there = {
        key[rows.ID_AT :]
        for key, _ in store.scan(rows.MESSAGES, b"", b"\xff" * 8, 1 << 30, 1 << 60)
    }
    assert truth.stored - truth.ack_sent <= there, "an acknowledged message is gone"
    assert not there & truth.acked, "an acked message is back"
    assert there <= truth.sent, "a message nobody sent"
    counted = sum(
        queue.pending + len(queue.leased) for queue in bench.broker.machine.state.queues.values()
    )
    assert counted == len(there), "the counts are not those of the rows"
