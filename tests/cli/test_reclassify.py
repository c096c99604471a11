"""`fila queue reclassify`: what waits goes where the hook would put it now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Fila = Callable[..., Any]

BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"
BY_PLAN = "function on_enqueue(msg) return { fairness_key = msg.headers.plan, weight = 3 } end"
FAILS = "function on_enqueue(msg) error(msg.headers.plan) end"


@pytest.fixture
def made(fila: Fila, queue: str) -> str:
    name = f"{queue}-backlog"
    assert fila("queue", "create", name, "--on-enqueue", BY_TENANT).code == 0
    for tenant, plan in (("acme", "gold"), ("acme", "free"), ("zeta", "gold")):
        headers = ("--header", f"tenant={tenant}", "--header", f"plan={plan}")
        fila("enqueue", name, *headers, "--payload", "x", "--count", "4")
    return name


def keys(fila: Fila, queue: str) -> dict[str, tuple[int, int]]:
    found = fila("queue", "inspect", queue, "--json").document["fairness_keys"]
    return {one["key"]: (one["pending"], one["weight"]) for one in found}


def test_what_waits_moves_to_where_the_new_hook_puts_it(fila: Fila, made: str) -> None:
    assert keys(fila, made) == {"acme": (8, 1), "zeta": (4, 1)}
    fila("hooks", "deploy", made, "--on-enqueue", BY_PLAN)
    tried = fila("queue", "reclassify", made, "--dry-run")
    assert "12 messages judged by version 2, 12 would move" in tried.out
    assert "acme ×1" in tried.out and "gold ×3" in tried.out
    assert keys(fila, made) == {"acme": (8, 1), "zeta": (4, 1)}
    found = fila("queue", "reclassify", made, "--json").document
    assert (found["state"], found["moved"], found["undecided"]) == ("done", 12, 0)
    assert found["differences"][0]["messages"] == 4
    assert keys(fila, made) == {"gold": (8, 3), "free": (4, 3)}
    again = fila("queue", "reclassify", made, "--json").document
    assert (again["moved"], again["reweighed"], again["differences"]) == (0, 0, [])
    assert "Done: 12 messages judged" in fila("queue", "reclassify", made, "--status").out


def test_a_slow_one_is_watched_and_cancelled(fila: Fila, made: str) -> None:
    fila("hooks", "deploy", made, "--on-enqueue", BY_PLAN)
    begun = fila("queue", "reclassify", made, "--rate", "1", "--no-wait")
    assert begun.out.startswith("Under way")
    refused = fila("queue", "reclassify", made)
    assert (refused.code, "already" in refused.err) == (1, True)
    assert fila("queue", "reclassify", made, "--cancel").out.startswith("Cancelled")
    assert fila("queue", "reclassify", made, "--cancel").code == 1


def test_where_the_hook_fails_a_message_stays(fila: Fila, made: str) -> None:
    fila("hooks", "deploy", made, "--on-enqueue", FAILS, "--unrehearsed")
    done = fila("queue", "reclassify", made)
    assert "12 stay because the hook failed" in done.out
    assert keys(fila, made) == {"acme": (8, 1), "zeta": (4, 1)}


def test_a_queue_without_a_hook_has_nothing_to_ask(fila: Fila, queue: str) -> None:
    done = fila("queue", "reclassify", queue)
    assert (done.code, "no on_enqueue hook" in done.err) == (1, True)
    assert "was not reclassified" in fila("queue", "reclassify", queue, "--status").out
