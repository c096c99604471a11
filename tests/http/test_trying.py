"""Hooks are tried over HTTP before they decide anything."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.http.visitor import Visitor

BY_TENANT = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'
GIVE_UP = """function on_failure(msg)
  if msg.attempts >= tonumber(fila.get("max") or "2") then return { action = "dlq" } end
  return { action = "retry", delay_ms = 7 }
end"""
FOREVER = "function on_enqueue() while true do end end"


@pytest.fixture(autouse=True)
def _posting(visitor: Visitor) -> None:
    visitor.allow_posts()


def tried(visitor: Visitor, **fields: Any) -> list[dict[str, Any]]:
    answer = visitor.post("try-hooks", {"queue": "not-there", **fields})
    assert answer.status == 200, answer.body
    return list(answer.json()["messages"])


def test_both_hooks_decide_about_samples_and_nothing_is_kept(
    visitor: Visitor,
) -> None:
    samples = [{"headers": {"tenant": "acme"}, "attempts": n} for n in (1, 2)]
    lines = "\n".join(json.dumps(one) for one in samples)
    found = tried(visitor, on_enqueue=BY_TENANT, on_failure=GIVE_UP, messages=lines)
    assert [one["hook"] for one in found] == ["on_enqueue", "on_failure"] * 2
    assert [one.get("fairness_key") for one in found] == ["acme", None] * 2
    assert [one.get("action") for one in found] == [None, "retry", None, "dlq"]
    assert found[1]["delay_ms"] == 7
    assert tried(visitor, on_enqueue="") == []
    assert "not-there" not in {one["name"] for one in visitor.api("overview")["queues"]}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"on_enqueue": "function ("}, "on_enqueue:1:"),
        ({"on_enqueue": "x = 1"}, "on_enqueue"),
        ({"on_enqueue": BY_TENANT, "messages": "{"}, "line 1"),
        ({"on_enqueue": BY_TENANT, "messages": "{}\n" * 21}, "at most 20"),
        ({"on_enqueue": 7}, "no text"),
        ({"queue": None}, "queue is missing"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_the_reason(
    visitor: Visitor, fields: dict[str, Any], why: str
) -> None:
    answer = visitor.post("try-hooks", {"queue": "q", **fields})
    assert answer.status == 400
    assert why in answer.json()["error"]["message"]


def test_a_script_that_never_ends_is_stopped_and_the_broker_serves_meanwhile(
    visitor: Visitor,
) -> None:
    began_s = time.monotonic()
    [*found] = tried(visitor, on_enqueue=FOREVER, messages="{}\n" * 20)
    assert all(one["problem"] for one in found) and len(found) == 20
    assert time.monotonic() - began_s < 30
