"""A broker with limits, killed while producers run into them: they hold before and after."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from fila import BatchError, FilaClient, FilaError, QueueFullError
from tests.e2e.process import Broker

LIMIT = 50
SIZE = 100


def address_of(broker: Broker) -> str:
    host, port = broker.address
    return f"{host}:{port}"


def flood(address: str) -> None:
    try:
        with FilaClient(address) as client:
            while True:
                try:
                    client.enqueue_many([("q", None, b"x" * SIZE)] * 7)
                except (QueueFullError, BatchError):
                    client.purge("q")
    except FilaError:
        return  # the broker is dead


def fill(client: FilaClient) -> QueueFullError:
    """One message after the other, until one is refused."""
    for _ in range(LIMIT + 1):
        try:
            client.enqueue("q", None, b"x" * SIZE)
        except QueueFullError as error:
            return error
    raise AssertionError("more than the limit fits")


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["key_max_messages", "key_max_bytes"])
def test_a_killed_broker_keeps_its_limits(tmp_path: Path, setting: str) -> None:
    broker = Broker(tmp_path / "data", {})
    broker.start()
    limit = LIMIT if setting == "key_max_messages" else LIMIT * (SIZE + 6)  # as stored
    with FilaClient(address_of(broker)) as client:
        client.create_queue("q")
        client.update_queue("q", {setting: str(limit)})
    for _ in range(3):
        thread = threading.Thread(target=flood, args=(address_of(broker),))
        thread.start()
        time.sleep(0.6)
        broker.kill()
        thread.join(60)
        assert not thread.is_alive()
        broker.start()
        with FilaClient(address_of(broker)) as client:
            stats = client.get_stats("q")
            assert stats.depth <= LIMIT
            told = fill(client)
            assert told.retryable
            assert told.metadata["limit"] == str(limit)
            assert int(told.metadata["retry_after_ms"]) >= 10
            assert int(told.metadata["depth"]) > 0.9 * limit
            assert "is full" in told.message
            assert client.get_stats("q").depth == LIMIT
    broker.stop()
