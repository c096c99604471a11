"""Fixtures: a broker shared by the tests of one worker, and the official client."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Broker
from tests.grpc.client import Client

_names = itertools.count(1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker per worker, for tests that touch nothing but queues of their own."""
    # A hook that has to wait for the processor is not a slow hook.
    settings = {"lua.default_timeout_ms": 200}
    with Broker(tmp_path_factory.mktemp("grpc-broker") / "data", settings) as started:
        yield started


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Makes brokers for one test alone."""
    made: list[Broker] = []

    def make(**options: object) -> Broker:
        broker = Broker(tmp_path / f"data{len(made)}", **options)  # type: ignore[arg-type]
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.__exit__(None, None, None)


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.address) as connected:
        yield connected


@pytest.fixture
def queue() -> str:
    """A queue name no other test uses."""
    return f"grpc-{next(_names)}"
