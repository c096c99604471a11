"""After a restart a message is in memory only once its turn comes; all works the same."""

from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.command import Ack, DeleteQueue
from fila.core.entry import ATTEMPTS, message_id
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from tests.core.turn import DEAD_LETTER, MS, SECOND, Turns


def test_a_restart_reads_no_message_of_the_backlog() -> None:
    turns = Turns()
    turns.create("q")
    for at in range(20):
        turns.enqueue("q", b"k%d" % at, count=5, body_bytes=1_000)
    again = turns.restart()
    assert again.machine.state.windows.bytes == 0
    assert again.queue("q").pending == 100
    assert again.queue("q").ring.keys == 20


def test_new_messages_stand_behind_those_nobody_has_read() -> None:
    turns = Turns()
    turns.create("q")
    old = turns.enqueue("q", count=3)
    again = turns.restart()
    new = again.enqueue("q", count=3)
    assert again.drain("q").ids() == old + new


def test_the_oldest_lane_of_a_key_still_goes_first() -> None:
    turns = Turns()
    turns.create("q")
    ids = []
    for throttle in ((b"x",), (), (b"y",), (), (b"x",)):
        ids += turns.enqueue("q", throttle=throttle)
        turns.wait(MS)
    assert turns.restart(after_ns=SECOND).drain("q").ids() == ids


def test_a_delayed_head_is_not_delivered_early() -> None:
    turns = Turns()
    turns.create("q")
    (late,) = turns.enqueue("q", delay_ms=5_000)
    again = turns.restart()
    again.consume("q")
    assert again.turn().ids() == []
    (first,) = again.turn(again.messages("q")).ids()  # not held up by the delayed one
    assert first != late
    assert again.wait(5 * SECOND).ids() == [late]


def test_a_delayed_message_behind_the_head_is_not_delivered_early() -> None:
    turns = Turns()
    turns.create("q")
    (now,) = turns.enqueue("q")
    (late,) = turns.enqueue("q", delay_ms=5_000)
    again = turns.restart()
    assert again.consume("q").ids() == [now]
    assert again.wait(5 * SECOND).ids() == [late]


def test_throttled_lanes_park_and_wake() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 1, 1)
    ids = turns.enqueue("q", count=3, throttle=(b"t",))
    again = turns.restart()
    assert again.consume("q").ids() == ids[:1]
    assert again.wait(2 * SECOND).ids() == ids[1:]


def test_a_limit_removed_before_anything_was_read_lets_all_go() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 0)
    ids = turns.enqueue("q", count=3, throttle=(b"t",))
    again = turns.restart()
    again.consume("q")
    again.set("throttle.t", "")
    assert list(again.queue("q").leased) == ids


def test_a_redrive_moves_what_nobody_has_read() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q")
    ids = []
    for key in (b"a", b"b", b"a", b"c"):
        ids += turns.enqueue("q", key)
        turns.nack("q", ids[-1:], DEAD_LETTER)
        turns.wait(MS)
    again = turns.restart()
    assert [message_id(one) for one in again.machine.oldest("q.dlq", 10)] == ids
    assert again.redrive("q.dlq", 10).replies == [4]
    assert again.drain("q", "d").ids() == ids
    assert again.restart().queue("q.dlq").pending == 0


@pytest.mark.parametrize("page", [1, 2, 8])
def test_messages_handed_back_before_the_restart_keep_their_place(page: int) -> None:
    turns = Turns(Settings(page_messages=page, head_messages=page, window_messages=2))
    turns.create("q")
    ids = turns.enqueue("q", count=9)
    turns.consume("q", "a", prefetch=3)
    turns.consume("q", "b", prefetch=3, connection=2)
    turns.leave("q", "a", release=True)
    again = turns.restart()
    assert again.drain("q", "c", connection=3).ids() == ids[:3] + ids[6:]
    assert set(again.queue("q").leased) == set(ids[3:6])


def test_messages_handed_back_after_the_restart_keep_their_place() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=6)
    again = turns.restart()
    again.consume("q", "a", prefetch=2)
    again.leave("q", "a", release=True)
    assert again.drain("q", "b").ids() == ids


def test_a_failure_goes_to_the_back_of_a_line_nobody_has_read() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.consume("q", prefetch=1)
    turns.leave("q")
    again = turns.restart()
    again.nack("q", ids[:1], connection=0)
    assert again.drain("q", "b").ids() == [*ids[1:], ids[0]]


def test_a_retry_delay_after_the_restart_does_not_overtake_the_backlog() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    turns.consume("q", prefetch=1)
    turns.leave("q")
    again = turns.restart()
    again.nack("q", ids[:1], FailureVerdict(False, 1_000), connection=0)
    again.wait(2 * SECOND)
    entries = again.drain("q", "b").entries()
    assert [message_id(one) for one in entries] == [ids[1], ids[2], ids[0]]
    assert [one[ATTEMPTS] for one in entries] == [0, 0, 1]


def test_a_second_restart_before_anything_was_read_changes_nothing() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=3) + turns.enqueue("q", delay_ms=1_000)
    again = turns.restart()
    ids[3:3] = again.enqueue("q", count=2)  # stores a ledger record for a lane it has not read
    twice = again.restart().restart()
    twice.wait(2 * SECOND)
    assert twice.drain("q").ids() == ids


def test_a_queue_nobody_has_read_can_be_deleted() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=3)
    turns.enqueue("q", b"late", delay_ms=1_000)
    again = turns.restart()
    again.turn(DeleteQueue("q"))
    assert again.rows(rows.MESSAGES) == []
    assert again.wait(5 * SECOND).batches == []


def test_memory_stays_within_its_bytes_while_unread_lanes_are_read() -> None:
    settings = Settings(window_bytes_total=20_000, page_messages=8)
    turns = Turns(settings)
    turns.create("q")
    for at in range(30):
        turns.enqueue("q", b"k%d" % at, count=6, body_bytes=500)
    again = turns.restart()
    outcome = again.consume("q", prefetch=5)
    total = 0
    while ids := outcome.ids():
        total += len(ids)
        assert again.machine.state.windows.bytes <= 20_000 + 30 * 1_000
        outcome = again.turn(Ack("q", ids, 1))
    assert total == 180
    assert again.machine.state.windows.bytes == 0
