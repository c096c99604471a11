"""How far a stream of the journal may read: arithmetic over pieces, without Spark or a disk."""

from __future__ import annotations

import random

import pytest

from fila.spark.journal_source.frontier import advance, behind, slices, tasks
from fila.spark.journal_source.inventory import Piece
from fila.spark.journal_source.offsets import EPOCHS_MAX, NOTHING, Position, from_json
from fila.spark.journal_source.options import JournalSourceError, parse

NOW = 1_000_000.0
LATE = 600.0


def piece(first: int, last: int, epoch: int = 1, broker: str = "b", **more) -> Piece:
    path = f"{broker}/{epoch}/{first}-{last}" + ("h" if more.get("hot") else "")
    return Piece(
        broker, epoch, first, last, path, more.get("hot", False), more.get("changed_s", NOW)
    )


def reach(position: Position, pieces: list[Piece], limit: int | None = None) -> Position:
    return advance(position, pieces, limit, NOW, LATE)


def read(start: Position, end: Position, pieces: list[Piece]) -> list[tuple[int, int, str]]:
    return [(one.first, one.last, one.path) for one in slices(start, end, pieces)]


def test_parts_without_a_hole_between_them_are_read_to_their_end() -> None:
    assert reach(NOTHING, [piece(1, 10), piece(11, 20)]).of(("b", 1)) == 20


def test_a_file_that_is_missing_holds_the_run_up_there() -> None:
    pieces = [piece(1, 10), piece(21, 30)]
    assert reach(NOTHING, pieces).of(("b", 1)) == 10
    assert reach(NOTHING, [*pieces, piece(11, 20)]).of(("b", 1)) == 30


def test_a_file_that_stays_away_is_passed_after_a_while_and_told_of() -> None:
    old = NOW - LATE
    pieces = [piece(1, 10), piece(21, 30, changed_s=old)]
    end = reach(Position({("b", 1): 10}), pieces)
    assert end.of(("b", 1)) == 30
    assert read(Position({("b", 1): 10}), end, pieces) == [(11, 20, ""), (21, 30, "b/1/21-30")]


def test_what_was_retired_before_the_stream_began_is_not_told_of() -> None:
    pieces = [piece(21, 30, changed_s=NOW - LATE)]
    end = reach(NOTHING, pieces)
    assert read(NOTHING, end, pieces) == [(21, 30, "b/1/21-30")]


def test_the_next_run_of_a_broker_is_read_when_the_one_before_is() -> None:
    pieces = [piece(1, 10), piece(21, 30), piece(1, 5, epoch=2)]
    assert reach(NOTHING, pieces).as_json() == {"b": {"done": 0, "1": 10}}
    pieces.append(piece(11, 20))
    assert reach(NOTHING, pieces).as_json() == {"b": {"done": 0, "1": 30, "2": 5}}


def test_one_brokers_hole_does_not_hold_up_another() -> None:
    pieces = [piece(1, 10), piece(21, 30), piece(1, 7, broker="c")]
    end = reach(NOTHING, pieces)
    assert (end.of(("b", 1)), end.of(("c", 1))) == (10, 7)


def test_a_batch_is_shared_evenly_and_what_one_does_not_need_goes_to_others() -> None:
    pieces = [piece(1, 1_000), piece(1, 50, broker="c"), piece(1, 1_000, broker="d")]
    end = reach(NOTHING, pieces, 300)
    assert (end.of(("b", 1)), end.of(("c", 1)), end.of(("d", 1))) == (125, 50, 125)


def test_a_batch_rather_ends_with_a_part_than_within_one() -> None:
    pieces = [piece(1, 80), piece(81, 160)]
    assert reach(NOTHING, pieces, 100).of(("b", 1)) == 80
    assert reach(NOTHING, pieces, 30).of(("b", 1)) == 30


