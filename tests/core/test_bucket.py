from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fila.core.bucket import NS, TOKEN, Bucket, first_short, whole_tokens

T0 = 1_700_000_000 * NS


def bucket(rate: float, burst: float, tokens: float | None = None) -> Bucket:
    made = Bucket(b"t", rate, burst, T0)
    if tokens is not None:
        made.tokens = tokens
    return made


# --- refill


def test_a_new_bucket_is_full() -> None:
    assert bucket(2.0, 5.0).tokens == 5.0


def test_tokens_come_back_at_the_rate() -> None:
    one = bucket(2.0, 5.0, tokens=0.0)
    one.refill(T0 + 1_500_000_000)
    assert one.tokens == 3.0


def test_a_refill_never_exceeds_the_burst() -> None:
    one = bucket(2.0, 5.0, tokens=4.0)
    one.refill(T0 + 3600 * NS)
    assert one.tokens == 5.0


def test_a_refill_in_the_past_changes_nothing() -> None:
    one = bucket(2.0, 5.0, tokens=1.0)
    one.refill(T0 - NS)
    assert (one.tokens, one.at_ns) == (1.0, T0)


def test_many_small_refills_equal_one_large_one() -> None:
    small, large = bucket(3.0, 1e9, tokens=0.0), bucket(3.0, 1e9, tokens=0.0)
    for step in range(1, 10_001):
        small.refill(T0 + step * 1_000_003)
    large.refill(T0 + 10_000 * 1_000_003)
    assert small.tokens == pytest.approx(large.tokens, abs=1e-9)


def test_a_bucket_of_rate_zero_never_refills() -> None:
    one = bucket(0.0, 5.0, tokens=0.0)
    one.refill(T0 + 10**18)
    assert one.tokens == 0.0
    assert one.next_token_ns() == 0


def test_the_highest_rate_fills_up_instead_of_overflowing() -> None:
    one = bucket(1e300, 1e300, tokens=0.0)
    one.refill(T0 + 10**18)
    assert one.tokens == 1e300


# --- change and restore


def test_a_changed_bucket_keeps_its_tokens() -> None:
    one = bucket(1.0, 10.0, tokens=4.0)
    one.change(5.0, 20.0, T0)
    assert (one.tokens, one.rate, one.burst) == (4.0, 5.0, 20.0)


def test_a_changed_bucket_is_cut_to_the_new_burst() -> None:
    one = bucket(1.0, 10.0)
    one.change(1.0, 3.0, T0)
    assert one.tokens == 3.0


def test_time_before_a_change_counts_at_the_old_rate() -> None:
    one = bucket(1.0, 10.0, tokens=0.0)
    one.change(100.0, 10.0, T0 + 2 * NS)
    assert one.tokens == 2.0


def test_a_restored_bucket_continues_from_its_level_plus_the_time_that_passed() -> None:
    one = Bucket(b"t", 2.0, 10.0, T0 + 3 * NS)
    one.restore(1.0, T0, T0 + 3 * NS)
    assert (one.tokens, one.at_ns) == (7.0, T0 + 3 * NS)


def test_a_restored_bucket_never_holds_more_than_its_burst() -> None:
    one = Bucket(b"t", 2.0, 5.0, T0)
    one.restore(50.0, T0, T0)
    assert one.tokens == 5.0


def test_a_level_stored_in_the_future_grants_nothing_for_the_time_before() -> None:
    one = Bucket(b"t", 2.0, 10.0, T0)
    one.restore(1.0, T0 + 60 * NS, T0)
    assert (one.tokens, one.at_ns) == (1.0, T0)


# --- the next token


def test_a_bucket_with_a_token_has_its_next_token_now() -> None:
    assert bucket(1.0, 1.0).next_token_ns() == T0


def test_the_next_token_comes_within_a_nanosecond_of_its_time() -> None:
    one = bucket(2.0, 5.0, tokens=0.25)
    assert one.next_token_ns() == T0 + 375_000_000


def test_a_burst_below_one_never_yields_a_token() -> None:
    assert bucket(100.0, 0.5).next_token_ns() == 0


def test_a_token_that_is_a_lifetime_away_counts_as_never() -> None:
    assert bucket(1e-12, 1.0, tokens=0.0).next_token_ns() == 0


@given(
    rate=st.floats(1e-3, 1e7),
    burst=st.floats(1.0, 1e6),
    tokens=st.floats(0.0, 0.999),
    at_ns=st.integers(0, 2**62),
)
def test_at_the_time_it_told_there_is_a_whole_token_and_not_much_before(
    rate: float, burst: float, tokens: float, at_ns: int
) -> None:
    one = Bucket(b"t", rate, burst, at_ns)
    one.tokens = tokens
    told = one.next_token_ns()
    exact = at_ns + (1 - Fraction(tokens)) / Fraction(rate) * NS
    # One nanosecond for rounding up, and what doubles cannot tell apart in so long a wait.
    slack = 2 + (told - at_ns) * Fraction(1, 10**14)
    assert abs(told - exact) <= slack
    one.refill(told)
    assert one.tokens >= TOKEN
    assert whole_tokens([one], 1, told) == 1


