from __future__ import annotations

from fila.core import rows
from fila.core.command import Ack, Expire, HandBack, Leave, Nack
from fila.core.effect import (
    EVENT_ACKED,
    EVENT_DEAD_LETTERED,
    EVENT_EXPIRED,
    EVENT_NACKED,
    EVENT_RELEASED,
    EVENT_REQUEUED,
)
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, message_id
from fila.core.obituary import original
from fila.core.rejection import MESSAGE_NOT_FOUND, OK, QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.verdict import RETRY_NOW, FailureVerdict
from tests.core.turn import DEAD_LETTER, MS, SECOND, Turns, id_of


def leased(
    count: int = 1, prefetch: int = 100, settings: Settings | None = None
) -> tuple[Turns, list[bytes]]:
    """A queue whose first `count` messages consumer c of connection 1 holds."""
    turns = Turns(settings)
    turns.create("q")
    ids = turns.enqueue("q", count=count)
    turns.consume("q", "c", prefetch=prefetch)
    return turns, ids


def not_found(turns: Turns, id: bytes, connection: int = 1) -> None:
    """Neither ack nor nack finds it, and neither changes anything."""
    queue = turns.queue("q")
    before = (queue.pending, dict(queue.leased), turns.rows(rows.MESSAGES), turns.rows(rows.LEASES))
    assert turns.turn(Ack("q", [id], connection)).replies == [[MESSAGE_NOT_FOUND]]
    nack = Nack("q", [id], ["no"], [RETRY_NOW], connection)
    assert turns.turn(nack).replies == [[MESSAGE_NOT_FOUND]]
    assert turns.machine.failed("q", [id], connection) == [None]
    after = (queue.pending, dict(queue.leased), turns.rows(rows.MESSAGES), turns.rows(rows.LEASES))
    assert before == after


# --- ack


def test_an_ack_finishes_a_message_in_memory_and_in_the_store() -> None:
    turns, ids = leased(2)
    turns.ack("q", ids)
    assert turns.rows(rows.MESSAGES) == []
    assert turns.rows(rows.LEASES) == []
    assert turns.queue("q").leased == {}
    assert turns.queue("q").leases == {}


def test_a_lease_row_stays_until_its_last_message_is_finished() -> None:
    turns, ids = leased(3)
    turns.ack("q", ids[:2])
    assert len(turns.rows(rows.LEASES)) == 1
    turns.ack("q", ids[2:])
    assert turns.rows(rows.LEASES) == []


def test_an_unknown_id_is_not_found() -> None:
    turns, _ = leased()
    not_found(turns, id_of(999_999))


def test_a_pending_message_is_not_found() -> None:
    turns, ids = leased(3, prefetch=1)
    not_found(turns, ids[1])


def test_a_finished_message_is_not_found() -> None:
    turns, ids = leased(2)
    turns.ack("q", ids[:1])
    not_found(turns, ids[0])


def test_in_one_ack_each_message_gets_its_own_answer() -> None:
    turns, ids = leased(2)
    outcome = turns.turn(Ack("q", [ids[0], id_of(77), ids[0], ids[1]], 1))
    assert outcome.replies == [[OK, MESSAGE_NOT_FOUND, MESSAGE_NOT_FOUND, OK]]


def test_an_ack_for_an_unknown_queue_says_so() -> None:
    (reply,) = Turns().turn(Ack("nowhere", [id_of(1)], 1)).replies
    assert isinstance(reply, Rejection)
    assert reply.code == QUEUE_NOT_FOUND
    assert '"nowhere" does not exist' in reply.message


# --- nack


def test_a_nacked_message_goes_to_the_back_of_its_line_with_one_attempt_more() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    turns.consume("q", prefetch=1)
    turns.wait(SECOND)
    enqueued_at = turns.now - SECOND
    assert turns.nack("q", ids[:1]).ids() == [ids[1]]
    turns.ack("q", [ids[1]])
    (entry,) = turns.ack("q", [ids[2]]).entries()
    assert message_id(entry) == ids[0]
    assert (entry[ATTEMPTS], entry[ENQUEUED_NS]) == (1, enqueued_at)


