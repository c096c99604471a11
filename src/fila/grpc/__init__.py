"""gRPC's messages and stubs for Python programs: `pip install 'fila-broker[grpc]'`.

    import grpc
    from fila.grpc import FilaAdminStub, admin

    channel = grpc.insecure_channel("localhost:5555")
    FilaAdminStub(channel).CreateQueue(admin.CreateQueueRequest(name="orders"))

Modules that protoc makes of `package fila.v1` are called `fila.v1` and clash with this package;
these do not. The stubs are made from the services' descriptors, for `grpc` and `grpc.aio` channels.
"""

from __future__ import annotations

from typing import Any

from fila.edges.grpc.v1 import admin_pb2 as admin
from fila.edges.grpc.v1 import bulk_pb2 as bulk
from fila.edges.grpc.v1 import messages_pb2 as messages
from fila.edges.grpc.v1 import service_pb2 as service
from fila.grpc.stub import Stub

__all__ = [
    "FilaAdminStub",
    "FilaBulkStub",
    "FilaServiceStub",
    "admin",
    "bulk",
    "messages",
    "service",
]


class FilaServiceStub(Stub):
    """Enqueue, consume, ack, nack."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel, service.DESCRIPTOR.services_by_name["FilaService"])


class FilaBulkStub(Stub):
    """Options on enqueue, release, lease batches, browsing."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel, bulk.DESCRIPTOR.services_by_name["FilaBulk"])


class FilaAdminStub(Stub):
    """Queues, settings, keys and what is known about them."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel, admin.DESCRIPTOR.services_by_name["FilaAdmin"])
