from __future__ import annotations

import pytest

from fila.hooks.policy import LuaHooks
from tests.hooks.trial import Trial, body, hook

GET = hook("return { fairness_key = fila.get(msg.headers.key) or 'unset' }")


def test_a_script_reads_runtime_config() -> None:
    trial = Trial().on_enqueue(GET)
    trial.set_config("mode", "fast")
    assert trial.assign({"key": "mode"}).fairness_key == b"fast"
    assert trial.assign({"key": "other"}).fairness_key == b"unset"


def test_a_value_is_asked_for_once_until_config_changes() -> None:
    trial = Trial().on_enqueue(GET)
    trial.set_config("mode", "fast")
    trial.assign_all([body({"key": "mode"}), body({"key": "absent"})] * 50)
    assert sorted(trial.asked) == [b"absent", b"mode"]
    trial.set_config("mode", "slow")
    assert trial.assign({"key": "mode"}).fairness_key == b"slow"
    assert trial.asked.count(b"mode") == 2


def test_a_removed_key_reads_as_nil_again() -> None:
    trial = Trial().on_enqueue(GET)
    trial.set_config("mode", "fast")
    trial.assign({"key": "mode"})
    del trial.config[b"mode"]
    trial.hooks.config_changed()
    assert trial.assign({"key": "mode"}).fairness_key == b"unset"


def test_config_can_be_read_while_loading() -> None:
    trial = Trial()
    trial.set_config("default_tenant", "acme")
    trial.on_enqueue(
        "local tenant = fila.get('default_tenant')\n" + hook("return { fairness_key = tenant }")
    )
    assert trial.assign().fairness_key == b"acme"


@pytest.mark.parametrize(
    "call",
    [
        "select(2, pcall(fila.get, 'mode'))",
        "select(2, xpcall(fila.get, error, 'mode'))",
        "select(2, pcall(function() return select(2, pcall(fila.get, 'mode')) end))",
        "(('x'):gsub('x', function() return fila.get('mode') end))",
        "(function() local v "
        "table.sort({2, 1}, function(a, b) v = fila.get('mode') return a < b end) return v end)()",
    ],
)
def test_config_can_be_read_from_anywhere(call: str) -> None:
    trial = Trial()
    trial.set_config("mode", "fast")
    trial.on_enqueue(hook(f"return {{ fairness_key = {call} }}"))
    assert trial.assign().fairness_key == b"fast"


def test_values_may_hold_any_bytes_and_keys_any_text() -> None:
    trial = Trial().on_enqueue(hook(r"return { weight = #fila.get('\0é') }"))
    trial.config["\0é".encode()] = bytes(range(256)) * 3
    assert trial.assign().weight == 768


@pytest.mark.parametrize("key", [r"'\xff'", r"'\xed\xa0\x80'", "('k'):rep(5000)"])
def test_what_cannot_be_a_key_is_unset_without_asking(key: str) -> None:
    trial = Trial().on_enqueue(hook(f"return {{ fairness_key = fila.get({key}) or 'unset' }}"))
    assert trial.assign().fairness_key == b"unset"
    assert trial.asked == []


def test_config_that_cannot_be_read_is_logged_and_counts_as_unset(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(key: bytes) -> bytes | None:
        raise OSError("disk on fire")

    hooks = LuaHooks(broken, clock=lambda: 0, seed=lambda: 0)
    hooks.install("orders", GET, None)
    verdicts = hooks.on_enqueue("orders", [body({"key": "mode"})] * 3, 0)
    assert [one.fairness_key for one in verdicts] == [b"unset"] * 3
    assert "disk on fire" in caplog.text


def test_a_number_is_a_key_too() -> None:
    trial = Trial().on_enqueue(hook("return { fairness_key = fila.get(5) }"))
    trial.set_config("5", "five")
    assert trial.assign().fairness_key == b"five"


@pytest.mark.parametrize("key", ["nil", "{}", "true", "print"])
def test_a_key_of_another_type_is_an_error(key: str) -> None:
    trial = Trial().on_enqueue(hook(f"return {{ fairness_key = fila.get({key}) }}"))
    trial.assign()
    assert "fila.get needs a string key" in trial.enqueue_stats.last_problem


def test_ever_new_keys_and_long_values_do_not_make_memory_grow() -> None:
    trial = Trial().on_enqueue(hook("return { weight = #(fila.get(msg.headers.key) or '') }"))
    trial.config = {f"key-{i}".encode(): b"v" * (i % 4000) for i in range(6_000)}
    for start in range(0, 6_000, 100):
        keys = range(start, start + 100)
        verdicts = trial.assign_all([body({"key": f"key-{i}"}) for i in keys])
        assert [one.weight for one in verdicts] == [max(1, i % 4000) for i in keys]
    assert trial.enqueue_stats.memory_bytes < 400_000
    assert trial.enqueue_stats.executions == 6_000


def test_the_longest_value_fits() -> None:
    trial = Trial().on_enqueue(hook("return { weight = #fila.get('big') }"))
    trial.config[b"big"] = b"v" * 65_535
    assert trial.assign().weight == 65_535


def test_a_script_at_its_memory_limit_can_still_ask_without_harm() -> None:
    trial = Trial().on_enqueue(
        hook("""
            local keep = {}
            for i = 1, 100000 do
              keep[i] = { fila.get('big' .. i) }
            end
            return {}""")
    )
    trial.config = {f"big{i}".encode(): b"v" * 30_000 for i in range(1, 1_000)}
    trial.assign()
    assert trial.enqueue_stats.memory == 1
    assert len(trial.asked) > 20
    trial.on_enqueue(GET)
    trial.set_config("mode", "fast")
    assert trial.assign({"key": "mode"}).fairness_key == b"fast"