def test_the_hook_sees_the_failure_already_counted() -> None:
    turns, ids = leased()
    turns.turn(turns.driven.nack("q", ids, ["no"], 1))
    turns.turn(turns.driven.nack("q", ids, ["no again"], 1))
    body = ids[0][-8:]
    assert turns.policy.failed == [(ids[0], 1, b"no", body), (ids[0], 2, b"no again", body)]


def test_attempts_rise_with_every_failure_without_end() -> None:
    turns, ids = leased()
    for attempt in range(1, 50):
        assert turns.nack("q", ids).entries()[0][ATTEMPTS] == attempt


def test_a_retry_with_a_delay_is_ready_exactly_then() -> None:
    turns, ids = leased()
    turns.nack("q", ids, FailureVerdict(False, 1_500))
    assert turns.machine.next_deadline() == turns.now + 1_500 * MS
    assert turns.wait(1_500 * MS - 1).ids() == []
    assert turns.wait(1).ids() == ids


def test_a_delayed_message_does_not_hold_up_those_behind_it() -> None:
    turns, ids = leased()
    turns.nack("q", ids, FailureVerdict(False, 60_000))
    command = turns.messages("q")
    assert turns.turn(command).ids() == command.ids


def test_a_dead_letter_keeps_its_id_body_keys_weight_and_attempts() -> None:
    turns = Turns()
    turns.create("q")
    command = turns.messages("q", b"tenant", weight=4, throttle=(b"x",))
    turns.turn(command)
    enqueued_at = turns.now
    turns.consume("q")
    turns.nack("q", command.ids)
    turns.wait(SECOND)
    turns.nack("q", command.ids, DEAD_LETTER)
    assert turns.queue("q").pending == len(turns.queue("q").leased) == 0
    (delivery,) = turns.consume("q.dlq", "d").deliveries
    (entry,), (lane,) = delivery.entries, delivery.lanes
    assert message_id(entry) == command.ids[0]
    assert original(entry[BODY]) == command.bodies[0]
    assert (entry[ATTEMPTS], entry[WEIGHT], entry[ENQUEUED_NS]) == (2, 4, enqueued_at)
    assert (lane.key.name, lane.throttle_keys) == (b"tenant", (b"x",))


def test_the_move_to_the_dead_letters_is_one_batch() -> None:
    turns, ids = leased()
    outcome = turns.nack("q", ids, DEAD_LETTER)
    (batch,) = outcome.batches
    message_ops = [code & ~7 for code, _, _ in batch.ops if code & 7 == rows.MESSAGES]
    assert sorted(message_ops) == [0, 8]


def test_a_dead_letter_that_fails_as_dead_letter_is_retried_where_it_is() -> None:
    turns, ids = leased()
    turns.nack("q", ids, DEAD_LETTER)
    turns.consume("q.dlq", "d", connection=2)
    assert turns.nack("q.dlq", ids, DEAD_LETTER, connection=2).ids() == ids


# --- running out


def test_a_lease_that_runs_out_is_a_failure_like_a_nack() -> None:
    turns, ids = leased(2)
    assert turns.wait(30 * SECOND - 1).ids() == []
    entries = turns.wait(1).entries()
    assert [message_id(entry) for entry in entries] == ids
    assert [entry[ATTEMPTS] for entry in entries] == [1, 1]


def test_only_what_a_lease_still_holds_runs_out() -> None:
    turns, ids = leased(3)
    turns.ack("q", [ids[1]])
    turns.wait(30 * SECOND)
    assert turns.queue("q").counters.expired == 2


def test_a_lease_that_runs_out_can_lead_to_the_dead_letters() -> None:
    turns, ids = leased()
    turns.policy.on_failure_says = DEAD_LETTER
    turns.wait(30 * SECOND)
    assert turns.consume("q.dlq", "d").ids() == ids


