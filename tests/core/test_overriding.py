"""Overrides: an operator's weight and rate hold for a key at once, until they end."""

from __future__ import annotations

from collections import Counter

import pytest

from fila.core import effect, rows
from fila.core.command import DeleteQueue, SetOverride
from fila.core.explain import explain
from fila.core.override import Terms, override_row, read_override
from fila.core.rejection import INVALID_CONFIG_VALUE, QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.throttle import Limit
from tests.core.turn import MS, SECOND, Turns

A, B = b"a", b"b"


def queue(settings: Settings | None = None) -> Turns:
    turns = Turns(settings, journal=True)
    turns.create("q", visibility_ms=3_600_000)
    return turns


def put(turns: Turns, key: bytes, **settings: object) -> object:
    texts = {name: str(value) for name, value in settings.items()}
    return turns.turn(SetOverride("q", key, texts, who="ada")).replies[0]


def clear(turns: Turns, key: bytes) -> object:
    return turns.turn(SetOverride("q", key, {}, clear=True)).replies[0]


def weights(turns: Turns, key: bytes) -> tuple[int, int]:
    found = turns.machine.state.queues["q"].keys[key]
    return found.weight, found.told_weight


def test_the_weight_holds_for_what_waits_already() -> None:
    turns = queue()
    turns.enqueue("q", A, count=30)
    turns.enqueue("q", B, count=30)
    assert put(turns, A, weight=3) == 1
    found = turns.consume("q", prefetch=20)
    assert Counter(found.keys()) == {A: 15, B: 5}


def test_a_message_that_comes_says_another_weight_and_does_not_get_it() -> None:
    turns = queue()
    turns.enqueue("q", A, weight=2)
    put(turns, A, weight=9)
    turns.enqueue("q", A, weight=5)
    assert weights(turns, A) == (9, 5)
    clear(turns, A)
    assert weights(turns, A) == (5, 5)


def test_a_key_that_comes_later_has_it() -> None:
    turns = queue()
    put(turns, A, weight=4)
    turns.enqueue("q", A)
    assert weights(turns, A) == (4, 1)


def test_the_rate_holds_for_what_waits_already_and_is_lifted() -> None:
    turns = queue()
    turns.enqueue("q", A, count=10)
    turns.enqueue("q", B, count=3)
    put(turns, A, rate=2)
    found = turns.consume("q")
    assert Counter(found.keys()) == {A: 2, B: 3}
    assert len(turns.wait(1 * SECOND).ids()) == 2
    assert len(turns.turn(SetOverride("q", A, {}, clear=True)).ids()) == 6


def test_the_rate_comes_on_top_of_throttle_keys() -> None:
    turns = queue()
    turns.limit("t", 100, 100)
    turns.enqueue("q", A, count=5, throttle=(b"t",))
    put(turns, A, rate=1)
    assert len(turns.consume("q").ids()) == 1
    assert turns.machine.state.buckets[b"t"].passed == 1


def test_what_is_not_named_stays_and_an_empty_text_takes_away() -> None:
    turns = queue()
    put(turns, A, weight=4, rate=2)
    put(turns, A, burst=7)
    terms = turns.machine.view.override_of("q", A)
    assert terms is not None and terms[:3] == (4, 2.0, 7.0)
    put(turns, A, rate="")
    assert turns.machine.view.override_of("q", A)[:3] == (4, 0.0, 0.0)  # type: ignore[index]
    put(turns, A, weight="")
    assert turns.machine.view.override_of("q", A) is None


def test_it_ends_to_the_nanosecond() -> None:
    turns = queue()
    turns.enqueue("q", A, weight=2)
    put(turns, A, weight=9, expires_in_ms=1_000)
    assert turns.machine.next_deadline() == turns.now + 1_000 * MS
    turns.wait(1_000 * MS - 1)
    assert weights(turns, A) == (9, 2)
    events = turns.wait(1).events
    assert weights(turns, A) == (2, 2)
    ended = [one for one in events if one.event == effect.EVENT_KEY_OVERRIDE_ENDED]
    assert [(one.fairness_key, one.reason) for one in ended] == [(A, "expired")]
    put(turns, A, weight=9, expires_in_ms=50)
    put(turns, A, expires_in_ms="")
    turns.wait(60 * MS)
    assert weights(turns, A) == (9, 2)


