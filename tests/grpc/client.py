"""The official gRPC client, with a method for everything Fila offers.

Built from the descriptors, so that it can call nothing the .proto files do not declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import grpc
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2, health_pb2, reflection_pb2, service_pb2
from fila.edges.grpc.v1.messages_pb2 import Message

WAIT_S = 30.0
LARGE = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A connection of one's own: the library shares them between channels otherwise.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


class Client:
    """One channel, which is one connection."""

    def __init__(
        self,
        address: tuple[str, int],
        key: str | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        options: Iterable[tuple[str, Any]] = (),
    ) -> None:
        target = f"{address[0]}:{address[1]}"
        every = [*LARGE, *options]
        if credentials is None:
            self.channel = grpc.insecure_channel(target, every)
        else:
            self.channel = grpc.secure_channel(target, credentials, every)
        self.metadata = [("authorization", f"Bearer {key}")] if key is not None else []
        self._methods: dict[str, Any] = {}
        self._consumed: list[Consumed] = []  # the library cancels a call that nobody holds
        for file in (service_pb2, bulk_pb2, admin_pb2, health_pb2, reflection_pb2):
            for service in file.DESCRIPTOR.services_by_name.values():
                self._add(service)

    def call(self, method: str, request: Any, **options: Any) -> Any:
        """A call by the method's name; streams are what the library gives back."""
        options.setdefault("timeout", WAIT_S)
        options.setdefault("metadata", self.metadata)
        return self._methods[method](request, **options)

    def future(self, method: str, request: Any, **options: Any) -> Any:
        options.setdefault("metadata", self.metadata)
        return self._methods[method].future(request, **options)

    # --- messages

    def enqueue(
        self, queue: str, *payloads: bytes, headers: dict[str, str] | None = None
    ) -> list[str]:
        messages = [message(queue, payload, headers) for payload in payloads]
        results = self.call("Enqueue", service_pb2.EnqueueRequest(messages=messages)).results
        assert all(one.message_id for one in results), results
        return [one.message_id for one in results]

    def stream_enqueue(self, requests: Iterable[Any], **options: Any) -> Any:
        options.setdefault("timeout", WAIT_S)
        return self.call("StreamEnqueue", iter(requests), **options)

    def consume(self, queue: str, prefetch: int = 0, **options: Any) -> Consumed:
        options.setdefault("timeout", None)
        request = service_pb2.ConsumeRequest(queue=queue, prefetch=prefetch)
        self._consumed.append(Consumed(self.call("Consume", request, **options)))
        return self._consumed[-1]

    def ack(self, queue: str, *ids: str) -> list[service_pb2.AckResult]:
        messages = [service_pb2.AckMessage(queue=queue, message_id=id) for id in ids]
        return list(self.call("Ack", service_pb2.AckRequest(messages=messages)).results)

    def nack(self, queue: str, *ids: str, error: str = "") -> list[service_pb2.NackResult]:
        messages = [service_pb2.NackMessage(queue=queue, message_id=id, error=error) for id in ids]
        return list(self.call("Nack", service_pb2.NackRequest(messages=messages)).results)

    # --- administration

    def create_queue(
        self, name: str, on_enqueue: str = "", on_failure: str = "", visibility_ms: int = 0
    ) -> str:
        config = admin_pb2.QueueConfig(
            on_enqueue_script=on_enqueue,
            on_failure_script=on_failure,
            visibility_timeout_ms=visibility_ms,
        )
        request = admin_pb2.CreateQueueRequest(name=name, config=config)
        return str(self.call("CreateQueue", request).queue_id)

    def delete_queue(self, queue: str) -> None:
        self.call("DeleteQueue", admin_pb2.DeleteQueueRequest(queue=queue))

    def stats(self, queue: str) -> admin_pb2.GetStatsResponse:
        found: admin_pb2.GetStatsResponse = self.call(
            "GetStats", admin_pb2.GetStatsRequest(queue=queue)
        )
        return found

    def queues(self) -> list[admin_pb2.QueueInfo]:
        return list(self.call("ListQueues", admin_pb2.ListQueuesRequest()).queues)

    def set_config(self, key: str, value: str) -> None:
        self.call("SetConfig", admin_pb2.SetConfigRequest(key=key, value=value))

    def get_config(self, key: str) -> str:
        return str(self.call("GetConfig", admin_pb2.GetConfigRequest(key=key)).value)

    def list_config(self, prefix: str) -> dict[str, str]:
        found = self.call("ListConfig", admin_pb2.ListConfigRequest(prefix=prefix))
        assert found.total_count == len(found.entries)
        return {one.key: one.value for one in found.entries}

    def redrive(self, dlq: str, count: int = 0) -> int:
        request = admin_pb2.RedriveRequest(dlq_queue=dlq, count=count)
        return int(self.call("Redrive", request).redriven)

    def create_key(
        self, name: str, expires_at_ms: int = 0, superadmin: bool = False
    ) -> admin_pb2.CreateApiKeyResponse:
        made: admin_pb2.CreateApiKeyResponse = self.call(
            "CreateApiKey",
            admin_pb2.CreateApiKeyRequest(
                name=name, expires_at_ms=expires_at_ms, is_superadmin=superadmin
            ),
        )
        return made

    def revoke_key(self, key_id: str) -> None:
        self.call("RevokeApiKey", admin_pb2.RevokeApiKeyRequest(key_id=key_id))

    def api_keys(self) -> list[admin_pb2.ApiKeyInfo]:
        return list(self.call("ListApiKeys", admin_pb2.ListApiKeysRequest()).keys)

    def set_acl(self, key_id: str, *permissions: tuple[str, str]) -> None:
        wanted = [admin_pb2.AclPermission(kind=kind, pattern=one) for kind, one in permissions]
        self.call("SetAcl", admin_pb2.SetAclRequest(key_id=key_id, permissions=wanted))

    def get_acl(self, key_id: str) -> admin_pb2.GetAclResponse:
        found: admin_pb2.GetAclResponse = self.call(
            "GetAcl", admin_pb2.GetAclRequest(key_id=key_id)
        )
        return found

    # --- ending

    def close(self) -> None:
        self.channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _add(self, service: Any) -> None:
        for method in service.methods:
            request = _class(method.input_type)
            response = _class(method.output_type)
            kind = (
                f"{'stream' if method.client_streaming else 'unary'}_"
                f"{'stream' if method.server_streaming else 'unary'}"
            )
            self._methods[method.name] = getattr(self.channel, kind)(
                f"/{service.full_name}/{method.name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )


class Consumed:
    """A Consume call: its messages one by one, whatever the batches they came in."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.batches: list[int] = []
        self._messages = self._unpack()

    def take(self, count: int = 1) -> list[Message]:
        return [next(self._messages) for _ in range(count)]

    def take_one(self) -> Message:
        return next(self._messages)

    def cancel(self) -> None:
        self.call.cancel()

    def _unpack(self) -> Iterator[Message]:
        for response in self.call:
            assert response.messages, "a response holds at least one message"
            self.batches.append(len(response.messages))
            yield from response.messages


def message(
    queue: str, payload: bytes = b"", headers: dict[str, str] | None = None
) -> service_pb2.EnqueueMessage:
    return service_pb2.EnqueueMessage(queue=queue, payload=payload, headers=headers or {})


def batch(number: int, *messages: service_pb2.EnqueueMessage) -> service_pb2.StreamEnqueueRequest:
    return service_pb2.StreamEnqueueRequest(messages=messages, sequence_number=number)


def _class(descriptor: Any) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)
