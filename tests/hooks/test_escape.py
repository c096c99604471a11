"""Ways out of the sandbox, each tried. None may reach the host, nor another queue."""

from __future__ import annotations

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT
from tests.hooks.trial import Trial, body, evaluated, hook

HIDDEN_GLOBALS = [
    "io",
    "os",
    "debug",
    "package",
    "python",
    "coroutine",
    "require",
    "load",
    "loadstring",
    "loadfile",
    "dofile",
    "collectgarbage",
    "getmetatable",
    "setmetatable",
    "getfenv",
    "setfenv",
    "module",
    "newproxy",
    "unpack",
    "print",
    "warn",
    "bit32",
    "jit",
    "ffi",
    "arg",
]

HIDDEN_FIELDS = [
    "string.dump",
    "string.pack",
    "string.unpack",
    "string.packsize",
    "math.randomseed",
    "table.foreach",
    "fila.config",
    "fila.helpers.load",
]


@pytest.mark.parametrize("name", HIDDEN_GLOBALS)
def test_a_dangerous_global_is_not_there(name: str) -> None:
    assert evaluated(f"return type({name}) .. type(_G['{name}']) .. type(_ENV.{name})") == "nil" * 3
    assert evaluated(f"return type(rawget(_G, '{name}'))") == "nil"


@pytest.mark.parametrize("name", HIDDEN_FIELDS)
def test_a_dangerous_function_is_not_there(name: str) -> None:
    assert evaluated(f"return type({name})") == "nil"


def test_the_environment_holds_exactly_what_is_documented() -> None:
    names = evaluated(
        "local list = {} for name in pairs(_G) do list[#list + 1] = name end "
        "table.sort(list) return table.concat(list, ' ')"
    )
    expected = """
        _G _VERSION assert error fila ipairs math next on_enqueue pairs pcall rawequal rawget rawlen
        rawset select string table tonumber tostring type utf8 xpcall
    """
    assert names.split() == expected.split()


# --- by way of metatables


def test_strings_lead_only_to_the_safe_string_library() -> None:
    assert evaluated("return ('').dump") == "nil"
    assert evaluated("return tostring(('').format == string.format)") == "true"
    assert evaluated("return ('').__index") == "nil"
    assert evaluated("return ('').__metatable") == "nil"
    assert evaluated("return #('x'):rep(3)") == "3"


def test_replacing_string_functions_changes_nothing_for_the_host() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local function evil() while true do end end
            for name in pairs(string) do string[name] = evil end
            for name in pairs(table) do table[name] = evil end
            for name in pairs(math) do math[name] = evil end
            for name in pairs(utf8) do utf8[name] = evil end
            for name in pairs(fila.helpers) do fila.helpers[name] = evil end
            fila.get = evil
            type, next, pairs, error, tostring, select = evil, evil, evil, evil, evil, evil
            return { fairness_key = "still here", throttle_keys = { "b", "a" } }""")
    )
    for _ in range(3):
        verdict = trial.assign({"a": "b"})
        assert verdict.fairness_key == b"still here"
        assert verdict.throttle_keys == (b"a", b"b")
        trial.on_enqueue(hook("return { fairness_key = 'still here', throttle_keys = {'b', 'a'} }"))
    assert trial.enqueue_stats.errors == 0


def test_a_message_and_an_answer_have_no_metatables_to_play_with() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local t = { fairness_key = "a" }
            t.__index, t.__gc, t.__close, t.__len, t.__eq, t.__metatable = t, t, t, t, t, t
            msg.__index, msg.headers.__index = _G, _G
            assert(msg.io == nil and msg.headers.io == nil)
            return t""")
    )
    assert trial.assign({"x": "y"}).fairness_key == b"a"


@pytest.mark.parametrize(
    "statement",
    [
        "local x <close> = {}",
        "local x <close> = 'text'",
        "local x <close> = function() end",
        "local x <close> = 5",
        "for _ in next, {}, nil, {} do end",
        "for _ in next, {}, nil, 'text' do end",
    ],
)
def test_nothing_can_be_closed(statement: str) -> None:
    assert "got a non-closable value" in evaluated(statement + " return 'closed'")


def test_closing_nothing_is_harmless() -> None:
    assert evaluated("local x <close> = nil return 'fine'") == "fine"


@pytest.mark.parametrize(
    "expression",
    ["#nil", "nil .. 'x'", "{} + 1", "print()", "({})()", "('x')()", "{} < {}", "-{}", "msg.x.y"],
)
def test_error_messages_are_plain_text(expression: str) -> None:
    text = evaluated(f"local ok, e = pcall(function() return {expression} end) return type(e)")
    assert text == "string"


