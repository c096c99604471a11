"""Fixtures: brokers with the HTTP port on, with and without keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.http.visitor import HttpBroker, Visitor

ROOT = "the-bootstrap-key"
_names = itertools.count(1)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("site") / "data") as started:
        yield started


@pytest.fixture(scope="session")
def locked_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    settings = {"auth.bootstrap_apikey": ROOT}
    with HttpBroker(tmp_path_factory.mktemp("locked") / "data", settings=settings) as started:
        yield started


@pytest.fixture
def visitor(site: HttpBroker) -> Visitor:
    return site.visitor()


@pytest.fixture
def peer(site: HttpBroker) -> Iterator[Peer]:
    with site.peer() as connected:
        yield connected


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[HttpBroker]:
    made = HttpBroker(tmp_path / "data")
    yield made
    made.__exit__(None, None, None)


@pytest.fixture
def queue() -> str:
    return f"http-{next(_names)}"
