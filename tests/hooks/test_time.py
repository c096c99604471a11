"""Ways to take forever. Each must end near the time limit, count, and leave the queue usable.

Times are CPU times, so that a busy machine does not fail a test; the bounds leave room for a slow
one. What matters is that nothing takes seconds.
"""

from __future__ import annotations

import time

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.hooks.contract import HookSettings
from tests.hooks.trial import QUEUE, Trial, body, hook

TIMEOUT_MS = 10
PAUSE_MS_MAX = 80
GOOD = hook("return { fairness_key = 'good' }")

LOOPS = {
    "an endless loop": "while true do end",
    "a loop without a body to count": "repeat until false",
    "an endless goto": "::again:: goto again",
    "a for loop to the largest integer": "for i = 1, math.maxinteger do end",
    "a loop over a generator": "for _ in function() return 1 end do end",
    "inside pcall": "pcall(function() while true do end end)",
    "pcall again and again": "while true do pcall(function() while true do end end) end",
    "pcall of pcall": "while true do pcall(pcall, pcall, function() while true do end end) end",
    "nested pcall": """
        local function nest(n)
          while true do
            if n > 0 then pcall(nest, n - 1) else pcall(function() while true do end end) end
          end
        end
        nest(90)""",
    "an xpcall handler": "while true do xpcall(error, function() while true do end end) end",
    "nested xpcall handlers": """
        local function handler() xpcall(error, handler) while true do end end
        while true do xpcall(handler, handler) end""",
    "error objects in a loop": "while true do pcall(error, {}) end",
    "a loop that ignores every error": """
        local function go() local ok = pcall(go) while true do end end
        while true do pcall(go) end""",
    "pcall twice in pcall": """
        local function go() pcall(go) pcall(go) while true do end end
        while true do pcall(go) end""",
    "string.rep": "while true do local s = ('x'):rep(1000000) end",
    "string.rep of nothing": "while true do local s = (''):rep(math.maxinteger) end",
    "string.rep of nothing with nothing between": "while true do (''):rep(1 << 62, '') end",
    "a pattern of stars": "return ('a'):rep(30000):find('.*.*.*.*.*.*.*.*b')",
    "a pattern of minuses": "return ('a'):rep(30000):find('.-.-.-.-.-.-.-b')",
    "a pattern of question marks": """
        return ('a'):rep(60):find(('a?'):rep(60) .. ('a'):rep(60) .. 'b')""",
    "a pattern with captures": "return ('a'):rep(30000):match('(.-)(.-)(.-)(.-)%1%2%3b')",
    "a pattern with balance": "return ('('):rep(300000):find('%b()x')",
    "a pattern with a frontier": """
        return ('a b '):rep(30000):find('%f[%w]%w*%f[%W].*.*x')""",
    "a pattern with a long set": """
        return ('a'):rep(90000):find('[' .. ('b'):rep(900) .. ']*[^a]*x')""",
    "many small patterns": "while true do ('abc'):find('b*c') end",
    "gsub": "return ('a'):rep(300000):gsub('.-.-.-b', 'x')",
    "gsub with a function": """
        while true do ('a'):rep(1000):gsub('.', function() return 'bb' end) end""",
    "gsub with a long replacement": "while true do ('a'):rep(9):gsub('a', ('b'):rep(90000)) end",
    "gmatch": "while true do for _ in ('a'):rep(100000):gmatch('a-a-a-b') do end end",
    "plain find": "return ('a'):rep(400000):find(('a'):rep(200000) .. 'b', 1, true)",
    "find without magic": "return ('a'):rep(400000):find(('a'):rep(900) .. 'b')",
    "table.concat": """
        local t = {} for i = 1, 30000 do t[i] = i end
        while true do table.concat(t, ',') end""",
    "table.concat of floats": """
        local t = {} for i = 1, 20000 do t[i] = i + 0.1 end
        while true do table.concat(t) end""",
    "table.sort": """
        local t = {} for i = 1, 30000 do t[i] = i * 7919 % 30011 end
        while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end""",
    "table.sort with a comparator that always says yes": """
        local t = {} for i = 1, 30000 do t[i] = i end
        while true do table.sort(t, function() return true end) end""",
    "table.sort with a comparator that never returns": """
        table.sort({ 3, 2, 1 }, function() while true do end end)""",
    "table.sort with a C function": """
        local t = {} for i = 1, 30000 do t[i] = i end
        while true do table.sort(t, math.max) end""",
    "table.sort of long equal strings": """
        local s, t = ('x'):rep(100000), {}
        for i = 1, 2000 do t[i] = s end
        while true do table.sort(t) end""",
    "table.insert at the front": "local t = {} while true do table.insert(t, 1, 1) end",
    "table.remove at the front": """
        while true do
          local t = {} for i = 1, 20000 do t[i] = i end
          while #t > 0 do table.remove(t, 1) end
        end""",
    "table.move": "while true do table.move({}, 1, 100000, 2) end",
    "table.unpack": """
        local t = {} for i = 1, 4000 do t[i] = i end
        while true do select('#', table.unpack(t)) end""",
    "select over many arguments": """
        local t = {} for i = 1, 4000 do t[i] = i end
        local function f(...) for i = 1, select('#', ...) do select(i, ...) end end
        while true do f(table.unpack(t)) end""",
    "string.format": "while true do string.format('%99.99f %s', 1e308, ('x'):rep(1000)) end",
    "string.byte": "local s = ('x'):rep(4000) while true do s:byte(1, -1) end",
    "upper and lower": """
        local s = ('x'):rep(400000) while true do s:upper() s:lower() s:reverse() end""",
    "utf8": "local s = ('é'):rep(200000) while true do utf8.len(s) utf8.offset(s, -1) end",
    "utf8.codes": r"""
        local s = ('\x80'):rep(400000)
        while true do pcall(function() for _ in utf8.codes(s) do end end) end""",
    "text to number": """
        local s = ('1'):rep(400000) while true do tonumber(s) pcall(math.floor, s) end""",
    "arithmetic on a long string": """
        local s = ('1'):rep(400000) while true do pcall(function() return s + 1 end) end""",
    "comparing long strings": """
        local s = ('x'):rep(400000) while true do local b = s .. 'a' < s .. 'b' end""",
    "long strings as keys": """
        local s, t = ('x'):rep(200000), {}
        for i = 1, math.maxinteger do local _ = t[s .. i] end""",
    "next over an emptied table": """
        local t = {} for i = 1, 16000 do t['k' .. i] = i end
        for k in pairs(t) do t[k] = nil end
        while true do next(t) end""",
    "garbage": "while true do local t = { {}, {}, {} } end",
    "garbage next to much that is kept": """
        local keep = {} for i = 1, 10000 do keep[i] = {} end
        while true do local x = { 1 } end""",
    "closures": "while true do local f = function() return f end end",
    "recursion that returns": """
        local function f(n) if n > 0 then f(n - 1) f(n - 1) end end
        f(60)""",
    "recursion in sort": "local function f() table.sort({ 2, 1 }, f) end f()",
    "recursion in gsub": "local function f() return ('x'):gsub('x', f) end return f()",
    "mutual tail calls": """
        local f, g f = function() return g() end g = function() return f() end f()""",
    "fila.get": "while true do fila.get('x') end",
    "fila.get of ever new keys": "for i = 1, math.maxinteger do fila.get('k' .. i) end",
    "rate_limit_keys": """
        local many = ('{a}'):rep(20000)
        while true do fila.helpers.rate_limit_keys(msg, { many, many, many }) end""",
    "exponential_backoff": "while true do fila.helpers.exponential_backoff(5, 1, 2) end",
    "a huge list of throttle keys": """
        local t = {} for i = 1, 40000 do t[i] = i % 2 end
        while true do table.concat(t) end
        return { throttle_keys = t }""",
}


