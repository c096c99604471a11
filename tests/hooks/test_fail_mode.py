"""What a message gets that its hook has no verdict for: the queue's fail mode."""

from __future__ import annotations

import pytest

from fila.broker.overrides import fault_of, limits_of, override_of
from fila.client.errors import OverloadedError
from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment
from fila.hooks.contract import HookError
from fila.testing import memory_broker
from tests.hooks.trial import QUEUE, Trial, body, hook

POLICY = hook("""
    if msg.headers.fail or fila.get("broken") then error("no verdict") end
    return { fairness_key = msg.headers.tenant, weight = 5 }""")


def trial_with(mode: str) -> Trial:
    trial = Trial()
    trial.hooks.install(QUEUE, POLICY, None, fail_mode=mode)
    for tenant in ("acme", "globex"):
        trial.assign({"tenant": tenant})
    return trial


def test_last_good_gives_a_key_what_it_was_given_last() -> None:
    trial = trial_with("last-good")
    trial.set_config("broken", "yes")
    bodies = [body({"tenant": tenant, "n": "1"}) for tenant in ("acme", "globex", "new one")]
    expected = [Assignment(b"acme", 5, ()), Assignment(b"globex", 5, ()), DEFAULT_ASSIGNMENT]
    for _ in range(3):
        assert trial.assign_all(bodies) == expected
    assert trial.enqueue_stats.breaker == "open"
    assert trial.enqueue_stats.fail_mode == "last-good"
    assert trial.hooks.refused(QUEUE) == []


def test_reject_names_the_messages_without_a_verdict_and_no_others() -> None:
    trial = trial_with("reject")
    bodies = [body({"tenant": "acme"}), body({"fail": "y"}), body({"tenant": "globex"})]
    verdicts = trial.assign_all(bodies)
    assert trial.hooks.refused(QUEUE) == [1]
    assert (verdicts[0].fairness_key, verdicts[2].fairness_key) == (b"acme", b"globex")
    trial.assign({"tenant": "acme"})
    assert trial.hooks.refused(QUEUE) == []


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(HookError, match="fail_mode must be one of default, last-good, reject"):
        Trial().hooks.install(QUEUE, POLICY, None, fail_mode="hope")
    override = override_of("lua:orders:fail_mode")
    assert override is not None
    assert fault_of(override, "reject") is None
    assert fault_of(override, "hope") == '"hope" is none of default, last-good, reject'
    assert limits_of("orders", {"lua:orders:fail_mode": "reject"}) == (None, None, "reject")


def test_a_broker_refuses_single_messages_and_stores_the_others() -> None:
    with memory_broker() as broker, broker.client() as client:
        client.create_queue("orders", on_enqueue=POLICY)
        client.set_config("lua:orders:fail_mode", "reject")
        client.enqueue("orders", {"tenant": "acme"}, b"fine")
        with pytest.raises(OverloadedError):
            client.enqueue("orders", {"fail": "y"}, b"not")
        with pytest.raises(OverloadedError):
            client.enqueue("orders", {"fail": "z"}, b"not", idempotency_key="k")
        assert client.get_stats("orders").depth == 1
        client.set_config("lua:orders:fail_mode", "default")
        client.enqueue("orders", {"fail": "y"}, b"now")
        assert client.get_stats("orders").depth == 2


def test_a_producer_without_a_hook_cannot_take_all_turns_by_its_weight() -> None:
    with memory_broker({"scheduler.max_weight": 4}) as broker, broker.client() as client:
        client.create_queue("plain")
        client.create_queue("hooked", on_enqueue=hook("return { weight = 1e9 }"))
        client.enqueue("plain", None, b"", fairness_key="greedy", weight=4_294_967_295)
        client.enqueue("hooked", None, b"")
        for queue in ("plain", "hooked"):
            assert [one.weight for one in client.get_stats(queue).fairness_keys] == [4]