# --- several buckets


def test_all_buckets_together_let_go_what_the_shortest_has() -> None:
    assert whole_tokens([bucket(1, 9), bucket(1, 3), bucket(1, 5)], 100, T0) == 3


def test_no_more_is_let_go_than_was_wanted() -> None:
    assert whole_tokens([bucket(1, 9)], 4, T0) == 4


def test_a_part_of_a_token_lets_nothing_go() -> None:
    one = bucket(1, 9, tokens=0.999)
    assert whole_tokens([one], 5, T0) == 0
    assert first_short([bucket(1, 9), one]) is one


def test_a_token_short_by_rounding_alone_counts_as_whole() -> None:
    one = bucket(1, 9, tokens=1.0 - 1e-10)
    assert whole_tokens([one], 5, T0) == 1
    assert first_short([one]) is None


@given(st.floats(1.0 - 1e-8, 1.0 + 1e-8))
def test_if_nothing_may_go_some_bucket_is_found_short(tokens: float) -> None:
    """The delivery pass parks the lane on that bucket; without one it would have nowhere to go."""
    one = bucket(1, 9, tokens=tokens)
    if whole_tokens([one], 5, T0) == 0:
        assert first_short([one]) is one


def test_tokens_taken_as_they_come_add_up_to_the_rate() -> None:
    one = bucket(3.0, 1.0)
    now, taken = T0, 0
    while now < T0 + 1_000 * NS:
        if whole_tokens([one], 1, now):
            one.tokens -= 1
            taken += 1
        now = max(now, one.next_token_ns())
    assert taken in (3_000, 3_001)


# --- against exact arithmetic


class BucketAgainstFractions(RuleBasedStateMachine):
    """A bucket in floating point next to one in exact fractions that does the same."""

    def __init__(self) -> None:
        super().__init__()
        self.now = T0
        self.rate = Fraction(10)
        self.burst = Fraction(20)
        self.exact = Fraction(20)
        self.bucket = Bucket(b"t", 10.0, 20.0, T0)
        # What may have been granted at most since the limit was last changed.
        self.allowed = Fraction(20)
        self.granted = 0

    def pass_time(self, ns: int) -> None:
        self.now += ns
        grown = Fraction(ns, NS) * self.rate
        self.exact = min(self.exact + grown, self.burst)
        self.allowed += grown

    @rule(ns=st.integers(0, 10 * NS))
    def time_passes(self, ns: int) -> None:
        self.pass_time(ns)
        self.bucket.refill(self.now)

    @rule(want=st.integers(1, 50))
    def messages_go(self, want: int) -> None:
        count = whole_tokens([self.bucket], want, self.now)
        assert count <= want
        assert count >= min(want, int(self.exact - Fraction(1, 10**6)))
        self.bucket.tokens -= count
        self.exact -= count
        self.granted += count

    @precondition(lambda self: self.bucket.tokens < TOKEN)
    @rule()
    def wait_for_the_next_token(self) -> None:
        at_ns = self.bucket.next_token_ns()
        if at_ns:
            self.pass_time(at_ns - self.now if at_ns > self.now else 0)
            assert whole_tokens([self.bucket], 1, self.now) == 1

    @rule(rate=st.integers(0, 5_000), burst=st.integers(0, 100))
    def the_limit_changes(self, rate: int, burst: int) -> None:
        self.bucket.change(rate / 10, burst / 2, self.now)
        self.rate, self.burst = Fraction(rate, 10), Fraction(burst, 2)
        self.exact = min(self.exact, self.burst)
        self.allowed, self.granted = self.exact, 0

    @rule(ns=st.integers(0, 5 * NS))
    def the_broker_restarts(self, ns: int) -> None:
        old = self.bucket
        self.pass_time(ns)
        self.bucket = Bucket(b"t", old.rate, old.burst, self.now)
        self.bucket.restore(old.tokens, old.at_ns, self.now)

    @invariant()
    def the_levels_agree(self) -> None:
        self.bucket.refill(self.now)
        assert abs(Fraction(self.bucket.tokens) - self.exact) < Fraction(1, 10**6)

    @invariant()
    def no_more_went_than_burst_and_rate_allow(self) -> None:
        assert self.granted <= self.allowed + Fraction(1, 10**6)


BucketAgainstFractions.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestBucketAgainstFractions = BucketAgainstFractions.TestCase