@pytest.mark.parametrize("statements", LOOPS.values(), ids=LOOPS.keys())
def test_taking_forever_ends_in_time(statements: str) -> None:
    trial = Trial().on_enqueue(hook(statements))
    began = time.process_time()
    assert trial.assign({"a": "b"}) == DEFAULT_ASSIGNMENT
    spent_ms = (time.process_time() - began) * 1000
    stats = trial.enqueue_stats
    assert stats.timeouts + stats.memory == 1, stats
    assert stats.last_problem.startswith("on_enqueue:"), stats
    assert spent_ms < PAUSE_MS_MAX
    trial.on_enqueue(GOOD)
    assert trial.assign().fairness_key == b"good"


# Refused outright, or ended by memory, before time runs out.
ENDED_EARLIER = {
    "string.rep of too much": "('x'):rep(1 << 40)",
    "string.rep with a huge separator": "('x'):rep(1000, ('y'):rep(100000))",
    "table.move of too much": "table.move({}, 1, math.maxinteger - 1, 2)",
    "table.move over the edge": "table.move({}, math.mininteger, math.maxinteger, 1)",
    "table.unpack of too much": "table.unpack({}, 1, 1e7)",
    "table.unpack over the edge": "table.unpack({}, math.mininteger, math.maxinteger)",
    "table.concat of nothing": "table.concat({}, 'x', 1, math.maxinteger)",
    "string.byte of too much": "('x'):rep(500000):byte(1, -1)",
    "utf8.codepoint of too much": "utf8.codepoint(('x'):rep(500000), 1, -1)",
    "deep recursion": "local function f() return 1 + f() end return f()",
    "deep recursion in pcall": "local function f() return 1 + select(2, pcall(f)) end return f()",
    "a long pattern": "return ('x'):find(('a'):rep(2000) .. '*')",
    "a long format": "return string.format(('%d'):rep(1000))",
}


@pytest.mark.parametrize("statements", ENDED_EARLIER.values(), ids=ENDED_EARLIER.keys())
def test_asking_for_too_much_at_once_is_refused(statements: str) -> None:
    trial = Trial().on_enqueue(hook(statements))
    began = time.process_time()
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert (time.process_time() - began) * 1000 < PAUSE_MS_MAX
    assert trial.enqueue_stats.errors + trial.enqueue_stats.memory == 1, trial.enqueue_stats
    trial.on_enqueue(GOOD)
    assert trial.assign().fairness_key == b"good"


