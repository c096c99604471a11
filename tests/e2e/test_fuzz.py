"""The short form of the fuzzer; `python -m tests.e2e.fuzz --frames 200000` is the long one."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.fuzz import Fuzz, Generator
from tests.e2e.process import Broker


def test_hostile_frames_hurt_nobody(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"log.level": "warning"}) as broker:
        fuzz = Fuzz(broker, seed=7)
        report = fuzz.run(frames=10_000)
        assert report.broken == [], report.text()
        assert len(report.kinds) == len(fuzz.generator._kinds)
        assert report.answers["InvalidFrame"] > 100
        assert report.closed_by_server > 50
        assert report.healthy_rounds > 20
        assert broker.stop() == 0


def test_the_frames_follow_from_the_seed() -> None:
    one, two = Generator(5), Generator(5)
    assert [one.next() for _ in range(200)] == [two.next() for _ in range(200)]