def test_an_error_object_arrives_as_it_was_thrown() -> None:
    assert evaluated("local t = {} local _, e = pcall(error, t) return tostring(e == t)") == "true"
    assert evaluated("local _, e = pcall(error) return tostring(e)") == "nil"


# --- by way of bytecode and addresses


@pytest.mark.parametrize(
    "statements",
    [
        "return tostring({})",
        "return tostring(print) .. tostring(next)",
        "return string.format('%s %s', {}, next)",
        "return tostring(function() end)",
        "return ('%s'):format(_G)",
        "local _, e = pcall(error, {}) return tostring(e)",
        "local _, e = pcall(next, {}, {}) return tostring(e)",
    ],
)
def test_no_address_is_told(statements: str) -> None:
    assert "0x" not in evaluated(statements)


@pytest.mark.parametrize("template", ["%p", "%10p", "%-20p", "a%%%p", "%s%p"])
def test_the_pointer_format_is_refused(template: str) -> None:
    assert "invalid conversion" in evaluated(f"return string.format('{template}', 'x', 'x')")


def test_a_percent_sign_before_a_p_is_still_fine() -> None:
    assert evaluated("return string.format('100%%pure %d%%p', 5)") == "100%pure 5%p"


# --- by way of environments


def test_changing_env_affects_only_the_script() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local keep = { fairness_key = "kept" }
            local _ENV = {}
            io, os, debug = 1, 2, 3
            return keep""")
    )
    assert trial.assign().fairness_key == b"kept"


def test_a_script_that_destroys_its_globals_hurts_only_itself() -> None:
    trial = Trial().on_enqueue(
        "wipe = true\n"
        + hook("""
            local all = _G
            if wipe then for name in pairs(all) do all[name] = nil end end
            return { fairness_key = "a", weight = 2, throttle_keys = { "x" } }""")
    )
    for _ in range(3):
        assert trial.assign({"k": "v"}).weight == 2
    assert trial.enqueue_stats.errors == 0


def test_replacing_the_hook_at_run_time_does_not_confuse_the_host() -> None:
    trial = Trial().on_enqueue(
        hook("on_enqueue = 5 _G.on_enqueue = nil return { fairness_key = 'a' }")
    )
    assert [trial.assign().fairness_key for _ in range(3)] == [b"a"] * 3


# --- into another queue, or into the next message


def test_globals_of_one_queue_are_not_seen_by_another() -> None:
    trial = Trial()
    write = hook("secret = 'mine' string.secret = 'mine' math.pi = 3 return {}")
    read = hook("return { fairness_key = tostring(secret) .. tostring(string.secret) .. math.pi }")
    trial.hooks.install("a", write, None)
    trial.hooks.install("b", read, None)
    trial.assign_all([body()], "a")
    assert trial.assign_all([body()], "b")[0].fairness_key.startswith(b"nilnil3.14")


def test_the_two_scripts_of_a_queue_have_globals_of_their_own() -> None:
    trial = Trial()
    trial.hooks.install(
        "orders",
        hook("secret = 'mine' return {}"),
        "function on_failure(msg) return { delay_ms = secret and 1 or 2 } end",
    )
    trial.assign()
    assert trial.fail().delay_ms == 2


def test_a_script_keeps_what_it_puts_into_its_globals_and_nothing_else() -> None:
    trial = Trial().on_enqueue(
        "count = 0\n"
        + hook("""
            count = count + 1
            local was = last and last.headers.n or "none"
            last = msg
            return { fairness_key = count .. ":" .. was }""")
    )
    verdicts = trial.assign_all([body({"n": str(i)}) for i in range(4)])
    assert [one.fairness_key for one in verdicts] == [b"1:none", b"2:0", b"3:1", b"4:2"]


def test_a_kept_answer_changed_later_changes_nothing_decided_before() -> None:
    trial = Trial().on_enqueue(
        "answer = { throttle_keys = {} }\n"
        + hook(
            "answer.fairness_key = msg.headers.n answer.throttle_keys[1] = 't' .. msg.headers.n "
            "return answer"
        )
    )
    verdicts = trial.assign_all([body({"n": str(i)}) for i in range(3)])
    assert [one.fairness_key for one in verdicts] == [b"0", b"1", b"2"]
    assert [one.throttle_keys for one in verdicts] == [(b"t0",), (b"t1",), (b"t2",)]


def test_a_broken_queue_does_not_stop_a_good_one() -> None:
    trial = Trial()
    trial.hooks.install("bad", hook("while true do end"), None)
    trial.hooks.install("good", hook("return { fairness_key = 'good' }"), None)
    for _ in range(5):
        assert trial.assign_all([body()], "bad") == [DEFAULT_ASSIGNMENT]
        assert trial.assign_all([body()], "good")[0].fairness_key == b"good"