def test_events_that_lie_in_several_files_are_read_once_from_the_longest() -> None:
    pieces = [
        piece(1, 100), piece(1, 50), piece(51, 100), piece(90, 140, hot=True), piece(101, 120),
    ]  # fmt: skip
    end = reach(NOTHING, pieces)
    assert read(NOTHING, end, pieces) == [(1, 100, "b/1/1-100"), (101, 140, "b/1/90-140h")]


def test_a_stream_goes_on_in_the_middle_of_a_file_that_was_merged_meanwhile() -> None:
    start = Position({("b", 1): 25})
    pieces = [piece(1, 100)]
    assert read(start, reach(start, pieces), pieces) == [(26, 100, "b/1/1-100")]


@pytest.mark.parametrize("seed", range(50))
def test_every_event_is_read_once_whatever_happens_to_the_files(seed: int) -> None:
    """Parts appear in any order, are merged, are hot and sealed at once; batches are limited."""
    rng = random.Random(seed)
    runs = [(broker, epoch) for broker in "bc" for epoch in (1, 2, 3)]
    ends = {run: rng.randint(1, 300) for run in runs}
    hidden = []
    for run in runs:
        first = 1
        while first <= ends[run]:
            last = min(ends[run], first + rng.randint(0, 60))
            hidden.append(piece(first, last, run[1], run[0], hot=rng.random() < 0.2))
            first = last + 1
    rng.shuffle(hidden)
    there: list[Piece] = []
    position = NOTHING
    seen: dict[tuple[str, int], list[int]] = {run: [] for run in runs}
    for _ in range(2_000):
        for _ in range(rng.randint(0, 2)):
            if hidden:
                there.append(hidden.pop())
        if rng.random() < 0.3 and len(there) > 1:
            one = rng.choice(there)
            for other in list(there):
                if other.run == one.run and other.first == one.last + 1:
                    there.append(piece(one.first, other.last, one.epoch, one.broker))
                    if rng.random() < 0.8:
                        there.remove(one)
                        there.remove(other)
                    break
        end = reach(position, there, rng.choice([None, 5, 40]))
        for run_tasks in tasks(slices(position, end, there), rng.choice([3, 50])):
            for part in run_tasks:
                assert part.path
                seen[part.broker, part.epoch] += range(part.first, part.last + 1)
        position = from_json(end.as_json())
        if not hidden and behind(position, there) == 0:
            break
    assert seen == {run: list(range(1, ends[run] + 1)) for run in runs}


def test_an_offset_does_not_grow_with_every_restart_of_a_broker() -> None:
    position = NOTHING
    for epoch in range(1, 200):
        position = reach(position, [piece(1, 5, epoch)])
    found = position.as_json()["b"]
    assert len(found) == EPOCHS_MAX + 1
    assert found["done"] == 199 - EPOCHS_MAX
    assert reach(position, [piece(1, 5, 3)]) == position  # long over: not read a second time


def test_how_far_behind_a_stream_is() -> None:
    pieces = [piece(1, 100), piece(51, 150), piece(1, 10, broker="c")]
    assert behind(Position({("b", 1): 120}), pieces) == 40


def test_a_strange_checkpoint_is_refused() -> None:
    with pytest.raises(JournalSourceError, match="a checkpoint of its own"):
        from_json({"s": "spark-1", "n": 3})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "which journal"),
        ({"path": "j", "maxEventsPerBach": "3"}, "did you mean maxEventsPerBatch"),
        ({"path": "j", "maxEventsPerBatch": "0"}, "at least 1"),
        ({"path": "j", "hotTail": "yes"}, "neither true nor false"),
        ({"path": "j", "startingOffsets": "newest"}, "neither earliest nor latest"),
    ],
)
def test_a_mistake_in_an_option_is_told(options, said) -> None:
    with pytest.raises(JournalSourceError, match=said):
        parse(options)


def test_several_journals_are_one_stream() -> None:
    assert parse({"path": "a", "paths": "b, s3a://c/d"}).roots == ("a", "b", "s3a://c/d")
