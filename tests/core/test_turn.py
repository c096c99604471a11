"""The turn: what comes before what, how much of it, and that nothing leaves before the commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fila.core import rows
from fila.core.command import (
    Ack,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    Expire,
    ExtendBatch,
    Lease,
    Release,
)
from fila.core.effects import Effects
from fila.core.load import load
from fila.core.policy import Defaults
from fila.core.reader import Reader
from fila.core.rejection import MESSAGE_NOT_FOUND, NOT_A_DLQ, OK, QUEUE_NOT_FOUND, Rejection
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings
from fila.core.turn import Applied, Turn
from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.storage.memory import MemoryStore

from .turn import DEAD_LETTER, MS, SECOND, START, Turns, id_of


def leased(count: int = 1, settings: Settings | None = None) -> tuple[Turns, list[bytes]]:
    """Messages under leases of one second, one message each."""
    turns = Turns(settings)
    turns.create("q", visibility_ms=1_000)
    ids = []
    for number in range(count):
        ids += turns.enqueue("q")
        turns.consume("q", f"c{number}", prefetch=1)
    assert len(turns.queue("q").leases) == count
    return turns, ids


def leave_all(turns: Turns) -> None:
    """Whoever consumed is gone, so that nothing is delivered again."""
    for consumer in list(turns.queue("q").consumers):
        turns.leave("q", consumer)


# --- an answer in the moment of expiry


@pytest.mark.parametrize("settling", [Ack, Release])
def test_a_settlement_in_the_turn_in_which_its_lease_runs_out_counts(
    settling: type[Ack | Release],
) -> None:
    turns, ids = leased()
    turns.now += SECOND
    outcome = turns.turn(settling("q", ids, 1))
    assert outcome.replies == [[OK]]
    assert turns.queue("q").counters.expired == 0
    assert [entry[2] for entry in outcome.entries()] == ([] if settling is Ack else [0])


def test_a_nack_in_the_turn_in_which_its_lease_runs_out_is_the_failure_that_counts() -> None:
    turns, ids = leased()
    turns.now += SECOND
    outcome = turns.turn(turns.driven.nack("q", ids, ["it broke"], 1))
    assert outcome.replies == [[OK]]
    assert [entry[2] for entry in outcome.entries()] == [1]
    counters = turns.queue("q").counters
    assert (counters.nacked, counters.expired) == (1, 0)


def test_an_ack_long_after_its_time_counts_as_long_as_nobody_ended_the_lease() -> None:
    turns, ids = leased()
    turns.now += 3_600 * SECOND  # the broker slept
    assert turns.turn(Ack("q", ids, 1)).replies == [[OK]]


def test_an_ack_in_the_turn_after_the_lease_was_ended_is_too_late() -> None:
    turns, ids = leased()
    turns.now += SECOND
    assert turns.turn().ids() == ids
    assert turns.queue("q").counters.expired == 1
    turns.leave("q", "c0", release=True)
    assert turns.turn(Ack("q", ids, 1)).replies == [[MESSAGE_NOT_FOUND]]


def test_a_batch_extended_in_the_turn_in_which_it_runs_out_stays_open() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=3)
    turns.turn(Lease("q", "s/0", 1, 10, 0, 1_000))
    turns.now += SECOND
    assert turns.turn(ExtendBatch("q", "s/0", 2_000)).replies == [(1, 3)]
    assert turns.queue("q").counters.released == 0


# --- so much per turn


def test_leases_that_run_out_together_end_a_few_per_turn() -> None:
    turns, _ = leased(7, Settings(expire_messages=3))
    leave_all(turns)
    turns.now += SECOND
    ended = []
    while turns.queue("q").leases:
        assert turns.driven.due_ns() <= turns.now
        turns.one_pass()
        ended.append(turns.queue("q").counters.expired)
    assert ended == [3, 6, 7]


def test_an_ack_of_a_lease_that_waits_to_be_ended_counts() -> None:
    turns, ids = leased(5, Settings(expire_messages=2))
    leave_all(turns)
    turns.now += SECOND
    turns.one_pass()
    outcome, _ = turns.one_pass(Ack("q", ids, 1))
    assert outcome.replies == [[MESSAGE_NOT_FOUND] * 2 + [OK] * 3]


def test_dead_letters_go_back_a_step_per_turn_and_the_answer_tells_all_steps() -> None:
    turns, ids = leased(7, Settings(redrive_messages=3))
    leave_all(turns)
    turns.nack("q", ids, DEAD_LETTER)
    done: list[int | Rejection] = []
    assert turns.driven.redrive("q.dlq", 0, done.append) is None
    assert turns.driven.redriving("q.dlq")
    moved = []
    while not done:
        assert turns.driven.due_ns() == turns.now
        turns.one_pass()
        moved.append(turns.queue("q").pending)
    assert (moved, done) == ([3, 6, 7], [7])
    assert not turns.driven.redriving("q.dlq")
    assert turns.driven.due_ns() > turns.now


@pytest.mark.parametrize(("count", "moved"), [(3, 3), (0, 5), (100, 5)])
def test_a_redrive_moves_as_many_as_were_asked_for_and_there(count: int, moved: int) -> None:
    turns, ids = leased(7, Settings(redrive_messages=2))
    leave_all(turns)
    turns.nack("q", ids[:5], DEAD_LETTER)
    done: list[int | Rejection] = []
    turns.driven.redrive("q.dlq", count, done.append)
    turns.one_pass()
    turns.nack("q", ids[5:], DEAD_LETTER)  # came later
    while turns.driven.redriving("q.dlq"):
        turns.one_pass()
    assert done == [moved]
    assert (turns.queue("q").pending, turns.queue("q.dlq").pending) == (moved, 7 - moved)


def test_what_cannot_be_redriven_or_purged_is_said_at_once() -> None:
    turns, _ = leased()
    for queue, code in (("q", NOT_A_DLQ), ("nowhere.dlq", QUEUE_NOT_FOUND)):
        refused = turns.driven.redrive(queue, 0, lambda _: None)
        assert isinstance(refused, Rejection) and refused.code == code
    refused = turns.driven.purge("nowhere", None, "ops", lambda _: None)
    assert isinstance(refused, Rejection) and refused.code == QUEUE_NOT_FOUND
    assert turns.driven.due_ns() > turns.now


def test_a_purge_empties_some_lanes_per_turn_and_spares_what_comes_after_it_was_there() -> None:
    turns = Turns(Settings(purge_lanes=2))
    turns.create("q")
    for key in range(5):
        turns.enqueue("q", b"k%d" % key, count=10)
    done: list[int | Rejection] = []
    turns.driven.purge("q", None, "ops", done.append)
    left: list[int] = []
    while not done:
        # The first lane was emptied already, the last one was not.
        late = turns.messages("q", b"k0"), turns.messages("q", b"k4")
        turns.one_pass(*(late if left == [30] else ()))
        left.append(turns.queue("q").pending)
    assert left == [30, 12, 1]
    assert done == [51]


def test_a_purge_of_a_queue_that_is_deleted_meanwhile_ends() -> None:
    turns = Turns(Settings(purge_lanes=1))
    turns.create("q")
    for key in range(3):
        turns.enqueue("q", b"k%d" % key)
    done: list[int | Rejection] = []
    turns.driven.purge("q", None, "ops", done.append)
    turns.one_pass()
    turns.delete("q")
    assert done == [1]
    assert turns.driven.due_ns() == 0


def test_a_purge_leaves_a_queue_alone_that_was_made_again_under_its_name() -> None:
    turns = Turns(Settings(purge_lanes=1))
    turns.create("q")
    for key in range(9):
        turns.enqueue("q", b"k%d" % key, count=5)
    done: list[int | Rejection] = []
    turns.driven.purge("q", None, "ops", done.append)
    turns.one_pass()
    turns.one_pass(DeleteQueue("q"), CreateQueue("q"))
    kept = [id for key in range(8, 0, -1) for id in turns.enqueue("q", b"k%d" % key, count=4)]
    assert done == [5]
    assert turns.queue("q").pending == 32
    again = turns.restart()
    assert sorted(again.drain("q").ids()) == sorted(kept)


def test_a_redrive_leaves_queues_alone_that_were_made_again_under_their_names() -> None:
    turns = Turns(Settings(redrive_messages=2))
    turns.create("q")
    for parent_only in (False, True):
        ids = turns.enqueue("q", count=6)
        turns.consume("q", "c", prefetch=6)
        turns.nack("q", ids, DEAD_LETTER)
        turns.leave("q", "c")
        done: list[int | Rejection] = []
        turns.driven.redrive("q.dlq", 0, done.append)
        turns.one_pass()
        turns.one_pass(DeleteQueue("q"), CreateQueue("q"))
        if not parent_only:
            ids = turns.enqueue("q", count=3)
            turns.consume("q", "c", prefetch=3)
            turns.nack("q", ids, DEAD_LETTER)
            turns.leave("q", "c")
            assert turns.queue("q.dlq").pending == 3
        assert done == [2]
        assert not turns.driven.redriving("q.dlq")


# --- the commit


class Held:
    """A committer that keeps its callbacks, an outlet that notes what leaves."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.callbacks: list[Callable[[], None]] = []
        self.left: list[str] = []

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        if batches:
            self.store.write(batches)
        self.callbacks.append(committed)

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        assert effects.batches == [], "rows are not kept until a flush"
        delivered = sum(len(one.entries) for one in effects.deliveries)

        def let_go() -> None:
            self.left.append(f"{delivered} delivered")
            for call in calls:
                call()

        return let_go


