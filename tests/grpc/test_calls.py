"""What every call has in common: statuses, metadata, deadlines, health, reflection."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

import grpc
from fila.edges.grpc.v1 import health_pb2, service_pb2
from fila.edges.grpc.v1 import reflection_pb2 as reflection
from tests.e2e.process import Broker
from tests.grpc.client import Client, message


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code().name, refused.value.details()


def test_an_unknown_method_is_unimplemented(client: Client) -> None:
    unknown = client.channel.unary_unary("/fila.v1.FilaService/Destroy")
    code, text = refusal(lambda: unknown(b"", timeout=5))
    assert (code, text) == ("UNIMPLEMENTED", "no method /fila.v1.FilaService/Destroy")


def test_a_request_that_is_no_protobuf_is_an_invalid_argument(client: Client) -> None:
    for path in ("FilaService/Enqueue", "FilaService/Ack", "FilaService/Consume"):
        raw = client.channel.unary_unary(f"/fila.v1.{path}")
        code, text = refusal(lambda raw=raw: raw(b"\x0a\xff\xff", timeout=5))  # type: ignore[misc]
        assert code == "INVALID_ARGUMENT"
        assert "is not a valid" in text


def test_a_unary_call_takes_exactly_one_message(client: Client) -> None:
    raw = client.channel.stream_unary("/fila.v1.FilaService/Enqueue")
    for messages in ([], [b"", b""]):
        code, text = refusal(lambda messages=messages: raw(iter(messages), timeout=5))  # type: ignore[misc]
        assert code == "UNIMPLEMENTED"
        assert "exactly one" in text


def test_compressed_messages_are_refused_by_name(broker: Broker) -> None:
    with Client(broker.address) as client:
        request = service_pb2.EnqueueRequest(messages=[message("q", b"x" * 1000)])
        code, text = refusal(
            lambda: client.call("Enqueue", request, compression=grpc.Compression.Gzip)
        )
        assert code == "UNIMPLEMENTED"
        assert "gzip" in text


def test_metadata_of_tracing_is_accepted(client: Client, queue: str) -> None:
    client.create_queue(queue)
    metadata = [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("tracestate", "a=b"),
        ("x-blob-bin", b"\x00\x01"),
    ]
    request = service_pb2.EnqueueRequest(messages=[message(queue, b"x")])
    assert client.call("Enqueue", request, metadata=metadata).results[0].message_id


def test_metadata_above_the_limit_is_refused_and_the_connection_goes_on(client: Client) -> None:
    request = service_pb2.EnqueueRequest()
    metadata = [("x-large", "v" * 20_000)]
    code, _ = refusal(lambda: client.call("Enqueue", request, metadata=metadata))
    assert code == "RESOURCE_EXHAUSTED"
    client.call("Enqueue", request)


def test_a_refusal_may_hold_any_text(client: Client) -> None:
    name = "naïve ☃ 100% \u00a0 queue"
    code, text = refusal(lambda: client.stats(name))
    assert (code, text) == ("NOT_FOUND", f'queue "{name}" does not exist')


def test_the_text_of_a_refusal_is_not_as_long_as_the_mistake(client: Client) -> None:
    code, text = refusal(lambda: client.stats("ü" * 20_000))
    assert code == "NOT_FOUND"
    assert 100 < len(text) < 1_100


def test_a_deadline_that_passed_is_kept(broker: Broker) -> None:
    with Client(broker.address) as client:
        # An hour ago: a deadline of a microsecond is sometimes met.
        code, _ = refusal(
            lambda: client.call("Enqueue", service_pb2.EnqueueRequest(), timeout=-3_600)
        )
        assert code == "DEADLINE_EXCEEDED"


def test_a_call_with_a_far_deadline_works(client: Client) -> None:
    answer = client.call("Enqueue", service_pb2.EnqueueRequest(), timeout=400 * 86_400)
    assert answer == service_pb2.EnqueueResponse()


def test_a_slow_upload_ends_at_its_deadline(client: Client, queue: str) -> None:
    client.create_queue(queue)
    never = threading.Event()

    def requests() -> Any:
        never.wait(60)
        yield b""

    raw = client.channel.stream_unary("/fila.v1.FilaService/Enqueue")
    code, _ = refusal(lambda: raw(requests(), timeout=0.3))
    assert not never.is_set()
    never.set()
    assert code == "DEADLINE_EXCEEDED"


# --- health


@pytest.mark.parametrize("service", ["", "fila.v1.FilaService", "fila.v1.FilaAdmin"])
def test_health_is_serving(client: Client, service: str) -> None:
    found = client.call("Check", health_pb2.HealthCheckRequest(service=service))
    assert found.status == health_pb2.HealthCheckResponse.SERVING


def test_the_health_of_an_unknown_service_is_not_found(client: Client) -> None:
    request = health_pb2.HealthCheckRequest(service="other")
    assert refusal(lambda: client.call("Check", request))[0] == "NOT_FOUND"
    watch = client.call("Watch", request)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


def test_who_watches_health_hears_that_the_broker_stops(
    own_broker: Callable[..., Broker],
) -> None:
    broker = own_broker().start()
    with Client(broker.address) as client:
        watch = client.call("Watch", health_pb2.HealthCheckRequest(), timeout=None)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        assert broker.stop() == 0
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert refusal(lambda: next(watch))[0] == "UNAVAILABLE"


def test_health_and_reflection_need_no_key(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker(settings={"auth.bootstrap_apikey": "root"})
    with broker, Client(broker.address) as client:
        client.call("Check", health_pb2.HealthCheckRequest())
        request = reflection.ServerReflectionRequest(list_services="*")
        (answer,) = client.call("ServerReflectionInfo", iter([request]))
        assert answer.list_services_response.service
        assert refusal(client.queues)[0] == "UNAUTHENTICATED"


# --- reflection


def test_reflection_describes_what_can_be_called(client: Client) -> None:
    """With the reflection client of the gRPC project, which asks by the older name."""
    found = ProtoReflectionDescriptorDatabase(client.channel)
    assert set(found.get_services()) == {
        "fila.v1.FilaService",
        "fila.v1.FilaBulk",
        "fila.v1.FilaAdmin",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    }
    file = found.FindFileContainingSymbol("fila.v1.FilaService")
    assert [one.name for one in file.service] == ["FilaService"]
    file = found.FindFileContainingSymbol("fila.v1.Message")
    assert "google/protobuf/timestamp.proto" in file.dependency


def test_reflection_answers_every_kind_of_question(client: Client) -> None:
    ask = reflection.ServerReflectionRequest
    questions = [
        ask(file_by_filename="fila/v1/service.proto"),
        ask(file_by_filename="google/protobuf/timestamp.proto"),
        ask(file_containing_symbol="fila.v1.FilaAdmin.CreateQueue"),
        ask(file_containing_symbol="fila.v1.Nothing"),
        ask(file_by_filename="google/protobuf/descriptor.proto"),
        ask(
            file_containing_extension=reflection.ExtensionRequest(
                containing_type="fila.v1.Message", extension_number=1
            )
        ),
        ask(all_extension_numbers_of_type="fila.v1.Message"),
        ask(),
    ]
    answers = list(client.call("ServerReflectionInfo", iter(questions)))
    assert [len(one.file_descriptor_response.file_descriptor_proto) for one in answers] == [
        3,
        1,
        1,
        0,
        0,
        0,
        0,
        0,
    ]
    assert [one.error_response.error_code for one in answers] == [0, 0, 0, 5, 5, 5, 5, 5]
    assert [one.original_request for one in answers] == questions
