"""Every Lua block of the hook documentation, run: it does what the text around it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fila.core.verdict import Assignment, FailureVerdict
from fila.hooks.policy import LuaHooks
from tests.hooks.trial import QUEUE, Trial

DOCS = Path(__file__).resolve().parents[2] / "docs" / "hooks"
HEADING_OR_LUA = re.compile(
    r"^## (?P<title>[^\n]+)$|^```lua\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page: str) -> list[tuple[str, str]]:
    """(heading, code) of each Lua block on the page; the second under a heading is 'heading 2'."""
    found: list[tuple[str, str]] = []
    title, count = "", 0
    for match in HEADING_OR_LUA.finditer((DOCS / page).read_text()):
        if match["title"]:
            title, count = match["title"], 0
        else:
            count += 1
            found.append((title if count == 1 else f"{title} {count}", match["code"]))
    return found


def trial_of(code: str) -> Trial:
    trial = Trial()
    trial.hooks.install(
        QUEUE,
        code if "on_enqueue(" in code else None,
        code if "on_failure(" in code else None,
    )
    return trial


def key(name: str, weight: int = 1, *throttle_keys: str) -> Assignment:
    return Assignment(name.encode(), weight, tuple(one.encode() for one in throttle_keys))


def retry(delay_ms: int = 0) -> FailureVerdict:
    return FailureVerdict(False, delay_ms)


DEAD = FailureVerdict(True, 0)
NO_HEADERS: dict[str, str] = {}

Check = Callable[[Trial], None]
CHECKS: dict[str, Check] = {}


def shows(title: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[title] = check
        return check

    return register


def within(verdict: FailureVerdict, middle_ms: int, max_ms: int) -> None:
    assert not verdict.dead_letter
    assert min(0.75 * middle_ms, max_ms) - 1 <= verdict.delay_ms <= min(1.25 * middle_ms, max_ms)


@shows("Tenant fairness")
@shows("Tenant fairness 2")
def tenant_fairness(trial: Trial) -> None:
    assert trial.assign({"tenant": "acme"}) == key("acme")
    assert trial.assign(NO_HEADERS) == key("default")


@shows("Weighted tiers")
def weighted_tiers(trial: Trial) -> None:
    for plan, weight in (("enterprise", 5), ("premium", 3), ("free", 1), ("gold", 1)):
        assert trial.assign({"tenant": "acme", "plan": plan}) == key("acme", weight)
    assert trial.assign(NO_HEADERS) == key("default")


@shows("Weights from config")
def weights_from_config(trial: Trial) -> None:
    assert trial.assign({"tenant": "acme"}) == key("acme", 1)
    trial.set_config("weight:acme", "5")
    trial.set_config("weight:default", "2")
    assert trial.assign({"tenant": "acme"}) == key("acme", 5)
    assert trial.assign({"tenant": "globex"}) == key("globex", 2)


@shows("Provider throttling")
def provider_throttling(trial: Trial) -> None:
    headers = {"tenant": "acme", "provider": "stripe"}
    assert trial.assign(headers) == key("acme", 1, "provider:stripe")
    assert trial.assign({"tenant": "acme"}) == key("acme")


@shows("Several limits at once")
def several_limits(trial: Trial) -> None:
    headers = {"tenant": "acme", "provider": "stripe"}
    keys = ("provider:stripe", "provider:stripe:tenant:acme")
    assert trial.assign(headers) == key("acme", 1, *keys)
    assert trial.assign({"provider": "stripe"}) == key("default", 1, "provider:stripe")
    assert trial.assign(NO_HEADERS) == key("default")


@shows("Exponential back-off")
def exponential_backoff(trial: Trial) -> None:
    for attempts, middle_ms in ((1, 1_000), (2, 2_000), (3, 4_000), (5, 16_000)):
        within(trial.fail(attempts), middle_ms, 60_000)
    assert trial.fail(6) == DEAD


@shows("Exponential back-off 2")
def round_exponential_backoff(trial: Trial) -> None:
    delays = [trial.fail(attempts) for attempts in range(1, 7)]
    assert delays == [retry(1_000 << n) for n in range(5)] + [DEAD]


@shows("Retries from config")
def retries_from_config(trial: Trial) -> None:
    within(trial.fail(4), 8_000, 300_000)
    assert trial.fail(5) == DEAD
    trial.set_config("retries:payment", "10")
    trial.set_config("retry_base_ms:payment", "500")
    within(trial.fail(5, headers={"job": "payment"}), 8_000, 300_000)
    within(trial.fail(1, headers={"job": "payment"}), 500, 300_000)
    assert trial.fail(10, headers={"job": "payment"}) == DEAD


@shows("Linear back-off")
def linear_backoff(trial: Trial) -> None:
    verdicts = [trial.fail(attempts) for attempts in (1, 2, 4, 5)]
    assert verdicts == [retry(5_000), retry(10_000), retry(20_000), DEAD]


@shows("Immediate retry")
def immediate_retry(trial: Trial) -> None:
    assert [trial.fail(attempts) for attempts in (1, 2, 3)] == [retry(), retry(), DEAD]


@shows("Priority")
def priority(trial: Trial) -> None:
    for name, weight in (("urgent", 10), ("high", 5), ("normal", 2), ("low", 1)):
        assert trial.assign({"priority": name}) == key(f"priority:{name}", weight)
    assert trial.assign({"priority": "whatever"}) == key("priority:normal", 2)
    assert trial.assign(NO_HEADERS) == key("priority:normal", 2)


@shows("Region")
def region(trial: Trial) -> None:
    assert trial.assign({"region": "eu-west"}) == key("region:eu-west", 1, "region:eu-west")
    assert trial.assign(NO_HEADERS) == key("region:unknown", 1, "region:unknown")


@shows("Dead-letter by error type")
def dead_letter_by_error(trial: Trial) -> None:
    assert trial.fail(1, "HTTP 404 no such customer") == DEAD
    within(trial.fail(1, "HTTP 429 slow down"), 500, 120_000)
    within(trial.fail(2, "HTTP 503 busy"), 1_000, 120_000)
    within(trial.fail(3, "connection reset"), 2_000, 120_000)
    assert trial.fail(8, "HTTP 503 busy") == DEAD
    assert trial.fail(1, "") != DEAD


@shows("Dead-letter by error type 2")
def dead_letter_by_lost_lease(trial: Trial) -> None:
    assert trial.fail(2, "visibility timeout expired") == retry()
    assert trial.fail(3, "visibility timeout expired") == DEAD
    assert trial.fail(3, "HTTP 503") == retry()
    assert trial.fail(10, "HTTP 503") == DEAD


@shows("Feature flag")
def feature_flag(trial: Trial) -> None:
    assert trial.assign({"tenant": "acme"}) == key("acme", 1, "billing:old")
    trial.set_config("feature:new_billing:acme", "on")
    assert trial.assign({"tenant": "acme"}) == key("acme", 1, "billing:new")
    assert trial.assign({"tenant": "globex"}) == key("globex", 1, "billing:old")


@shows("Large messages apart")
def large_messages(trial: Trial) -> None:
    assert trial.assign({"tenant": "acme"}, b"x" * 1_000) == key("acme")
    large = trial.assign({"tenant": "acme"}, b"x" * 1_048_577)
    assert large == key("acme:large", 1, "large")


@shows("In ten minutes")
def in_ten_minutes(trial: Trial) -> None:
    assert trial.assign({"tenant": "acme", "plan": "premium"}) == key("acme", 3)
    assert trial.assign({"tenant": "globex"}) == key("globex")
    assert trial.assign(NO_HEADERS) == key("default")
    assert [trial.fail(attempts) for attempts in (1, 4, 5)] == [retry(1_000), retry(4_000), DEAD]


@shows("Config")
def config(trial: Trial) -> None:
    trial.set_config("weight:acme", "5")
    assert trial.assign({"tenant": "acme"}) == key("acme", 5)
    assert trial.assign({"tenant": "globex"}) == key("globex", 1)


ALL = [*blocks("patterns.md"), *blocks("reference.md")]


@pytest.mark.parametrize(("title", "code"), ALL, ids=[title for title, _ in ALL])
def test_a_documented_script_does_what_its_text_says(title: str, code: str) -> None:
    trial = trial_of(code)
    CHECKS[title](trial)
    for stats in trial.hooks.stats(QUEUE):
        assert stats is None or stats.last_problem == ""


def test_every_check_has_its_script() -> None:
    assert sorted(title for title, _ in ALL) == sorted(CHECKS)


def test_the_documented_environment_is_the_real_one() -> None:
    text = (DOCS / "reference.md").read_text()
    section = text.split("## The language")[1].split("## Limits")[0]
    present, absent = section.split("A script cannot reach")
    trial = Trial()
    for name in set(re.findall(r"[a-z0-9]+", " ".join(re.findall(r"`([^`]+)`", present)))):
        assert is_there(trial.hooks, name), name
    for name in re.findall(r"`([a-z.]+)`", absent.split("Small differences")[0]):
        assert not is_there(trial.hooks, name), name


def is_there(hooks: LuaHooks, name: str) -> bool:
    hooks.install(
        QUEUE,
        f"function on_enqueue(msg) return {{ weight = {name} ~= nil and 2 or 1 }} end",
        None,
    )
    return hooks.on_enqueue(QUEUE, [b"\0\0\0\0\0\0"], 0)[0].weight == 2
