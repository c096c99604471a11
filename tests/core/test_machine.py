from __future__ import annotations

from fila.core.command import (
    Ack,
    Command,
    Consume,
    DeleteQueue,
    Enqueue,
    Expire,
    Leave,
    Nack,
    Redrive,
)
from fila.core.effect import EVENT_CONSUMER_JOINED, EVENT_CONSUMER_LEFT, EVENT_ENQUEUED
from fila.core.rejection import QUEUE_NOT_FOUND, Rejection
from fila.core.verdict import Assignment, FailureVerdict
from tests.core.turn import DEAD_LETTER, MS, SECOND, Turns, id_of


def test_every_command_for_an_unknown_queue_is_refused_and_writes_nothing() -> None:
    turns = Turns()
    commands: list[Command] = [
        Enqueue("x", [id_of(1)], [b"body.."], [Assignment(b"k", 1, ())]),
        Consume("x", "c", 1),
        Leave("x", "c"),
        Ack("x", [id_of(1)]),
        Nack("x", [id_of(1)], [""], [DEAD_LETTER]),
        Expire("x", 1, [], []),
        Redrive("x.dlq", [], []),
        DeleteQueue("x"),
    ]
    outcome = turns.turn(*commands)
    assert [reply.code for reply in outcome.replies if isinstance(reply, Rejection)] == [
        QUEUE_NOT_FOUND
    ] * len(commands)
    assert outcome.batches == []


def test_an_idle_machine_never_wants_to_wake() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=3)
    assert turns.machine.next_deadline() == 0


def test_the_machine_says_when_it_next_wants_to_wake() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=5_000)
    turns.limit("t", 1, 1)
    turns.consume("q", prefetch=100)
    turns.enqueue("q", b"a", delay_ms=9_000)
    assert turns.machine.next_deadline() == turns.now + 9 * SECOND  # a delay runs out
    turns.enqueue("q", b"b")
    assert turns.machine.next_deadline() == turns.now + 5 * SECOND  # a lease runs out
    turns.enqueue("q", b"c", count=2, throttle=(b"t",))
    assert turns.machine.next_deadline() == turns.now + 1 * SECOND  # a token is there


def test_what_falls_due_happens_in_its_order_even_if_time_jumps() -> None:
    turns = Turns()
    turns.create("q")
    late = turns.enqueue("q", b"late", delay_ms=2_000)
    soon = turns.enqueue("q", b"soon", delay_ms=1_000)
    turns.consume("q")
    turns.now += 3600 * SECOND
    assert turns.turn().ids() == soon + late


def test_time_that_jumps_ahead_counts_to_the_part_it_belongs_to() -> None:
    turns = Turns()
    turns.create("q")
    (id,) = turns.enqueue("q")
    turns.consume("q")
    turns.nack("q", [id], FailureVerdict(False, 1_000))
    turns.now += 10 * SECOND
    (wait,) = turns.turn().waits()
    assert wait.retry == 1 * SECOND
    assert sum(wait) == 10 * SECOND


def test_the_same_commands_at_the_same_times_give_the_same_batches() -> None:
    def story() -> list[object]:
        turns = Turns()
        turns.create("q", visibility_ms=1_000)
        turns.limit("t", 3, 2)
        told: list[object] = []
        for at in range(30):
            command = turns.messages("q", b"k%d" % (at % 4), 2, at % 3, ((), (b"t",))[at % 2])
            told.append(turns.turn(command).batches)
            if at % 4 == 0:
                told.append(turns.consume("q", f"c{at}", prefetch=2).batches)
            held = list(turns.queue("q").leased)
            told.append(turns.turn(Ack("q", held[:1], 0)).batches)
            told.append(turns.wait(200 * MS).batches)
        return told

    assert story() == story()


def test_an_empty_enqueue_changes_nothing() -> None:
    turns = Turns()
    turns.create("q")
    assert turns.turn(Enqueue("q", [], [], [])).batches == []


def test_one_enqueue_may_name_many_keys() -> None:
    turns = Turns()
    turns.create("q")
    a, b = Assignment(b"a", 2, ()), Assignment(b"b", 1, (b"t",))
    ids = [id_of(at) for at in range(1, 6)]
    turns.turn(Enqueue("q", ids, [b"body.."] * 5, [a, b, a, a, b]))
    outcome = turns.consume("q")
    assert outcome.keys() == [b"a", b"a", b"b", b"a", b"b"]
    assert outcome.ids() == [ids[0], ids[2], ids[1], ids[3], ids[4]]


def test_a_consumer_that_comes_and_goes_is_told_to_the_journal() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.enqueue("q")
    events = turns.consume("q", "c", prefetch=5).events + turns.leave("q", "c").events
    told = [(one.event, one.consumer, one.credit_delta) for one in events]
    assert (EVENT_CONSUMER_JOINED, "c", 5) in told
    assert (EVENT_CONSUMER_LEFT, "c", -4) in told


def test_an_enqueued_event_counts_the_keys_pending_messages() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    events = turns.turn(turns.messages("q", b"a", count=3, weight=2)).events
    assert [(one.event, one.key_pending, one.weight) for one in events] == [
        (EVENT_ENQUEUED, 1, 2),
        (EVENT_ENQUEUED, 2, 2),
        (EVENT_ENQUEUED, 3, 2),
    ]
