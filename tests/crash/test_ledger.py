"""The ledger sees what it is there to see."""

from __future__ import annotations

import time

from tests.crash.ledger import Ledger
from tests.e2e.peer import Received


def delivery(token: str, id: str = "id-1", leased_at_ms: int = 0) -> Received:
    return Received(id, "q", {}, token.encode(), "default", 1, (), 0, 0, leased_at_ms, 0.0)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ledger_with(token: str) -> Ledger:
    ledger = Ledger()
    ledger.sending([token])
    ledger.was_stored([token], ["id-1"])
    return ledger


def test_a_message_that_was_stored_and_never_came_is_missing() -> None:
    ledger = ledger_with("a")
    assert ledger.missing() == ["a"]
    ledger.was_delivered([delivery("a")])
    assert ledger.missing() == []
    assert ledger.unfinished() == ["a"]


def test_a_message_that_comes_back_after_its_ack_is_noticed() -> None:
    ledger = ledger_with("a")
    ledger.was_delivered([delivery("a")])
    ledger.acking(["a"])
    ledger.was_acked(["a"])
    assert ledger.broken == []
    ledger.was_delivered([delivery("a", leased_at_ms=now_ms() - 5_000)])  # read late, leased before
    assert ledger.broken == []
    ledger.was_delivered([delivery("a", leased_at_ms=now_ms() + 100)])
    assert "came back" in ledger.broken[0]


def test_a_second_successful_ack_is_noticed() -> None:
    ledger = ledger_with("a")
    ledger.was_acked(["a"])
    ledger.was_acked(["a"])
    assert ledger.broken == ["a was acked twice with success"]


def test_a_changed_id_and_a_message_nobody_sent_are_noticed() -> None:
    ledger = ledger_with("a")
    ledger.was_delivered([delivery("a", id="id-2"), delivery("b")])
    assert len(ledger.broken) == 2


def test_an_ack_without_a_result_leaves_the_message_open() -> None:
    ledger = ledger_with("a")
    ledger.was_delivered([delivery("a")])
    ledger.acking(["a"])
    assert ledger.unfinished() == []
    ledger.was_delivered([delivery("a", leased_at_ms=now_ms() + 100)])
    assert ledger.broken == []
