"""Nobody's messages decide whether the policy works for others: blame, quarantine, time."""

from __future__ import annotations

import pytest

from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment
from fila.hooks.contract import HookSettings
from fila.hooks.limits import COSTLY_PER_THRESHOLD, ORIGINS_KEPT_MAX
from fila.hooks.origins import Origins
from fila.hooks.quarantine import Quarantine
from tests.hooks.trial import MESSAGE_ID, MS, QUEUE, Trial, body, hook

TENANTS = hook("""
    local h = msg.headers
    if h.fail then error("asked to fail") end
    while h.slow do end
    return { fairness_key = h.tenant or "default", weight = h.plan == "premium" and 3 or 1 }""")


# The limit counts wall time: a busy machine must not make an honest message look slow.
PATIENT = HookSettings(timeout_ms=200)


def settled(source: str = TENANTS, settings: HookSettings = PATIENT) -> Trial:
    """A queue whose policy has decided about a few tenants."""
    trial = Trial(settings).on_enqueue(source)
    for tenant in ("acme", "globex", "initech", "evil"):
        assert trial.assign({"tenant": tenant}).fairness_key == tenant.encode()
    return trial


def test_one_frame_of_messages_with_long_headers_gets_its_policy_and_leaves_others_theirs() -> None:
    trial = Trial(PATIENT).on_enqueue(TENANTS)
    long = body({"tenant": "evil", **{f"h{i}": "v" * 4 for i in range(250)}})
    verdicts = trial.assign_all([long] * 5_000)
    assert {one.fairness_key for one in verdicts} == {b"evil"}
    assert trial.assign({"tenant": "acme"}).fairness_key == b"acme"
    assert trial.enqueue_stats.breaker == "closed"
    assert trial.enqueue_stats.trips == 0


@pytest.mark.parametrize("trouble", ["fail", "slow"])
def test_a_tenant_whose_messages_fail_is_put_away_alone(trouble: str) -> None:
    trial = settled()
    verdicts = trial.assign_all([body({"tenant": "evil", trouble: "y"})] * 50)
    assert verdicts == [DEFAULT_ASSIGNMENT] * 50
    stats = trial.enqueue_stats
    assert (stats.breaker, stats.errors + stats.timeouts, stats.kept_out) == ("closed", 3, 47)
    assert (stats.quarantined, stats.quarantines, stats.quarantined_keys) == (1, 1, ("evil",))
    mixed = [body({"tenant": tenant}) for tenant in ("acme", "evil", "globex", "new one")]
    keys = [one.fairness_key for one in trial.assign_all(mixed)]
    assert keys == [b"acme", b"default", b"globex", b"new one"]


def test_a_quarantine_ends_with_the_cool_down_and_one_more_failure_begins_another() -> None:
    trial = settled()
    trial.assign_all([body({"tenant": "evil", "fail": "y"})] * 3)
    assert trial.assign({"tenant": "evil"}) == DEFAULT_ASSIGNMENT
    trial.now_ns += 10_000 * MS
    trial.assign({"tenant": "evil", "fail": "y"})
    assert trial.assign({"tenant": "evil"}) == DEFAULT_ASSIGNMENT
    trial.now_ns += 10_000 * MS
    assert trial.assign({"tenant": "evil"}).fairness_key == b"evil"
    assert trial.enqueue_stats.quarantines == 2
    assert trial.enqueue_stats.quarantined == 0


def test_failures_with_successes_in_between_put_nobody_away() -> None:
    trial = settled()
    for _ in range(20):
        trial.assign({"tenant": "acme", "fail": "y"})
        assert trial.assign({"tenant": "acme"}).fairness_key == b"acme"
    assert trial.enqueue_stats.quarantines == 0


def test_a_script_that_fails_for_everybody_is_switched_off_as_ever() -> None:
    trial = Trial().on_enqueue(hook("return fila.get('broken') and error('no') or {}"))
    for tenant in ("acme", "globex", "initech"):
        trial.assign({"tenant": tenant})
    trial.set_config("broken", "yes")
    trial.assign_all([body({"tenant": f"t{at}"}) for at in range(5)])
    assert trial.enqueue_stats.breaker == "open"
    assert trial.enqueue_stats.errors == 3
    assert trial.enqueue_stats.quarantined == 0


