from __future__ import annotations

import pytest

from fila.core.verdict import DELAY_MS_MAX, Assignment, FailureVerdict
from tests.hooks.trial import Trial, body, hook


def delays(expression: str, count: int = 300) -> list[int]:
    trial = Trial().on_failure(f"function on_failure(msg) return {{ delay_ms = {expression} }} end")
    return [trial.fail().delay_ms for _ in range(count)]


@pytest.mark.parametrize(("attempts", "middle"), [(0, 1000), (1, 1000), (2, 2000), (5, 16_000)])
def test_back_off_doubles_and_is_spread_by_a_quarter(attempts: int, middle: int) -> None:
    seen = delays(f"fila.helpers.exponential_backoff({attempts}, 1000, 1e9)")
    assert all(0.75 * middle - 1 <= delay <= 1.25 * middle for delay in seen)
    assert min(seen) < 0.85 * middle
    assert max(seen) > 1.15 * middle
    assert len(set(seen)) > 50


def test_back_off_never_exceeds_its_maximum() -> None:
    seen = delays("fila.helpers.exponential_backoff(6, 1000, 32000)")
    assert max(seen) == 32_000
    assert min(seen) < 32_000
    assert set(delays("fila.helpers.exponential_backoff(60, 1000, 60000)", 20)) == {60_000}


@pytest.mark.parametrize(
    ("arguments", "delay_ms"),
    [
        ("1e9, 1000, 60000", 60_000),
        ("math.huge, 1000, 60000", 60_000),
        ("5, math.huge, math.huge", DELAY_MS_MAX),
        ("5, 0, 60000", 0),
        ("5, -10, 60000", 0),
        ("5, 1000, -1", 0),
        ("'70', '1000', '60000'", 60_000),
        ("70", 60_000),
    ],
)
def test_back_off_with_strange_arguments_is_still_a_delay(arguments: str, delay_ms: int) -> None:
    assert delays(f"fila.helpers.exponential_backoff({arguments})", 1) == [delay_ms]


@pytest.mark.parametrize("arguments", ["", "nil, 1, 2", "{}, 1, 2", "0/0, 1, 2", "1, 0/0, 2"])
def test_back_off_without_numbers_is_an_error(arguments: str) -> None:
    trial = Trial().on_failure(
        "function on_failure(msg)\n"
        f" return {{ delay_ms = fila.helpers.exponential_backoff({arguments}) }} end"
    )
    assert trial.fail() == FailureVerdict(False, 0)
    assert "on_failure:2:" in trial.failure_stats.last_problem
    assert "must be a number" in trial.failure_stats.last_problem


def test_two_runtimes_with_two_seeds_spread_differently() -> None:
    source = (
        "function on_failure(msg) return"
        " { delay_ms = fila.helpers.exponential_backoff(1, 1e6, 1e9) } end"
    )
    one, two, again = (
        [Trial(seed=seed).on_failure(source).fail().delay_ms for _ in range(3)]
        for seed in (1, 2, 1)
    )
    assert one == again
    assert one != two


def test_a_tenant_route_takes_the_header_or_the_default() -> None:
    trial = Trial().on_enqueue(hook("return fila.helpers.tenant_route(msg, 'tenant_id')"))
    assert trial.assign({"tenant_id": "acme"}) == Assignment(b"acme", 1, ())
    assert trial.assign({"other": "acme"}) == Assignment(b"default", 1, ())


def test_rate_limit_keys_fill_placeholders_and_leave_out_what_is_missing() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local route = fila.helpers.tenant_route(msg, "tenant_id")
            route.throttle_keys = fila.helpers.rate_limit_keys(msg, {
              "provider:{provider}", "region:{region}", "{provider}/{region}",
              "all", "odd{", "}{", 5,
            })
            return route""")
    )
    full = trial.assign({"tenant_id": "acme", "provider": "stripe", "region": "eu"})
    assert full.throttle_keys == (
        b"all",
        b"odd{",
        b"provider:stripe",
        b"region:eu",
        b"stripe/eu",
        b"}{",
    )
    some = trial.assign({"provider": "stripe"})
    assert some.throttle_keys == (b"all", b"odd{", b"provider:stripe", b"}{")


def test_rate_limit_keys_take_header_values_as_they_are() -> None:
    trial = Trial().on_enqueue(
        hook("return { throttle_keys = fila.helpers.rate_limit_keys(msg, { 'p:{p}', '{}' }) }")
    )
    assert trial.assign({"p": "{p}%1"}).throttle_keys == (b"p:{p}%1",)
    assert trial.assign({"p": "", "": "empty"}).throttle_keys == (b"empty", b"p:")


@pytest.mark.parametrize(
    ("attempts", "most", "dead"), [(1, 5, False), (4, 5, False), (5, 5, True), (9, 5, True)]
)
def test_max_retries_gives_up_at_the_maximum(attempts: int, most: int, dead: bool) -> None:
    trial = Trial().on_failure(
        f"function on_failure(msg) return fila.helpers.max_retries(msg.attempts, {most}) end"
    )
    assert trial.fail(attempts).dead_letter is dead


@pytest.mark.parametrize(
    "call",
    [
        "tenant_route()",
        "tenant_route({})",
        "tenant_route('x', 'y')",
        "rate_limit_keys(nil, {})",
        "rate_limit_keys(msg, 'provider')",
        "max_retries(nil, 5)",
        "max_retries(5)",
    ],
)
def test_helpers_called_wrongly_are_errors_of_the_script(call: str) -> None:
    trial = Trial().on_enqueue(hook(f"return fila.helpers.{call}"))
    trial.assign_all([body()])
    assert trial.enqueue_stats.errors == 1
    assert trial.enqueue_stats.last_problem.startswith("on_enqueue:")
