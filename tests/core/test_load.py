from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fila.core import rows
from fila.core.command import Ack, Expire
from fila.core.entry import ATTEMPTS, message_id
from fila.core.rejection import OK, Rejection
from fila.core.row_batch import PUT_LEASE, RowBatch
from fila.core.settings import Settings
from fila.core.stats import stats
from fila.core.verdict import RETRY_NOW, FailureVerdict
from tests.core.turn import DEAD_LETTER, MS, SECOND, START, Turns, id_of

# --- an empty store, and one that was left alone


def test_an_empty_store_gives_an_empty_machine() -> None:
    turns = Turns()
    assert turns.machine.state.queues == {}
    assert turns.machine.state.now == START


def test_loading_writes_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=3)
    again = turns.restart()
    assert again.turn().batches == []


# --- everything comes back


def test_counts_come_back() -> None:
    turns = Turns(Settings(window_messages=4, page_messages=2))
    turns.create("q")
    for at in range(20):
        turns.enqueue("q", b"k%d" % (at % 3), count=2, throttle=((), (b"t",))[at % 2])
    ids = turns.consume("q", prefetch=6).ids()
    turns.ack("q", ids[:2])
    turns.nack("q", ids[2:3], FailureVerdict(False, 5_000))
    turns.nack("q", ids[3:4], DEAD_LETTER)
    again = turns.restart()
    for name in ("q", "q.dlq"):
        both = [stats(one.machine.state, name, 100) for one in (turns, again)]
        # A deficit is a visit under way; which key was being visited is not stored.
        before, after = [
            one._replace(
                keys=[key._replace(deficit=0, delivered=0) for key in one.keys], consumers=0
            )
            for one in both
            if not isinstance(one, Rejection)
        ]
        assert before[:7] == after[:7]


def test_the_counts_are_those_of_a_full_scan() -> None:
    turns = Turns(Settings(window_messages=2, page_messages=2))
    turns.create("q")
    turns.enqueue("q", b"a", count=9)
    turns.enqueue("q", b"b", count=5)
    turns.ack("q", turns.consume("q", prefetch=3).ids()[:2])
    again = turns.restart()
    queue = again.queue("q")
    assert queue.pending + len(queue.leased) == len(again.rows(rows.MESSAGES))


def test_the_whole_backlog_comes_in_order_after_a_restart() -> None:
    turns = Turns(Settings(window_messages=4, page_messages=3))
    turns.create("q")
    ids = turns.enqueue("q", count=25)
    assert turns.restart().drain("q").ids() == ids


def test_lane_order_goes_on_where_it_was() -> None:
    turns = Turns()
    turns.create("q")
    first = turns.enqueue("q", count=5)
    again = turns.restart()
    second = again.enqueue("q", count=5)
    assert again.drain("q").ids() == first + second


def test_weights_come_back() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=9, weight=3)
    turns.enqueue("q", b"b", count=9)
    again = turns.restart()
    assert b"".join(again.consume("q", prefetch=8).keys()) == b"aaabaaab"


def test_the_newest_weight_comes_back_although_older_messages_have_another() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=4, weight=9)
    turns.enqueue("q", b"a", count=4, weight=2)
    assert turns.restart().queue("q").keys[b"a"].weight == 2


def test_lane_numbers_are_not_used_twice() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a")
    turns.enqueue("q", b"b")
    again = turns.restart()
    again.enqueue("q", b"c")
    numbers = [lane.number for key in again.queue("q").keys.values() for lane in key.lanes.values()]
    assert len(set(numbers)) == 3


# --- leases


def test_leases_come_back_and_run_out_at_their_time() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=10_000)
    ids = turns.enqueue("q", count=2)
    turns.consume("q", prefetch=2)
    turns.wait(3 * SECOND)
    again = turns.restart(after_ns=2 * SECOND)
    again.consume("q", "new", connection=5)
    assert again.machine.next_deadline() == START + 10 * SECOND
    assert again.wait(5 * SECOND - 1).ids() == []
    entries = again.wait(1).entries()
    assert [message_id(entry) for entry in entries] == ids
    assert [entry[ATTEMPTS] for entry in entries] == [1, 1]


