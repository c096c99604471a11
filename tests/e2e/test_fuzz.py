"""The short form of the fuzzer; `python -m tests.e2e.fuzz --frames 200000` is the long one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.fuzz import Fuzz, planted_command
from tests.e2e.hostile import Generator
from tests.e2e.listeners import LISTENERS
from tests.e2e.process import Broker


def test_hostile_frames_hurt_nobody(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"log.level": "warning"}) as broker:
        fuzz = Fuzz(broker, seed=7, grpc=True)
        report = fuzz.run(frames=10_000)
        assert report.broken == [], report.text()
        assert report.kinds.keys() >= {name for name, _, _ in fuzz.generator._kinds}
        assert report.answers["InvalidFrame"] > 100
        assert report.closed_by_server > 50
        assert report.healthy_rounds > 20
        assert broker.stop() == 0


def test_decoders_that_fail_cost_the_attacker_its_connection_and_nobody_else(
    own_broker: Callable[..., Broker],
) -> None:
    broker = own_broker(settings={"log.level": "warning"})
    broker.server = planted_command(seed=3)
    with broker:
        fuzz = Fuzz(broker, seed=11, grpc=True, plants=True)
        report = fuzz.run(frames=10_000)
        assert broker.stop() == 0
        fuzz.check_planted()
        assert report.broken == [], report.text()
        assert report.failed > 50
        assert all(report.failed_by[protocol] for protocol in ("fibp", "grpc", "http", "unknown"))
        assert report.answers["InternalError"] > 0
        assert report.healthy_rounds > 20


def test_the_frames_follow_from_the_seed() -> None:
    one, two = Generator(5), Generator(5)
    assert [one.next() for _ in range(200)] == [two.next() for _ in range(200)]


def test_hostile_http_requests_hurt_nobody(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker(settings={"log.level": "warning", "gui.listen_addr": "127.0.0.1:0"})
    broker.settings["gui_port_file"] = f"{broker.port_file}.http"
    with broker:
        report = Fuzz(broker, 5, protocol="http").run(frames=600)
        assert report.broken == [], report.text()
        assert report.healthy_rounds > 5
        assert report.kinds["HTTP: chunks"] > 10


@pytest.mark.parametrize("keys", [False, True])
def test_hostile_requests_of_sqs_hurt_nobody(tmp_path: Path, keys: bool) -> None:
    listener = LISTENERS["keys" if keys else "plain"]
    broker = listener.broker(tmp_path / "data")
    broker.settings.update({"sqs.listen_addr": "127.0.0.1:0", "log.level": "error"})
    broker.settings["sqs_port_file"] = f"{broker.port_file}.http"
    with broker:
        report = Fuzz(broker, 5, listener.attacker(), protocol="sqs").run(frames=600)
        assert report.broken == [], report.text()
        assert report.healthy_rounds > 5
        assert report.kinds["SQS: query"] > 10
