"""Ways to use up memory. Each must end at the limit, count, and leave the process as it was."""

from __future__ import annotations

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.hooks.contract import HookError, HookSettings
from tests.hooks.trial import MESSAGE_ID, QUEUE, Trial, body, hook

GOOD = hook("return { fairness_key = 'good' }")

# Time enough that memory is what runs out.
PATIENT = HookSettings(timeout_ms=60_000)

BOMBS = {
    "a doubling string": "local s = 'x' while true do s = s .. s end",
    "a growing string": "local s = '' while true do s = s .. ('x'):rep(10000) end",
    "many strings": "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
    "tables": "local t = {} while true do t[#t + 1] = {} end",
    "a chain of tables": "local t = {} while true do t = { t } end",
    "a wide table": "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
    "an array": "local t = {} for i = 1, 1e9 do t[i] = i end",
    "closures": "local t = {} while true do t[#t + 1] = function() return t end end",
    "globals": "for i = 1, 1e9 do _G['g' .. i] = i end",
    "the string library": "for i = 1, 1e9 do string['f' .. i] = i end",
    "the headers": "for i = 1, 1e9 do msg.headers['h' .. i] = i end",
    "varargs": "local function f(...) return f(1, ...) end f()",
    "deep recursion": "local function f(a) local b = { f(a) } return b end f(1)",
    "table.concat": "local t = {} for i = 1, 999 do t[i] = ('x'):rep(2000) end table.concat(t)",
    "gsub": "('x'):rep(2000):gsub('x', ('y'):rep(1000))",
    "string.format": "local s = ('x'):rep(400000) string.format('%s%s%s%s', s, s, s, s)",
    "table.pack": "local t = {} while true do t[#t + 1] = table.pack(1, 2, 3, 4) end",
    "caught and tried again": """
        local t = {}
        while true do pcall(function() while true do t[#t + 1] = {} end end) end""",
    "caught by xpcall": """
        local t = {}
        local function more() while true do t[#t + 1] = {} end end
        while true do xpcall(more, more) end""",
    "caught, then a little": """
        local t = {}
        pcall(function() while true do t[#t + 1] = ('x'):rep(1000) .. #t end end)
        return { fairness_key = 'survived' }""",
    "patterns": "for i = 1, 1e9 do keep = keep or {} keep[i] = { ('x'):find('a' .. i .. '*') } end",
}


@pytest.mark.parametrize("statements", BOMBS.values(), ids=BOMBS.keys())
def test_using_up_memory_is_counted_and_leaves_the_queue_usable(statements: str) -> None:
    trial = Trial(PATIENT).on_enqueue(hook(statements))
    assert trial.assign({"a": "b"}) == DEFAULT_ASSIGNMENT
    stats = trial.enqueue_stats
    assert stats.memory == 1, stats
    assert "not enough memory" in stats.last_problem
    assert stats.last_problem.startswith("on_enqueue:"), stats
    trial.on_enqueue(GOOD)
    assert trial.assign().fairness_key == b"good"


@pytest.mark.parametrize("statements", BOMBS.values(), ids=BOMBS.keys())
def test_the_same_within_the_default_time_limit_ends_as_well(statements: str) -> None:
    trial = Trial().on_enqueue(hook(statements))
    assert trial.assign({"a": "b"}) == DEFAULT_ASSIGNMENT
    assert trial.enqueue_stats.memory + trial.enqueue_stats.timeouts == 1
    assert trial.assign_all([body()] * 10) == [DEFAULT_ASSIGNMENT] * 10


def test_messages_decided_before_the_memory_ran_out_keep_their_verdicts() -> None:
    trial = Trial(PATIENT).on_enqueue(
        hook("""
            if msg.headers.bomb then local t = {} while true do t[#t + 1] = {} end end
            return { fairness_key = msg.headers.k }""")
    )
    bodies = [body({"k": str(i), **({"bomb": "y"} if i == 70 else {})}) for i in range(100)]
    verdicts = trial.assign_all(bodies)
    assert verdicts[70] == DEFAULT_ASSIGNMENT
    assert [one.fairness_key for one in verdicts[:70]] == [str(i).encode() for i in range(70)]
    assert [one.fairness_key for one in verdicts[71:]] == [str(i).encode() for i in range(71, 100)]


def test_a_script_that_keeps_a_little_of_every_message_is_started_afresh_at_its_limit() -> None:
    trial = Trial().on_enqueue(
        "kept = {}\n"
        + hook("kept[#kept + 1] = ('x'):rep(5000) .. #kept return { fairness_key = #kept }")
    )
    seen = [int(trial.assign().fairness_key) for _ in range(1_000)]
    restarts = [i for i in range(1, 1_000) if seen[i] <= seen[i - 1]]
    assert 3 <= len(restarts) <= 12
    assert trial.enqueue_stats.memory == len(restarts)
    assert "kept more memory" in trial.enqueue_stats.last_problem
    assert trial.enqueue_stats.memory_bytes < 2_000_000


