"""Fixtures: one broker for the tests that leave it alive, a queue for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fila.client.new_message import NewMessage
from fila.client.sync import FilaClient
from tests.e2e.process import Broker, wait_until

_numbers = itertools.count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("source") / "data") as broker:
        yield broker


@pytest.fixture(scope="session")
def address(broker: Broker) -> str:
    return address_of(broker)


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[FilaClient]:
    with FilaClient(address) as client:
        yield client


@pytest.fixture
def queue(client: FilaClient) -> str:
    name = f"q{next(_numbers)}"
    client.create_queue(name)
    return name


@pytest.fixture
def read_stream(spark: Any, address: str) -> Callable[..., Any]:
    """A streaming DataFrame of a queue."""

    def read(queue: str, **options: object) -> Any:
        reader = spark.readStream.format("fila").option("address", address)
        return reader.options(**options).load(queue)

    return read


def address_of(broker: Broker) -> str:
    return "{}:{}".format(*broker.address)


def fill(client: FilaClient, queue: str, count: int, first: int = 0, **options: Any) -> None:
    """Messages whose payloads are numbers."""
    client.enqueue_messages(
        NewMessage(queue, str(number).encode(), **options) for number in range(first, first + count)
    )


def held(client: FilaClient, queue: str) -> tuple[int, int]:
    """Messages waiting, and messages leased."""
    (found,) = [one for one in client.list_queues() if one.name == queue]
    return found.depth, found.in_flight


def wait_for_empty(client: FilaClient, queue: str, timeout_s: float = 20) -> None:
    wait_until(lambda: held(client, queue) == (0, 0), timeout_s, f"{queue} to be empty")


def numbers(rows: Any) -> list[int]:
    return sorted(int(row.payload) for row in rows)


def parquet_numbers(spark: Any, path: Path) -> list[int]:
    return numbers(spark.read.parquet(str(path)).select("payload").collect())