def test_leases_run_out_each_at_its_own_time() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=1_000)
    turns.consume("q")
    turns.enqueue("q")
    turns.wait(400 * MS)
    turns.enqueue("q")
    first = turns.wait(600 * MS)
    assert [message_id(entry) for entry in first.entries()] == [id_of(1)]
    second = turns.wait(400 * MS)
    assert [message_id(entry) for entry in second.entries()] == [id_of(2)]


def test_an_expiry_that_comes_too_late_changes_nothing() -> None:
    turns, ids = leased()
    turns.now += 30 * SECOND
    turns.machine.advance(turns.now)
    due = turns.machine.due_lease()
    assert due == ("q", 1, ids, False)
    turns.machine.apply(Ack("q", ids, 1))
    assert turns.machine.apply(Expire("q", 1, ids, [RETRY_NOW])) == 0
    assert turns.machine.due_lease() is None


def test_a_lease_that_is_finished_in_time_wakes_nobody_for_long() -> None:
    turns, ids = leased()
    turns.ack("q", ids)
    assert turns.wait(3600 * SECOND).batches == []
    assert turns.machine.next_deadline() == 0


# --- who may settle


def test_an_ack_may_come_over_a_connection_that_does_not_consume_the_queue() -> None:
    turns, ids = leased()
    assert turns.ack("q", ids, connection=99).replies == [[OK]]


def test_a_lease_of_a_lost_connection_can_be_settled_from_anywhere() -> None:
    turns, ids = leased(3)
    turns.turn(Leave("q", "c"))
    turns.consume("q", "other", connection=2)
    assert turns.turn(Ack("q", ids[:1], 2)).replies == [[OK]]
    assert turns.turn(Ack("q", ids[1:2], 0)).replies == [[OK]]
    assert turns.turn(Nack("q", ids[2:], ["x"], [RETRY_NOW], 7)).replies == [[OK]]


def test_a_late_ack_by_the_old_consumer_is_not_found_when_another_holds_the_message() -> None:
    turns, ids = leased(prefetch=1)
    turns.consume("q", "second", prefetch=1, connection=2)
    turns.now += 30 * SECOND
    # The first consumer's credit comes back last in the round, so the second gets the message.
    assert turns.turn().ids("second") == ids
    not_found(turns, ids[0], connection=1)
    assert turns.ack("q", ids, connection=2).replies == [[OK]]


def test_after_its_lease_ran_out_a_pending_message_is_not_found() -> None:
    turns, ids = leased()
    turns.turn(Leave("q", "c"))
    turns.wait(30 * SECOND)
    assert turns.queue("q").pending == 1
    not_found(turns, ids[0])


def test_two_consumers_of_one_connection_settle_for_each_other() -> None:
    turns, ids = leased(2, prefetch=1)
    turns.consume("q", "twin", prefetch=1, connection=1)
    assert turns.ack("q", ids, connection=1).replies == [[OK, OK]]


# --- handing back


def test_a_graceful_leave_hands_messages_back_to_their_old_place_without_an_attempt() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.consume("q", "c", prefetch=3)
    turns.ack("q", [ids[1]])
    assert turns.leave("q", "c", release=True).replies == [1]
    entries = turns.consume("q", "d").entries()
    assert [message_id(entry) for entry in entries] == [ids[0], ids[2], ids[3]]
    assert [entry[ATTEMPTS] for entry in entries] == [0, 0, 0]


def test_handing_back_removes_the_lease_rows() -> None:
    turns, _ = leased(3)
    turns.leave("q", "c", release=True)
    assert turns.rows(rows.LEASES) == []
    assert len(turns.rows(rows.MESSAGES)) == 3


def test_a_leave_without_release_keeps_the_leases_until_they_run_out() -> None:
    turns, ids = leased(2)
    assert turns.leave("q", "c").replies == [1]
    assert turns.queue("q").pending == 0
    turns.wait(30 * SECOND)
    assert turns.consume("q", "d").ids() == ids


def test_a_consumer_that_is_gone_gets_nothing_more() -> None:
    turns, ids = leased(1)
    turns.leave("q", "c")
    turns.enqueue("q")
    assert turns.turn(Ack("q", ids, 1)).ids() == []


