"""Kombu on a real broker, without Celery: exchanges, acknowledgements, prefetch, forks."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue

from fila import FilaClient
from fila.testing import RealBroker

from .workers import wait_for

_numbers = itertools.count(1)


@pytest.fixture
def queue() -> Queue:
    name = f"jobs-{next(_numbers)}"
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


@pytest.fixture
def connect(broker: RealBroker) -> Iterator[Callable[..., Connection]]:
    opened: list[Connection] = []

    def connection(**options: Any) -> Connection:
        opened.append(Connection(f"fila://{broker.address}/", transport_options=options))
        return opened[-1]

    yield connection
    for one in opened:
        one.release()


def publish(connection: Connection, queue: Queue, body: Any, **options: Any) -> None:
    producer = Producer(connection)
    producer.publish(
        body, exchange=queue.exchange, routing_key=queue.routing_key, declare=[queue], **options
    )


def drained(connection: Connection, seconds: float = 0.3) -> None:
    """Until nothing comes for a moment."""
    while True:
        try:
            connection.drain_events(timeout=seconds)
        except socket.timeout:  # noqa: UP041  what Kombu raises
            return


def received(
    connection: Connection, queue: Queue, count: int, prefetch: int = 0, no_ack: bool = False
) -> tuple[list[Any], Consumer]:
    """So many messages, unsettled, and the consumer that holds them."""
    found: list[Any] = []
    consumer = Consumer(connection, [queue], on_message=found.append, no_ack=no_ack)
    if prefetch:
        consumer.qos(prefetch_count=prefetch)
    consumer.consume()
    while len(found) < count:
        connection.drain_events(timeout=60)
    return found, consumer


def depth(broker: RealBroker, name: str) -> tuple[int, int]:
    with FilaClient(broker.address) as client:
        stats = client.get_stats(name)
        return stats.depth, stats.in_flight


@pytest.mark.parametrize("body", [{"a": [1, None, "ü"]}, "text ü", b"\x00\xff"])
def test_a_message_comes_back_as_it_was(connect, queue, body):
    publish(connect(), queue, body, headers={"x": 1, "none": None}, priority=3)
    (message,), _ = received(connect(), queue, 1)

    assert message.decode() == body
    assert message.headers == {"x": 1, "none": None}
    assert message.properties["priority"] == 3
    assert message.delivery_info["routing_key"] == queue.name
    assert not message.delivery_info["redelivered"]
    message.ack()


def test_what_is_acknowledged_is_gone(connect, queue, broker):
    publish(connect(), queue, "one")
    (message,), _ = received(connect(), queue, 1)
    assert depth(broker, queue.name) == (0, 1)

    message.ack()

    wait_for(lambda: depth(broker, queue.name) == (0, 0))


def test_what_is_requeued_comes_again_and_says_so(connect, queue):
    publish(connect(), queue, "again")
    (message,), consumer = received(connect(), queue, 1)
    consumer.cancel()

    message.requeue()
    (again,), _ = received(connect(), queue, 1)

    assert again.decode() == "again"
    assert again.delivery_info["redelivered"]
    again.ack()


def test_what_is_rejected_is_a_dead_letter_with_its_envelope(connect, queue, broker):
    publish(connect(), queue, {"bad": True}, headers={"tenant": "acme"})
    (message,), _ = received(connect(), queue, 1)

    message.reject()

    wait_for(lambda: depth(broker, queue.name) == (0, 0))
    dead = Queue(f"{queue.name}.dlq", Exchange(""), routing_key=f"{queue.name}.dlq")
    (letter,), _ = received(connect(), dead, 1)
    assert letter.decode() == {"bad": True}
    assert letter.headers == {"tenant": "acme"}


def test_no_more_than_the_prefetch_count_is_held(connect, queue, broker):
    for number in range(5):
        publish(connect(), queue, number)
    connection = connect()
    found, _ = received(connection, queue, 2, prefetch=2)
    drained(connection)
    assert [one.decode() for one in found] == [0, 1]

    found[0].ack()
    connection.drain_events(timeout=60)

    assert [one.decode() for one in found] == [0, 1, 2]
    assert depth(broker, queue.name) == (2, 2)


def test_consumers_without_acknowledgement_leave_nothing(connect, queue, broker):
    publish(connect(), queue, "one")
    received(connect(), queue, 1, no_ack=True)

    wait_for(lambda: depth(broker, queue.name) == (0, 0))


def test_a_cancelled_consumer_gives_back_what_was_not_handed_out(connect, queue, broker):
    for number in range(4):
        publish(connect(), queue, number)
    connection = connect()
    found, consumer = received(connection, queue, 1, prefetch=4)
    consumer.channel.basic_qos(prefetch_count=1)
    kept = len(found)

    consumer.cancel()

    wait_for(lambda: depth(broker, queue.name) == (4 - kept, kept))
    found[0].ack()  # what was handed out can still be settled
    wait_for(lambda: depth(broker, queue.name)[1] == kept - 1)


def test_a_closed_connection_gives_back_everything_at_once(connect, queue):
    publish(connect(), queue, "mine")
    first = connect()
    received(first, queue, 1)

    first.release()
    (message,), _ = received(connect(), queue, 1)

    assert message.decode() == "mine"
    assert not message.delivery_info["redelivered"]  # no attempt was counted
    message.ack()


def test_one_message_can_be_asked_for(connect, queue, broker):
    publish(connect(), queue, "one")
    channel = connect().channel()
    bound = queue(channel)

    message = bound.get()
    assert message.decode() == "one"
    message.ack()
    assert bound.get() is None
    wait_for(lambda: depth(broker, queue.name) == (0, 0))


def test_a_queue_is_measured_purged_and_deleted(connect, queue, broker):
    channel = connect().channel()
    bound = queue(channel)
    bound.declare()
    publish(connect(), queue, 1)
    publish(connect(), queue, 2)

    assert bound.queue_declare(passive=True).message_count == 2
    assert bound.purge() == 2
    bound.delete()
    with FilaClient(broker.address) as client:
        assert queue.name not in [one.name for one in client.list_queues()]
    with pytest.raises(Exception, match="NOT_FOUND"):
        bound.queue_declare(passive=True)


def test_a_fanout_reaches_queues_that_other_connections_have_bound(connect, broker):
    everybody = Exchange(f"news-{next(_numbers)}", type="fanout")
    queues = [Queue(f"{everybody.name}-{at}", everybody, auto_delete=True) for at in range(2)]
    connections = [connect(), connect()]
    found: list[list[Any]] = [[], []]
    consumers = []
    for one, queue, seen in zip(connections, queues, found, strict=True):
        consumer = Consumer(one, [queue], on_message=seen.append, no_ack=True)
        consumer.consume()
        consumers.append(consumer)

    Producer(connect()).publish("hear", exchange=everybody, declare=[everybody])

    for one, seen in zip(connections, found, strict=True):
        while not seen:
            one.drain_events(timeout=60)
    assert [[one.decode() for one in seen] for seen in found] == [["hear"], ["hear"]]
    for consumer in consumers:
        consumer.cancel()
    with FilaClient(broker.address) as client:  # queues and bindings are gone with their consumers
        assert not [one.name for one in client.list_queues() if everybody.name in one.name]


def test_a_topic_reaches_the_queues_whose_pattern_fits(connect):
    events = Exchange(f"events-{next(_numbers)}", type="topic")
    fits = Queue(f"{events.name}-fits", events, routing_key="task.#", auto_delete=True)
    other = Queue(f"{events.name}-other", events, routing_key="worker.*", auto_delete=True)
    connection = connect()
    found: list[Any] = []
    Consumer(connection, [fits, other], on_message=found.append, no_ack=True).consume()

    producer = Producer(connect())
    for key in ("task.sent.now", "worker.a.b", "nothing"):
        producer.publish(key, exchange=events, routing_key=key, declare=[events])
    while not found:
        connection.drain_events(timeout=60)
    drained(connection)

    assert [one.decode() for one in found] == ["task.sent.now"]


def test_headers_say_whose_message_it_is(connect, queue, broker):
    headers = {"fila_key": "acme", "fila_weight": 3, "fila_throttle": ["mail"], "tenant": "acme"}
    publish(connect(), queue, "x", headers=headers)

    with FilaClient(broker.address) as client, client.consume(queue.name) as consumer:
        message = consumer.receive(timeout=60)
        assert message is not None
        assert (message.fairness_key, message.weight) == ("acme", 3)
        assert message.throttle_keys == ("mail",)
        assert message.headers["tenant"] == "acme"  # for hooks
        message.ack()


def test_a_priority_is_a_weight(connect, queue, broker):
    publish(connect(), queue, "x", priority=4)

    with FilaClient(broker.address) as client, client.consume(queue.name) as consumer:
        message = consumer.receive(timeout=60)
        assert message is not None
        assert message.weight == 5
        message.ack()


def test_an_eta_is_a_delay_on_the_broker(connect, queue, broker):
    eta = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    publish(connect(), queue, "later", headers={"eta": eta})
    connection = connect()
    found: list[Any] = []
    Consumer(connection, [queue], on_message=found.append).consume()
    drained(connection)

    assert found == []
    assert depth(broker, queue.name) == (1, 0)


def test_a_message_of_another_client_is_bytes_with_its_headers(connect, queue, broker):
    connection = connect()
    queue(connection.channel()).declare()
    with FilaClient(broker.address) as client:
        client.enqueue(queue.name, {"tenant": "acme"}, b"raw")

    (message,), _ = received(connection, queue, 1)

    assert message.body == b"raw"
    assert message.headers == {"tenant": "acme"}
    message.ack()


def test_a_forked_child_does_not_touch_the_connection(connect, queue):
    connection = connect()
    publish(connection, queue, 1)
    child = os.fork()
    if not child:
        try:
            connection.release()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    publish(connection, queue, 2)
    found, _ = received(connection, queue, 2)
    assert [one.decode() for one in found] == [1, 2]


def test_declared_queues_get_the_hooks_of_the_options(connect, queue, broker):
    hook = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'
    publish(connect(on_enqueue=hook), queue, "x", headers={"tenant": "quiet"})

    with FilaClient(broker.address) as client, client.consume(queue.name) as consumer:
        message = consumer.receive(timeout=60)
        assert message is not None
        assert message.fairness_key == "quiet"
        message.ack()


def test_a_broker_that_is_not_there_is_a_connection_error():
    connection = Connection("fila://127.0.0.1:1/")

    with pytest.raises(connection.connection_errors, match=r"127\.0\.0\.1:1"):
        connection.connect()
