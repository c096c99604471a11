"""`fila key set|list|clear`: an operator's word about one tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fila = Callable[..., Any]


def test_a_key_is_overridden_listed_and_cleared(fila: Fila, queue: str) -> None:
    done = fila("key", "set", queue, "acme", "--weight", "10", "--note", "ticket 812")
    assert done.out == f'Key "acme" of queue "{queue}": weight 10, until it is cleared\n'
    fila("key", "set", queue, "acme", "--rate", "5", "--expires-in", "2h")
    (found,) = fila("key", "list", queue, "--json").document["overrides"]
    assert (found["key"], found["weight"], found["rate"], found["burst"]) == ("acme", 10, 5, 5)
    assert found["note"] == "ticket 812"
    assert 7_190_000 < found["expires_ms"] - found["since_ms"] <= 7_200_000
    told = fila("key", "list", queue).out
    assert "KEY   WEIGHT  RATE/S  BURST  ENDS IN" in told and "ticket 812" in told
    assert "is overridden: weight 10, 5 messages a second" in fila("stats", queue).out
    assert fila("key", "clear", queue, "acme").out.endswith("has no override\n")
    assert fila("key", "list", queue, "--json").document["overrides"] == []


def test_an_override_is_taken_away_piece_by_piece(fila: Fila, queue: str) -> None:
    fila("key", "set", queue, "acme", "--weight", "10", "--rate", "5")
    fila("key", "set", queue, "acme", "--rate", "none", "--expires-in", "never")
    (found,) = fila("key", "list", queue, "--json").document["overrides"]
    assert (found["weight"], found["rate"], found["expires_ms"]) == (10, None, None)
    done = fila("key", "set", queue, "acme", "--weight", "none")
    assert done.out.endswith("has no override\n")


def test_the_stars_of_explain_say_which_key_it_is(fila: Fila, queue: str) -> None:
    fila("enqueue", queue, "--payload", "x")
    fila("key", "set", queue, "default", "--weight", "4")
    told = fila("explain", queue).out
    assert "4*" in told and "* overridden: see `fila key list`" in told


def test_what_cannot_be_is_refused_with_what_to_do(fila: Fila, queue: str) -> None:
    assert fila("key", "set", queue, "acme").code == 2
    for options, why in (
        (("--weight", "0"), "from 1 to"),
        (("--rate", "0"), "pause the key instead"),
        (("--rate", "fast"), "not a finite number"),
        (("--expires-in", "5m"), "a weight or a rate"),
    ):
        done = fila("key", "set", queue, "acme", *options)
        assert (done.code, why in done.err) == (1, True), done.err
    assert fila("key", "set", queue, "acme", "--expires-in", "0").code == 2
    assert fila("key", "list", "nowhere").code == 1
