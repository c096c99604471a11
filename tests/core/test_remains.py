"""A queue that goes leaves nothing in memory, without the cycle collector, and a bit per turn."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from fila.core.command import DeleteQueue, Enqueue, Lease
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.lease import Consumer, LeaseBatch
from fila.core.lease import Lease as HeldLease
from fila.core.queue import Queue
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import SECOND, Turns, id_of

PARTS = (Queue, FairnessKey, Lane, Consumer, HeldLease, LeaseBatch)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing but counting references frees anything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def in_memory() -> Counter[type]:
    return Counter(type(one) for one in gc.get_objects() if isinstance(one, PARTS))


def fill(turns: Turns, queue: str, keys: int) -> None:
    ids = [id_of(turns.next_id + at) for at in range(keys)]
    turns.next_id += keys
    assignments = [Assignment(b"k%d" % at, 1 + at % 3, (b"t%d" % (at % 7),)) for at in range(keys)]
    delays = [0 if at % 4 else 1_000 for at in range(keys)]
    turns.turn(Enqueue(queue, ids, [b"x" * 64] * keys, assignments, delays))


def make_use_of(turns: Turns, queue: str, keys: int) -> None:
    """Whatever can refer to something else in a queue does."""
    turns.create(queue)
    turns.limit("t1", 0.001, 1)
    fill(turns, queue, keys)
    held = turns.consume(queue, "stays", prefetch=20, connection=1).ids()
    turns.nack(queue, held[:2])
    turns.consume(queue, "leaves", prefetch=20, connection=2)
    turns.leave(queue, "leaves")
    turns.turn(Lease(queue, "batch", 1, 5, 1_000))


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("journal", [False, True])
def test_nothing_of_a_deleted_queue_stays_in_memory(journal: bool) -> None:
    turns = Turns(journal=journal)
    turns.create("other")
    turns.turn()
    before = in_memory()
    make_use_of(turns, "q", 300)
    assert set(in_memory()) == set(PARTS)
    turns.delete("q")
    turns.wait(2 * SECOND)  # alarms of messages that would have been due have rung
    turns.turn()
    assert in_memory() == before


@pytest.mark.usefixtures("uncollected")
def test_a_dead_letter_queue_that_goes_alone_leaves_nothing_but_names_in_the_ledger() -> None:
    turns = Turns()
    turns.create("q")
    before = in_memory()
    fill(turns, "q.dlq", 5_000)
    turns.delete("q.dlq")
    for _ in range(5):
        turns.enqueue("q")
    assert in_memory()[Lane] <= before[Lane] + 1


def test_a_turn_takes_so_much_apart_and_no_more() -> None:
    turns = Turns(Settings(remains_objects=40))
    turns.create("q")
    fill(turns, "q", 200)
    gone = turns.queue("q")
    turns.one_pass(DeleteQueue("q"))
    left = [len(gone.keys)]
    while turns.driven.clears_up:
        turns.one_pass()
        left.append(len(gone.keys))
    assert left[:3] == [180, 160, 140] and left[-1] == 0 and len(left) <= 12


def test_its_name_is_free_while_it_is_taken_apart() -> None:
    turns = Turns(Settings(remains_objects=10))
    turns.create("q")
    fill(turns, "q", 100)
    turns.one_pass(DeleteQueue("q"))
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    assert turns.driven.clears_up
    assert turns.consume("q", prefetch=10).ids() == ids
    assert turns.restart().queue("q").pending == 0
