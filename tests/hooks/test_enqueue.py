from __future__ import annotations

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT, WEIGHT_MAX, Assignment
from fila.hooks.contract import HookSettings
from fila.hooks.limits import FAIRNESS_KEY_BYTES_MAX, THROTTLE_KEY_BYTES_MAX, THROTTLE_KEYS_MAX
from tests.hooks.trial import Trial, assigned, body, hook

# These tests are not about time.
PATIENT = HookSettings(timeout_ms=60_000)


def failed(expression: str) -> str:
    """Why a hook that returns this fails; the message must have got the defaults."""
    trial = Trial().on_enqueue(hook(f"return {expression}"))
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert trial.enqueue_stats.errors == 1
    return trial.enqueue_stats.last_problem


def test_a_hook_assigns_key_weight_and_throttle_keys_from_headers() -> None:
    trial = Trial().on_enqueue("""
        function on_enqueue(msg)
          return {
            fairness_key = msg.headers["tenant"] or "default",
            weight = tonumber(msg.headers["priority"]) or 1,
            throttle_keys = { "provider:" .. msg.headers["provider"] },
          }
        end""")
    headers = {"tenant": "acme", "priority": "5", "provider": "stripe"}
    assert trial.assign(headers) == Assignment(b"acme", 5, (b"provider:stripe",))
    assert trial.enqueue_stats.executions == 1


def test_a_hook_sees_queue_and_payload_size() -> None:
    trial = Trial().on_enqueue(
        hook("return { fairness_key = msg.queue .. ':' .. msg.payload_size }")
    )
    assert trial.assign({"a": "b"}, b"x" * 1234).fairness_key == b"orders:1234"
    assert trial.assign({}, b"").fairness_key == b"orders:0"
    assert trial.assign({}, b"x" * 3_000_000).fairness_key == b"orders:3000000"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 20])
def test_a_hook_sees_every_header(count: int) -> None:
    trial = Trial().on_enqueue(
        hook("""
            local list = {}
            for key, value in pairs(msg.headers) do list[#list + 1] = key .. "=" .. value end
            table.sort(list)
            return { fairness_key = table.concat(list, ",") .. "." }""")
    )
    headers = {f"k{i:02}": f"v{i}" for i in range(count)}
    expected = ",".join(f"{k}={v}" for k, v in headers.items()) + "."
    assert trial.assign(headers).fairness_key == expected.encode()


def test_headers_are_a_copy_a_script_may_write_to() -> None:
    trial = Trial().on_enqueue(
        hook("msg.headers.x = 'y' msg.queue = nil return { fairness_key = msg.headers.x }")
    )
    assert trial.assign({"x": "a"}).fairness_key == b"y"
    assert trial.enqueue_stats.errors == 0


@pytest.mark.parametrize(
    ("expression", "key"),
    [
        ("'acme'", b"acme"),
        ("'tênant'", "tênant".encode()),
        ("7", b"7"),
        ("7.0", b"7"),
        ("0.5", b"0.5"),
        ("-3", b"-3"),
        ("1e300", b"1e+300"),
        ("nil", b"default"),
        ("true", b"default"),
        ("{}", b"default"),
        ("function() end", b"default"),
        ("''", b"default"),
    ],
)
def test_a_fairness_key_is_a_string_or_a_number(expression: str, key: bytes) -> None:
    assert assigned(f"{{ fairness_key = {expression} }}").fairness_key == key


@pytest.mark.parametrize(
    ("expression", "weight"),
    [
        ("5", 5),
        ("'5'", 5),
        ("' 5 '", 5),
        ("'0x10'", 16),
        ("2.9", 2),
        ("'2.9'", 2),
        ("2 ^ 3", 8),
        ("0", 1),
        ("-7", 1),
        ("0.2", 1),
        ("math.mininteger", 1),
        ("math.maxinteger", WEIGHT_MAX),
        (str(WEIGHT_MAX), WEIGHT_MAX),
        (str(WEIGHT_MAX + 1), WEIGHT_MAX),
        ("1e308", WEIGHT_MAX),
        ("math.huge", WEIGHT_MAX),
        ("-math.huge", 1),
        ("nil", 1),
        ("false", 1),
        ("true", 1),
        ("'heavy'", 1),
        ("''", 1),
        ("('9'):rep(5000)", 1),
        ("{ 5 }", 1),
    ],
)
def test_a_weight_is_a_number_or_its_text_and_is_clamped(expression: str, weight: int) -> None:
    assert assigned(f"{{ weight = {expression} }}").weight == weight


