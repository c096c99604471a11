from collections.abc import Iterator

import pytest

from tests.client.drivers import AsyncDriver, SyncDriver
from tests.client.peer import Peer, TinyBroker


@pytest.fixture(params=["sync", "async"])
def driver(request: pytest.FixtureRequest) -> Iterator[SyncDriver]:
    """Both shells, one after the other."""
    driver = SyncDriver() if request.param == "sync" else AsyncDriver()
    yield driver
    driver.stop()


@pytest.fixture
def broker() -> TinyBroker:
    return TinyBroker()


@pytest.fixture
def peer(broker: TinyBroker) -> Iterator[Peer]:
    with Peer(broker) as peer:
        yield peer