def test_a_lease_that_ran_out_while_the_broker_was_down_runs_out_at_once() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=1_000)
    turns.enqueue("q")
    turns.consume("q")
    again = turns.restart(after_ns=60 * SECOND)
    (entry,) = again.consume("q", "new").entries()
    assert entry[ATTEMPTS] == 1


def test_a_lease_from_before_the_restart_can_be_settled_from_anywhere() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=2)
    turns.consume("q", connection=1)
    again = turns.restart()
    again.consume("q", "other", connection=2)
    assert again.turn(Ack("q", ids[:1], 2)).replies == [[OK]]
    assert again.turn(Ack("q", ids[1:], 77)).replies == [[OK]]
    assert again.rows(rows.LEASES) == []


def test_a_lease_that_was_partly_finished_comes_back_with_the_rest() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    turns.consume("q")
    turns.ack("q", ids[1:2])
    again = turns.restart()
    assert list(again.queue("q").leased) == [ids[0], ids[2]]
    again.ack("q", [ids[0], ids[2]])
    assert again.rows(rows.LEASES) == []


def test_lease_numbers_go_on_after_those_that_are_stored() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=2)
    turns.consume("q", prefetch=1)
    again = turns.restart()
    again.consume("q", "new", prefetch=1)
    assert len(again.rows(rows.LEASES)) == 2


# --- delayed messages


def test_a_delayed_message_is_ready_at_its_time_after_a_restart() -> None:
    turns = Turns()
    turns.create("q")
    (id,) = turns.enqueue("q", delay_ms=10_000)
    turns.wait(3 * SECOND)
    again = turns.restart(after_ns=2 * SECOND)
    again.consume("q")
    assert again.machine.next_deadline() == START + 10 * SECOND
    assert again.wait(5 * SECOND - 1).ids() == []
    assert again.wait(1).ids() == [id]


def test_a_delay_that_ran_out_while_the_broker_was_down_holds_nothing_up() -> None:
    turns = Turns()
    turns.create("q")
    (id,) = turns.enqueue("q", delay_ms=1_000)
    again = turns.restart(after_ns=2 * SECOND)
    assert again.consume("q").ids() == [id]


# --- throttle levels


def test_a_crash_grants_no_fresh_burst() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    turns.limit("t", 1, 5)
    turns.enqueue("q", count=20, throttle=(b"t",))
    assert len(turns.consume("q", prefetch=100).ids()) == 5
    again = turns.restart()
    assert again.consume("q", "new", prefetch=100).ids() == []
    again = again.restart(after_ns=2 * SECOND)
    assert len(again.consume("q", "newer", prefetch=100).ids()) == 2


def test_however_often_the_broker_crashes_the_limit_holds() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    turns.limit("t", 10, 3)
    turns.enqueue("q", count=100, throttle=(b"t",))
    granted = 0
    for at in range(20):
        granted += len(turns.consume("q", f"c{at}", prefetch=100).ids())
        turns = turns.restart(after_ns=70 * MS)
    assert granted <= 3 + 10 * 20 * 70 / 1000
    assert granted >= 14


def test_a_changed_limit_comes_back_with_its_level() -> None:
    turns = Turns()
    turns.limit("t", 1, 10)
    turns.limit("t", 2, 4)
    bucket = turns.restart(after_ns=SECOND).machine.state.buckets[b"t"]
    assert (bucket.rate, bucket.burst, bucket.tokens) == (2.0, 4.0, 4.0)


# --- clocks


def test_time_the_broker_was_down_is_time_without_a_consumer() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", prefetch=1)
    turns.enqueue("q", count=2)  # the first takes the credit
    turns.wait(2 * SECOND)
    turns.enqueue("q", b"other")
    again = turns.restart(after_ns=3 * SECOND)
    waits = again.consume("q", "new").waits()
    assert sorted(one.no_consumer for one in waits) == [3 * SECOND, 5 * SECOND]
    assert all(sum(one) == one.no_consumer for one in waits)


def test_time_never_runs_backwards() -> None:
    turns = Turns()
    turns.create("q")
    turns.wait(100 * SECOND)
    (first,) = turns.enqueue("q")
    again = turns.restart(after_ns=-50 * SECOND)  # the machine's clock was set back
    assert again.machine.state.now == turns.now
    (second,) = again.enqueue("q")
    again.now = turns.now + SECOND
    assert again.drain("q").ids() == [first, second]