def test_deliveries_and_calls_leave_with_the_commit_and_not_before() -> None:
    store = MemoryStore()
    held = Held(store)
    Turns(store=store).create("q")
    commands: list[Command] = [
        Consume("q", "c", 1, 10),
        Enqueue("q", [id_of(1)], [b"x"], [DEFAULT_ASSIGNMENT]),
    ]
    turn = Turn(load(store, Settings(), START), Defaults(), held, held)
    turn.begin(START)
    for command in commands:
        turn.apply(command)
    turn.after_commit(lambda: held.left.append("called"))
    turn.end()
    assert held.left == []
    held.callbacks[0]()
    assert held.left == ["1 delivered", "called"]


def test_what_is_applied_by_those_who_are_told_belongs_to_the_next_turn() -> None:
    """A message stored while the turn before is let go is not taken for stored with it."""
    turns = Turns(Settings(window_messages=1, page_messages=1))
    turns.create("q")
    first = turns.messages("q", count=3)
    late = turns.messages("q", count=3)
    driven = turns.driven
    driven.begin(turns.now)
    driven.apply(first)
    driven.after_commit(lambda: driven.begin(turns.now))
    driven.after_commit(lambda: _ignore(driven.apply(late)))
    driven.end()
    assert driven.is_open
    driven.end()
    assert turns.drain("q").ids() == first.ids + late.ids