def test_leaving_twice_is_no_mistake() -> None:
    turns, _ = leased()
    turns.leave("q", "c")
    assert turns.leave("q", "c", release=True).replies == [0]


def test_what_is_handed_back_goes_to_another_consumer_in_the_same_turn() -> None:
    turns, ids = leased(2)
    turns.consume("q", "d", connection=2)
    assert turns.leave("q", "c", release=True).ids("d") == ids


def test_a_goodbye_hands_back_what_departed_consumers_of_the_connection_hold() -> None:
    turns, ids = leased(4, prefetch=2)
    turns.consume("q", "other", prefetch=2, connection=2)
    turns.leave("q", "c")  # cancelled, its leases stay
    assert turns.turn(HandBack("q", 1)).replies == [1]
    assert turns.queue("q").pending == 2
    entries = turns.consume("q", "next", connection=3).entries()
    assert [message_id(entry) for entry in entries] == ids[:2]
    assert [entry[ATTEMPTS] for entry in entries] == [0, 0]
    assert {one[0].consumer.id for one in turns.queue("q").leased.values() if one[0].consumer} == {
        "other",
        "next",
    }


def test_a_goodbye_of_a_connection_that_holds_nothing_changes_nothing() -> None:
    turns, ids = leased(1)
    assert turns.turn(HandBack("q", 5)).replies == [0]
    assert list(turns.queue("q").leased) == ids


# --- counters and events


def test_counters_tell_what_happened() -> None:
    turns, ids = leased(5)
    turns.ack("q", ids[:1])
    turns.nack("q", ids[1:2])
    turns.nack("q", ids[2:3], DEAD_LETTER)
    turns.leave("q", "c", release=True)
    counters = turns.queue("q").counters
    assert counters.enqueued == 5
    assert counters.delivered == 6
    assert (counters.acked, counters.nacked, counters.dead_lettered) == (1, 2, 1)
    assert (counters.requeued, counters.released) == (1, 3)


def test_the_journal_hears_every_end_of_a_lease() -> None:
    turns, ids = leased(5)
    turns.machine.record_events(True)
    events = turns.ack("q", ids[:1]).events
    events += turns.nack("q", ids[1:2]).events
    events += turns.nack("q", ids[2:3], DEAD_LETTER).events
    events += turns.turn(Leave("q", "c")).events
    turns.policy.on_failure_says = FailureVerdict(False, 1_000)
    events += turns.wait(30 * SECOND).events
    told = [(one.event, one.attempt) for one in events]
    for expected in [
        (EVENT_ACKED, 0),
        (EVENT_NACKED, 1),
        (EVENT_REQUEUED, 1),
        (EVENT_DEAD_LETTERED, 1),
        (EVENT_EXPIRED, 1),
    ]:
        assert expected in told
    dead = next(one for one in events if one.event == EVENT_DEAD_LETTERED)
    assert (dead.queue, dead.source_queue, dead.error) == ("q.dlq", "q", "failed")
    expired = next(one for one in events if one.event == EVENT_EXPIRED)
    assert expired.error == "visibility timeout expired"


def test_the_journal_hears_of_messages_handed_back() -> None:
    turns, ids = leased(2)
    turns.machine.record_events(True)
    events = turns.leave("q", "c", release=True).events
    assert [one.message_id for one in events if one.event == EVENT_RELEASED] == ids


def test_a_retry_in_the_moment_a_delay_ended_is_not_claimed_by_the_old_lease() -> None:
    turns = Turns()
    turns.create("q")
    other = turns.enqueue("q", b"a")
    turns.consume("q", prefetch=2)
    turns.ack("q", other)
    (late,) = turns.enqueue("q", b"a", delay_ms=100)
    (early,) = turns.enqueue("q", b"b", delay_ms=100)
    assert turns.wait(100 * MS).ids() == [late, early]  # one lease, exactly on time
    turns.leave("q")
    turns.nack("q", [late])
    turns = turns.restart()
    assert [lease.remaining for lease in turns.queue("q").leases.values()] == [1]
    assert turns.consume("q").ids() == [late]
    turns.ack("q", [late, early])
    assert turns.queue("q").leases == {}
