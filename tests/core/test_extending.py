"""Leases that get more time, and the limit of attempts."""

from __future__ import annotations

from fila.core import rows
from fila.core.command import Ack, CreateQueue, Expire, Extend, Lease, Leave, Release
from fila.core.rejection import INVALID_CONFIG_VALUE, MESSAGE_NOT_FOUND, OK, Rejection
from fila.core.verdict import FailureVerdict
from tests.core.turn import SECOND, Turns


def leased(count: int = 1, visibility_ms: int = 1_000) -> tuple[Turns, list[bytes]]:
    turns = Turns()
    turns.turn(CreateQueue("q", None, None, visibility_ms))
    ids = turns.enqueue("q", count=count)
    turns.consume("q", "c", prefetch=100)
    return turns, ids


def waits(turns: Turns) -> int:
    """How many messages of q are leased."""
    return len(turns.queue("q").leased)


def test_an_extended_message_is_not_redelivered_before_its_new_time() -> None:
    turns, ids = leased(visibility_ms=1_000)
    turns.wait(SECOND // 2)
    assert turns.turn(Extend("q", ids, 0, 1)).replies == [[OK]]
    assert turns.wait(SECOND - 1).ids() == []
    assert turns.wait(1).ids() == ids  # it ran out, and came again


def test_the_other_messages_of_the_lease_keep_their_time() -> None:
    turns, ids = leased(4)
    turns.turn(Extend("q", ids[1:3], 5_000, 1))
    assert turns.wait(SECOND).ids() == [ids[0], ids[3]]
    assert turns.wait(4 * SECOND - 1).ids() != ids[1:3]
    assert ids[1] in turns.queue("q").leased


def test_a_lease_may_be_cut_shorter() -> None:
    turns, ids = leased(2, visibility_ms=60_000)
    turns.turn(Extend("q", ids[1:], 2_000, 1))
    assert turns.wait(2 * SECOND).ids() == ids[1:]
    assert turns.wait(57 * SECOND).ids().count(ids[0]) == 0


def test_an_extension_survives_a_restart() -> None:
    turns, ids = leased(3)
    turns.turn(Extend("q", ids[:1], 60_000, 1))
    turns.turn(Extend("q", ids[1:], 90_000, 1))
    again = turns.restart(10 * SECOND)
    again.consume("q", "d", connection=2)
    assert again.wait(49 * SECOND).ids() == []
    assert again.wait(SECOND).ids() == ids[:1]
    assert again.wait(30 * SECOND).ids().count(ids[1]) == 1


def test_a_message_is_in_one_lease_row_only() -> None:
    turns, ids = leased(3)
    turns.turn(Extend("q", ids[1:2], 9_000, 1), Extend("q", ids[1:2], 8_000, 1))
    named = [one for _, value in turns.rows(rows.LEASES) for one in rows.read_lease(value).messages]
    assert sorted(one[16:] for one in named) == sorted(ids)


def test_an_extended_message_is_acked_released_and_handed_back_as_any_other() -> None:
    turns, ids = leased(4)
    turns.turn(Extend("q", ids[:3], 9_000, 1))
    assert turns.turn(Ack("q", ids[:1], 1), Release("q", ids[1:2], 1)).replies == [[OK], [OK]]
    turns.turn(Leave("q", "c", release=True))
    turns.turn()
    assert waits(turns) == 0
    assert turns.rows(rows.LEASES) == []
    assert turns.queue("q").extended == {} == turns.queue("q").due_extended


def test_what_is_not_leased_here_is_not_found() -> None:
    turns, ids = leased(2)
    turns.consume("q", "d", connection=2)
    assert turns.turn(Extend("q", [ids[0], b"x" * 16], 0, 2)).replies == [[MESSAGE_NOT_FOUND] * 2]
    turns.ack("q", ids[:1])
    assert turns.turn(Extend("q", ids, 0, 1)).replies == [[MESSAGE_NOT_FOUND, OK]]


def test_a_message_of_a_batch_has_the_batchs_time() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=2)
    turns.turn(Lease("q", "s/0", 1, 2))
    assert turns.turn(Extend("q", ids, 5_000)).replies == [[MESSAGE_NOT_FOUND] * 2]


def test_a_time_out_of_bounds_is_refused_and_changes_nothing() -> None:
    turns, ids = leased()
    for wrong in (1, 999, 8 * 24 * 3600 * 1000):
        (reply,) = turns.turn(Extend("q", ids, wrong, 1)).replies
        assert isinstance(reply, Rejection) and reply.code == INVALID_CONFIG_VALUE
    assert turns.wait(SECOND).ids() == ids


def test_alarms_of_extended_leases_end_with_them() -> None:
    turns, ids = leased(50)
    for round in range(100):
        turns.turn(Extend("q", ids[round % 50 :][:1], 2_000 + round, 1))
    turns.turn(Ack("q", ids, 1))
    assert turns.queue("q").extended == {}
    assert turns.wait(10 * SECOND).deliveries == []


# --- max_attempts


def test_a_message_that_failed_so_often_is_a_dead_letter_whatever_the_hook_says() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", max_attempts=3))
    turns.policy.on_failure_says = FailureVerdict(False, 0)
    ids = turns.enqueue("q")
    turns.consume("q", "c")
    for _ in range(2):
        turns.turn(turns.driven.nack("q", ids, ["no"], 1))
    assert waits(turns) == 1  # tried a third time
    turns.turn(turns.driven.nack("q", ids, ["no"], 1))
    assert (waits(turns), turns.queue("q.dlq").pending) == (0, 1)


def test_leases_that_run_out_count_too_and_a_restart_keeps_the_limit() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", None, None, 1_000, 2))
    turns.enqueue("q")
    turns.consume("q", "c")
    turns.wait(SECOND)
    again = turns.restart()
    again.consume("q", "d", connection=2)
    again.wait(3 * SECOND)
    assert again.queue("q.dlq").pending == 1


def test_a_dead_letter_queue_has_no_limit_of_its_own() -> None:
    turns = Turns()
    (reply,) = turns.turn(CreateQueue("q.dlq", max_attempts=3)).replies
    assert isinstance(reply, Rejection) and "no dead-letter queue of its own" in reply.message
    (reply,) = turns.turn(CreateQueue("q", max_attempts=2_000_000)).replies
    assert isinstance(reply, Rejection) and "2000000 is too many" in reply.message


def test_expire_names_the_lease_it_ends() -> None:
    turns, ids = leased(2)
    turns.turn(Extend("q", ids[:1], 3_000, 1))
    (number,) = turns.queue("q").extended
    stale = Expire("q", number - 1, ids[:1], [FailureVerdict(False, 0)])
    assert turns.turn(stale).replies == [0]
