from __future__ import annotations

from collections import Counter

import pytest

from fila.core.command import Ack, CreateQueue
from fila.core.rejection import Rejection
from fila.core.settings import Settings
from tests.core.turn import DEAD_LETTER, SECOND, Outcome, Turns

QUANTUM = 100
SETTINGS = Settings(quantum_bytes=QUANTUM)


def by_bytes(settings: Settings = SETTINGS) -> Turns:
    turns = Turns(settings)
    assert turns.turn(CreateQueue("q", cost="bytes")).replies == [None]
    return turns


def bytes_of(outcome: Outcome) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for key, entry in zip(outcome.keys(), outcome.entries(), strict=True):
        found[key] += len(entry[8])
    return found


def served(turns: Turns, count: int) -> Outcome:
    """The next `count` messages, each delivered, and acked, on its own."""
    outcome = turns.consume("q", prefetch=1)
    last = outcome
    while len(outcome.deliveries) < count and (ids := last.ids()):
        last = turns.ack("q", ids)
        outcome.extend(last)
    return outcome


def test_keys_share_bytes_by_weight_whatever_the_sizes() -> None:
    turns = by_bytes()
    for key, weight, size in ((b"small", 1, 20), (b"large", 1, 350), (b"heavy", 3, 90)):
        turns.enqueue("q", key, count=1_000, weight=weight, body_bytes=size)
    got = bytes_of(turns.consume("q", prefetch=1_500))
    assert sum(got.values()) > 50_000
    assert abs(got[b"small"] - got[b"large"]) <= QUANTUM + 20 + 350
    assert abs(got[b"small"] - got[b"heavy"] / 3) <= QUANTUM + 20 + 90 / 3


def test_credit_for_one_message_at_a_time_makes_no_difference() -> None:
    whole, single = by_bytes(), by_bytes()
    for turns in (whole, single):
        turns.enqueue("q", b"a", count=60, body_bytes=30)
        turns.enqueue("q", b"b", count=60, body_bytes=170)
    expected = whole.consume("q", prefetch=60).keys()
    assert served(single, 60).keys()[:60] == expected


def test_a_visit_that_only_pays_hands_out_nothing() -> None:
    turns = by_bytes()
    turns.enqueue("q", b"a", count=3, body_bytes=250)
    turns.enqueue("q", b"b", count=20, body_bytes=50)
    keys = b"".join(served(turns, 12).keys()[:12])
    # After the first a owes 150, after the second 200: it pays in one visit, and in two.
    assert keys == b"abbbbabbbbbb"


def test_who_leaves_after_a_large_message_owes_it_when_it_comes_back() -> None:
    turns = by_bytes()
    turns.enqueue("q", b"steady", count=400, body_bytes=50)
    got: Counter[bytes] = Counter()
    last = turns.consume("q", prefetch=1)
    for _ in range(300):
        if not turns.queue("q").keys.get(b"hasty") or not turns.queue("q").keys[b"hasty"].pending:
            turns.enqueue("q", b"hasty", body_bytes=1_000)
        got += bytes_of(last)
        last = turns.ack("q", last.ids())
    assert got[b"steady"] > 8_000
    assert abs(got[b"hasty"] - got[b"steady"]) <= 3 * (QUANTUM + 2 * 1_000)


def test_who_was_alone_owes_nobody() -> None:
    turns = by_bytes()
    turns.enqueue("q", b"early", body_bytes=100_000)
    assert turns.drain("q").keys() == [b"early"]
    turns.leave("q", release=True)
    turns.enqueue("q", b"late", count=100, body_bytes=50)
    turns.enqueue("q", b"early", count=100, body_bytes=50)
    assert b"early" in served(turns, 4).keys()[:4]


def test_many_visits_that_only_pay_are_cut_up_as_messages_are() -> None:
    turns = by_bytes(SETTINGS._replace(pass_messages=50))
    for key in (b"a", b"b"):
        turns.enqueue("q", key, count=2, body_bytes=40_000)
    ids = turns.consume("q", prefetch=2).ids()
    assert turns.queue("q").keys[b"a"].deficit < -39_000
    outcome, more = turns.one_pass(Ack("q", ids, 1))
    passes = 1
    while more:
        assert not outcome.deliveries
        outcome, more = turns.one_pass()
        passes += 1
    assert len(outcome.entries()) == 2
    assert passes > 2 * 39_000 / QUANTUM / 50


def test_behind_one_bucket_bytes_are_shared_too() -> None:
    turns = by_bytes()
    turns.limit("t", 100.0, 1.0)
    turns.enqueue("q", b"small", count=2_000, throttle=(b"t",), body_bytes=50)
    turns.enqueue("q", b"large", count=500, throttle=(b"t",), body_bytes=500)
    got = bytes_of(turns.consume("q", prefetch=10_000))
    got += bytes_of(turns.wait(10 * SECOND))
    assert sum(got.values()) > 50_000
    assert abs(got[b"small"] - got[b"large"]) <= 2 * (QUANTUM + 550)


def test_tokens_of_one_who_only_pays_go_to_others_in_line() -> None:
    turns = by_bytes()
    turns.limit("t", 10.0, 1.0)
    turns.enqueue("q", b"small", count=100, throttle=(b"t",), body_bytes=10)
    turns.enqueue("q", b"large", count=100, throttle=(b"t",), body_bytes=5_000)
    outcome = turns.consume("q", prefetch=1_000)
    outcome.extend(turns.wait(5 * SECOND))
    assert len(outcome.entries()) == 51  # none was left lying


def test_the_cost_is_stored_with_the_queue_and_its_dead_letter_queue() -> None:
    turns = by_bytes()
    turns.create("plain")
    again = turns.restart()
    costs = {name: again.queue(name).ring.by_bytes for name in ("q", "q.dlq", "plain", "plain.dlq")}
    assert costs == {"q": True, "q.dlq": True, "plain": False, "plain.dlq": False}


def test_a_dead_letter_queue_made_again_costs_as_its_queue_does() -> None:
    turns = by_bytes()
    turns.delete("q.dlq")
    turns.enqueue("q", b"k")
    turns.nack("q", turns.consume("q").ids(), DEAD_LETTER)
    assert turns.queue("q.dlq").ring.by_bytes


@pytest.mark.parametrize("cost", ["Bytes", "byte", "1"])
def test_a_cost_that_is_none_is_refused(cost: str) -> None:
    reply = Turns().turn(CreateQueue("q", cost=cost)).replies[0]
    assert isinstance(reply, Rejection)
    assert 'use "messages" or "bytes"' in reply.message


def test_entitlements_are_of_bytes() -> None:
    turns = by_bytes()
    turns.enqueue("q", b"a", count=200, body_bytes=20)
    turns.enqueue("q", b"b", count=200, body_bytes=180)
    turns.consume("q", prefetch=120)
    ring = turns.queue("q").ring
    for key in turns.queue("q").keys.values():
        assert abs(ring.entitled(key) - key.bytes) <= QUANTUM + 200
