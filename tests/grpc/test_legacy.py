"""Clients of the first gRPC shape are told the truth: stored is stored, and all of it arrives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grpc
from fila.edges.grpc.legacy import is_legacy
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker
from tests.grpc.client import Client, batch, message
from tests.grpc.first_shape import FirstClient, classes

# Their letters are valid tags with valid lengths: as a present message they parse.
TREACHEROUS = ["email", "users", "analytics", "orders", "e", "größe-日本語"]


@pytest.fixture
def first(broker: Broker) -> Iterator[FirstClient]:
    with FirstClient(broker.address) as connected:
        yield connected


def refused(call: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code().name, error.value.details()


@pytest.mark.parametrize("name", TREACHEROUS)
@pytest.mark.parametrize("payload", [b"", b"hello"])
@pytest.mark.parametrize("headers", [{}, {"tenant": "acme", "empty": ""}])
def test_what_was_stored_is_delivered_as_it_was(
    client: Client, first: FirstClient, name: str, payload: bytes, headers: dict[str, str]
) -> None:
    client.create_queue(name)
    try:
        message_id = first.enqueue(name, payload, headers)
        got = next(first.consume(name)).message
        assert (got.id, got.payload, dict(got.headers)) == (message_id, payload, headers)
        assert got.metadata.queue_id == name
        first.ack(name, message_id)
        assert client.stats(name).in_flight == 0
    finally:
        client.delete_queue(name)


def test_a_consumer_of_the_first_shape_gets_one_message_per_response(
    client: Client, first: FirstClient, queue: str
) -> None:
    client.create_queue(queue)
    ids = client.enqueue(queue, *[b"%d" % n for n in range(300)])
    stream = first.consume(queue)
    got = []
    for number in range(300):
        answer = next(stream).message
        assert answer.payload == b"%d" % number
        got.append(answer.id)
        first.ack(queue, answer.id)
    assert got == ids
    assert client.stats(queue).depth == client.stats(queue).in_flight == 0


def test_a_present_consumer_gets_batches_once_it_has_shown_what_it_is(
    client: Client, queue: str
) -> None:
    client.create_queue(queue)
    client.enqueue(queue, b"first")  # a request of the present shape
    client.enqueue(queue, *[b"x"] * 50)
    answers = client.call("Consume", pb.ConsumeRequest(queue=queue), timeout=10)
    count, responses = 0, 0
    while count < 51:
        count += len(next(answers).messages)
        responses += 1
    answers.cancel()
    assert responses < 51


def test_nack_counts_an_attempt_and_says_why(
    client: Client, first: FirstClient, queue: str
) -> None:
    script = 'function on_failure(msg) if msg.error == "broken" then return {action="dlq"} end end'
    client.create_queue(queue, on_failure=script)
    message_id = first.enqueue(queue, b"x")
    stream = first.consume(queue)
    assert next(stream).message.id == message_id
    first.nack(queue, message_id, "later")
    again = next(stream).message
    assert (again.id, again.metadata.attempt_count) == (message_id, 1)
    first.nack(queue, message_id, "broken")
    assert client.stats(f"{queue}.dlq").depth == 1


def test_failures_are_statuses(client: Client, first: FirstClient, queue: str) -> None:
    client.create_queue(queue)
    unknown = "01234567-89ab-7def-8123-456789abcdef"
    gone = 'queue "nowhere" does not exist'
    assert refused(lambda: first.enqueue("nowhere", b"x")) == ("NOT_FOUND", gone)
    assert refused(lambda: first.enqueue("nowhere")) == ("NOT_FOUND", gone)
    assert refused(lambda: first.enqueue("", b"x"))[0] == "INVALID_ARGUMENT"
    for call in (first.ack, first.nack):
        assert refused(lambda call=call: call(queue, unknown)) == (
            "NOT_FOUND",
            f'message "{unknown}" of queue "{queue}" is not leased here',
        )
        assert refused(lambda call=call: call(queue, "no-uuid"))[0] == "NOT_FOUND"
        assert refused(lambda call=call: call("nowhere", unknown))[0] == "NOT_FOUND"
    assert refused(lambda: next(first.consume("nowhere")))[0] == "NOT_FOUND"
    message_id = first.enqueue(queue, b"x")
    assert next(first.consume(queue)).message.id == message_id
    first.ack(queue, message_id)
    assert refused(lambda: first.ack(queue, message_id))[0] == "NOT_FOUND"


def test_permissions_hold_for_the_first_shape_too(own_broker: Any, queue: str) -> None:
    broker = own_broker(settings={"auth.bootstrap_apikey": "root"}).start()
    with Client(broker.address, key="root") as root:
        root.create_queue(queue)
        key = root.create_key("producer")
        root.set_acl(key.key_id, ("produce", queue))
        with FirstClient(broker.address, key=key.key) as first:
            message_id = first.enqueue(queue, b"x")
            assert refused(lambda: first.enqueue("other", b"x"))[0] == "PERMISSION_DENIED"
            assert refused(lambda: first.ack(queue, message_id))[0] == "PERMISSION_DENIED"
            assert refused(lambda: next(first.consume(queue)))[0] == "PERMISSION_DENIED"
        with FirstClient(broker.address) as stranger:
            assert refused(lambda: stranger.enqueue(queue, b"x")) == (
                "UNAUTHENTICATED",
                "API key required",
            )
        assert root.stats(queue).depth == 1


def test_both_shapes_share_a_queue(client: Client, first: FirstClient, queue: str) -> None:
    client.create_queue(queue)
    old, (new,) = first.enqueue(queue, b"old"), client.enqueue(queue, b"new")
    stream = first.consume(queue)
    assert [next(stream).message.id for _ in range(2)] == [old, new]


# --- recognition

names = st.text(
    st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=40
)  # what a queue may be called
headers = st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=4)


@given(names, headers, st.binary(max_size=300))
def test_an_enqueue_of_the_first_shape_is_recognised(
    queue: str, fields: dict[str, str], payload: bytes
) -> None:
    made = classes()["EnqueueRequest"](queue=queue, headers=fields, payload=payload)
    assert is_legacy(made.SerializeToString())


@given(st.lists(st.tuples(names, headers, st.binary(max_size=300)), max_size=5), st.booleans())
def test_an_enqueue_of_the_present_shape_is_not(
    items: list[tuple[str, dict[str, str], bytes]], stream: bool
) -> None:
    messages = [
        pb.EnqueueMessage(queue=queue, headers=fields, payload=payload)
        for queue, fields, payload in items
    ]
    assert not is_legacy(pb.EnqueueRequest(messages=messages).SerializeToString())


@given(names, st.text(max_size=40), st.text(max_size=40))
def test_settlements_are_told_apart(queue: str, message_id: str, error: str) -> None:
    first = classes()
    old = [
        first["AckRequest"](queue=queue, message_id=message_id),
        first["NackRequest"](queue=queue, message_id=message_id, error=error),
    ]
    new = [
        pb.AckRequest(messages=[pb.AckMessage(queue=queue, message_id=message_id)]),
        pb.NackRequest(messages=[pb.NackMessage(queue=queue, message_id=message_id, error=error)]),
    ]
    assert all(is_legacy(one.SerializeToString()) for one in old)
    assert not any(is_legacy(one.SerializeToString()) for one in new)


@given(st.binary(max_size=60))
def test_recognition_takes_any_bytes(data: bytes) -> None:
    assert is_legacy(data) in (True, False)


# --- response headers


def test_a_stream_of_batches_answers_with_its_headers_before_the_first_batch(
    client: Client, queue: str
) -> None:
    client.create_queue(queue)
    opened = threading.Event()

    def requests() -> Iterator[Any]:
        opened.wait()
        yield batch(1, message(queue, b"x"))

    stream = client.call("StreamEnqueue", requests(), timeout=10)
    try:
        stream.initial_metadata()  # waits for the headers, as such clients do
        assert stream.is_active()  # and not for the deadline
    finally:
        opened.set()
    assert next(stream).results[0].message_id
