from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.command import Consume, Leave, Nack, Redrive
from fila.core.effect import EVENT_REDRIVEN
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, message_id
from fila.core.rejection import NOT_A_DLQ, PARENT_QUEUE_NOT_FOUND, QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.verdict import Assignment, FailureVerdict
from tests.core.turn import DEAD_LETTER, MS, SECOND, Turns


def dead_letters(
    lanes: list[tuple[bytes, tuple[bytes, ...]]], settings: Settings | None = None
) -> tuple[Turns, list[bytes]]:
    """A DLQ with one message per item, each a millisecond younger than the one before."""
    turns = Turns(settings)
    turns.create("q")
    turns.consume("q")
    ids = []
    for key, throttle in lanes:
        ids += turns.enqueue("q", key, throttle=throttle)
        turns.nack("q", ids[-1:], DEAD_LETTER)
        turns.wait(MS)
    turns.leave("q")
    return turns, ids


def oldest_ids(turns: Turns, count: int) -> list[bytes]:
    return [message_id(entry) for entry in turns.machine.oldest("q.dlq", count)]


LANES = [(b"a", ()), (b"b", ()), (b"a", (b"x",)), (b"a", ()), (b"c", ()), (b"b", ())]


def test_the_oldest_across_all_lanes_comes_first() -> None:
    turns, ids = dead_letters(LANES)
    assert oldest_ids(turns, 100) == ids
    assert oldest_ids(turns, 3) == ids[:3]


def test_looking_takes_nothing_out() -> None:
    turns, _ = dead_letters(LANES)
    oldest_ids(turns, 100)
    assert turns.queue("q.dlq").pending == 6


def test_messages_move_back_with_attempts_zero_and_their_id() -> None:
    turns, ids = dead_letters([(b"a", ()), (b"b", ())])
    enqueued = [entry[ENQUEUED_NS] for entry in turns.machine.oldest("q.dlq", 2)]
    assert turns.redrive("q.dlq", 2, key=b"z").replies == [2]
    outcome = turns.consume("q", "again")
    assert outcome.ids() == ids
    assert outcome.keys() == [b"z", b"z"]
    assert [entry[ATTEMPTS] for entry in outcome.entries()] == [0, 0]
    assert [entry[ENQUEUED_NS] for entry in outcome.entries()] == enqueued
    assert [entry[BODY][:8] for entry in outcome.entries()] == [id[-8:] for id in ids]


def test_a_move_is_one_batch_and_leaves_one_row_per_message() -> None:
    turns, ids = dead_letters(LANES)
    outcome = turns.redrive("q.dlq", 4)
    assert len(outcome.batches) == 1
    stored = [key[rows.ID_AT :] for key, _ in turns.rows(rows.MESSAGES)]
    assert sorted(stored) == sorted(ids)
    turns = turns.restart()
    assert (turns.queue("q").pending, turns.queue("q.dlq").pending) == (4, 2)


def test_only_as_many_as_asked_for_move() -> None:
    turns, ids = dead_letters(LANES)
    turns.redrive("q.dlq", 2)
    assert turns.machine.redrivable("q.dlq") == 4
    assert oldest_ids(turns, 10) == ids[2:]


def test_leased_dead_letters_stay() -> None:
    turns, ids = dead_letters(LANES)
    held = turns.consume("q.dlq", "d", prefetch=2).ids()
    assert turns.machine.redrivable("q.dlq") == 4
    rest = [id for id in ids if id not in held]
    assert oldest_ids(turns, 10) == rest
    turns.redrive("q.dlq", 10)
    assert list(turns.queue("q.dlq").leased) == held
    turns.leave("q", "none")
    assert turns.consume("q", "again").ids() == rest


def test_a_message_that_was_delivered_in_between_is_not_moved() -> None:
    turns, ids = dead_letters(LANES)
    chosen = oldest_ids(turns, 3)
    turns.consume("q.dlq", "d", prefetch=1)
    command = Redrive("q.dlq", chosen, [Assignment(b"k", 1, ())] * 3)
    assert turns.turn(command).replies == [0]
    assert turns.queue("q").pending == 0
    assert len(turns.queue("q.dlq").leased) == 1
    assert ids[0] in turns.queue("q.dlq").leased


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_deep_dead_letter_queue_moves_step_by_step_in_order(window: int) -> None:
    settings = Settings(window_messages=window, page_messages=2)
    lanes: list[tuple[bytes, tuple[bytes, ...]]]
    lanes = [(b"ab"[at % 2 : at % 2 + 1], ()) for at in range(14)]
    turns, ids = dead_letters(lanes, settings)
    steps = 0
    while turns.machine.redrivable("q.dlq"):
        turns.redrive("q.dlq", 5)
        steps += 1
        assert steps < 20, "every step moves something"
    turns.consume("q", "again", prefetch=100)
    assert list(turns.queue("q").leased) == ids


