"""The trusted Lua itself: it runs after the globals are emptied, and beside hostile code."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lupa.lua54 import LuaRuntime

from fila.hooks import lua
from fila.hooks.limits import CODE_ASK, LUA_CODES, LUA_LIMITS

# Every function that can be reached from the given values, and the globals it would look up: in Lua
# 5.4 a function has an upvalue named _ENV exactly if it, or one inside it, uses a global.
FIND_GLOBAL_USERS = b"""
local seen, found = {}, {}
local function walk(value, path)
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for key, inner in pairs(value) do walk(inner, path .. "." .. tostring(key)) end
  elseif type(value) == "function" and not seen[value] then
    seen[value] = true
    local info = debug.getinfo(value, "S")
    for i = 1, 255 do
      local name, inner = debug.getupvalue(value, i)
      if not name then break end
      if name == "_ENV" then
        found[#found + 1] = path .. " at " .. info.short_src .. ":" .. info.linedefined
      elseif info.what ~= "C" then
        walk(inner, path .. "^" .. name)
      end
    end
  end
end
local count = 0
for i, value in ipairs({ ... }) do walk(value, "value " .. i) end
for value in pairs(seen) do if type(value) == "function" then count = count + 1 end end
return count, table.concat(found, "; ")
"""


def furnished() -> tuple[LuaRuntime, list[Any]]:
    runtime = LuaRuntime(encoding=None)
    find = runtime.compile(FIND_GLOBAL_USERS)
    limits = runtime.table_from({name.encode(): value for name, value in LUA_LIMITS.items()})
    limits[b"codes"] = runtime.table_from({name.encode(): code for name, code in LUA_CODES.items()})
    load = {
        name: runtime.compile(
            (lua.TRUSTED_DIR / f"{name}.lua").read_bytes(), name=f"={name}".encode()
        )
        for name in lua.TRUSTED
    }
    guard = load["guard"](limits)
    matcher = load["matcher"](limits, guard)
    pattern = load["pattern"](limits, guard, matcher)
    environment = load["library"](limits, guard, pattern, matcher[b"join"])
    fila, config = load["fila"](limits, guard, CODE_ASK)
    verdict = load["verdict"](limits)
    runners = [
        load["runner"](limits, guard, fila, config, environment, verdict, hook, b"queue")
        for hook in (b"on_enqueue", b"on_failure")
    ]
    values = [find, guard, matcher, pattern, environment, fila, config, verdict, *runners]
    return runtime, values


def test_no_trusted_function_uses_a_global() -> None:
    _, (find, *values) = furnished()
    count, users = find(*values)
    assert count > 100
    assert users == b""


@pytest.mark.parametrize("name", lua.TRUSTED)
def test_trusted_code_calls_no_method_of_a_string(name: str) -> None:
    # ("x"):rep() would go through the string library a script can change.
    source = (lua.TRUSTED_DIR / f"{name}.lua").read_text()
    code = re.sub(r"--[^\n]*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', source))
    assert re.findall(r"[\w\]\)\"]\s*:\s*\w+\s*[\(\"{]", code) == []


def test_the_globals_are_empty_when_a_script_runs() -> None:
    script = lua.LuaScript(
        "on_enqueue", "q", lambda key: None, timeout_ms=10, memory_limit_bytes=1 << 20, seed=1
    )
    assert list(script._runtime.globals().keys()) == []
