"""A broker killed while it reclassifies: it goes on, and every message is there once."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from fila import FilaClient
from tests.e2e.process import Broker

MESSAGES = 1_500
KEYS = 7
FIRST = "function on_enqueue(msg) return { fairness_key = 'all' } end"
THEN = "function on_enqueue(msg) return { fairness_key = 'k' .. msg.headers.n, weight = 2 } end"


def address_of(broker: Broker) -> str:
    host, port = broker.address
    return f"{host}:{port}"


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_broker_goes_on_reclassifying(tmp_path: Path, durability: str) -> None:
    rng = Random(11)
    broker = Broker(tmp_path / "data", {"storage.durability": durability})
    broker.start()
    with FilaClient(address_of(broker)) as client:
        client.create_queue("q", on_enqueue=FIRST)
        client.enqueue_many(
            [("q", {"n": str(number % KEYS)}, b"%d" % number) for number in range(MESSAGES)]
        )
        client.update_queue("q", {"on_enqueue": THEN})
        client.set_override("q", "k3", {"weight": 9, "rate": 1_000_000})
        client.reclassify("q", rate=1_000)
    kills = 0
    while True:
        time.sleep(0.2 + rng.random() * 0.4)
        broker.kill()
        kills += 1
        broker.start()
        with FilaClient(address_of(broker)) as client:
            found = client.get_reclassify("q")
            if found["state"] == "none":
                break
            assert found["state"] in ("running", "done")
        assert kills < 60
    with FilaClient(address_of(broker)) as client:
        stats = {one.key: (one.pending, one.weight) for one in client.get_stats("q").fairness_keys}
        for key in range(KEYS):
            count = len(range(key, MESSAGES, KEYS))
            assert stats[f"k{key}"] == (count, 9 if key == 3 else 2)
        assert "all" not in stats
        again = client.reclassify("q", dry_run=True)
        while again["state"] == "running":
            time.sleep(0.05)
            again = client.get_reclassify("q")
        assert (again["judged"], again["differences"]) == (MESSAGES, [])
        seen = set()
        with client.consume("q", prefetch=500) as consumer:
            for message in consumer:
                seen.add(message.payload)
                message.ack()
                if len(seen) == MESSAGES:
                    break
    broker.stop()
    assert len(seen) == MESSAGES and kills > 2
