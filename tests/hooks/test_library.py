"""The sandbox's library against the standard one: what it has, behaves the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.lua54 import LuaRuntime

from tests.hooks.trial import Trial, evaluated, hook

SAME = [
    "('abc'):upper() .. ('ABC'):lower() .. ('abc'):reverse() .. #('abc')",
    "('abc'):rep(3, ',') .. ('x'):rep(0) .. ('x'):rep(-1)",
    "('abcdef'):sub(2, 3) .. ('abcdef'):sub(-2) .. ('abcdef'):sub(3, -2) .. ('abc'):sub(0)",
    "string.char(72, 105) .. ('Hi'):byte() .. select('#', ('Hello'):byte(1, -1))",
    "select('#', ('Hello'):byte(-3, 99)) .. select('#', ('Hello'):byte(9)) .. ('abc'):byte(-1)",
    "string.format('%5d|%-5s|%05.1f|%x|%q|%s|%s|%%|%c', 42, 'ab', 3.14159, 255, 'q\"', nil, "
    "true, 65)",
    "string.format('%i %g %a', 7, 1e20, 1.0)",
    "table.concat({ 1, 2.5, 'x' }, ', ') .. table.concat({}) "
    ".. table.concat({ 1, 2, 3 }, '-', 2, 3)",
    "table.concat({ 1, 2, 3 }, '-', 3, 2) .. table.concat({ 'a' }, 'x')",
    "table.unpack({ 1, 2, 3 }) .. select('#', table.unpack({}, 1, 3)) "
    ".. (table.unpack({ 1, 2 }, 2))",
    "table.pack(1, nil, 3).n",
    "(function() local t = { 1, 2, 3 } table.insert(t, 4) table.insert(t, 1, 0) "
    "return table.concat(t) .. table.remove(t) .. table.remove(t, 1) .. table.concat(t) end)()",
    "(function() local t = {} return tostring(table.remove(t)) "
    ".. tostring(table.remove(t, 0)) end)()",
    "table.concat(table.move({ 1, 2, 3 }, 2, 3, 1)) "
    ".. table.concat(table.move({ 1, 2 }, 1, 2, 3, { 9, 9 }))",
    "(function() local t = { 3, 1, 2 } table.sort(t) return table.concat(t) end)()",
    "(function() local t = { 3, 1, 2 } table.sort(t, function(a, b) return a > b end) "
    "return table.concat(t) end)()",
    "tonumber('0x1F') .. tonumber('  12  ') .. tostring(tonumber('z', 36)) "
    ".. tostring(tonumber('x'))",
    "tostring(tonumber('8', 8)) .. tostring(tonumber('')) .. tonumber('1e2')",
    "tostring(nil) .. tostring(true) .. tostring(1.5) .. tostring(10 // 3) .. tostring('s')",
    "'10' + 5 .. '3' * '4' .. '2' ^ 2 .. -'2' .. '7' % 4 .. '7' // 2 .. 10 / '4'",
    "math.floor(2.7) .. math.max(1, 5, 3) .. math.tointeger(3.0) .. math.type(1) .. math.abs(-4)",
    "math.fmod(7, 3) .. tostring(math.ult(1, -1)) .. math.maxinteger .. tostring(math.huge)",
    "utf8.char(233, 8364) .. utf8.len('é€') .. utf8.codepoint('é€', 1, -1) .. utf8.offset('é€', 2)",
    "(function() local n = 0 for _, c in utf8.codes('aé€') do n = n + c end return n end)()",
    "select('#', 1, nil, nil) .. select(2, 'a', 'b') .. select(-1, 'a', 'b')",
    "tostring(pcall(error, 'x')) .. select(2, pcall(error, 'x', 0)) "
    ".. tostring(pcall(function() end))",
    "select(2, pcall(function() return 1, 2 end)) "
    ".. select('#', pcall(function() return 1, 2, 3 end))",
    "select(2, xpcall(function() error('a', 0) end, function(e) return e .. 'b' end))",
    "select(2, xpcall(function(...) return select('#', ...) end, print, 1, 2, 3))",
    "tostring(rawequal('a', 'a')) .. rawlen({ 1, 2 }) .. rawget({ 5 }, 1) .. #rawset({}, 1, 2)",
    "assert(5, 'no') .. select(2, pcall(assert, false, 'why')) .. select(2, pcall(assert, nil))",
    "(function() local s = '' for k, v in ipairs({ 'a', 'b', nil, 'd' }) do s = s .. k .. v "
    "end return s end)()",
    "next({}) == nil and next({ 5 }) .. _VERSION",
    "('x'):find('x', 1, true) .. ('a.b'):find('.', 1, true) .. tostring(('abc'):find('b', -1))",
    "tostring(('abc'):find('', 10)) .. ('abc'):find('', 4) .. ('%d'):gsub('%%d', 'x')",
    "('abc'):gsub('%w', '%0%0') .. ('abc'):gsub('', '-') .. select(2, ('abc'):gsub('.', {}, 2))",
    "('hello'):match('(h)(e)') .. tostring(('hello'):match('x')) .. ('k=v'):match('(%w+)=(%w+)')",
]


@pytest.mark.parametrize("expression", SAME)
def test_an_expression_has_its_standard_value(expression: str) -> None:
    standard = LuaRuntime(encoding="utf-8").eval(f"tostring({expression})")
    assert evaluated(f"return tostring({expression})") == standard


WRONG = [
    "('x'):rep()",
    "('x'):rep('y')",
    "('x'):rep(1.5)",
    "string.rep({}, 1)",
    "string.upper()",
    "string.upper({})",
    "string.sub('x')",
    "string.sub({}, 1)",
    "string.sub('x', {})",
    "string.byte({})",
    "string.byte('x', 1.5)",
    "string.char(-1)",
    "string.char(256)",
    "string.format()",
    "string.format('%d', 'x')",
    "string.format('%d')",
    "string.format('%100d', 1)",
    "string.find()",
    "string.find('x')",
    "string.find({}, 'x')",
    "string.find('x', 'x', {})",
    "string.match('x', '[')",
    "string.match('x', '%')",
    "string.gsub('x', 'x')",
    "string.gsub('x', 'x', true)",
    "string.gsub('x', 'x', {}, 'n')",
    "string.gsub('x', '(', 'x')",
    "table.concat()",
    "table.concat({ {} })",
    "table.concat({ 1 }, {})",
    "table.concat({ 1 }, '', 1, 2)",
    "table.concat({ 1 }, '', 'x')",
    "table.insert()",
    "table.insert({})",
    "table.insert({}, 5, 1)",
    "table.insert({}, 1, 2, 3)",
    "table.insert(5, 1)",
    "table.insert(nil, 1, 1)",
    "table.remove({}, 5)",
    "table.remove(5)",
    "table.unpack()",
    "table.unpack(5)",
    "table.unpack({}, 'x')",
    "table.move({}, 1)",
    "table.move({}, 1, 2, 3, 5)",
    "table.sort()",
    "table.sort({ 1, 'x' })",
    "table.sort({ {}, {} })",
    "table.sort({ 2, 1 }, 5)",
    "utf8.len()",
    "utf8.codepoint('x', 5)",
    "utf8.char(-1)",
    "math.floor('x')",
    "math.random(0, -1)",
    "tonumber('1', 99)",
    "setmetatable({}, {})",
    "select(0)",
    "next({}, 'x')",
    "('x') + 1",
    "rawset(5, 1, 1)",
]


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call_is_an_error_the_script_can_catch(call: str) -> None:
    assert evaluated(f"return {call}").startswith("error: ")


def test_a_wrong_call_is_told_with_the_scripts_own_line() -> None:
    for call in ("string.rep('x', {})", "table.concat({ {} })", "('x'):find('[')", "fila.get({})"):
        trial = Trial().on_enqueue(hook(f"\n\nlocal x = {call}\nreturn {{}}"))
        trial.assign()
        assert trial.enqueue_stats.last_problem.startswith("on_enqueue:4: ")


def sorted_in_lua(values: list[int], less: str = "") -> list[str]:
    text = evaluated(
        f"local t = {{ {', '.join(map(str, values))} }} table.sort(t{less}) "
        "return table.concat(t, ' ')"
    )
    return text.split()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60))
def test_sort_sorts(values: list[int]) -> None:
    assert sorted_in_lua(values) == [str(v) for v in sorted(values)]
    backwards = sorted_in_lua(values, ", function(a, b) return a > b end")
    assert backwards == [str(v) for v in sorted(values, reverse=True)]


@pytest.mark.parametrize(
    "less",
    [
        "function() return true end",
        "function() return false end",
        "function() return math.random() < 0.5 end",
        "function(a, b) return a <= b end",
    ],
)
def test_a_comparator_that_contradicts_itself_loses_nothing(less: str) -> None:
    assert sorted(sorted_in_lua(list(range(100)), f", {less}")) == sorted(map(str, range(100)))


def test_a_comparator_that_changes_the_list_does_no_harm() -> None:
    text = evaluated(
        "local t = {} for i = 1, 50 do t[i] = i end "
        "pcall(table.sort, t, function(a, b) t[#t] = nil return a < b end) return 'survived'"
    )
    assert text == "survived"


def test_joining_a_long_list_in_pieces_gives_the_same_text() -> None:
    for count in (999, 1_000, 1_001, 2_000, 2_500):
        expected = ",".join(str(i) for i in range(1, count + 1))
        text = evaluated(
            f"local t = {{}} for i = 1, {count} do t[i] = i end local s = table.concat(t, ',') "
            "return #s .. ':' .. s:sub(-12)"
        )
        assert text == f"{len(expected)}:{expected[-12:]}"
