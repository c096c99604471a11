from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fila.core import rows
from fila.core.command import Enqueue
from fila.core.ledger import ROWS_MAX, STEP_MENTIONS, close_batch
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import SECOND, Turns


def records(turns: Turns, queue: str) -> list[rows.LedgerRow]:
    prefix = b"g" + rows.queue_prefix(turns.queue(queue).group.number)
    return [rows.read_ledger(value) for _, value in turns.rows(rows.STATE, prefix)]


def many_keys(turns: Turns, keys: list[int]) -> Enqueue:
    command = turns.messages("q", count=len(keys))
    assignments = [Assignment(b"k%d" % key, 1, ()) for key in keys]
    return command._replace(assignments=assignments)


def counts(turns: Turns) -> dict[bytes, int]:
    return {key.name: key.pending for key in turns.queue("q").keys.values() if key.pending}


def test_every_batch_of_a_group_writes_one_record() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q")
    turns.enqueue("q")
    assert len(records(turns, "q")) == 3
    assert turns.queue("q").group.position == 3


def test_a_record_tells_the_numbers_of_the_lanes_the_turn_touched() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(many_keys(turns, [1, 2, 1]))
    lanes = {one[1]: one for one in records(turns, "q")[-1].lanes}
    assert sorted(one[3] for one in lanes.values()) == [1, 2]


def test_a_lane_touched_twice_is_mentioned_once() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q")
    turns.turn(turns.messages("q"), turns.messages("q"))
    assert len(records(turns, "q")[-1].lanes) == 1


def test_a_record_tells_the_time_and_the_stall_clocks() -> None:
    turns = Turns()
    turns.create("q")
    turns.wait(5 * SECOND)
    turns.enqueue("q")
    record = records(turns, "q")[-1]
    assert record.now_ns == turns.now
    assert dict(record.clocks)[turns.queue("q").number] == 5 * SECOND


def test_records_are_folded_so_that_their_mentions_stay_within_the_limit() -> None:
    turns = Turns(Settings(ledger_mentions=10))
    turns.create("q")
    for at in range(40):
        turns.turn(many_keys(turns, [at % 7, at % 3]))
        assert sum(len(one.lanes) for one in records(turns, "q")) <= 10
    assert counts(turns.restart()) == counts(turns)


def test_the_number_of_records_is_bounded_too() -> None:
    turns = Turns()
    turns.create("q")
    for _ in range(ROWS_MAX + 50):
        turns.enqueue("q")
    assert len(records(turns, "q")) == ROWS_MAX


def test_a_quiet_lane_is_folded_into_a_row_of_its_own_and_not_lost() -> None:
    turns = Turns(Settings(ledger_mentions=4))
    turns.create("q")
    turns.enqueue("q", b"quiet", count=7, weight=3)
    for _ in range(20):
        turns.enqueue("q", b"busy")
    turns = turns.restart()
    assert counts(turns) == {b"quiet": 7, b"busy": 20}
    assert turns.queue("q").keys[b"quiet"].weight == 3


def test_a_forgotten_lane_is_not_folded() -> None:
    turns = Turns(Settings(ledger_mentions=4, idle_lanes=1))
    turns.create("q")
    turns.consume("q")
    for at in range(20):
        command = many_keys(turns, [at])
        turns.turn(command)
        turns.ack("q", command.ids)
    assert len(turns.rows(rows.STATE, b"l")) <= 2
    turns = turns.restart()
    assert len(turns.queue("q").keys) <= 2


def test_positions_go_on_after_a_restart() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q")
    position = turns.queue("q").group.position
    turns = turns.restart()
    turns.enqueue("q")
    assert turns.queue("q").group.position == position + 1


def test_a_turn_that_touches_more_lanes_than_the_limit_keeps_its_record() -> None:
    turns = Turns(Settings(ledger_mentions=3))
    turns.create("q")
    turns.turn(many_keys(turns, list(range(10))))
    position = turns.queue("q").group.position
    again = turns.restart(after_ns=-100 * SECOND)
    assert again.queue("q").group.position == position
    assert again.machine.state.now == turns.now


def test_restarts_do_not_pile_up_records_of_the_catalogue() -> None:
    turns = Turns()
    for _ in range(3):
        for at in range(ROWS_MAX + 10):
            turns.set("key", str(at))
        turns = turns.restart()
    turns.set("key", "last")
    assert len(turns.rows(rows.STATE, b"g" + rows.queue_prefix(0))) <= ROWS_MAX


def test_a_restart_reads_a_few_mentions_per_lane_and_not_every_turn_of_the_past() -> None:
    turns = Turns()
    turns.create("q")
    lanes = list(range(50))
    for _ in range(400):
        turns.turn(many_keys(turns, lanes))
    assert sum(len(one.lanes) for one in records(turns, "q")) <= 8 * len(lanes) + 8_192


def test_lanes_that_were_forgotten_are_let_go_of_in_some_records_with_each_turn() -> None:
    turns = Turns(Settings(idle_lanes=1))
    turns.create("q")
    group = turns.queue("q").group
    ids: list[bytes] = []
    for start in range(0, 12_000, 1_000):
        command = many_keys(turns, list(range(start, start + 1_000)))
        turns.turn(command)
        ids += command.ids
    turns.consume("q", prefetch=65_535)
    held = [_lanes_in_records(turns)]
    for start in range(0, 12_000, 500):
        turns.ack("q", ids[start : start + 500])
        held.append(_lanes_in_records(turns))
    while group.uncleared:
        turns.enqueue("q")
        held.append(_lanes_in_records(turns))
    gone = [before - after for before, after in pairwise(held)]
    # Cleared and folded, each up to one record more; a turn here touches 500 lanes.
    assert held[-1] < held[0] // 4 and max(gone) <= 2 * (STEP_MENTIONS + 1_024) + 2 * 500
    assert sum(one > 0 for one in gone) > 4
    assert counts(turns.restart()) == counts(turns)


def test_records_beyond_the_limit_are_folded_over_several_turns() -> None:
    turns = Turns()
    turns.create("q")
    for _ in range(8):
        turns.turn(many_keys(turns, list(range(4_000))))
    group = turns.queue("q").group
    left = [group.mentions]
    for _ in range(10):
        close_batch(group, turns.now, 10)  # as when most of its keys have gone
        left.append(group.mentions)
    folded = [before - after for before, after in pairwise(left)]
    assert left[-1] == 0 and max(folded) == 4_000, "one of these records with each turn"


def _lanes_in_records(turns: Turns) -> int:
    return sum([len(mentioned) for _, _, mentioned in turns.queue("q").group.records])


@hypothesis_settings(max_examples=60)
@given(
    turns_of_keys=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=40),
    mentions=st.integers(4, 30),
)
def test_whatever_is_folded_when_a_restart_counts_the_same(
    turns_of_keys: list[list[int]], mentions: int
) -> None:
    turns = Turns(Settings(ledger_mentions=mentions, idle_lanes=3))
    turns.create("q")
    for at, keys in enumerate(turns_of_keys):
        turns.turn(many_keys(turns, keys))
        if at % 3 == 2:
            outcome = turns.consume("q", f"c{at}", prefetch=3)
            turns.ack("q", outcome.ids()[:2])
            turns.leave("q", f"c{at}", release=True)
    again = turns.restart()
    assert counts(again) == counts(turns)
    assert again.queue("q").pending == turns.queue("q").pending
    assert len(again.rows(rows.MESSAGES)) == turns.queue("q").pending
