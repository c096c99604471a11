"""`fila dlq`: dead letters and why they died, against a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fila import FilaClient

Fila = Callable[..., Any]

GIVE_UP = 'function on_failure(msg) return { action = "dlq" } end'
BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"


@pytest.fixture
def dead(fila: Fila, broker: str, queue: str) -> str:
    """A queue with three dead letters: two of acme's, one of zeta's."""
    name = f"{queue}-dead"
    with FilaClient(broker) as client:
        client.create_queue(name, on_enqueue=BY_TENANT, on_failure=GIVE_UP)
        errors = {}
        for tenant, payload, error in (
            ("acme", b"1", "card declined\nat charge()"),
            ("acme", b"2", "timeout after 30 s"),
            ("zeta", b"\xff", "timeout after 30 s"),
        ):
            id = client.enqueue(name, {"tenant": tenant}, payload)
            errors[id] = error
        with client.consume(name) as stream:
            for _ in errors:
                message = next(stream)
                message.nack(errors[message.id])
    return name


def test_dead_letters_are_listed_with_reason_error_and_time(fila: Fila, dead: str) -> None:
    text = fila("dlq", "list", dead)
    assert text.code == 0
    head, *lines = text.out.splitlines()
    assert head.split() == ["ID", "DIED", "KEY", "ATTEMPTS", "REASON", "ERROR"]
    assert len(lines) == 3 and sum("card declined" in line for line in lines) == 1
    assert "at charge()" not in text.out
    letters = fila("dlq", "list", f"{dead}.dlq", "--json").documents
    assert {one["dead"]["reason"] for one in letters} == {"hook"}
    assert {one["dead"]["queue"] for one in letters} == {dead}
    assert [one["headers"] for one in letters].count({"tenant": "acme"}) == 2


def test_filters_by_error_key_header_reason_and_time(fila: Fila, dead: str) -> None:
    def count(*filters: str) -> int:
        return len(fila("dlq", "list", dead, "--json", *filters).documents)

    assert count("--error", "TIMEOUT") == 2
    assert count("--error", "timeout", "--key", "acme") == 1
    assert count("--header", "tenant=zeta") == 1
    assert count("--header", "tenant=nobody") == 0
    assert count("--reason", "hook") == 3
    assert count("--reason", "max_attempts") == 0
    assert count("--since", "1h") == 3
    assert count("--until", "1h") == 0
    assert count("--limit", "2") == 2
    wrong = fila("dlq", "list", dead, "--header", "tenant")
    assert wrong.code == 2 and "NAME=VALUE" in wrong.err
    assert "No dead letters found" in fila("dlq", "list", dead, "--error", "nothing like it").out


def test_groups_count_by_error_the_most_frequent_first(fila: Fila, dead: str) -> None:
    lines = fila("dlq", "groups", dead).out.splitlines()
    assert lines[1].split()[:3] == ["2", "hook", "timeout"]
    document = fila("dlq", "groups", dead, "--json").document
    found = [(one["count"], one["error"]) for one in document["groups"]]
    assert found == [(2, "timeout after 30 s"), (1, "card declined")]
    assert document["others"] == 0


def test_one_letter_is_shown_whole(fila: Fila, dead: str) -> None:
    (letter,) = fila("dlq", "list", dead, "--json", "--error", "declined").documents
    shown = fila("dlq", "show", dead, letter["id"].upper())
    assert shown.code == 0
    assert "card declined\\nat charge()" in shown.out
    assert "header tenant  acme" in shown.out and "fila.dead" not in shown.out
    assert fila("dlq", "show", dead, letter["id"], "--json").document == letter
    missing = fila("dlq", "show", dead, "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b")
    assert missing.code == 1 and "no dead letter" in missing.err


def test_export_is_exact(fila: Fila, dead: str, tmp_path: Any) -> None:
    file = tmp_path / "letters.jsonl"
    done = fila("dlq", "export", dead, "--key", "zeta", "--output", str(file))
    assert done.code == 0 and done.out == "" and "Exported 1 dead letter" in done.err
    (letter,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (letter["payload"], letter["payload_base64"]) == (None, "/w==")
    assert len(fila("dlq", "export", dead).documents) == 3
    assert fila("dlq", "export", dead, "--output", "/nowhere/x").code == 1


def test_redrive_gives_back_what_was_sent_and_delete_drops_it(
    fila: Fila, dead: str, broker: str
) -> None:
    assert fila("dlq", "delete", dead, "--key", "zeta").code == 1  # nobody could be asked
    gone = fila("dlq", "delete", dead, "--key", "zeta", "--yes", "--json").document
    assert gone == {"queue": f"{dead}.dlq", "key": "zeta", "purged": 1}
    assert fila("dlq", "redrive", dead, "--json").document["redriven"] == 2
    with FilaClient(broker) as client, client.consume(dead) as stream:
        back = [next(stream) for _ in range(2)]
        assert [one.headers for one in back] == [{"tenant": "acme"}] * 2
        assert {one.attempt_count for one in back} == {0}
