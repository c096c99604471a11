"""Limits over several owners of queues: the bank and its purses, and faults planted in them."""

from __future__ import annotations

import pytest

from .planting import COMPILED, Fault, fault, planted
from .purses import run_world

SEEDS = 40
FAULT_SEEDS_MAX = 600

BANK = "fila.core.bank:"
PURSE = "fila.core.purse:"

FAULTS = [
    fault(
        "refills beside what is out",
        BANK + "Account.refill",
        "room = self.burst - self.outstanding()",
        "room = self.burst",
    ),
    fault(
        "what is burnt makes room for the time before",
        BANK + "Account.refill",
        "room = self.burst - self.outstanding()",
        "room = self.burst - sum(g.left for g in self.grants.values() if g.until_ns > now)",
    ),
    fault(
        "a loan that ran out leaves its tokens",
        BANK + "Account.refill",
        "self.tokens = 0.0",
        "self.tokens = self.burst",
    ),
    fault(
        "a report counts as often as it comes",
        BANK + "Account.report",
        "del self.grants[name]",
        "pass",
    ),
    fault(
        "a late hand-back ends the loan after it",
        BANK + "Account.report",
        "report.grant < lent[1] < number",
        "True",
    ),
    fault("a new bank grants a fresh burst", BANK + "Bank.open", "if row is None:", "if True:"),
    fault(
        "a new bank forgets what is out",
        BANK + "Bank.open",
        "account.blind = min(row.out, burst)",
        "account.blind = 0.0",
    ),
    fault(
        "a loan counts as what it began with",
        BANK + "Bank._serve",
        "_Granted(account.burst, now + self._burn_ns, True)",
        "_Granted(level, now + self._burn_ns, True)",
    ),
    fault(
        "grants stand in no row",
        BANK + "_shared",
        "if whole > account.reserve:",
        "if False:",
    ),
    fault(
        "nobody is asked to hand back",
        BANK + "Bank._serve",
        "return Recall(borrower, account.key) if wants else None",
        "wants.clear(); self._renew(account, borrower, loan[1], now); return None",
    ),
    fault(
        "the odd token always goes to the first",
        BANK + "_shared",
        "account.last = purse",
        "pass",
    ),
    fault(
        "grants end a life after they arrive",
        PURSE + "Purse.take",
        "until_ns = sent_ns + LIFE_NS",
        "until_ns = now + LIFE_NS",
    ),
    fault(
        "what was spent is handed back",
        PURSE + "Purse._count",
        "one.left -= taken",
        "pass",
    ),
    fault(
        "an answer counts as often as it comes",
        PURSE + "Purses.take",
        "self._sent.pop(answer.number, None)",
        "self._sent.get(answer.number)",
    ),
]


@pytest.mark.parametrize("owners", [1, 2, 3])
def test_no_span_sees_more_than_burst_and_rate(owners: int) -> None:
    for seed in range(SEEDS):
        outcome = run_world(seed, owners)
        assert not outcome.broken(), f"seed {seed}, {owners} owners: {outcome.broken()}"


@pytest.mark.parametrize("owners", [1, 2, 3])
def test_without_trouble_the_rate_is_used(owners: int) -> None:
    """A lent bucket goes slower by the drift; shared ones lose what lies in the wrong purse."""
    outcomes = [run_world(seed, owners, trouble=False) for seed in range(SEEDS)]
    assert not [outcome.broken() for outcome in outcomes if outcome.broken()]
    used = sorted(outcome.used for outcome in outcomes)
    assert used[len(used) // 2] > 0.85


def test_who_is_alone_makes_no_trip_per_token() -> None:
    alone = [run_world(seed, 1, trouble=False) for seed in range(10)]
    assert max(outcome.asks for outcome in alone) <= 2 * 19 + 2  # renewals, twice a life
    assert max(outcome.rows for outcome in alone) == 1


@pytest.mark.skipif(COMPILED, reason="faults are planted in the pure form of the core")
@pytest.mark.parametrize("one", FAULTS, ids=[one.name.replace(" ", "_") for one in FAULTS])
def test_the_auditor_notices(one: Fault) -> None:
    with planted(one):
        for seed in range(FAULT_SEEDS_MAX):
            try:
                broken = run_world(seed).broken()
            except AssertionError:
                broken = "tokens + outstanding > burst"
            if broken:
                break
        else:
            pytest.fail(f"{FAULT_SEEDS_MAX} seeds ran and nothing was noticed")
    assert not run_world(seed).broken()
