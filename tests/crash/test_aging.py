"""A broker killed while messages expire: each ends as one dead letter, and none is delivered."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from fila import FilaClient, FilaError
from tests.e2e.process import Broker

KILLS = 5
LEFT_S = 30


def address_of(broker: Broker) -> str:
    host, port = broker.address
    return f"{host}:{port}"


class Producer:
    """Enqueues messages that live a few tenths of a second, until the broker is dead."""

    def __init__(self, address: str) -> None:
        self.stored: list[str] = []
        self._address = address
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with FilaClient(self._address) as client:
                while True:
                    ttl_ms = 50 + 37 * (len(self.stored) % 11)
                    batch = [("q", {"fila.ttl_ms": str(ttl_ms)}, b"x")] * 40
                    self.stored += client.enqueue_many(batch)
        except FilaError:
            return  # the broker is dead


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_broker_lets_every_message_expire_once(tmp_path: Path, durability: str) -> None:
    broker = Broker(tmp_path / "data", {"storage.durability": durability})
    broker.start()
    with FilaClient(address_of(broker)) as client:
        client.create_queue("q")
    stored: set[str] = set()
    for _ in range(KILLS):
        producer = Producer(address_of(broker))
        time.sleep(0.9)
        broker.kill()
        producer.join()
        stored.update(producer.stored)
        broker.start()
    with FilaClient(address_of(broker)) as client:
        until = time.monotonic() + LEFT_S
        while client.get_stats("q").depth and time.monotonic() < until:
            time.sleep(0.05)
        assert client.get_stats("q").depth == 0
        letters = list(client.browse("q.dlq"))
    broker.stop()
    ids = [one.id for one in letters]
    assert len(ids) == len(set(ids))
    assert stored <= set(ids), "what was answered is a dead letter"
    assert {one.headers["fila.dead.reason"] for one in letters} == {"expired"}
    assert len(stored) > 100
