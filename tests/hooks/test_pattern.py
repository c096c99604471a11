"""The matcher written in Lua against the standard one: the same answers, or a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lupa.lua54 import LuaRuntime

from fila.hooks import lua
from fila.hooks.limits import LUA_LIMITS

COMPARE = b"""
local own = ...
local function outcome(f, ...)
  local values = table.pack(pcall(f, ...))
  return values
end
local function walk(gmatch)
  return function(s, p, init)
    local all = {}
    for a, b, c in gmatch(s, p, init) do
      all[#all + 1] = tostring(a) .. "|" .. tostring(b) .. "|" .. tostring(c)
      if #all > 200 then break end
    end
    return table.concat(all, ";")
  end
end
local pairs_of = {
  find = { string.find, own.find },
  match = { string.match, own.match },
  gmatch = { walk(string.gmatch), walk(own.gmatch) },
  gsub = { string.gsub, own.gsub },
}
local replacements = {
  table = { a = "A", ab = false, b = 5, [""] = "-", [1] = "one" },
  ["function"] = function(a, b)
    if a == "b" then return nil end
    return (b or "") .. "<" .. a .. ">"
  end,
}
-- nil if both agree; else both outcomes as text
return function(name, s, p, extra)
  extra = replacements[extra] or extra
  local standard, ours = pairs_of[name][1], pairs_of[name][2]
  local a, b = outcome(standard, s, p, extra), outcome(ours, s, p, extra)
  if not a[1] and not b[1] then return nil end
  local same = a.n == b.n
  for i = 1, a.n do same = same and a[i] == b[i] and math.type(a[i]) == math.type(b[i]) end
  if same then return nil end
  local function text(t)
    local parts = {}
    for i = 1, t.n do parts[i] = tostring(t[i]) end
    return table.concat(parts, ", ")
  end
  return text(a), text(b)
end
"""

# Raised when the pattern is read; the standard matcher raises them only when it gets there.
MALFORMED = (
    b"malformed pattern",
    b"missing '[' after",
    b"unfinished capture",
    b"invalid pattern capture",
    b"invalid capture index",
    b"too many captures",
    b"pattern too long",
)


def comparer(steps_max: int) -> Any:
    runtime = LuaRuntime(encoding=None, register_eval=False)
    limits = {**LUA_LIMITS, "pattern_steps_max": steps_max, "pattern_steps_free": steps_max}
    table = runtime.table_from({name.encode(): value for name, value in limits.items()})
    guard = runtime.execute(b"return { charge = function() end, look = function() end }")
    load = {
        name: runtime.compile((lua.TRUSTED_DIR / f"{name}.lua").read_bytes())
        for name in ("matcher", "pattern")
    }
    pattern = load["pattern"](table, guard, load["matcher"](table, guard))
    return runtime.compile(COMPARE)(pattern)


OWN = comparer(steps_max=0)
BOTH = comparer(steps_max=2_000)

ITEMS = [
    *"ab1 -().^$%[]",
    ".",
    "%a",
    "%d",
    "%S",
    "%%",
    "%.",
    "[ab]",
    "[^a]",
    "[a-b1]",
    "[%a]",
    "[]]",
    "[^]]",
    "[a-]",
    "%b()",
    "%bab",
    "%f[%w]",
    "%f[^%w]",
    "(",
    ")",
    "()",
    "(a)",
    "(.-)",
    "%1",
    "%2",
    "%0",
]
patterns = st.lists(
    st.tuples(st.sampled_from(ITEMS), st.sampled_from(["", "", "*", "+", "-", "?"])).map("".join),
    max_size=7,
).map("".join)
subjects = st.text(st.sampled_from("ab1 ()-^$%.[]é\x00"), max_size=24)


def check(compare: Any, name: bytes, subject: str, pattern: str, extra: Any) -> None:
    difference = compare(name, subject.encode(), pattern.encode(), extra)
    if difference is None:
        return
    standard, ours = difference
    early = ours.startswith(b"false") and any(reason in ours for reason in MALFORMED)
    assert early, f"{name!r} {subject!r} {pattern!r} {extra!r}: {standard!r} against {ours!r}"


@settings(max_examples=1_500, deadline=None)
@given(subjects, patterns, st.one_of(st.none(), st.integers(-30, 30)))
@example("aaa", "a-", 3)
@example("", "", 1)
@example("abc", "$x", None)
@example("a^b", "%a^", None)
@example("x$y", "$y", None)
@example("(a(b)c", "%b()", 2)
@example("THE (quick) fox", "%f[%a]%a+%f[%A]", 5)
def test_find_and_match_agree_with_the_standard_library(
    subject: str, pattern: str, init: int | None
) -> None:
    check(OWN, b"find", subject, pattern, init)
    check(OWN, b"match", subject, pattern, init)
    check(BOTH, b"find", subject, pattern, init)


@settings(max_examples=1_000, deadline=None)
@given(subjects, patterns)
@example("abc", "^a")
@example("aXbX", "X*")
@example("hello world", "%w*")
def test_gmatch_agrees_with_the_standard_library(subject: str, pattern: str) -> None:
    check(OWN, b"gmatch", subject, pattern, None)
    check(BOTH, b"gmatch", subject, pattern, None)


replacements = st.one_of(
    st.sampled_from(
        [b"table", b"function", b"", b"x", b"%0%0", b"%1", b"<%1%2>", b"%%", b"%", b"%z"]
    ),
    st.integers(0, 99),
)


@settings(max_examples=1_500, deadline=None)
@given(subjects, patterns, replacements)
@example("abc", "", b"-")
@example("abc", "^a", b"x")
@example("hello world", "o*", b"0")
@example("abab", "()", b"%1")
def test_gsub_agrees_with_the_standard_library(
    subject: str, pattern: str, replacement: bytes | int
) -> None:
    check(OWN, b"gsub", subject, pattern, replacement)
    check(BOTH, b"gsub", subject, pattern, replacement)


@pytest.mark.parametrize(
    ("subject", "pattern"),
    [
        (
            "GET /orders/42?x=1 HTTP/1.1 503 upstream timed out after 30s",
            "(%d%d%d) (.*) after (%d+)s",
        ),
        ("key=value; other=thing ; last = one", "(%w+)%s*=%s*(%w+)"),
        ("2024-05-17T10:11:12.345Z", "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$"),
        ("a,b,,c,", "([^,]*),?"),
        ("  trimmed  ", "^%s*(.-)%s*$"),
        ("x" * 300 + "end", "x*end"),
        ("tenant:acme:eu:west", "^tenant:([^:]+):(.*)$"),
    ],
)
def test_patterns_people_write_agree(subject: str, pattern: str) -> None:
    for name in (b"find", b"match", b"gmatch"):
        check(OWN, name, subject, pattern, None)
        check(BOTH, name, subject, pattern, None)
    for replacement in (b"%1", b"[%0]", b"function", b"table"):
        check(OWN, b"gsub", subject, pattern, replacement)