def test_a_restart_knows_it_and_grants_no_fresh_burst() -> None:
    turns = queue()
    turns.enqueue("q", A, weight=2, count=10)
    put(turns, A, weight=9, rate=1, burst=4, expires_in_ms=5_000)
    assert len(turns.consume("q").ids()) == 4
    again = Turns(store=turns.store, now=turns.now, first_id=turns.next_id)
    assert weights(again, A) == (9, 2)
    assert again.consume("q").ids() == []
    assert len(again.wait(1 * SECOND).ids()) == 1
    late = Turns(store=turns.store, now=turns.now + 60 * SECOND, first_id=turns.next_id)
    late.turn()
    assert weights(late, A) == (2, 2)
    assert late.machine.view.overrides("q") == []
    assert late.store.scan(rows.STATE, rows.OVERRIDE_PREFIX, b"l", 10, 1 << 20) == []


def test_a_queue_that_is_deleted_leaves_nothing() -> None:
    turns = queue()
    turns.enqueue("q", A, count=3)
    put(turns, A, weight=9, rate=1, expires_in_ms=5_000)
    turns.consume("q")
    turns.turn(DeleteQueue("q"))
    assert turns.store.scan(rows.STATE, rows.OVERRIDE_PREFIX, b"l", 10, 1 << 20) == []
    turns.create("q")
    turns.enqueue("q", A)
    turns.wait(10 * SECOND)
    assert weights(turns, A) == (1, 1)
    assert turns.machine.view.overrides("q") == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "a weight or a rate"),
        ({"expires_in_ms": "5"}, "a weight or a rate"),
        ({"weight": "0"}, "from 1 to"),
        ({"weight": "-3"}, "from 1 to"),
        ({"weight": "²"}, "from 1 to"),
        ({"weight": "99999999999999999999"}, "from 1 to"),
        ({"rate": "0"}, "pause the key"),
        ({"rate": "nan"}, "finite"),
        ({"rate": "1e999"}, "finite"),
        ({"burst": "3"}, "needs a rate"),
        ({"rate": "2", "burst": "0.3"}, "at least 1"),
        ({"weight": "2", "expires_in_ms": "0"}, "from 1 to"),
        ({"colour": "red"}, "none of a key"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    settings: dict[str, str], why: str
) -> None:
    turns = queue()
    reply = turns.turn(SetOverride("q", A, settings)).replies[0]
    assert isinstance(reply, Rejection)
    assert (reply.code, why in reply.message) == (INVALID_CONFIG_VALUE, True), reply.message
    assert turns.machine.view.overrides("q") == []


def test_they_are_counted_and_names_have_an_end() -> None:
    turns = queue(Settings(overrides_max=2))
    assert [put(turns, name, weight=2) for name in (A, B)] == [1, 1]
    assert isinstance(put(turns, b"c", weight=2), Rejection)
    assert put(turns, A, weight=3) == 1
    assert isinstance(put(turns, b"x" * 5_000, weight=2), Rejection)
    reply = turns.turn(SetOverride("nowhere", A, {"weight": "2"})).replies[0]
    assert isinstance(reply, Rejection) and reply.code == QUEUE_NOT_FOUND


def test_saying_the_same_again_changes_nothing() -> None:
    turns = queue()
    assert put(turns, A, weight=2) == 1
    assert put(turns, A, weight=2) == 0
    assert clear(turns, A) == 1
    assert clear(turns, A) == 0


def test_explain_says_whose_rate_it_is() -> None:
    turns = queue()
    turns.enqueue("q", A, count=3)
    put(turns, A, rate=1)
    turns.consume("q")
    found = explain(turns.machine.state, "q", A, None, 10)
    assert not isinstance(found, Rejection)
    assert "The override of its key by ada lets 1 messages a second go." in found["sentence"]
    assert found["key"]["override"]["rate"] == 1.0
    assert found["changes"][0]["command"] == "fila key set q a --rate 2"
    assert found["overridden_keys"] == 1


def test_the_row_comes_back_as_it_was_written() -> None:
    terms = Terms(7, 2.5, 9.0, 5 * SECOND, 3 * SECOND, "ada", "é" * 300)
    assert read_override(override_row(terms)) == terms
    assert Terms(rate=0.5).limit() == Limit(0.5, 1.0)
    with pytest.raises(rows.CorruptRowError):
        read_override(override_row(terms) + b"\1")
