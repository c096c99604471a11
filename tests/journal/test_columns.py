"""Columns made of whole trails hold what columns made of their single events hold."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.core import effect
from fila.core.command import (
    Ack,
    Command,
    Consume,
    CreateQueue,
    Enqueue,
    Leave,
    Nack,
    SetConfig,
)
from fila.core.trail import NOT_KNOWN, Trail
from fila.core.verdict import Assignment, FailureVerdict
from fila.journal import files
from fila.journal.columns import compact_batch, events_batch, trails_batch
from fila.journal.files import HotFile, Stream
from fila.journal.packed import Packed
from tests.core.turn import MS, Turns, id_of

KEYS = [
    Assignment(b"t%d" % at, at + 1, throttle) for at in range(4) for throttle in ((), (b"api",))
]


def lively_trails(seed: int, turns: int = 60) -> list[Trail]:
    """Turns in which everything happens at once: delays, throttles, weights, failures, consumers
    that come and go."""
    chance = random.Random(seed)
    driven = Turns(journal=True)
    number = 0
    held: list[bytes] = []
    trails: list[Trail] = []
    first: list[Command] = [SetConfig("throttle.api", "200,3"), CreateQueue("q")]
    for turn in range(turns):
        driven.now += chance.randrange(20 * MS)
        commands = first if turn == 0 else []
        if turn % 10 == 2:
            commands.append(Consume("q", f"c{turn}", turn, 30, 0))
        if turn % 10 == 9:
            commands.append(Leave("q", f"c{turn - 7}", True))
            held.clear()
        count = chance.randrange(12)
        ids = [id_of(number + at + 1) for at in range(count)]
        number += count
        assigned = [
            one._replace(weight=one.weight + chance.randrange(2))
            for one in chance.choices(KEYS, k=count)
        ]
        delays = chance.choices([0, 0, 0, 15], k=count)
        bodies = [bytes(chance.randrange(1, 50)) for _ in ids]
        commands.append(Enqueue("q", ids, bodies, assigned, delays))
        chance.shuffle(held)
        done, failed, held = held[:9], held[9:12], held[12:]
        connection = turn // 10 * 10 + 2
        commands.append(Ack("q", [*done, bytes(16)], connection))
        verdicts = [FailureVerdict(chance.random() < 0.3, chance.choice([0, 10])) for _ in failed]
        commands.append(Nack("q", failed, ["no"] * len(failed), verdicts, connection))
        outcome, _ = driven.one_pass(*commands)
        held += outcome.ids()
        trails.append(driven.trail)
    return trails


def test_whole_trails_give_the_same_rows_as_their_single_events() -> None:
    for seed in range(5):
        trails = lively_trails(seed)
        events = [event for trail in trails for event in trail]
        whole = trails_batch(trails, 1, "fila", 7)
        single = events_batch(events, 1, "fila", 7)
        whole.validate(full=True)
        assert whole.to_pylist() == single.to_pylist()
        assert [len(trail) for trail in trails] == [len(trail.expand()) for trail in trails]
        seen = {event.event for event in events}
        assert seen >= {
            effect.EVENT_ENQUEUED,
            effect.EVENT_DELIVERED,
            effect.EVENT_ACKED,
            effect.EVENT_NACKED,
            effect.EVENT_REQUEUED,
            effect.EVENT_PARKED,
            effect.EVENT_THROTTLED,
            effect.EVENT_STALLED,
            effect.EVENT_WEIGHT_CHANGED,
            effect.EVENT_RELEASED,
        }


def test_an_event_in_the_middle_of_a_run_keeps_its_place() -> None:
    broken = 0
    for seed in range(5):
        for trail in lively_trails(seed):
            kinds = [event.event for event in trail]
            first, last = (
                (
                    kinds.index(effect.EVENT_ENQUEUED),
                    len(kinds) - kinds[::-1].index(effect.EVENT_ENQUEUED),
                )
                if effect.EVENT_ENQUEUED in kinds
                else (0, 0)
            )
            for at in range(first, last):
                if kinds[at] == effect.EVENT_WEIGHT_CHANGED:
                    # The message that brought the new weight comes right after it.
                    after = trail.expand()[at + 1]
                    assert (after.event, after.weight) == (
                        effect.EVENT_ENQUEUED,
                        trail.expand()[at].weight,
                    )
                    broken += 1
    assert broken > 20


def test_trails_packed_one_by_one_give_the_same_rows_as_all_at_once() -> None:
    for seed in range(5):
        trails = lively_trails(seed)
        packed = Packed()
        for at in range(0, len(trails), 7):
            packed.add(trails[at : at + 7])
        found = compact_batch(packed, 1, "fila", 7)
        found.validate(full=True)
        assert found.to_pylist() == trails_batch(trails, 1, "fila", 7).to_pylist()


def test_trails_that_cannot_be_packed_leave_nothing_behind() -> None:
    good, bad = lively_trails(1)[4:6]
    packed = Packed()
    packed.add([good])
    bad.visits[0] = 1 << 80
    with pytest.raises(struct.error):
        packed.add([bad])
    packed.add([good])
    found = compact_batch(packed, 1, "fila", 7)
    assert found.to_pylist() == trails_batch([good, good], 1, "fila", 7).to_pylist()


def test_words_kept_by_number_are_text_for_every_reader(tmp_path: Path) -> None:
    trails = lively_trails(2)
    plain = trails_batch(trails, 1, "fila", 7)
    halves = []
    for first, some in ((1, trails[:30]), (1 + sum(map(len, trails[:30])), trails[30:])):
        packed = Packed()
        packed.add(some)
        halves.append(compact_batch(packed, first, "fila", 7))
    stream = Stream("events", "fila", 7)
    hot = HotFile(tmp_path, stream, 1, halves[0].schema)
    for half in halves:
        hot.append(half)
    read = pa.Table.from_batches(files.read_hot(hot.path))
    assert read.schema == plain.schema
    assert read.to_pylist() == plain.to_pylist()
    (part,) = files.seal(tmp_path, stream, hot.batches)
    sealed = pq.ParquetFile(part)
    assert sealed.read().to_pylist() == plain.to_pylist()
    assert sealed.schema_arrow == plain.schema
    assert sealed.schema_arrow.metadata == plain.schema.metadata


def test_what_may_go_is_null_where_it_is_not_known_and_the_ring_is_told() -> None:
    driven = Turns(journal=True)
    driven.create("q")
    driven.turn(driven.messages("q", b"a", 3))
    visit = driven.trail
    driven.consume("q", prefetch=3)
    delivered = driven.trail
    delivered.visits[2] = NOT_KNOWN  # as if the store had to be asked, and could not be yet
    rows = trails_batch([visit, delivered], 1, "b", 1).to_pylist()
    seen = [
        (row["event"], row["key_eligible"], row["ring_delta"], row["queue_delivered"])
        for row in rows
        if row["fairness_key"]
    ]
    assert seen == [
        ("enqueued", 1, 1, 0), ("enqueued", 2, 0, 0), ("enqueued", 3, 0, 0),
        ("delivered", None, 0, 1), ("delivered", 1, 0, 2), ("delivered", 0, -1, 3),
    ]  # fmt: skip
