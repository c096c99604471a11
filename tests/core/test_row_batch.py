from __future__ import annotations

from fila.core import rows
from fila.core.row_batch import DELETE_LEASE, DELETE_MESSAGE, PUT_LEASE, PUT_STATE
from tests.core.turn import Turns


def test_a_turn_writes_one_batch_per_group_with_rising_positions() -> None:
    turns = Turns()
    turns.create("q")
    turns.create("r")
    first = turns.turn(turns.messages("q"), turns.messages("r"), turns.messages("q"))
    second = turns.turn(turns.messages("q"), turns.messages("r"))
    positions = {batch.group: batch.position for batch in first.batches}
    assert len(positions) == len(first.batches) == 2
    for batch in second.batches:
        assert batch.position == positions[batch.group] + 1


def test_a_turn_that_changes_nothing_writes_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q")
    assert turns.turn().batches == []
    assert turns.wait(10**9).batches == []


def test_lease_operations_are_marked_volatile_and_nothing_else_is() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q")
    (made,) = turns.consume("q").batches
    assert [code for code, _, _ in made.volatile()] == [PUT_LEASE]
    (ended,) = turns.ack("q", ids).batches
    assert [code for code, _, _ in ended.volatile()] == [DELETE_LEASE]
    assert {code for code, _, _ in ended.ops} == {DELETE_MESSAGE, DELETE_LEASE, PUT_STATE}


def test_every_operation_fits_its_family() -> None:
    assert len(rows.FAMILIES) <= 8
