from __future__ import annotations

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT, RETRY_NOW
from fila.hooks.contract import HookError, Hooks, HookSettings, NoHooks, QueueHookStats
from fila.hooks.policy import LuaHooks
from tests.hooks.trial import MESSAGE_ID, body


def lua_hooks() -> Hooks:
    return LuaHooks(lambda key: None, clock=lambda: 0, seed=lambda: 0)


@pytest.fixture(params=[NoHooks, lua_hooks])
def hooks(request: pytest.FixtureRequest) -> Hooks:
    made: Hooks = request.param()
    return made


def test_a_queue_without_scripts_gets_the_defaults(hooks: Hooks) -> None:
    hooks.install("orders", None, None)
    assert not hooks.has_on_enqueue("orders")
    assert not hooks.has_on_failure("orders")
    assert hooks.on_enqueue("orders", [body(), body()], 0) == [DEFAULT_ASSIGNMENT] * 2
    assert hooks.on_failure("orders", [(MESSAGE_ID, 1, b"", body())], 0) == [RETRY_NOW]
    assert hooks.stats("orders") == QueueHookStats(None, None)


def test_an_empty_batch_gets_an_empty_answer(hooks: Hooks) -> None:
    assert hooks.on_enqueue("orders", [], 0) == []
    assert hooks.on_failure("orders", [], 0) == []


def test_removing_a_queue_that_has_no_hooks_is_fine(hooks: Hooks) -> None:
    hooks.remove("never created")
    hooks.config_changed()
    assert not hooks.has_on_enqueue("never created")
    assert hooks.stats("never created") == QueueHookStats(None, None)
    assert hooks.on_enqueue("never created", [body()], 0) == [DEFAULT_ASSIGNMENT]


def test_without_an_engine_scripts_are_refused_but_a_stored_one_does_not_stop_the_broker() -> None:
    hooks = NoHooks()
    with pytest.raises(HookError, match="without hooks"):
        hooks.install("orders", "function on_enqueue(msg) return {} end", None)
    hooks.install("orders", "function on_enqueue(msg) return {} end", None, strict=False)


def test_the_documented_defaults() -> None:
    assert HookSettings() == HookSettings(
        timeout_ms=10,
        memory_limit_bytes=1_048_576,
        breaker_threshold=3,
        breaker_cooldown_ms=10_000,
    )
