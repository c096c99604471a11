"""A queue and its dead-letter queue share a log group, and a command writes one group."""

from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.row_batch import RowBatch
from tests.core.old_groups import in_two_groups
from tests.core.turn import DEAD_LETTER, Turns


def ledgers(turns: Turns) -> set[int]:
    return {rows.owner_of_state(key) for key, _ in turns.rows(rows.STATE, rows.LEDGER_PREFIX)}


@pytest.mark.parametrize(
    "names",
    [("q", "q.dlq"), ("q.dlq", "q"), ("q.dlq.dlq", "q"), ("q.dlq.dlq", "q.dlq", "q")],
)
def test_kin_share_a_group_in_whatever_order_they_come(names: tuple[str, ...]) -> None:
    turns = Turns()
    for name in names:
        if name not in turns.machine.state.queues:
            turns.create(name)
    turns.create("other")
    groups = {turns.queue(name).group for name in (*names, "q", "q.dlq")}
    assert len(groups) == 1
    assert turns.queue("other").group not in groups
    again = turns.restart()
    assert len({again.queue(name).group for name in (*names, "q", "q.dlq")}) == 1


def test_a_dead_letter_whose_queue_was_deleted_writes_one_group() -> None:
    turns = Turns()
    turns.create("q")
    (id,) = turns.enqueue("q")
    turns.delete("q.dlq")
    assert "q.dlq" not in turns.machine.state.queues
    turns.consume("q")
    outcome = turns.nack("q", [id], DEAD_LETTER)
    assert [batch.group for batch in outcome.batches] == [turns.queue("q").group.number]
    assert turns.queue("q.dlq").pending == 1


def test_a_deleted_dead_letter_queue_stays_away_over_restarts_until_it_is_needed() -> None:
    turns = Turns()
    turns.create("q")
    turns.delete("q.dlq")
    for _ in range(2):
        turns = turns.restart()
        assert set(turns.machine.state.queues) == {"q"}
    (id,) = turns.enqueue("q")
    turns.consume("q")
    turns.nack("q", [id], DEAD_LETTER)
    for _ in range(2):
        turns = turns.restart()
        assert turns.queue("q.dlq").pending == 1
    turns.drain("q.dlq")
    assert turns.restart().queue("q.dlq").pending == 0  # made, and there
    turns.delete("q.dlq")
    assert set(turns.restart().machine.state.queues) == {"q"}


def test_a_hidden_queue_can_be_made_by_hand_and_goes_with_its_queue() -> None:
    turns = Turns()
    turns.create("q")
    turns.delete("q.dlq")
    turns.create("q.dlq", visibility_ms=7_000)
    turns = turns.restart()
    assert turns.queue("q.dlq").visibility_ms == 7_000
    turns.delete("q.dlq")
    turns.delete("q")
    assert turns.rows(rows.QUEUES) == []
    assert turns.restart().machine.state.hidden == {}


def test_a_group_that_ends_takes_its_rows_along_in_its_own_batch() -> None:
    turns = Turns()
    turns.create("stays")
    turns.create("q")
    group = turns.queue("q").group.number
    turns.enqueue("q", count=3)
    turns.consume("q", prefetch=1)
    made = {batch.group: batch for batch in turns.delete("q").batches}
    assert set(made) == {0, group}
    own = {rows.owner_of(code & 7, key) for code, key, _ in made[0].ops}
    assert own == {None}
    assert ledgers(turns) == {0, turns.queue("stays").group.number}
    assert turns.rows(rows.MESSAGES) == []


def test_a_queue_made_and_deleted_in_one_turn_leaves_nothing() -> None:
    from fila.core.command import CreateQueue, DeleteQueue

    turns = Turns()
    turns.turn(CreateQueue("q"), turns.messages("q"), DeleteQueue("q"))
    assert turns.rows(rows.QUEUES) == turns.rows(rows.MESSAGES) == []
    assert ledgers(turns) == {0}


# --- stores of an older Fila


def test_what_was_in_two_groups_moves_into_one_with_the_first_turn() -> None:
    turns = in_two_groups().restart()
    group = turns.queue("x").group
    assert turns.queue("x.dlq").group is group
    turns.turn()
    assert ledgers(turns) == {0, group.number}
    for again in (turns, turns.restart()):
        assert again.queue("x").group.number == again.queue("x.dlq").group.number
        assert again.queue("x").pending == 5
        assert len(again.queue("x").leased) == 2
        assert again.queue("x.dlq").pending == 3
    assert len(turns.drain("x.dlq").ids()) == 3
    outcome = turns.nack("x", list(turns.queue("x").leased)[:1], DEAD_LETTER)
    assert [batch.group for batch in outcome.batches] == [group.number]
    assert len(turns.restart().drain("x").ids()) == 5


def test_a_death_before_the_first_turn_changes_nothing() -> None:
    turns = in_two_groups()
    before = [dict(turns.rows(family)) for family in range(len(rows.FAMILIES))]
    again = turns.restart().restart()
    assert [dict(again.rows(family)) for family in range(len(rows.FAMILIES))] == before
    assert again.queue("x").pending == 5


def test_a_queue_without_a_dead_letter_queue_gets_a_hidden_one() -> None:
    turns = Turns()
    turns.create("q")
    turns.store.write([RowBatch(0, 0, [(8 | rows.QUEUES, b"q.dlq", b"")])])
    turns = turns.restart()
    assert set(turns.machine.state.queues) == {"q"}
    (id,) = turns.enqueue("q")
    turns.consume("q")
    turns.nack("q", [id], DEAD_LETTER)
    assert turns.restart().queue("q.dlq").pending == 1