@pytest.mark.parametrize("expression", ["weight = 0/0", "fairness_key = 0/0"])
def test_a_nan_is_a_failure(expression: str) -> None:
    assert "number" in failed(f"{{ {expression} }}")


@pytest.mark.parametrize("expression", ["math.huge", "-math.huge"])
def test_an_infinite_fairness_key_is_a_failure(expression: str) -> None:
    assert "fairness_key is not a finite number" in failed(f"{{ fairness_key = {expression} }}")


@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("{}", ()),
        ("nil", ()),
        ("'a'", ()),
        ("5", ()),
        ("{ 'a' }", (b"a",)),
        ("{ 'b', 'a' }", (b"a", b"b")),
        ("{ 'b', 'a', 'b', 'a' }", (b"a", b"b")),
        ("{ 'a', 'a' }", (b"a",)),
        ("{ nil, 'b' }", (b"b",)),
        ("{ nil, 'b', nil, 'a', nil }", (b"a", b"b")),
        ("{ [1000] = 'a' }", (b"a",)),
        ("{ 7, 7.0, '7' }", (b"7",)),
        ("{ {}, true, print, 'a' }", (b"a",)),
        ("{ '', 'a' }", (b"a",)),
        ("{ name = 'a' }", ()),
    ],
)
def test_throttle_keys_are_a_set_of_texts(expression: str, keys: tuple[bytes, ...]) -> None:
    assert assigned(f"{{ throttle_keys = {expression} }}").throttle_keys == keys


def test_a_fairness_key_may_be_long_but_not_too_long() -> None:
    key = f"('x'):rep({FAIRNESS_KEY_BYTES_MAX})"
    assert len(assigned(f"{{ fairness_key = {key} }}").fairness_key) == FAIRNESS_KEY_BYTES_MAX
    assert "513 bytes long (limit 512)" in failed(f"{{ fairness_key = {key} .. 'x' }}")
    assert "bytes long" in failed("{ fairness_key = ('x'):rep(65536) }")


def test_a_throttle_key_may_be_long_but_not_too_long() -> None:
    key = f"('x'):rep({THROTTLE_KEY_BYTES_MAX})"
    assert len(assigned(f"{{ throttle_keys = {{ {key} }} }}").throttle_keys[0]) == 512
    assert "bytes long" in failed(f"{{ throttle_keys = {{ {key} .. 'x' }} }}")
    assert "bytes long" in failed("{ throttle_keys = { 'a', ('x'):rep(65536) } }")


def many_throttle_keys(count: int) -> str:
    return hook(
        f"local keys = {{}} for i = 1, {count} do keys[i] = 'k' .. i end "
        "return { fairness_key = 'a', throttle_keys = keys }"
    )


def test_there_may_be_many_throttle_keys_but_not_too_many() -> None:
    trial = Trial().on_enqueue(many_throttle_keys(THROTTLE_KEYS_MAX))
    assert len(trial.assign().throttle_keys) == THROTTLE_KEYS_MAX
    for count in (THROTTLE_KEYS_MAX + 1, 10_000):
        trial = Trial(PATIENT).on_enqueue(many_throttle_keys(count))
        assert trial.assign() == DEFAULT_ASSIGNMENT
        assert "more than 16 throttle keys" in trial.enqueue_stats.last_problem


def test_ten_thousand_copies_of_one_throttle_key_are_one() -> None:
    trial = Trial(PATIENT).on_enqueue(
        hook(
            "local keys = {} for i = 1, 10000 do keys[i] = 'k' end return { throttle_keys = keys }"
        )
    )
    assert trial.assign().throttle_keys == (b"k",)


