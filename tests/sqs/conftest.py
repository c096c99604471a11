from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sqs.broker import ROOT, SqsBroker

_names = itertools.count(1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsBroker]:
    with SqsBroker(tmp_path_factory.mktemp("sqs") / "data") as started:
        yield started


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsBroker]:
    settings = {"auth.bootstrap_apikey": ROOT, "auth.max_wrong_keys": 10_000}
    with SqsBroker(tmp_path_factory.mktemp("locked") / "data", settings) as started:
        yield started


@pytest.fixture(scope="session")
def sqs(broker: SqsBroker) -> Any:
    return broker.client()


@pytest.fixture
def name() -> str:
    return f"jobs-{next(_names)}"


@pytest.fixture
def queue(sqs: Any, name: str) -> str:
    """The URL of a queue of this test's own."""
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert isinstance(url, str)
    return url