def _ignore(reply: object) -> None:
    """What a call after a commit returns is nobody's."""


def test_a_turn_tells_its_own_commands_to_whoever_wants_them() -> None:
    turns, ids = leased()
    applied: list[Applied] = []
    turns.driven.applied = applied
    turns.now += SECOND
    turns.turn()
    assert [(type(one.command), one.reply) for one in applied] == [(Expire, 1)]
    assert isinstance(applied[0].command, Expire) and applied[0].command.ids == ids


# --- hooks


class CountingReader:
    """A store that counts how often each message row is read."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.reads: dict[bytes, int] = {}

    def get(self, family: int, key: bytes) -> bytes | None:
        self._count(family, [key])
        return self._store.get(family, key)

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        self._count(family, keys)
        return self._store.get_many(family, keys)

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        found = self._store.scan(family, start, end, rows_max, bytes_max)
        self._count(family, [key for key, _ in found])
        return found

    def snapshot(self) -> Reader:
        return self._store.snapshot()

    def _count(self, family: int, keys: list[bytes]) -> None:
        if family == rows.MESSAGES:
            for key in keys:
                self.reads[key] = self.reads.get(key, 0) + 1


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("how", ["nack", "expiry", "batch"])
def test_a_failure_hook_costs_one_read_of_each_message(how: str, count: int) -> None:
    turns = Turns()
    counted = CountingReader(turns.store)
    turns.machine.state.reader = counted
    turns.create("q", visibility_ms=1_000)
    ids = turns.enqueue("q", count=count)
    if how == "batch":
        turns.turn(Lease("q", "s/0", 1, count, 0, 1_000, count_attempt=True))
    else:
        turns.consume("q")
        turns.leave("q")
    turns.policy.on_failure_says = DEAD_LETTER
    if how == "nack":
        turns.turn(turns.driven.nack("q", ids, ["no"] * count, 1))
    else:
        turns.wait(SECOND)
    assert [item[:3:2] for item in turns.policy.failed] == [
        (id, b"no" if how == "nack" else b"visibility timeout expired") for id in ids
    ]
    assert turns.queue("q.dlq").pending == count
    assert sorted(counted.reads.values()) == [1] * count


def test_a_message_that_came_back_in_the_same_turn_is_read_as_it_is_now() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=1_000)
    ids = turns.enqueue("q")
    turns.consume("q", prefetch=1)
    for attempt in range(1, 4):
        turns.now += 10 * MS
        outcome = turns.turn(turns.driven.nack("q", ids, ["no"], 1))
        assert [entry[2] for entry in outcome.entries()] == [attempt]
    assert [item[1] for item in turns.policy.failed] == [1, 2, 3]