def test_an_endless_message_in_a_batch_costs_its_own_time_only() -> None:
    trial = Trial().on_enqueue(
        hook("while msg.headers.bad do end return { fairness_key = msg.headers.k }")
    )
    bodies = [body({"k": str(i), **({"bad": "y"} if i == 50 else {})}) for i in range(100)]
    verdicts = trial.assign_all(bodies)
    assert verdicts[50] == DEFAULT_ASSIGNMENT
    others = [one.fairness_key.decode() for i, one in enumerate(verdicts) if i != 50]
    assert others == [str(i) for i in range(100) if i != 50]
    assert trial.enqueue_stats.timeouts == 1


def test_a_batch_of_endless_messages_is_given_up_early() -> None:
    trial = Trial().on_enqueue(hook("while true do end"))
    began = time.process_time()
    assert trial.assign_all([body()] * 100) == [DEFAULT_ASSIGNMENT] * 100
    assert (time.process_time() - began) * 1000 < 3 * PAUSE_MS_MAX
    assert trial.enqueue_stats.breaker == "open"
    assert trial.enqueue_stats.trips == 1


def test_good_messages_between_endless_ones_do_not_buy_them_more_time() -> None:
    trial = Trial().on_enqueue(
        hook("while msg.headers.bad do end return { fairness_key = 'good' }")
    )
    bodies = [body({"bad": "y"} if i % 2 else {}) for i in range(100)]
    began = time.process_time()
    trial.assign_all(bodies)
    assert (time.process_time() - began) * 1000 < 3 * PAUSE_MS_MAX
    assert trial.enqueue_stats.executions - trial.enqueue_stats.timeouts <= 50
    assert trial.enqueue_stats.timeouts <= 3


@pytest.mark.parametrize("steps", [200_000, 60_000])
def test_messages_that_are_each_nearly_too_slow_cannot_hold_the_broker_for_long(
    steps: int,
) -> None:
    settings = HookSettings(timeout_ms=TIMEOUT_MS)
    trial = Trial(settings).on_enqueue(hook(f"for i = 1, {steps} do end return {{}}"))
    began = time.process_time()
    assert trial.assign_all([body()] * 1000)[-1] == DEFAULT_ASSIGNMENT
    assert (time.process_time() - began) * 1000 < (1 + 1000 / 100) * TIMEOUT_MS + PAUSE_MS_MAX
    assert trial.enqueue_stats.breaker == "open"


def test_a_single_step_of_a_table_full_of_collisions_trips_the_breaker_at_once() -> None:
    # Growing a table whose keys were chosen to collide is one instruction that takes ten times the
    # limit. No hook can interrupt it; so it must not be tried three times.
    trial = Trial().on_enqueue(
        hook("local t = {} for i = 1, 8193 do t[i * 16383] = true end while true do end")
    )
    began = time.process_time()
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert (time.process_time() - began) * 1000 < 1_000
    assert trial.enqueue_stats.breaker == "open"
    assert trial.assign_all([body()] * 10) == [DEFAULT_ASSIGNMENT] * 10
    assert trial.enqueue_stats.executions == 1
    assert trial.enqueue_stats.bypassed == 10


def test_unwinding_a_deep_nest_of_pcalls_takes_no_longer_with_more_memory() -> None:
    statements = (
        "local function go() pcall(go) pcall(go) while true do end end while true do go() end"
    )
    trial = Trial()
    trial.hooks.install(QUEUE, hook(statements), None, memory_limit_bytes=64_000_000)
    began = time.process_time()
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert (time.process_time() - began) * 1000 < PAUSE_MS_MAX


def test_pcalls_may_be_nested_to_a_depth() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local function nest(n)
              if n == 0 then return 0 end
              local ok, deep = pcall(nest, n - 1)
              return ok and deep + 1 or 0
            end
            local ok, problem = pcall(nest, 200)
            return { fairness_key = nest(100), weight = nest(50), throttle_keys = { problem } }""")
    )
    verdict = trial.assign()
    assert verdict.fairness_key == b"100"
    assert verdict.weight == 50
    assert verdict.throttle_keys == (b"98",)


def test_a_script_starts_afresh_after_it_was_stopped() -> None:
    trial = Trial().on_enqueue(
        "count = 0\n"
        + hook("count = count + 1 while msg.headers.bad do end return { fairness_key = count }")
    )
    assert trial.assign().fairness_key == b"1"
    assert trial.assign().fairness_key == b"2"
    trial.assign({"bad": "y"})
    assert trial.assign().fairness_key == b"1"


def test_time_is_counted_per_message_not_per_script() -> None:
    trial = Trial().on_enqueue(hook("for i = 1, 20000 do end return { fairness_key = 'fine' }"))
    for _ in range(200):
        assert trial.assign().fairness_key == b"fine"
    assert trial.hooks.stats(QUEUE).on_enqueue is not None
    assert trial.enqueue_stats.timeouts == 0
