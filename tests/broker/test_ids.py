"""Message ids: UUIDv7, strictly increasing, also across restarts and broken clocks."""

from __future__ import annotations

import random
import uuid

from hypothesis import given
from hypothesis import strategies as st

from fila.broker.ids import Ids
from tests.broker.turns import MS, START_NS, Bench, Client, Time


def ids_of(seed: int, after_ns: int = 0) -> Ids:
    return Ids(random.Random(seed).getrandbits, after_ns)


def test_an_id_is_a_uuid_of_version_7_with_its_time() -> None:
    [id] = ids_of(1).take(1, START_NS + 123 * MS)
    parsed = uuid.UUID(bytes=id)
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 80 == START_NS // MS + 123


def test_ids_of_one_millisecond_rise() -> None:
    ids = ids_of(1)
    taken = [id for _ in range(50) for id in ids.take(7, START_NS)]
    assert taken == sorted(set(taken))
    assert {id[:6] for id in taken} == {taken[0][:6]}


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 40)), max_size=60),
    st.integers(0, 1 << 30),
)
def test_ids_rise_strictly_whatever_time_does(steps: list[tuple[int, int]], seed: int) -> None:
    ids = ids_of(seed)
    now = START_NS
    taken: list[bytes] = []
    for step_ms, count in steps:
        now += step_ms * MS
        taken += ids.take(count, now)
    assert taken == sorted(set(taken))
    assert all(uuid.UUID(bytes=id).version == 7 for id in taken)
    assert all(id[8] >> 6 == 0b10 for id in taken)


def test_a_counter_at_its_end_moves_on_to_the_next_millisecond() -> None:
    ids = Ids(lambda bits: (1 << bits) - 1, 0)
    [first] = ids.take(1, START_NS)
    ids._counter = (1 << 62) - 3
    taken = ids.take(10, START_NS)
    assert taken == sorted(set(taken))
    assert taken[0] > first
    assert taken[0][:6] > first[:6]


def test_ids_rise_over_restarts_that_share_a_millisecond() -> None:
    """Each start finds the wall clock where it was: a machine whose clock stands still."""
    time = Time()
    bench = Bench(time=time)
    bench.broker.create_queue("q", None, None, 0)
    bench.loop.settle()
    taken: list[bytes] = []
    for _ in range(20):
        bench = Bench(store=bench.store.crash(), time=time)
        bench.broker.consume("q", 1, Client(), 1)
        ids = bench.broker.enqueue("q", [b"x", b"y"])
        assert isinstance(ids, list)
        taken += ids
        bench.loop.settle()
    assert taken == sorted(set(taken))


def test_ids_rise_over_a_restart_with_the_wall_clock_set_back() -> None:
    time = Time()
    bench = Bench(time=time)
    bench.broker.create_queue("q", None, None, 0)
    before = bench.broker.enqueue("q", [b"x"] * 5)
    bench.loop.settle()
    time.wall_ns -= 3_600_000 * MS
    bench = Bench(store=bench.store.crash(), time=time)
    after = bench.broker.enqueue("q", [b"x"] * 5)
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert before + after == sorted(set(before + after))
