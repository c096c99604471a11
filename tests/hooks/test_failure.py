from __future__ import annotations

import pytest

from fila.core.verdict import DELAY_MS_MAX, RETRY_NOW, FailureVerdict
from fila.hooks.limits import ERROR_BYTES_MAX
from tests.hooks.trial import MESSAGE_ID, MESSAGE_ID_TEXT, QUEUE, Trial, body


def hook(statements: str) -> str:
    return f"function on_failure(msg, error)\n{statements}\nend"


def decided(expression: str, attempts: int = 1, error: str = "it broke") -> FailureVerdict:
    trial = Trial().on_failure(hook(f"return {expression}"))
    verdict = trial.fail(attempts, error)
    assert trial.failure_stats.errors == 0, trial.failure_stats.last_problem
    return verdict


def failed(expression: str) -> str:
    trial = Trial().on_failure(hook(f"return {expression}"))
    assert trial.fail() == RETRY_NOW
    assert trial.failure_stats.errors == 1
    return trial.failure_stats.last_problem


def test_a_hook_retries_with_a_delay_and_then_gives_up() -> None:
    trial = Trial().on_failure("""
        function on_failure(msg)
          if msg.attempts >= 3 then return { action = "dlq" } end
          return { action = "retry", delay_ms = 1000 * msg.attempts }
        end""")
    assert [trial.fail(attempts) for attempts in (1, 2, 3, 4)] == [
        FailureVerdict(False, 1000),
        FailureVerdict(False, 2000),
        FailureVerdict(True, 0),
        FailureVerdict(True, 0),
    ]


def test_a_hook_sees_the_whole_message() -> None:
    trial = Trial().on_failure(
        hook(
            f"assert(msg.id == '{MESSAGE_ID_TEXT}' and msg.queue == 'orders' and msg.attempts == 7)"
            "assert(msg.error == 'card declined' and error == msg.error)"
            "assert(msg.headers.tenant == 'acme' and msg.payload_size == 0)"
            "return { action = 'dlq' }"
        )
    )
    assert trial.fail(7, "card declined", {"tenant": "acme"}).dead_letter
    assert trial.failure_stats.last_problem == ""


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_a_hook_sees_every_header(count: int) -> None:
    trial = Trial().on_failure(
        hook("local n = 0 for _ in pairs(msg.headers) do n = n + 1 end return { delay_ms = n }")
    )
    assert trial.fail(headers={f"k{i}": "v" for i in range(count)}).delay_ms == count


@pytest.mark.parametrize(
    ("expression", "delay_ms"),
    [
        ("nil", 0),
        ("0", 0),
        ("1500", 1500),
        ("1500.9", 1500),
        ("'1500'", 1500),
        ("-1", 0),
        ("-math.huge", 0),
        ("math.huge", DELAY_MS_MAX),
        ("math.maxinteger", DELAY_MS_MAX),
        ("2 ^ 70", DELAY_MS_MAX),
        (str(DELAY_MS_MAX), DELAY_MS_MAX),
        ("'soon'", 0),
        ("{}", 0),
        ("true", 0),
    ],
)
def test_a_delay_is_clamped(expression: str, delay_ms: int) -> None:
    verdict = decided(f"{{ action = 'retry', delay_ms = {expression} }}")
    assert verdict == FailureVerdict(False, delay_ms)


@pytest.mark.parametrize("action", ["nil", "5", "true", "{}"])
def test_an_action_of_another_type_counts_as_absent(action: str) -> None:
    assert decided(f"{{ action = {action}, delay_ms = 5 }}") == FailureVerdict(False, 5)


def test_an_unknown_action_is_a_failure() -> None:
    assert 'action must be "retry" or "dlq"' in failed("{ action = 'drop' }")
    assert 'action must be "retry" or "dlq"' in failed("{ action = 'DLQ' }")


def test_a_nan_delay_is_a_failure() -> None:
    assert "delay_ms is not a number" in failed("{ action = 'retry', delay_ms = 0/0 }")


@pytest.mark.parametrize("value", ["nil", "'dlq'", "5"])
def test_anything_but_a_table_is_a_failure(value: str) -> None:
    assert "must return a table, got" in failed(value)


def test_a_dead_letter_has_no_delay() -> None:
    assert decided("{ action = 'dlq', delay_ms = 99 }") == FailureVerdict(True, 0)


def test_an_error_is_shown_up_to_a_limit_and_may_be_any_bytes() -> None:
    trial = Trial().on_failure(hook("return { delay_ms = #msg.error }"))
    assert trial.fail(error="x" * 65_535).delay_ms == ERROR_BYTES_MAX
    items = [(MESSAGE_ID, 1, bytes(range(256)), body())]
    assert trial.hooks.on_failure(QUEUE, items, 0)[0].delay_ms == 256
    assert trial.fail(error="").delay_ms == 0


def test_the_largest_count_of_attempts_is_a_number_like_any_other() -> None:
    assert decided("{ delay_ms = msg.attempts // 2 }", 4_294_967_295).delay_ms == 2_147_483_647


def test_a_batch_of_failures_is_decided_message_by_message() -> None:
    trial = Trial().on_failure(
        hook("return { action = msg.error, delay_ms = msg.attempts * 10 + #msg.headers.h }")
    )
    items = [
        (MESSAGE_ID, i, (b"retry", b"dlq", b"oops")[i % 3], body({"h": "x" * (i % 7)}))
        for i in range(500)
    ]
    verdicts = trial.hooks.on_failure(QUEUE, items, trial.now_ns)
    for i, verdict in enumerate(verdicts):
        expected = (
            FailureVerdict(False, i * 10 + i % 7),
            FailureVerdict(True, 0),
            RETRY_NOW,
        )[i % 3]
        assert verdict == expected
    assert trial.failure_stats.errors == 166
    assert trial.failure_stats.executions == 500
    assert trial.failure_stats.breaker == "closed"
