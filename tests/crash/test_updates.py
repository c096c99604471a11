"""A broker killed while settings change: an update is there or not there, never in part."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import pytest

from fila import FilaClient, FilaError
from tests.e2e.process import Broker

KILLS = 6
FIRST = 100  # a time limit of so many milliseconds is no matter to the hook


class Changing:
    """Somebody who changes three settings at a time, which all tell the same number."""

    def __init__(self, address: str, first: int) -> None:
        self.asked = first
        self.answered = first
        self.version = 0
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
                    self.asked += 1
                    self.version = client.update_queue("q", told(self.asked), note=str(self.asked))
                    self.answered = self.asked
                    client.enqueue("q", None, b"x")
        except FilaError:
            return  # the broker is dead


def address_of(broker: Broker) -> str:
    host, port = broker.address
    return f"{host}:{port}"


def told(number: int) -> dict[str, str]:
    return {
        "max_attempts": str(number),
        "hook_timeout_ms": str(number),
        "on_enqueue": f"function on_enqueue() return {{ fairness_key = 'k{number}' }} end",
    }


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_broker_has_an_update_whole_or_not_at_all(tmp_path: Path, durability: str) -> None:
    rng = Random(7)
    broker = Broker(tmp_path / "data", {"storage.durability": durability})
    broker.start()
    with FilaClient(address_of(broker)) as client:
        client.create_queue("q")
    number = FIRST
    updates = 0
    for _ in range(KILLS):
        changing = Changing(address_of(broker), number)
        time.sleep(0.3 + rng.random() * 0.7)
        broker.kill()
        changing.join()
        broker.start()
        with FilaClient(address_of(broker)) as client:
            found = client.get_queue("q")
            versions = client.list_versions("q")
            client.enqueue("q", None, b"y")
            keys = {one.key for one in client.get_stats("q").fairness_keys}
        if found.version == 1:
            assert changing.answered == FIRST
            continue
        number = int(found.settings["max_attempts"])
        assert changing.answered <= number <= changing.asked
        assert found.version >= changing.version
        assert {name: found.settings[name] for name in told(number)} == told(number)
        assert found.note == str(number)
        assert versions[0].version == found.version
        assert len(versions) == min(found.version, 20)
        assert f"k{number}" in keys, "the hook that is stored decides"
        updates = found.version
    broker.stop()
    assert updates > KILLS
