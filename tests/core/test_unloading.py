"""A log group leaves memory and comes back: nothing of it is lost, and everybody is told."""

from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.command import Ack, Consume, CreateQueue, DeleteQueue, Lease, PauseQueue
from fila.core.rejection import NODE_NOT_READY, QUEUE_ALREADY_EXISTS, Rejection
from fila.core.settings import Settings
from tests.core.turn import DEAD_LETTER, SECOND, Outcome, Turns


def two_queues(settings: Settings | None = None) -> Turns:
    """`moves` leaves, `stays` must not notice: they share a bucket."""
    turns = Turns(settings)
    turns.limit("t", 1_000, 1_000)
    for name in ("moves", "stays"):
        turns.create(name, visibility_ms=60_000)
        turns.enqueue(name, b"a", count=12, throttle=(b"t",))
        turns.enqueue(name, b"b", count=3, delay_ms=5_000)
        ids = turns.consume(name, name, prefetch=4).ids()
        turns.nack(name, ids[:1], DEAD_LETTER)
    return turns


def unload(turns: Turns, queue: str = "moves") -> Outcome:
    turns.driven.unload_group(turns.queue(queue).group.number, "it moves")
    return turns.turn()


def load(turns: Turns, number: int) -> Outcome:
    turns.driven.load_group(number)
    return turns.turn()


def code_of(reply: object) -> int:
    assert isinstance(reply, Rejection), reply
    return reply.code


def test_it_is_a_round_trip() -> None:
    turns = two_queues()
    turns.turn(Lease("moves", "s/0", 1, 2, 1 << 20, 60_000, 0, False))
    turns.turn(PauseQueue("moves.dlq", "to see", "ops"))
    number = turns.queue("moves").group.number
    stored = [dict(turns.rows(family)) for family in range(len(rows.FAMILIES))]
    leased = set(turns.queue("moves").leased)
    unload(turns)
    assert [dict(turns.rows(family)) for family in range(len(rows.FAMILIES))] == stored
    load(turns, number)
    assert set(turns.queue("moves").leased) == leased
    assert "s/0" in turns.queue("moves").lease_batches
    assert turns.queue("moves.dlq").pause is not None
    assert turns.queue("moves.dlq").pending == 1
    turns.ack("moves", [next(iter(leased))], connection=0)
    turns.wait(61 * SECOND)  # leases run out, delays, too
    turns.leave("stays", "stays", release=True)
    for name, left in (("moves", 13), ("stays", 14)):
        assert len(set(turns.consume(name, "all", prefetch=100, connection=7).ids())) == left


def test_consumers_and_those_who_wait_for_a_batch_are_told() -> None:
    turns = two_queues()
    turns.turn(Lease("moves.dlq", "s/0", 1, 100, 1 << 20, 60_000, 0, False))
    turns.turn(Lease("moves.dlq", "s/1", 2, 100, 1 << 20, 60_000, 30_000, False))
    outcome = unload(turns)
    assert [(one.consumer.id, one.why.code) for one in outcome.ended] == [("moves", NODE_NOT_READY)]
    assert "it moves" in outcome.ended[0].why.message
    assert [(one.request, code_of(one.gone)) for one in outcome.batches_leased] == [
        (2, NODE_NOT_READY)
    ]


def test_what_is_asked_meanwhile_is_refused_and_others_go_on() -> None:
    turns = two_queues()
    unload(turns)
    outcome = turns.turn(
        Ack("moves", [b"x" * 16]),
        Consume("moves", "c", 1, 1),
        DeleteQueue("moves"),
        CreateQueue("moves.dlq.dlq"),
        CreateQueue("moves"),
    )
    codes = [code_of(reply) for reply in outcome.replies]
    assert codes == [*[NODE_NOT_READY] * 4, QUEUE_ALREADY_EXISTS]
    assert turns.drain("stays", "again", connection=7).ids()


def test_jobs_end_with_a_reason() -> None:
    turns = two_queues(Settings(redrive_messages=1, job_work=1, purge_lanes=1, job_lanes=1))
    turns.turn(PauseQueue("moves", "to see", "ops"))
    number = turns.queue("moves").group.number
    answers: list[object] = []
    turns.driven.purge("moves", None, "ops", answers.append)
    turns.driven.redrive("moves.dlq", 0, answers.append)
    unload(turns)
    load(turns, number)  # it is another queue to them
    turns.turn()
    assert [code_of(one) for one in answers] == [NODE_NOT_READY, NODE_NOT_READY]


def test_what_fell_due_meanwhile_does_so_with_the_next_turn() -> None:
    turns = two_queues()
    number = turns.queue("moves").group.number
    unload(turns)
    turns.wait(120 * SECOND)
    assert number not in turns.machine.state.groups
    load(turns, number)
    assert turns.queue("moves").leased == {}


def test_a_hidden_queue_stays_hidden_and_a_shown_one_shown() -> None:
    turns = two_queues()
    number = turns.queue("moves").group.number
    turns.delete("moves.dlq")
    unload(turns)
    load(turns, number)
    assert "moves.dlq" not in turns.machine.state.queues
    turns.nack("moves", list(turns.queue("moves").leased)[:1], DEAD_LETTER, connection=0)
    unload(turns)
    load(turns, number)
    assert turns.queue("moves.dlq").pending == 1


@pytest.mark.parametrize("prefix", [rows.LANE_PREFIX, rows.LEDGER_PREFIX])
def test_a_group_that_cannot_be_read_again_is_quarantined(prefix: bytes) -> None:
    turns = two_queues()
    group = turns.queue("moves").group.number
    unload(turns)
    damaged = turns.rows(rows.STATE, prefix + rows.queue_prefix(group))[0][0]
    turns.store.unreadable = {(rows.STATE, damaged)}
    load(turns, group)
    assert set(turns.machine.view.quarantined) == {"moves", "moves.dlq"}
    turns.store.unreadable = set()
    assert turns.restart().queue("moves").pending


def test_a_start_serves_all_of_them() -> None:
    turns = two_queues()
    unload(turns)
    again = turns.restart()
    assert set(again.machine.state.queues) == {"moves", "moves.dlq", "stays", "stays.dlq"}
