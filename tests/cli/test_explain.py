"""`fila explain`, `fila top`, and stopping queues and keys from the command line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fila import FilaClient

BAD_HOOK = "function on_enqueue(msg) error('broken') end"


def test_a_paused_key_is_explained_and_resumed(fila: Callable[..., Any], queue: str) -> None:
    fila("enqueue", queue, "--payload", "x")
    assert "Paused" in fila("key", "pause", queue, "default", "--reason", "too loud").out
    told = fila("explain", queue, "--key", "default").out
    assert "too loud" in told and "fila key resume" in told
    assert fila("explain", queue, "--json").document["keys"][0]["waiting_for"] == "paused"
    fila("key", "resume", queue, "default")
    assert "too loud" not in fila("explain", queue).out


def test_top_prints_once_where_there_is_no_terminal(fila: Callable[..., Any], queue: str) -> None:
    fila("queue", "pause", queue, "--reason", "night")
    assert "night" in fila("top").out
    assert fila("top", queue, "--once", "--json").document["paused"]["reason"] == "night"
    fila("queue", "resume", queue)


def test_a_purge_asks_unless_told_not_to(fila: Callable[..., Any], queue: str) -> None:
    fila("enqueue", queue, "--payload", "x")
    refused = fila("queue", "purge", queue)
    assert refused.code == 1 and "--yes" in refused.err
    assert "Purged 1 message" in fila("queue", "purge", queue, "--yes").out


def test_an_open_breaker_is_named(broker: str) -> None:
    with FilaClient(broker) as client:
        client.create_queue("breaks", on_enqueue=BAD_HOOK)
        for _ in range(10):
            client.enqueue("breaks", {}, b"x")
        found = client.explain("breaks", key="default")
        assert found["hooks"]["on_enqueue"] == "open"
        assert "breaker of on_enqueue is open" in found["sentence"]
        assert "repair_hook" in [one["do"] for one in found["changes"]]


def test_a_real_broker_under_steady_load_tells_what_is_ahead_and_an_estimate(broker: str) -> None:
    """How good the estimate is, the core's tests tell with a clock of their own."""
    with FilaClient(broker) as client, FilaClient(broker) as worker:
        client.create_queue("steady")
        ids = [client.enqueue("steady", {}, b"x") for _ in range(400)]
        seen: list[str] = []
        going_on = threading.Event()
        halfway = threading.Event()

        def work() -> None:
            with worker.consume("steady", prefetch=1) as messages:
                for message in messages:
                    seen.append(message.id)
                    if len(seen) == 200:
                        halfway.set()
                        going_on.wait(60)
                    worker.ack("steady", message.id)
                    if message.id == ids[-1]:
                        return

        thread = threading.Thread(target=work)
        thread.start()
        assert halfway.wait(60)
        found = client.explain("steady", message_id=ids[300])
        going_on.set()
        thread.join(60)
        assert seen == ids
        assert found["message"]["ahead"] == 100
        assert found["eta_ms"] > 0


def test_what_is_paused_shows_wherever_queues_are_listed(
    fila: Callable[..., Any], queue: str
) -> None:
    fila("enqueue", queue, "--payload", "x")
    fila("queue", "pause", queue, "--reason", "migration")
    fila("key", "pause", queue, "default", "--reason", "too loud")
    for command in (("queue", "list"), ("stats",)):
        assert f'Queue "{queue}" is paused' in fila(*command).out
        listed = fila(*command, "--json").document["queues"]
        assert [one["paused"]["reason"] for one in listed if one["name"] == queue] == ["migration"]
        assert [one["paused"] for one in listed if one["name"] == f"{queue}.dlq"] == [None]
    shown = fila("queue", "inspect", queue)
    assert "migration" in shown.out
    assert 'Key "default" is paused' in shown.out
    document = fila("stats", queue, "--json").document
    assert document["paused"]["reason"] == "migration"
    assert document["paused_keys"]["default"]["reason"] == "too loud"
    fila("queue", "resume", queue)
    assert "migration" not in fila("queue", "list").out
