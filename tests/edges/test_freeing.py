"""What a connection was made of is freed with it, without the cycle collector, which hardly ever
looks at what is old (`fila.server.collector`)."""

from __future__ import annotations

import gc
import http.client
import socket
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from fila.edges.grpc.v1 import bulk_pb2, service_pb2
from fila.testing import memory_broker
from fila.testing.memory import MemoryBroker
from fila.wire import bodies
from tests.e2e.peer import Peer
from tests.e2e.process import wait_until
from tests.grpc.client import Client

Talk = Callable[[MemoryBroker], None]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


HTTP_PORT = free_port()


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def over_fibp(broker: MemoryBroker) -> None:
    """With a consumer, a request that waits, and half a frame."""
    with Peer(address_of(broker.address)) as peer:
        stream = peer.consume("q", 10)
        peer.enqueue("q", b"x")
        peer.take_one(stream)
        peer.post(bodies.LeaseBatch("empty", "b", 10, wait_ms=60_000))
        peer.ping()
        peer.send_bytes(b"\0\0\1")


def over_grpc(broker: MemoryBroker) -> None:
    client = Client(address_of(broker.address))
    message = service_pb2.EnqueueMessage(queue="q", payload=b"x")
    client.call("Enqueue", service_pb2.EnqueueRequest(messages=[message]))
    next(iter(client.call("Consume", service_pb2.ConsumeRequest(queue="q"))))
    client.future("LeaseBatch", bulk_pb2.LeaseBatchRequest(queue="empty", name="b", wait_ms=60_000))
    client.call("Enqueue", service_pb2.EnqueueRequest(messages=[message]))
    client.channel.close()


def over_http(broker: MemoryBroker) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", HTTP_PORT)
    for path in ("/healthz", "/metrics", "/api/v1/queues"):
        connection.request("GET", path)
        connection.getresponse().read()
    connection.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[MemoryBroker]:
    settings = {"gui.listen_addr": f"127.0.0.1:{HTTP_PORT}"}
    with memory_broker(settings) as running:
        with Peer(address_of(running.address)) as peer:
            peer.create_queue("q")
            peer.create_queue("empty")
        yield running


def of_connections() -> Counter[str]:
    modules = (
        "fila.edges.",
        "fila.broker.session",
        "fila.broker.lease_requests",
        "fila.wire.frames",
    )
    kinds = [type(one) for one in gc.get_objects()]
    return Counter(kind.__name__ for kind in kinds if str(kind.__module__).startswith(modules))


@pytest.mark.parametrize("talk", [over_fibp, over_grpc, over_http])
def test_nothing_of_a_connection_outlives_it(broker: MemoryBroker, talk: Talk) -> None:
    talk(broker)  # what is made once
    gc.collect()
    gc.disable()
    try:
        before = of_connections()
        for _ in range(3):
            talk(broker)
        wait_until(lambda: of_connections() - before == Counter(), 10, "all to be freed")
    finally:
        gc.enable()