def test_garbage_is_not_held_against_a_script() -> None:
    trial = Trial(PATIENT).on_enqueue(
        hook("local s = ('x'):rep(20000) local t = { s .. 1, s .. 2 } return { weight = #t[1] }")
    )
    for _ in range(20):
        assert {one.weight for one in trial.assign_all([body()] * 100)} == {20_001}
    assert trial.enqueue_stats.memory == 0


def test_a_full_runtime_can_be_given_another_batch_without_harm() -> None:
    # Passing a batch into a runtime without memory would end the process, so there must be room.
    trial = Trial(PATIENT).on_enqueue(
        "kept = {}\n"
        + hook("""
            while #kept < 2000 do kept[#kept + 1] = ('x'):rep(450) .. #kept end
            return { fairness_key = 'full' }""")
    )
    bodies = [body({"k": "x" * 400}, b"y" * 5000)] * 1_000
    for _ in range(5):
        assert {one.fairness_key for one in trial.assign_all(bodies)} == {b"full"}
    assert trial.enqueue_stats.memory_bytes > 900_000


# What a script may use, roughly: to the byte this is where passing a batch would have no room.
NEARLY_ALL = 1_048_576 + 262_144


@pytest.mark.parametrize("short_by", [300, 2_000, 20_000, 60_000, 100_000, 200_000])
def test_a_script_that_fills_its_memory_while_loading_is_refused(short_by: int) -> None:
    size = NEARLY_ALL - short_by
    pieces = "".join(f"s{i} = ('x'):rep({size // 40})\n" for i in range(40))
    with pytest.raises(HookError, match="cannot be loaded"):
        Trial(PATIENT).on_enqueue(pieces + GOOD)


@pytest.mark.parametrize("step_bytes", [700, 5_000, 40_000])
@pytest.mark.parametrize("ending", ["error('no')", "return 5", "return {}"])
def test_a_script_that_fills_its_memory_bit_by_bit_never_leaves_too_little(
    step_bytes: int, ending: str
) -> None:
    settings = HookSettings(timeout_ms=2_000, breaker_threshold=1 << 60)
    trial = Trial(settings).on_enqueue(
        "kept = {}\n" + hook(f"kept[#kept + 1] = ('x'):rep({step_bytes}) .. #kept {ending}")
    )
    batch = [body({"k": "x" * 400}, b"y" * 500)] * 3
    batch.append(body({"k": "x" * 16_000}))
    for _ in range(3_000_000 // step_bytes // 4 + 5):
        trial.assign_all(batch)
    assert trial.enqueue_stats.memory >= 2


def test_failures_with_long_errors_are_passed_in_small_parts() -> None:
    trial = Trial(PATIENT).on_failure("""
        kept = {}
        function on_failure(msg)
          if #kept < 1900 then kept[#kept + 1] = ('x'):rep(480) .. #kept end
          return { delay_ms = #msg.error }
        end""")
    items = [(MESSAGE_ID, 1, b"e" * 65_535, body({"k": "v"}, b"z" * 1_000))] * 500
    for _ in range(8):
        verdicts = trial.hooks.on_failure(QUEUE, items, trial.now_ns)
        assert {verdict.delay_ms for verdict in verdicts} == {4_096}
    assert trial.failure_stats.executions == 4_000
    assert trial.failure_stats.memory == 0


def test_the_smallest_memory_limit_is_enough_for_a_simple_script() -> None:
    trial = Trial()
    trial.hooks.install("orders", GOOD, None, memory_limit_bytes=65_536)
    bodies = [body({"k": "x" * 400}, b"y" * 5000)] * 1_000
    assert {one.fairness_key for one in trial.assign_all(bodies)} == {b"good"}
    assert trial.enqueue_stats.memory == 0


def test_long_verdicts_come_in_parts() -> None:
    trial = Trial(PATIENT).on_enqueue(
        hook("""
            local keys = {}
            for i = 1, 16 do keys[i] = ('k'):rep(500) .. i end
            return { fairness_key = ('f'):rep(500), throttle_keys = keys }""")
    )
    verdicts = trial.assign_all([body()] * 300)
    assert {len(one.throttle_keys) for one in verdicts} == {16}
    assert trial.enqueue_stats.executions == 300
    assert trial.enqueue_stats.memory == 0
