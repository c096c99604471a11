"""Data directories that earlier releases wrote: this one opens them and loses nothing."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fila.core.rows import FORMAT_VERSION
from fila.testing.process import RealBroker

DATA = Path(__file__).parents[1] / "data"
ARCHIVES = sorted(DATA.glob("format-*.tar.gz"))
# tests/data/make.py wrote it: thirty messages of three tenants in turn, the first four
# acknowledged, two refused for good. What the consumer held when it left is handed out again.
CONTENT = {"pending": 24, "dead": 2}


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def test_there_is_a_directory_of_the_format_that_is_written_now() -> None:
    formats = {path.name.split("-")[1] for path in ARCHIVES}
    assert str(FORMAT_VERSION) in formats


def test_every_message_setting_and_key_is_there(data: Path) -> None:
    with RealBroker(data) as running, running.client() as client:
        assert {one.name for one in client.list_queues()} == {
            "orders", "orders.dlq", "empty", "empty.dlq",
        }  # fmt: skip
        assert client.get_stats("orders").depth == CONTENT["pending"]
        assert client.get_stats("orders.dlq").depth == CONTENT["dead"]
        assert client.get_config("throttle.provider:mail") == "5,10"
        assert [one.name for one in client.list_api_keys()] == ["billing"]
        tenants = []
        for message in client.consume("orders"):
            tenants.append(message.fairness_key)
            message.ack()
            if len(tenants) == CONTENT["pending"]:
                break
        # Fairness goes on: in every three deliveries each tenant has its turn.
        rounds = [set(tenants[at : at + 3]) for at in range(0, 21, 3)]
        assert all(one == {"acme", "globex", "initech"} for one in rounds)
        assert client.redrive("orders.dlq") == CONTENT["dead"]
        assert client.get_stats("orders").depth == CONTENT["dead"]
        client.enqueue("orders", {"tenant": "acme"}, b"the upgraded broker stores")


def test_the_rows_are_sound_before_and_after(data: Path) -> None:
    verify = [sys.executable, "-m", "fila.server.main", "--verify", "--data-dir", str(data)]
    assert subprocess.run(verify, cwd=data.parent, capture_output=True).returncode == 0
    with RealBroker(data) as running:
        assert running.stop() == 0
    told = subprocess.run(verify, cwd=data.parent, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
