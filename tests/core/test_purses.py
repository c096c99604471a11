"""The bank and its purses, step by step; tests/simulation/test_purses.py has the bad days."""

from __future__ import annotations

import pytest

from fila.core.bank import LIFE_NS, Answer, Ask, Bank, BankRow
from fila.core.bucket import NS
from fila.core.purse import AGAIN_NS, RENEW_NS, Purse, Purses

KEY = b"stripe"


class Owner:
    def __init__(self, name: int, burst: float) -> None:
        self.purses = Purses(name)
        self.purse = Purse(KEY, burst, 0)
        self.purses.purses[KEY] = self.purse

    def ask(self, tokens: int, now: int) -> Ask:
        ask = self.purses.ask({KEY: tokens}, [], now)
        assert ask is not None
        return ask

    def spend(self, now: int) -> int:
        self.purse.refill(now)
        tokens = int(self.purse.tokens + 1e-9)
        self.purse.tokens -= tokens
        return tokens


@pytest.fixture
def bank() -> Bank:
    bank = Bank(0.0)
    bank.open(KEY, 10.0, 5.0, None, 0, 0)
    return bank


def answered(bank: Bank, now: int, *asks: Ask) -> list[Answer]:
    for ask in asks:
        bank.ask(ask, now)
    return bank.settle(now)[0]


def test_who_asks_alone_is_lent_the_bucket_as_it_stands(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    (answer,) = answered(bank, 0, owner.ask(3, 0))
    assert [(g.tokens, g.lent, g.rate) for g in answer.grants] == [(5.0, True, 10.0)]
    assert owner.purses.take(answer, 0) == [owner.purse]
    assert owner.spend(0) == 5
    assert owner.spend(NS // 10) == 1
    assert owner.purse.next_token_ns() == NS // 5


def test_two_who_ask_at_once_share(bank: Bank) -> None:
    one, other = Owner(1, 5.0), Owner(2, 5.0)
    answers = answered(bank, 0, one.ask(1, 0), other.ask(50, 0))
    assert {a.purse: a.grants[0].tokens for a in answers} == {1: 1.0, 2: 4.0}


def test_a_rival_ends_the_loan_and_both_go_on(bank: Bank) -> None:
    one, other = Owner(1, 5.0), Owner(2, 5.0)
    one.purses.take(answered(bank, 0, one.ask(9, 0))[0], 0)
    assert one.spend(0) == 5
    bank.ask(other.ask(9, NS // 10), NS // 10)
    answers, recalls, rows = bank.settle(NS // 10)
    assert (answers, rows) == ([], {})
    assert [(recall.purse, recall.key) for recall in recalls] == [(1, KEY)]
    back = one.purses.ask({}, [KEY], NS // 5)
    assert back is not None
    assert back.wants[0].reports[0].left == pytest.approx(2.0)
    (answer,) = answered(bank, NS // 5, back)
    assert (answer.purse, answer.grants[0].tokens) == (2, 2.0)


def test_a_loan_is_worth_nothing_a_life_after_it_was_asked_for(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    (answer,) = answered(bank, 0, owner.ask(9, 0))
    owner.purses.take(answer, NS // 2)  # half a life on its way
    assert owner.purse.tokens_at(LIFE_NS - 1) == 5.0
    assert owner.purse.tokens_at(LIFE_NS) == 0.0
    assert owner.spend(LIFE_NS) == 0


def test_a_grant_is_worth_nothing_a_life_after_it_was_asked_for(bank: Bank) -> None:
    one, other = Owner(1, 5.0), Owner(2, 5.0)
    for answer in answered(bank, 0, one.ask(2, 0), other.ask(3, 0)):
        (one if answer.purse == 1 else other).purses.take(answer, NS // 2)
    assert one.purse.tokens_at(LIFE_NS - 1) == 2.0
    assert one.spend(LIFE_NS - 1) == 2
    assert other.purse.tokens_at(LIFE_NS) == 0.0
    assert other.spend(LIFE_NS) == 0


def test_a_renewal_that_arrives_after_the_hand_back_is_not_taken(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    owner.purses.take(answered(bank, 0, owner.ask(9, 0))[0], 0)
    (renewal,) = answered(bank, RENEW_NS, owner.ask(9, RENEW_NS))
    back = owner.purses.ask({}, [KEY], RENEW_NS + 1)
    assert back is not None
    owner.purses.take(renewal, RENEW_NS + 2)
    assert owner.spend(RENEW_NS + 2) == 0
    # And the bank, which had renewed it already, has its tokens back.
    answered(bank, RENEW_NS + 3, back)
    assert bank.accounts[KEY].outstanding() == 0.0
    assert bank.accounts[KEY].tokens == pytest.approx(5.0)


def test_a_loan_that_nobody_uses_goes_back(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    owner.purses.take(answered(bank, 0, owner.ask(1, 0))[0], 0)
    assert owner.purses.ask({KEY: 0}, [], RENEW_NS - 1) is None
    back = owner.purses.ask({KEY: 0}, [], RENEW_NS)
    assert back is not None
    assert back.wants[0].reports[0].done
    answered(bank, RENEW_NS, back)
    assert bank.accounts[KEY].tokens == 5.0
    assert bank.next_ns() == 0  # nobody waits, nothing wakes it


def test_who_has_no_answer_asks_again_but_not_at_every_turn(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    owner.ask(1, 0)
    assert owner.purses.ask({KEY: 1}, [], AGAIN_NS - 1) is None
    assert owner.ask(1, AGAIN_NS).number == 2


def test_a_new_bank_waits_for_what_the_one_before_may_have_granted() -> None:
    row = BankRow(0.0, 0, 5.0)
    bank = Bank(0.1)
    bank.open(KEY, 10.0, 5.0, row, 10 * NS, 0)
    owner = Owner(1, 5.0)
    assert answered(bank, 10 * NS, owner.ask(1, 10 * NS)) == []
    blind_ns = bank.accounts[KEY].blind_until_ns
    assert blind_ns == pytest.approx(11.1 * NS)
    assert bank.accounts[KEY].tokens == 0.0


def test_a_lower_burst_counts_at_once_and_a_loan_on_old_terms_is_recalled(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    owner.purses.take(answered(bank, 0, owner.ask(1, 0))[0], 0)
    assert [recall.purse for recall in bank.change(KEY, 1.0, 2.0, 0)] == [1]
    back = owner.purses.ask({}, [KEY], 0)
    assert back is not None
    answered(bank, 0, back)
    assert bank.accounts[KEY].tokens == 2.0


def test_a_key_without_a_limit_has_no_account(bank: Bank) -> None:
    owner = Owner(1, 5.0)
    ask = owner.ask(1, 0)
    bank.ask(ask, 0)
    bank.close(KEY)
    assert bank.settle(0) == ([], [], {})
    assert answered(bank, 1, ask) == []