def test_time_stands_still_while_the_clock_is_behind() -> None:
    turns = Turns()
    turns.create("q")
    turns.machine.advance(turns.now - 10 * SECOND)
    assert turns.machine.state.now == START


# --- rows that are not what they should be


def test_a_stored_lease_whose_messages_are_gone_does_not_keep_the_broker_busy() -> None:
    turns = Turns()
    turns.create("q")
    number = turns.queue("q").number
    gone = rows.MESSAGE_KEY.pack(number, 1, START, id_of(9))
    lease = rows.lease_row(START + SECOND, START, "c", [gone])
    turns.store.write([RowBatch(1, 99, [(PUT_LEASE, rows.lease_key(number, 7), lease)])])
    again = turns.restart(after_ns=2 * SECOND)
    machine = again.machine
    machine.advance(again.now)
    for _ in range(3):
        due = machine.due_lease()
        if due is None:
            break
        machine.apply(Expire(due[0], due[1], due[2], [RETRY_NOW] * len(due[2])))
    assert machine.due_lease() is None


@pytest.mark.parametrize("delay_ms", [0, 1_000])
def test_the_weight_of_a_key_with_two_lanes_is_that_of_its_newest_message(delay_ms: int) -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", weight=2)
    turns.enqueue("q", b"a", weight=5, throttle=(b"t",), delay_ms=delay_ms)
    assert turns.queue("q").keys[b"a"].weight == 5
    assert turns.restart().queue("q").keys[b"a"].weight == 5


# --- any life


@hypothesis_settings(max_examples=250)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("eddadnlrww"), st.integers(0, 2), st.integers(0, 3)), max_size=40
    )
)
def test_a_restart_at_any_moment_changes_no_count_and_loses_no_message(
    steps: list[tuple[str, int, int]],
) -> None:
    turns = Turns(Settings(window_messages=3, page_messages=2, ledger_mentions=12, idle_lanes=2))
    turns.create("q", visibility_ms=1_000)
    turns.limit("t", 2, 2)
    for at, (what, key, count) in enumerate(steps):
        held = list(turns.queue("q").leased)
        if what == "e":
            throttle = ((), (b"t",))[count % 2]
            turns.enqueue("q", b"k%d" % key, count=count + 1, weight=key + 1, throttle=throttle)
        elif what == "d":
            turns.consume("q", f"c{at}", prefetch=count + 1)
        elif what == "a":
            turns.turn(Ack("q", held[:count], 0))
        elif what == "n" and held:
            turns.nack("q", held[:1], (RETRY_NOW, DEAD_LETTER)[key % 2], connection=0)
        elif what == "l" and turns.queue("q").consumers:
            turns.leave("q", next(iter(turns.queue("q").consumers)), release=count % 2 == 0)
        elif what == "w":
            turns.wait(count * 400 * MS)
        elif what == "r":
            turns = turns.restart(after_ns=key * 100 * MS)
    again = turns.restart()
    for name in ("q", "q.dlq"):
        before, after = turns.queue(name), again.queue(name)
        assert (after.pending, after.keys_pending) == (before.pending, before.keys_pending)
        assert set(after.leased) == set(before.leased)
        assert {id: one[0].expires_ns for id, one in after.leased.items()} == {
            id: one[0].expires_ns for id, one in before.leased.items()
        }
    stored = len(again.rows(rows.MESSAGES))
    assert stored == sum(
        again.queue(name).pending + len(again.queue(name).leased) for name in ("q", "q.dlq")
    )
    # And everything that is stored can still be consumed, once, after the leases have run out.
    again.set("throttle.t", "")
    again.wait(5 * SECOND)
    for name in ("q", "q.dlq"):
        number = again.queue(name).number
        expected = [
            key[rows.ID_AT :] for key, _ in again.rows(rows.MESSAGES, rows.queue_prefix(number))
        ]
        got = again.drain(name, "last", connection=9).ids()
        assert sorted(got) == sorted(expected)
    assert again.rows(rows.MESSAGES) == []
    assert again.machine.state.windows.bytes == 0
