"""What one turn does is bounded: in messages, lanes and pages, whatever waits to be done."""

from __future__ import annotations

import sys
from itertools import pairwise

from fila.core import rows
from fila.core.command import AckBatch, Consume, HandBack, Leave, Release, ReleaseBatch
from fila.core.command import Lease as LeaseCommand
from fila.core.lane import LANE_PARKED
from fila.core.purging import Purgeable
from fila.core.rejection import OK, Rejection
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from fila.storage.memory import MemoryStore
from tests.core.turn import SECOND, Turns

DEAD = FailureVerdict(True, 0)


class CountedReads(MemoryStore):
    """Counts the rows that were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.scans = 0

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        self.scans += family == rows.MESSAGES
        return super().scan(family, start, end, rows_max, bytes_max)


def dead_letters(keys: int, settings: Settings) -> Turns:
    """One dead letter of each of so many keys."""
    turns = Turns(settings, CountedReads())
    turns.create("q")
    ids = [turns.enqueue("q", b"k%d" % key)[0] for key in range(keys)]
    turns.consume("q", prefetch=keys)
    turns.nack("q", ids, DEAD)
    turns.leave("q")
    return turns


# --- deliveries


def test_a_pass_hands_out_so_many_messages_of_all_queues_together() -> None:
    turns = Turns(Settings(pass_messages=10))
    for name in ("a", "b", "c"):
        turns.create(name)
        turns.consume(name, name, prefetch=100)
    commands = [turns.messages(name, count=8) for name in ("a", "b", "c")]
    outcome, more = turns.one_pass(*commands)
    handed_out = [len(outcome.ids())]
    while more:
        outcome, more = turns.one_pass()
        handed_out.append(len(outcome.ids()))
    assert sum(handed_out) == 24 and max(handed_out) <= 10


def test_lanes_that_have_to_be_read_first_make_a_pass_shorter() -> None:
    turns = Turns(Settings(), CountedReads())
    turns.create("q")
    for key in range(300):
        turns.enqueue("q", b"k%d" % key)
    turns = Turns(Settings(pass_messages=64), turns.store, turns.now, turns.next_id)
    assert isinstance(turns.store, CountedReads)
    turns.store.scans = 0
    passes = 0
    more = True
    commands = [Consume("q", "c", 1, 1_000)]
    while more:
        before = turns.store.scans
        _, more = turns.one_pass(*commands)
        commands = []
        passes += 1
        assert turns.store.scans - before <= 16
    assert len(turns.queue("q").leased) == 300 and passes > 20


def test_when_very_much_falls_due_at_once_time_passes_in_several_turns() -> None:
    turns = Turns(Settings(wakings=50))
    turns.create("q")
    for key in range(120):
        turns.turn(turns.messages("q", b"k%d" % key, delay_ms=1_000))
    turns.consume("q", prefetch=1_000)
    turns.now += 2 * SECOND
    woken = []
    while turns.machine.state.now < turns.now:
        assert 0 < turns.driven.due_ns() <= turns.now
        outcome, _ = turns.one_pass()
        woken.append(len(outcome.ids()))
    assert woken == [50, 50, 20]


def test_a_long_line_for_a_bucket_is_looked_at_in_parts_and_nobody_is_forgotten() -> None:
    turns = Turns(Settings(bucket_lanes=10, pass_messages=10_000))
    turns.create("q")
    turns.limit("t", 1, 1)
    turns.consume("q", prefetch=1_000)
    for key in range(100):
        turns.enqueue("q", b"k%d" % key, throttle=(b"t",))
    assert len(turns.queue("q").leased) == 1
    turns.limit("t", 1_000, 1_000)
    turns.now += SECOND
    turns.turn()
    assert len(turns.queue("q").leased) == 100


def test_waking_a_long_line_leaves_room_for_messages() -> None:
    turns = Turns(Settings(bucket_lanes=80, pass_messages=10))
    turns.create("q")
    turns.limit("t", 1, 1)
    turns.consume("q", prefetch=1_000)
    for key in range(200):
        turns.enqueue("q", b"k%d" % key, throttle=(b"t",))
    turns.limit("t", 1_000, 1_000)
    turns.now += SECOND
    leased = [len(turns.queue("q").leased)]
    while leased[-1] < 200:
        turns.one_pass()
        leased.append(len(turns.queue("q").leased))
        assert leased[-2] < leased[-1] <= leased[-2] + 10


def test_lanes_that_find_no_token_make_a_pass_shorter() -> None:
    turns = Turns(Settings(pass_messages=10))
    turns.create("q")
    turns.limit("t", 1, 1)
    for key in range(100):
        turns.enqueue("q", b"k%d" % key, throttle=(b"t",))
    turns.one_pass(Consume("q", "c", 1, 1_000))
    parked = [_parked(turns)]
    while turns.driven.more:
        turns.one_pass()
        parked.append(_parked(turns))
    assert parked[-1] == 99 and len(turns.queue("q").leased) == 1
    assert all(after - before <= 11 for before, after in pairwise([0, *parked]))


def _parked(turns: Turns) -> int:
    lanes = [lane for key in turns.queue("q").keys.values() for lane in key.lanes.values()]
    return sum([lane.state == LANE_PARKED for lane in lanes])


# --- redrives and purges


def test_a_step_of_a_redrive_looks_at_the_oldest_lanes_alone() -> None:
    settings = Settings(redrive_messages=4, redrive_pages=4, window_bytes_total=1)
    turns = dead_letters(200, settings)
    assert isinstance(turns.store, CountedReads)
    done: list[int | Rejection] = []
    turns.driven.begin(turns.now)
    turns.driven.redrive("q.dlq", 0, done.append)
    turns.driven.end()
    steps = 1
    while not done:
        turns.store.scans = 0
        turns.one_pass()
        assert turns.store.scans <= 16, "four lanes to read, and their windows afterwards"
        steps += 1
    assert done == [200] and steps <= 200
    assert turns.queue("q.dlq").heads is None


def test_a_redrive_looks_at_many_lanes_over_several_turns_before_its_first_step() -> None:
    turns = dead_letters(50, Settings(job_lanes=20))
    done: list[int | Rejection] = []
    turns.driven.begin(turns.now)
    turns.driven.redrive("q.dlq", 0, done.append)
    turns.driven.end()
    moved = []
    while not done:
        moved.append(turns.queue("q.dlq").counters.redriven)
        turns.one_pass()
    assert moved == [0, 0] and done == [50]


def test_a_purge_looks_at_many_lanes_over_several_turns_before_its_first_step() -> None:
    turns = Turns(Settings(job_lanes=20, purge_lanes=5))
    turns.create("q")
    ids = [turns.enqueue("q", b"k%d" % key)[0] for key in range(50)]
    turns.consume("q", prefetch=10)
    turns.ack("q", ids[:5])
    done: list[int | Rejection] = []
    turns.driven.begin(turns.now)
    turns.driven.purge("q", None, "ops", done.append)
    turns.driven.apply(turns.messages("q", b"late"))
    turns.driven.end()
    purged = [turns.queue("q").counters.purged]
    while not done:
        turns.one_pass()
        purged.append(turns.queue("q").counters.purged)
    assert purged[:3] == [0, 0, 0] and done == [40 - 5] and len(purged) == 3 + 50 // 5 - 1
    assert turns.queue("q").pending == 1, "what came later stays"


def test_a_purge_lets_go_of_lanes_as_it_takes_them() -> None:
    turns = Turns()
    turns.create("q")
    for key in range(50):
        turns.enqueue("q", b"k%d" % key)
    lanes = [lane for key in turns.queue("q").keys.values() for lane in key.lanes.values()]
    before = [sys.getrefcount(lanes[at]) for at in range(50)]
    found = turns.machine.purgeable("q", None)
    assert isinstance(found, Purgeable)
    while not found.complete:
        found.gather(20)
    assert [sys.getrefcount(lanes[at]) for at in range(50)] == [count + 1 for count in before]
    assert [key for key, _ in found.take(10)] == [b"k%d" % key for key in range(10)]
    assert found.left == 40
    assert [sys.getrefcount(lanes[at]) for at in range(9)] == before[:9], "but for the last one"


def test_jobs_take_turns_however_many_there_are() -> None:
    turns = Turns(Settings(job_work=20, purge_lanes=5))
    turns.create("q")
    for key in range(20):
        turns.enqueue("q", b"k%d" % key)
    done: list[int | Rejection] = []
    turns.driven.begin(turns.now)
    for _ in range(30):
        turns.driven.purge("q", None, "ops", done.append)
    turns.driven.end()
    ended = [len(done)]
    while turns.driven.due_ns() == turns.now:
        turns.one_pass()
        ended.append(len(done))
    assert sum(one for one in done if isinstance(one, int)) == 20 and len(done) == 30
    assert max(b - a for a, b in pairwise(ended)) <= 20
    assert len(ended) >= 30 * 4 * 5 // 20


# --- leases that are handed back


def held(count: int, settings: Settings, consumers: int = 1) -> Turns:
    turns = Turns(settings)
    turns.create("q", visibility_ms=60_000)
    turns.enqueue("q", count=count)
    for number in range(consumers):
        turns.consume("q", f"c{number}", prefetch=count // consumers)
    assert len(turns.queue("q").leased) == count
    return turns


def test_what_a_consumer_held_goes_back_over_several_turns_oldest_first() -> None:
    turns = held(40, Settings(hand_back_messages=10, delivery_messages=2), consumers=4)
    ids = list(turns.queue("q").leased)
    turns.driven.begin(turns.now)
    for number in range(4):
        turns.driven.apply(Leave("q", f"c{number}", release=True))
    turns.driven.end()
    back = [turns.queue("q").pending]
    while turns.driven.due_ns() == turns.now:
        turns.one_pass()
        back.append(turns.queue("q").pending)
    assert back == [10, 20, 30, 40]
    assert turns.consume("q", "next", prefetch=100).ids() == ids


def test_who_comes_meanwhile_gets_the_oldest_of_what_is_back() -> None:
    turns = held(40, Settings(hand_back_messages=10, delivery_messages=2), consumers=4)
    ids = list(turns.queue("q").leased)
    turns.consume("q", "next", prefetch=100, connection=2)
    outcome, _ = turns.one_pass(*[Leave("q", f"c{number}", True) for number in range(4)])
    got = outcome.ids("next")
    while turns.driven.due_ns() == turns.now:
        outcome, _ = turns.one_pass()
        got += outcome.ids("next")
    assert got == ids


def test_a_lease_that_runs_out_while_it_waits_to_go_back_is_no_failure() -> None:
    turns = held(20, Settings(hand_back_messages=5, delivery_messages=5))
    turns.one_pass(Leave("q", "c0", release=True))
    turns.now += 61 * SECOND
    turns.turn()
    queue = turns.queue("q")
    assert (queue.pending, queue.counters.expired, queue.counters.released) == (20, 0, 20)


def test_a_late_ack_of_what_waits_to_go_back_counts() -> None:
    turns = held(20, Settings(hand_back_messages=5, delivery_messages=5))
    last = list(turns.queue("q").leased)[-1]
    turns.one_pass(Leave("q", "c0", release=True))
    assert turns.ack("q", [last]).replies == [[OK]]
    while turns.driven.due_ns() == turns.now:
        turns.one_pass()
    assert turns.queue("q").pending == 19


def test_a_goodbye_does_not_look_at_other_connections_leases() -> None:
    turns = held(20, Settings(), consumers=2)
    turns.leave("q", "c0")
    queue = turns.queue("q")
    assert [len(found) for found in queue.departed.values()] == [1]
    assert turns.turn(HandBack("q", 1)).replies == [1]
    assert queue.pending == 10 and queue.departed == {}


def test_departed_consumers_are_forgotten_with_their_last_message() -> None:
    turns = held(3, Settings())
    ids = list(turns.queue("q").leased)
    turns.leave("q", "c0")
    turns.ack("q", ids)
    assert turns.queue("q").departed == {}


def test_a_deleted_queue_hands_nothing_back() -> None:
    turns = held(20, Settings(hand_back_messages=5, delivery_messages=5))
    turns.one_pass(Leave("q", "c0", release=True))
    turns.delete("q")
    turns.create("q")
    turns.turn()
    assert turns.queue("q").pending == 0 and not turns.machine.state.returning


def test_releasing_one_by_one_writes_the_row_of_their_lease_once_a_turn() -> None:
    turns = held(50, Settings())
    ids = list(turns.queue("q").leased)
    outcome = turns.turn(*[Release("q", [id], 1) for id in ids[:30]], Leave("q", "c0"))
    written = [
        op for batch in outcome.batches for op in batch.ops if op[0] & 7 == rows.LEASES and op[2]
    ]
    assert len(written) == 1
    again = turns.restart()
    assert set(again.queue("q").leased) == set(ids[30:])


# --- lease batches


def leased(batches: int, settings: Settings) -> Turns:
    """Batches `s/0`, `s/1` … of ten messages each, in leases of two."""
    turns = Turns(settings)
    turns.create("q", visibility_ms=60_000)
    turns.enqueue("q", count=10 * batches)
    for number in range(batches):
        turns.turn(LeaseCommand("q", f"s/{number}", number + 1, 10, 0, 0, 0, False))
    assert len(turns.queue("q").leased) == 10 * batches
    return turns


def step(turns: Turns, command: AckBatch | ReleaseBatch) -> tuple[int, int, int]:
    (reply,) = turns.turn(command).replies
    assert isinstance(reply, tuple) and not isinstance(reply, Rejection) and len(reply) == 3
    batches, messages, rest = reply
    assert isinstance(batches, int) and isinstance(messages, int)
    return batches, messages, rest


def test_batches_are_handed_back_in_steps_of_so_many_messages() -> None:
    turns = leased(3, Settings(batch_step_messages=8, delivery_messages=2))
    replies: list[tuple[int, int]] = []
    rest = 0
    while not replies or rest:
        batches, messages, rest = step(turns, ReleaseBatch("q", "s", 9, rest))
        replies.append((batches, messages))
    assert replies == [(0, 8), (1, 8), (1, 8), (1, 6)]
    assert turns.queue("q").pending == 30 and turns.queue("q").lease_batches == {}


def test_a_later_step_leaves_batches_alone_that_were_leased_after_the_first() -> None:
    turns = leased(2, Settings(batch_step_messages=10, delivery_messages=2))
    _, _, rest = step(turns, AckBatch("q", "s", 9))
    turns.enqueue("q", count=3)
    turns.turn(LeaseCommand("q", "s/0", 7, 10, 0, 0, 0, False))
    assert turns.turn(AckBatch("q", "s", 9, rest)).replies == [(1, 10, 0)]
    assert list(turns.queue("q").lease_batches) == ["s/0"]
    assert len(turns.queue("q").leased) == 3


def test_a_later_step_does_not_reach_a_queue_that_was_made_again() -> None:
    turns = leased(2, Settings(batch_step_messages=10, delivery_messages=2))
    _, _, rest = step(turns, AckBatch("q", "s", 9))
    turns.delete("q")
    turns.create("q")
    turns.enqueue("q", count=3)
    turns.turn(LeaseCommand("q", "s/0", 7, 10, 0, 0, 0, False))
    assert turns.turn(AckBatch("q", "s", 9, rest)).replies == [(0, 0, 0)]
    assert len(turns.queue("q").leased) == 3


def test_a_step_writes_the_row_of_its_batch_once() -> None:
    turns = leased(1, Settings(batch_step_messages=8, delivery_messages=2))
    outcome = turns.turn(AckBatch("q", "s/0"))
    written = [
        op
        for batch in outcome.batches
        for op in batch.ops
        if op[0] & 7 == rows.STATE and op[1].startswith(rows.OPEN_BATCH_PREFIX)
    ]
    assert len(written) == 1
    assert len(turns.restart().queue("q").leased) == 2


def test_a_lease_that_takes_the_number_of_a_finished_one_is_not_the_batchs() -> None:
    turns = leased(1, Settings(delivery_messages=2))
    turns.ack("q", list(turns.queue("q").leased)[-2:])
    turns = turns.restart()
    turns.enqueue("q")
    turns.consume("q")
    assert list(turns.queue("q").leases) == [5]
    turns = turns.restart()
    assert list(turns.queue("q").leases) == [5]
    assert list(turns.queue("q").lease_batches["s/0"].leases) == [1, 2, 3, 4]


def test_a_visit_that_a_pass_ends_before_its_first_message_begins_anew() -> None:
    turns = Turns(Settings(pass_messages=1, quantum=1))
    turns.create("q")
    turns.limit("t", 0.001, 1)
    turns.enqueue("q", b"other", throttle=(b"t",))
    turns.consume("q", prefetch=100)  # takes the only token
    turns.leave("q")
    turns.enqueue("q", b"k", weight=6, throttle=(b"t",))
    turns.enqueue("q", b"k", 10, weight=6)
    turns.enqueue("q", b"z", 10)
    turns.one_pass(Consume("q", "d", 2, 100))  # finds no token for the oldest message of k
    assert len(turns.queue("q").leased) == 1
    turns.one_pass(turns.messages("q", b"k", weight=1))
    order = turns.turn().keys()
    assert order[:4] == [b"z", b"k", b"z", b"k"]
