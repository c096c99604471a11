"""A broker killed while messages are in flight: their slots are neither lost nor given twice."""

from __future__ import annotations

from pathlib import Path

from fila import FilaClient
from tests.crash.test_updates import address_of
from tests.e2e.process import Broker

LIMIT = 3
KILLS = 2
FULL = ["other"] * LIMIT + ["slow"] * LIMIT + ["t"]


def test_what_is_in_flight_counts_after_every_kill(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data")
    broker.start()
    with FilaClient(address_of(broker)) as client:
        client.create_queue("q")
        client.update_queue("q", {"max_in_flight_per_key": LIMIT})
        client.set_config("throttle:api:max_in_flight", "1")
        for key in ("slow", "other"):
            for _ in range(3 * LIMIT):
                client.enqueue("q", None, b"x", fairness_key=key)
        for _ in range(3):
            client.enqueue("q", None, b"x", fairness_key="t", throttle_keys=["api"])
    assert taken(broker, "first") == FULL
    for number in range(KILLS):
        broker.kill()
        broker.start()
        assert taken(broker, f"after-{number}") == []  # all slots are held still
    with FilaClient(address_of(broker)) as client:
        client.ack_batch("q", "first")
    assert taken(broker, "next") == FULL  # and none is lost
    broker.stop()


def taken(broker: Broker, name: str) -> list[str]:
    """The keys of what is handed out under this name, until it is acknowledged."""
    with FilaClient(address_of(broker)) as client:
        batch = client.lease_batch("q", name, max_messages=100, visibility=300)
        return sorted(message.fairness_key for message in batch.messages)
