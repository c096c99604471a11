from __future__ import annotations

from fila.hooks.breaker import CLOSED, HALF_OPEN, OPEN, Breaker

SECOND = 1_000_000_000


def breaker() -> Breaker:
    return Breaker(threshold=3, cooldown_ms=10_000)


def test_it_stays_closed_below_the_threshold() -> None:
    it = breaker()
    assert not it.fail(0)
    assert not it.fail(0)
    assert it.allows(0)
    assert it.state == CLOSED


def test_the_third_failure_in_a_row_trips_it() -> None:
    it = breaker()
    assert [it.fail(0) for _ in range(3)] == [False, False, True]
    assert it.state == OPEN
    assert it.trips == 1
    assert not it.allows(10 * SECOND - 1)


def test_a_success_in_between_starts_the_count_again() -> None:
    it = breaker()
    it.fail(0)
    it.fail(0)
    it.succeed()
    assert not it.fail(0)
    assert it.allows(0)


def test_after_the_cool_down_one_success_closes_it() -> None:
    it = breaker()
    for _ in range(3):
        it.fail(0)
    assert it.allows(10 * SECOND)
    assert it.state == HALF_OPEN
    assert it.succeed()
    assert it.state == CLOSED
    assert not it.fail(10 * SECOND)


def test_after_the_cool_down_one_failure_opens_it_for_another_cool_down() -> None:
    it = breaker()
    for _ in range(3):
        it.fail(0)
    assert it.allows(10 * SECOND)
    assert it.fail(10 * SECOND)
    assert it.trips == 2
    assert not it.allows(20 * SECOND - 1)
    assert it.allows(20 * SECOND)


def test_a_gross_failure_trips_it_at_once() -> None:
    it = breaker()
    assert it.fail(0, at_once=True)
    assert not it.allows(0)


def test_a_success_that_changes_nothing_is_not_a_recovery() -> None:
    assert not breaker().succeed()