def test_a_first_message_that_fails_does_not_switch_a_new_queue_off() -> None:
    trial = Trial().on_enqueue(TENANTS)
    trial.assign_all([body({"tenant": "evil", "slow": "y"})] * 20)
    assert trial.assign({"tenant": "acme"}).fairness_key == b"acme"
    assert trial.enqueue_stats.breaker == "closed"


def test_made_up_tenants_that_take_long_are_kept_out_and_known_ones_are_not() -> None:
    trial = settled(settings=HookSettings(timeout_ms=20))
    trial.assign_all([body({"tenant": f"made up {at}", "slow": "y"}) for at in range(200)])
    stats = trial.enqueue_stats
    assert stats.timeouts == 3 * COSTLY_PER_THRESHOLD
    assert stats.kept_out == 200 - stats.timeouts
    assert stats.strangers_kept_out
    assert trial.assign({"tenant": "acme", "plan": "premium"}) == Assignment(b"acme", 3, ())
    assert trial.assign({"tenant": "never seen"}) == DEFAULT_ASSIGNMENT
    trial.now_ns += 10_000 * MS
    assert trial.assign({"tenant": "never seen"}).fairness_key == b"never seen"


def test_a_tenant_that_uses_up_the_time_of_its_calls_is_put_away_alone() -> None:
    slow = TENANTS.replace("while h.slow do end", "if h.long then for i = 1, 60000 do end end")
    trial = settled(slow, HookSettings(timeout_ms=20))
    trial.assign_all([body({"tenant": "evil", "long": "y"})] * 2_000)
    stats = trial.enqueue_stats
    assert stats.late > 0
    assert (stats.breaker, stats.quarantined_keys) == ("closed", ("evil",))
    assert trial.assign({"tenant": "acme"}).fairness_key == b"acme"


def test_messages_that_time_out_take_no_time_from_the_others_of_their_call() -> None:
    trial = settled()
    slow = [body({"tenant": f"t{at}", "slow": "y"}) for at in range(8)]
    others = [body({"tenant": tenant}) for tenant in ("acme", "globex")]
    keys = [one.fairness_key for one in trial.assign_all([*slow, *others])]
    assert keys == [b"default"] * 8 + [b"acme", b"globex"]
    assert trial.enqueue_stats.late == 0


def test_on_failure_puts_away_the_tenant_its_queue_gives_a_key() -> None:
    trial = Trial()
    failing = """function on_failure(msg)
        while msg.headers.slow do end
        return { action = "retry", delay_ms = 7 }
    end"""
    trial.hooks.install(QUEUE, TENANTS, failing)
    for tenant in ("acme", "globex"):
        trial.assign({"tenant": tenant})
    items = [
        (MESSAGE_ID, 1, b"", body({"tenant": "evil", "slow": "y", "n": str(at)})) for at in range(9)
    ]
    trial.hooks.on_failure(QUEUE, items, trial.now_ns)
    assert trial.failure_stats.timeouts == 3
    assert trial.failure_stats.quarantined_keys == ("evil",)
    assert trial.fail(headers={"tenant": "acme"}).delay_ms == 7


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([b"acme", b"globex"], b"hooli"),
        ([b"tenant:acme", b"tenant:globex"], b"tenant:hooli"),
        ([b"eu/acme!", b"us/globex!"], b"ap/hooli!"),
        ([b"17", b"42"], None),
        ([b"default", b"acme"], None),
    ],
)
def test_how_a_key_is_made_of_headers_is_learned(keys: list[bytes], expected: bytes | None) -> None:
    origins = Origins()
    samples = [{"t": "acme", "region": "eu"}, {"t": "globex", "region": "us"}]
    for key, headers in zip(keys, samples, strict=True):
        origins.learn(body(headers), key)
    assert origins.key_of(body({"t": "hooli", "region": "ap"})) == expected
    assert origins.of(body({"other": "x"})).startswith(b"headers:")


def test_a_quarantine_remembers_a_bounded_number_of_origins() -> None:
    it = Quarantine(threshold=1, cooldown_ms=1_000)
    for at in range(3 * ORIGINS_KEPT_MAX):
        assert it.fail(b"%d" % at, 0)
    assert len(it.held(0)) == ORIGINS_KEPT_MAX
    assert len(it.failing) <= ORIGINS_KEPT_MAX
    assert it.keeps_out(b"%d" % (3 * ORIGINS_KEPT_MAX - 1), 0)
