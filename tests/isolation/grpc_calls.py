"""gRPC calls as large as they may be."""

from __future__ import annotations

from collections.abc import Iterator

from fila.edges.grpc.v1 import admin_pb2, service_pb2
from tests.grpc.client import Client
from tests.isolation.queues import with_keys, with_queues
from tests.isolation.scene import Scene, case

MANY = 65_535


@case("gRPC Enqueue", "65,535 messages")
def grpc_enqueue(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    one = service_pb2.EnqueueMessage(queue="q", payload=b"x" * 64)
    request = service_pb2.EnqueueRequest(messages=[one] * MANY)
    with Client(scene.broker.address) as client:
        client.call("ListQueues", admin_pb2.ListQueuesRequest())
        yield
        client.call("Enqueue", request, timeout=60)


@case("gRPC Ack", "65,535 messages")
def grpc_ack(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    peer.close()
    request = service_pb2.AckRequest(
        messages=[service_pb2.AckMessage(queue="q", message_id=id) for id in ids]
    )
    with Client(scene.broker.address) as client:
        client.call("ListQueues", admin_pb2.ListQueuesRequest())
        yield
        client.call("Ack", request, timeout=60)


@case("gRPC ListQueues", "9,998 queues")
def grpc_list_queues(scene: Scene) -> Iterator[None]:
    with_queues(scene)
    with Client(scene.broker.address) as client:
        yield
        client.call("ListQueues", admin_pb2.ListQueuesRequest())


@case("gRPC GetStats", "100,000 keys")
def grpc_stats(scene: Scene) -> Iterator[None]:
    with_keys(scene)
    with Client(scene.broker.address) as client:
        yield
        client.call("GetStats", admin_pb2.GetStatsRequest(queue="q"))
