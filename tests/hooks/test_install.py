from __future__ import annotations

import logging

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.hooks.contract import HookError, HookSettings
from fila.hooks.limits import SCRIPT_BYTES_MAX
from tests.hooks.trial import MESSAGE_ID, MS, QUEUE, Trial, body, hook

GOOD = hook("return { fairness_key = 'good' }")
GOOD_FAILURE = "\nfunction on_failure(msg) return { action = 'dlq' } end"


def problem(on_enqueue: str | None = None, on_failure: str | None = None) -> str:
    with pytest.raises(HookError) as refusal:
        Trial().hooks.check(on_enqueue, on_failure)
    return str(refusal.value)


@pytest.mark.parametrize("on_enqueue", [GOOD, None])
@pytest.mark.parametrize("on_failure", [GOOD_FAILURE, None])
def test_good_scripts_pass_the_check(on_enqueue: str | None, on_failure: str | None) -> None:
    hooks = Trial().hooks
    hooks.check(on_enqueue, on_failure)
    assert not hooks.has_on_enqueue("q"), "a check installs nothing"
    hooks.install("q", on_enqueue, on_failure)
    assert hooks.has_on_enqueue("q") is (on_enqueue is not None)
    assert hooks.has_on_failure("q") is (on_failure is not None)


def test_a_syntax_error_is_told_with_the_compilers_message_and_line() -> None:
    text = problem("function on_enqueue(msg)\n  local x = = 5\nend")
    assert text == "on_enqueue does not compile: on_enqueue:2: unexpected symbol near '='"
    assert "on_failure:1: <name> expected" in problem(GOOD, "local 5")


def test_a_script_must_define_its_function() -> None:
    missing = "the script does not define a function on_enqueue(msg)"
    assert missing in problem("x = 1")
    assert missing in problem("")
    assert missing in problem("on_enqueue = 5")
    assert missing in problem("local function on_enqueue(msg) return {} end")
    assert missing in problem(GOOD_FAILURE)
    assert "does not define a function on_failure(msg)" in problem(None, GOOD)


def test_an_error_while_loading_is_told_with_its_line() -> None:
    assert "on_enqueue:3: no such table" in problem("local a = 1\n\nerror('no such table')")
    assert "on_enqueue:1: attempt to index a nil value (global 'os')" in problem("os.exit()")


def test_a_script_that_never_finishes_loading_is_refused() -> None:
    assert "on_enqueue:1: took longer than 10 ms" in problem("while true do end")
    assert "on_enqueue:1: not enough memory" in problem("s = 'xy' while true do s = s .. s end")


def test_bytecode_is_refused() -> None:
    assert "attempt to load a binary chunk" in problem("\x1bLua\x54\x00")


def test_a_script_has_a_largest_size() -> None:
    padding = "-" * (SCRIPT_BYTES_MAX - len(GOOD) - 1)
    Trial().hooks.check(GOOD + "\n" + padding, None)
    assert f"limit {SCRIPT_BYTES_MAX}" in problem(GOOD + "\n" + padding + "-")


def test_a_script_may_hold_any_text() -> None:
    trial = Trial().on_enqueue(hook("return { fairness_key = 'tênant \U0001f41f' }"))
    assert trial.assign().fairness_key == "tênant \U0001f41f".encode()
    Trial().hooks.check(hook("return {} -- \ud800 is not text"), None)


def test_one_file_may_define_both_hooks() -> None:
    trial = Trial()
    trial.hooks.install(QUEUE, GOOD + GOOD_FAILURE, GOOD + GOOD_FAILURE)
    assert trial.assign().fairness_key == b"good"
    assert trial.fail().dead_letter


def test_a_refused_script_leaves_the_old_one_at_work() -> None:
    trial = Trial().on_enqueue(GOOD)
    with pytest.raises(HookError):
        trial.hooks.install(QUEUE, "not lua", None)
    with pytest.raises(HookError):
        trial.hooks.install(QUEUE, hook("return {}"), "not lua")
    assert trial.assign().fairness_key == b"good"


def test_a_new_script_replaces_the_old_one_and_its_counts() -> None:
    trial = Trial().on_enqueue(hook("error('no')"))
    for _ in range(5):
        trial.assign()
    assert trial.enqueue_stats.breaker == "open"
    trial.on_enqueue(GOOD)
    assert trial.assign().fairness_key == b"good"
    assert trial.enqueue_stats.errors == 0
    trial.hooks.install(QUEUE, None, GOOD_FAILURE)
    assert not trial.hooks.has_on_enqueue(QUEUE)
    assert trial.hooks.has_on_failure(QUEUE)
    assert trial.assign() == DEFAULT_ASSIGNMENT


