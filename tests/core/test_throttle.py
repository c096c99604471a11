from __future__ import annotations

import pytest

from fila.core.rejection import INVALID_CONFIG_VALUE, Rejection
from fila.core.throttle import Change, Limit, change, limits
from tests.core.turn import Turns


def changed(key: str, value: str, config: dict[str, str] | None = None) -> Change:
    found = change(key, value, config or {})
    assert isinstance(found, Change)
    return found


def refused(key: str, value: str) -> str:
    found = change(key, value, {})
    assert isinstance(found, Rejection)
    assert found.code == INVALID_CONFIG_VALUE
    return found.message


class Config(dict[str, str]):
    """A config that takes changes as the catalogue does."""

    def set(self, key: str, value: str) -> Limit | None:
        made = changed(key, value, self)
        for gone in made.removes:
            self.pop(gone, None)
        self.update(made.puts)
        # What is stored always means what is in force.
        assert limits(self).get(made.name) == made.limit
        return made.limit


# --- one syntax, the other, and both


def test_the_dotted_form_gives_rate_and_burst() -> None:
    made = changed("throttle.smtp", "100,150")
    assert made.limit == Limit(100.0, 150.0)
    assert made.puts == [("throttle.smtp", "100,150")]


def test_a_throttle_key_may_hold_dots_and_colons() -> None:
    assert changed("throttle.api.v2:eu", "1,2").name == "api.v2:eu"
    assert changed("throttle:api.v2:eu:rate", "1").name == "api.v2:eu"


def test_numbers_may_have_fractions_exponents_and_blanks_around_them() -> None:
    assert changed("throttle.k", " 0.5 , 1e3 ").limit == Limit(0.5, 1000.0)
    assert changed("throttle.k", ".5,2").limit == Limit(0.5, 2.0)


def test_the_burst_of_a_lone_rate_is_the_rate() -> None:
    assert changed("throttle:k:rate", "20").limit == Limit(20.0, 20.0)


def test_the_burst_of_a_lone_rate_below_one_is_one_or_nothing_could_ever_go() -> None:
    assert changed("throttle:k:rate", "0.1").limit == Limit(0.1, 1.0)


def test_a_burst_without_a_rate_is_no_limit_yet() -> None:
    config = Config()
    assert config.set("throttle:k:burst", "50") is None
    assert config.set("throttle:k:rate", "10") == Limit(10.0, 50.0)


def test_the_later_write_wins_over_the_other_syntax() -> None:
    config = Config()
    config.set("throttle:k:rate", "10")
    config.set("throttle:k:burst", "50")
    assert config.set("throttle.k", "1,2") == Limit(1.0, 2.0)
    assert config == {"throttle.k": "1,2"}


def test_a_rate_written_over_the_dotted_form_keeps_its_burst() -> None:
    config = Config({"throttle.k": "1,2"})
    assert config.set("throttle:k:rate", "10") == Limit(10.0, 2.0)
    assert config == {"throttle:k:rate": "10", "throttle:k:burst": "2"}


def test_a_burst_written_over_the_dotted_form_keeps_its_rate() -> None:
    config = Config({"throttle.k": "1,2"})
    assert config.set("throttle:k:burst", "30") == Limit(1.0, 30.0)


# --- removal


def test_removing_the_dotted_form_removes_the_limit() -> None:
    config = Config({"throttle.k": "1,2"})
    assert config.set("throttle.k", "") is None
    assert config == {}


def test_removing_the_dotted_form_removes_a_limit_set_in_the_other_syntax() -> None:
    config = Config({"throttle:k:rate": "1", "throttle:k:burst": "2"})
    assert config.set("throttle.k", "") is None
    assert config == {}


def test_removing_the_rate_removes_the_limit() -> None:
    config = Config({"throttle:k:rate": "1", "throttle:k:burst": "2"})
    assert config.set("throttle:k:rate", "") is None


def test_removing_the_burst_brings_its_default_back() -> None:
    config = Config({"throttle:k:rate": "7", "throttle:k:burst": "2"})
    assert config.set("throttle:k:burst", "") == Limit(7.0, 7.0)


def test_removing_one_half_of_the_dotted_form_leaves_the_other_half() -> None:
    assert Config({"throttle.k": "7,2"}).set("throttle:k:burst", "") == Limit(7.0, 7.0)
    assert Config({"throttle.k": "7,2"}).set("throttle:k:rate", "") is None


def test_removing_what_is_not_set_is_no_mistake() -> None:
    assert changed("throttle.k", "").limit is None
    assert changed("throttle:k:rate", "").limit is None


# --- mistakes


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e400", "ten", "+1", "1_000", "0x10", ""])
def test_a_number_that_is_not_finite_and_at_least_zero_is_refused(number: str) -> None:
    assert "is not a finite number of at least 0" in refused("throttle.k", f"{number},1")
    assert "is not a finite number of at least 0" in refused("throttle.k", f"1,{number}")
    if number:
        assert "is not a finite number of at least 0" in refused("throttle:k:rate", number)
        assert "is not a finite number of at least 0" in refused("throttle:k:burst", number)


@pytest.mark.parametrize("value", ["10", "10,20,30", "10;20"])
def test_a_value_that_is_no_pair_is_refused_with_an_example(value: str) -> None:
    reason = refused("throttle.k", value)
    assert f'"{value}" is not "rate,burst"' in reason
    assert "100,150" in reason


def test_a_refusal_names_the_setting() -> None:
    assert refused("throttle.smtp", "x,1").startswith("throttle.smtp: ")


@pytest.mark.parametrize("key", ["throttle:k", "throttle:k:speed", "throttle::rate", "throttle:"])
def test_an_unknown_colon_setting_is_refused_with_those_that_exist(key: str) -> None:
    assert "throttle:<key>:rate, throttle:<key>:burst or throttle:<key>:max_in_flight" in refused(
        key, "1"
    )


def test_a_throttle_setting_without_a_key_is_refused() -> None:
    assert "throttle key is missing" in refused("throttle.", "1,1")


def test_zero_is_a_rate_and_a_burst() -> None:
    assert changed("throttle.k", "0,0").limit == Limit(0.0, 0.0)


def test_any_other_setting_is_not_a_throttle_setting() -> None:
    assert change("feature.flag", "on", {}) is None
    assert change("throttled", "1,1", {}) is None


# --- in force


def delivered(turns: Turns) -> int:
    turns.turn()
    return len(turns.queue("q").leased)


def test_a_limit_set_while_messages_wait_holds_for_them() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=10, throttle=(b"t",))
    turns.limit("t", 1, 3)
    turns.consume("q", prefetch=100)
    assert delivered(turns) == 3


def test_a_removed_limit_lets_its_waiters_go_at_once() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 1)
    turns.enqueue("q", count=10, throttle=(b"t",))
    turns.consume("q", prefetch=100)
    assert delivered(turns) == 1
    turns.set("throttle.t", "")
    assert delivered(turns) == 10


def test_a_raised_limit_lets_its_waiters_go_as_tokens_come() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 1)
    turns.enqueue("q", count=10, throttle=(b"t",))
    turns.consume("q", prefetch=100)
    turns.limit("t", 2, 1)
    turns.wait(2_000_000_000)
    assert delivered(turns) == 5


def test_a_limit_of_burst_zero_lets_nothing_go() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 100, 0)
    turns.enqueue("q", throttle=(b"t",))
    turns.consume("q")
    turns.wait(3_600_000_000_000)
    assert delivered(turns) == 0
