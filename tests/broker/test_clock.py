"""The broker's time: never backwards, whatever the wall clock does."""

from __future__ import annotations

import random

from fila.broker.clock import Clock
from tests.broker.turns import MS, START_NS, Time


def test_the_clock_starts_at_wall_time() -> None:
    assert Time().clock().now_ns() == START_NS


def test_a_wall_clock_set_back_does_not_move_it() -> None:
    time = Time()
    clock = time.clock()
    time.pass_ms(10)
    time.wall_ns -= 3_600_000 * MS
    assert clock.now_ns() == START_NS + 10 * MS
    time.pass_ms(5)
    assert clock.now_ns() == START_NS + 15 * MS


def test_a_wall_clock_set_forward_makes_nothing_jump() -> None:
    time = Time()
    clock = time.clock()
    time.wall_ns += 86_400_000 * MS
    assert clock.now_ns() == START_NS


def test_it_never_runs_backwards_under_a_wall_clock_gone_mad() -> None:
    time = Time()
    clock = time.clock()
    chance = random.Random(1)
    before = clock.now_ns()
    for _ in range(1_000):
        time.pass_ms(chance.random())
        time.wall_ns = chance.randrange(2 * START_NS)
        now = clock.now_ns()
        assert now >= before
        before = now


def test_after_a_restart_it_continues_from_what_was_stored() -> None:
    time = Time()
    time.wall_ns -= 60_000 * MS  # the machine came back with a clock a minute behind
    clock = time.clock()
    clock.never_before(START_NS)
    assert clock.now_ns() == START_NS + MS  # after the rest of that millisecond
    time.pass_ms(8)
    assert clock.now_ns() == START_NS + 8 * MS  # a little slower, until it is not ahead


def test_a_start_waits_out_the_millisecond_it_found_in_the_store() -> None:
    time = Time()
    clock = time.clock()
    clock.never_before(START_NS + MS // 2)
    assert START_NS + MS <= clock.now_ns() <= START_NS + 2 * MS
    assert clock.now_ns() - time.wall_ns <= MS // 2


def test_a_clock_that_is_ahead_is_left_alone() -> None:
    time = Time()
    clock = time.clock()
    clock.never_before(START_NS - 10 * MS)
    assert clock.now_ns() == START_NS


def test_the_real_clock_agrees_with_itself() -> None:
    clock = Clock()
    times = [clock.now_ns() for _ in range(1_000)]
    assert times == sorted(times)


def test_a_clock_that_is_ahead_runs_slower_until_the_wall_clock_has_caught_up() -> None:
    time = Time()
    clock = time.clock()
    clock.never_before(START_NS + 8_000 * MS)
    assert 7_999 * MS <= clock.ahead_ns() <= 8_001 * MS
    before = clock.now_ns()
    for _ in range(700):
        time.pass_ms(100)
        now = clock.now_ns()
        assert before < now <= before + 100 * MS
        before = now
    assert abs(clock.ahead_ns()) <= 2 * MS


def test_wall_time_is_asked_afresh() -> None:
    time = Time()
    clock = time.clock()
    time.wall_ns -= 3_600_000 * MS
    assert clock.wall_ns() == START_NS - 3_600_000 * MS
    assert clock.ahead_ns() == 3_600_000 * MS