def test_a_removed_queue_has_no_hooks() -> None:
    trial = Trial()
    trial.hooks.install(QUEUE, GOOD, GOOD_FAILURE)
    trial.hooks.remove(QUEUE)
    assert not trial.hooks.has_on_enqueue(QUEUE)
    assert not trial.hooks.has_on_failure(QUEUE)
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert not trial.fail().dead_letter


def test_a_stored_script_that_no_longer_works_degrades_to_defaults_with_a_loud_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trial = Trial()
    trial.hooks.install(QUEUE, "this is not lua", GOOD_FAILURE, strict=False)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert 'queue "orders": its stored script is broken' in record.getMessage()
    assert "on_enqueue:1: syntax error near 'is'" in record.getMessage()
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert trial.enqueue_stats.breaker == "open"
    assert "syntax error" in trial.enqueue_stats.last_problem
    assert trial.fail().dead_letter


def test_a_stored_script_that_failed_to_load_once_is_tried_again_after_the_cool_down() -> None:
    trial = Trial()
    source = "local weight = fila.get('weight') + 0\n" + hook("return { weight = weight }")
    trial.hooks.install(QUEUE, source, None, strict=False)
    assert trial.assign().weight == 1
    trial.set_config("weight", "7")
    assert trial.assign().weight == 1
    trial.now_ns += 10_000 * MS
    assert trial.assign().weight == 7


def test_a_broken_script_without_a_cool_down_is_tried_once_per_batch() -> None:
    trial = Trial(HookSettings(breaker_cooldown_ms=0))
    trial.hooks.install(QUEUE, "this is not lua", None, strict=False)
    for _ in range(3):
        assert trial.assign_all([body()] * 300) == [DEFAULT_ASSIGNMENT] * 300
    assert trial.enqueue_stats.errors == 4
    trial.hooks.install(QUEUE, hook("while true do end"), None)
    assert trial.assign_all([body()] * 300) == [DEFAULT_ASSIGNMENT] * 300


def test_one_queue_may_have_more_time_than_the_others() -> None:
    slow = hook("for i = 1, 1000000 do end return { fairness_key = 'slow' }")
    trial = Trial()
    trial.hooks.install("patient", slow, None, timeout_ms=2_000)
    trial.hooks.install("hasty", slow, None, timeout_ms=1)
    assert trial.assign_all([body()], "patient")[0].fairness_key == b"slow"
    assert trial.assign_all([body()], "hasty") == [DEFAULT_ASSIGNMENT]


def test_one_queue_may_have_more_memory_than_the_others() -> None:
    big = hook("big = ('x'):rep(900000) return { fairness_key = 'big' }")
    trial = Trial()
    trial.hooks.install("roomy", big, None, memory_limit_bytes=4_000_000)
    trial.hooks.install("small", big, None, memory_limit_bytes=200_000)
    assert trial.assign_all([body()], "roomy")[0].fairness_key == b"big"
    assert trial.assign_all([body()], "small") == [DEFAULT_ASSIGNMENT]


@pytest.mark.parametrize("timeout_ms", [0, -1, 60_001])
def test_a_time_limit_must_make_sense(timeout_ms: int) -> None:
    with pytest.raises(HookError, match="timeout_ms must be between 1 and 60000"):
        Trial().hooks.install(QUEUE, GOOD, None, timeout_ms=timeout_ms)


@pytest.mark.parametrize("memory_limit_bytes", [0, 65_535, 1 << 31])
def test_a_memory_limit_must_make_sense(memory_limit_bytes: int) -> None:
    with pytest.raises(HookError, match="memory_limit_bytes must be between"):
        Trial().hooks.install(QUEUE, GOOD, None, memory_limit_bytes=memory_limit_bytes)


def test_a_stored_limit_that_makes_no_sense_does_not_stop_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trial = Trial()
    trial.hooks.install(QUEUE, GOOD, None, timeout_ms=0, strict=False)
    assert "its hooks get the default limits: timeout_ms must be between" in caplog.text
    assert trial.assign().fairness_key == b"good"


def test_both_hooks_of_a_queue_count_on_their_own() -> None:
    trial = Trial()
    trial.hooks.install(QUEUE, GOOD, "function on_failure(msg) error('no') end")
    trial.assign()
    trial.hooks.on_failure(QUEUE, [(MESSAGE_ID, 1, b"", body())] * 5, trial.now_ns)
    assert trial.enqueue_stats.executions == 1
    assert trial.enqueue_stats.breaker == "closed"
    assert trial.failure_stats.executions == 3
    assert trial.failure_stats.bypassed == 2
    assert trial.failure_stats.breaker == "open"