def test_the_parent_delivers_redriven_messages_in_the_same_turn() -> None:
    turns, ids = dead_letters([(b"a", ())])
    turns.consume("q", "again")
    assert turns.redrive("q.dlq", 1).ids() == ids


def test_the_journal_hears_of_it() -> None:
    turns, ids = dead_letters([(b"a", ())])
    turns.machine.record_events(True)
    (event,) = [one for one in turns.redrive("q.dlq", 1).events if one.event == EVENT_REDRIVEN]
    assert (event.queue, event.source_queue, event.message_id) == ("q", "q.dlq", ids[0])


# --- mistakes


def refusal(turns: Turns, queue: str) -> Rejection:
    (reply,) = turns.turn(Redrive(queue, [], [])).replies
    assert isinstance(reply, Rejection)
    assert turns.machine.redrivable(queue) == reply
    return reply


def test_an_unknown_queue_cannot_be_redriven() -> None:
    assert refusal(Turns(), "nowhere.dlq").code == QUEUE_NOT_FOUND


def test_a_queue_that_is_no_dead_letter_queue_cannot_be_redriven() -> None:
    turns = Turns()
    turns.create("q")
    reply = refusal(turns, "q")
    assert reply.code == NOT_A_DLQ
    assert '"q" is not a dead-letter queue' in reply.message


def test_without_the_parent_queue_the_answer_says_to_create_it() -> None:
    turns = Turns()
    turns.create("q.dlq")
    reply = refusal(turns, "q.dlq")
    assert reply.code == PARENT_QUEUE_NOT_FOUND
    assert 'queue "q"' in reply.message
    assert "create it first" in reply.message


# --- what a redrive must not upset


def test_a_redriven_weight_below_one_counts_as_one() -> None:
    turns, ids = dead_letters([(b"a", ())])
    turns.limit("t", 1, 1)
    turns.turn(Redrive("q.dlq", ids, [Assignment(b"k", 0, (b"t",))]))
    assert turns.queue("q").keys[b"k"].weight == 1
    assert turns.consume("q", "again").ids() == ids


def test_a_delayed_dead_letter_does_not_go_early_when_a_redrive_makes_it_the_head() -> None:
    turns, ids = dead_letters([(b"a", (b"t",))] * 3)
    turns.limit("t", 1, 1)
    turns.consume("q.dlq", "d", connection=2)  # takes the first; its lane parks on the bucket
    turns.nack("q.dlq", ids[:1], FailureVerdict(False, 60_000), connection=2)
    assert turns.redrive("q.dlq", 2, key=b"z").replies == [2]
    assert turns.wait(30 * SECOND).ids("d") == []
    assert turns.wait(31 * SECOND).ids("d") == ids[:1]


def test_a_redriven_message_does_not_come_back_with_a_page_of_the_same_turn() -> None:
    turns, ids = dead_letters([(b"a", ())] * 2, Settings(window_messages=1, page_messages=10))
    turns.consume("q.dlq", "d", prefetch=1, connection=2)
    (late,) = turns.enqueue("q", b"a")
    turns.consume("q", "e", prefetch=1, connection=3)
    turns.leave("q", "e")
    assert oldest_ids(turns, 1) == ids[1:]
    outcome = turns.turn(
        Redrive("q.dlq", ids[1:], [Assignment(b"z", 1, ())]),
        Leave("q.dlq", "d", release=True),
        Nack("q", [late], ["failed"], [DEAD_LETTER]),
        Consume("q.dlq", "f", 4),
    )
    assert outcome.ids("f") == [ids[0], late]


def test_a_dead_letter_redriven_before_its_time_does_not_hold_the_window_open() -> None:
    turns = Turns(Settings(window_messages=4))
    turns.create("q")
    turns.enqueue("q.dlq", delay_ms=3_600_000)
    assert turns.redrive("q.dlq", 1).replies == [1]
    ids = turns.enqueue("q.dlq", count=100)
    for _ in range(100):
        ids += turns.enqueue("q.dlq")
    (lane,) = turns.queue("q.dlq").keys[b"k"].lanes.values()
    assert len(lane.window) <= 8
    assert turns.consume("q.dlq", prefetch=1000).ids() == ids