@pytest.mark.parametrize(
    "expression",
    [
        r"fairness_key = 'a\xff'",
        r"fairness_key = '\xed\xa0\x80'",
        r"throttle_keys = { '\xc0\x80' }",
        r"throttle_keys = { 'fine', 'a\x80' }",
    ],
)
def test_keys_must_be_utf8(expression: str) -> None:
    assert "not valid UTF-8" in failed(f"{{ {expression} }}")


@pytest.mark.parametrize("value", ["nil", "5", "'acme'", "true", "print", "function() end"])
def test_anything_but_a_table_is_a_failure(value: str) -> None:
    assert "must return a table, got" in failed(value)


def test_a_table_with_cycles_is_read_like_any_other() -> None:
    trial = Trial().on_enqueue(
        hook("local t = { fairness_key = 'a' } t.throttle_keys = t t[1] = 'k' t[2] = t return t")
    )
    assert trial.assign() == Assignment(b"a", 1, (b"k",))


def test_the_same_answer_is_the_same_object_and_a_changed_one_is_not() -> None:
    trial = Trial().on_enqueue(
        hook(
            "local h = msg.headers "
            "return { fairness_key = h.k, weight = h.w, throttle_keys = { h.t } }"
        )
    )
    bodies = [
        body({"k": "a", "w": w, "t": t})
        for w, t in (("1", "x"), ("1", "x"), ("2", "x"), ("1", "y"))
    ]
    first, second, heavier, elsewhere = trial.assign_all(bodies)
    assert first is second
    assert heavier == Assignment(b"a", 2, (b"x",))
    assert elsewhere == Assignment(b"a", 1, (b"y",))


def test_answers_are_remembered_as_they_were_given() -> None:
    trial = Trial().on_enqueue(
        "n = 0 answers = {\n"
        "  { fairness_key = 7, weight = '3', throttle_keys = { 5 } },\n"
        "  { fairness_key = '7', weight = 3, throttle_keys = { '5' } },\n"
        "  { fairness_key = 7.0, weight = 3.0, throttle_keys = { 5.0 } },\n"
        "  { weight = 3.9, throttle_keys = {} },\n"
        "  { fairness_key = false, weight = '3.2', throttle_keys = false },\n"
        "  { fairness_key = true, weight = true, throttle_keys = true },\n"
        "  { fairness_key = {}, weight = {}, throttle_keys = { {} } },\n"
        "}\n" + hook("n = n % #answers + 1 return answers[n]")
    )
    seven, three = Assignment(b"7", 3, (b"5",)), Assignment(b"default", 3, ())
    expected = [seven] * 3 + [three] * 2 + [DEFAULT_ASSIGNMENT] * 2
    assert trial.assign_all([body()] * 21) == expected * 3
    assert trial.enqueue_stats.errors == 0


def test_a_remembered_answer_does_not_hide_a_further_throttle_key() -> None:
    trial = Trial().on_enqueue(
        hook("return { fairness_key = 'a', weight = 2, throttle_keys = { 'x', msg.headers.t } }")
    )
    headers = [{}, {"t": "y"}, {}, {"t": "x"}, {"t": ""}]
    keys = [one.throttle_keys for one in trial.assign_all([body(h) for h in headers])]
    assert keys == [(b"x",), (b"x", b"y"), (b"x",), (b"x",), (b"x",)]


def test_ever_new_keys_do_not_make_memory_grow() -> None:
    trial = Trial().on_enqueue(
        hook("return { fairness_key = msg.headers.k, throttle_keys = { 't' .. msg.headers.k } }")
    )
    for start in range(0, 20_000, 100):
        keys = [f"tenant-{start + i}" for i in range(100)]
        verdicts = trial.assign_all([body({"k": key}) for key in keys])
        assert [one.fairness_key.decode() for one in verdicts] == keys
    assert trial.enqueue_stats.memory_bytes < 400_000
    assert trial.enqueue_stats.memory == 0
