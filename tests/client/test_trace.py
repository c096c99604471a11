"""`traceparent` goes out with messages of every kind of enqueue, and is read from a message."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fila import NewMessage, trace_context
from fila.client.columns import Columns
from fila.testing import RealBroker, broker
from tests.client.drivers import SyncDriver

HERE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
THERE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


@pytest.fixture(scope="module")
def real() -> Iterator[RealBroker]:
    with broker() as running:
        yield running


def _received(driver: SyncDriver, client: Any, queue: str, count: int) -> list[Any]:
    consumer = driver.call(client, "consume", queue)
    messages = [driver.next(consumer) for _ in range(count)]
    driver.call(consumer, "close")
    return messages


def _stored(driver: SyncDriver, client: Any, queue: str) -> None:
    """One message by each way of enqueueing."""
    driver.call(client, "enqueue", queue, {"n": "1"}, b"x")
    driver.call(client, "enqueue", queue, None, b"x", fairness_key="acme")
    driver.call(client, "enqueue_many", [(queue, None, b"x")])
    driver.call(client, "enqueue_soon", queue, None, b"x")
    driver.call(client, "enqueue_many_soon", [(queue, {"n": "5"}, b"x")])
    driver.call(client, "enqueue_messages", [NewMessage(queue, b"x", weight=2)])
    driver.call(client, "flush")
    parts = [Columns(queue, [b"x", b"x"], headers=[{"n": "7"}, None]), Columns(queue, [b"x"])]
    driver.collect(client.enqueue_columns(parts))


def test_every_way_of_enqueueing_sends_the_context_along(
    driver: SyncDriver, real: RealBroker
) -> None:
    client = driver.open(real.address)
    queue = f"traced-{driver.name}"
    driver.call(client, "create_queue", queue)
    with trace_context(HERE):
        _stored(driver, client, queue)
    got = _received(driver, client, queue, 9)
    assert [message.traceparent for message in got] == [HERE] * 9
    assert sum(message.headers.keys() == {"n", "traceparent"} for message in got) == 3
    driver.call(client, "close")


def test_a_message_keeps_the_header_it_has(driver: SyncDriver, real: RealBroker) -> None:
    client = driver.open(real.address)
    queue = f"own-{driver.name}"
    driver.call(client, "create_queue", queue)
    with trace_context(HERE):
        driver.call(client, "enqueue", queue, {"traceparent": THERE}, b"x")
    driver.call(client, "enqueue", queue, None, b"outside")
    first, second = _received(driver, client, queue, 2)
    assert (first.traceparent, second.traceparent) == (THERE, None)
    assert second.headers == {}
    driver.call(client, "close")


def test_a_client_asks_its_provider_and_a_block_comes_first(
    driver: SyncDriver, real: RealBroker
) -> None:
    contexts = iter([THERE, None, THERE])
    client = driver.open(real.address, traceparent=lambda: next(contexts))
    queue = f"provided-{driver.name}"
    driver.call(client, "create_queue", queue)
    driver.call(client, "enqueue", queue, None, b"x")
    driver.call(client, "enqueue", queue, None, b"x")
    with trace_context(HERE):
        driver.call(client, "enqueue", queue, None, b"x")
    driver.call(client, "enqueue_many", [(queue, None, b"x")] * 2)
    got = _received(driver, client, queue, 5)
    assert [message.traceparent for message in got] == [THERE, None, HERE, THERE, THERE]
    driver.call(client, "close")


def test_a_context_holds_for_its_own_thread_and_ends_with_its_block() -> None:
    from fila.client.trace import present

    seen: list[str | None] = []
    with trace_context(HERE):
        other = threading.Thread(target=lambda: seen.append(present(None)))
        other.start()
        other.join()
        with trace_context(None):
            seen.append(present(None))
        seen.append(present(None))
    seen.append(present(None))
    assert seen == [None, None, HERE, None]
