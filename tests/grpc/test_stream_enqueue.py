"""StreamEnqueue: many batches in flight, answered one by one."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import grpc
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client, batch, message


def test_every_batch_is_answered_with_its_number(client: Client, queue: str) -> None:
    client.create_queue(queue)
    numbers = [7, 0, 2**64 - 1, 7, 3]
    answers = list(client.stream_enqueue(batch(one, message(queue, b"x")) for one in numbers))
    assert [one.sequence_number for one in answers] == numbers
    assert all(one.results[0].message_id for one in answers)
    assert client.stats(queue).depth == 5


def test_a_bad_message_does_not_end_the_stream(client: Client, queue: str) -> None:
    client.create_queue(queue)
    answers = list(
        client.stream_enqueue(
            [
                batch(1, message(queue, b"a"), message("nowhere", b"b"), message("", b"c")),
                batch(2),
                batch(3, message(queue, b"d")),
            ]
        )
    )
    assert [one.sequence_number for one in answers] == [1, 2, 3]
    assert [one.error.code for one in answers[0].results] == [
        0,
        pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND,
        pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND,
    ]
    assert list(answers[1].results) == []
    assert client.stats(queue).depth == 2


def test_thousands_of_batches_may_be_in_flight(client: Client, queue: str) -> None:
    client.create_queue(queue)
    count = 5_000
    all_sent = threading.Event()

    def requests() -> Iterator[Any]:
        for number in range(count):
            yield batch(number, message(queue, b"x" * 100), message(queue, b"y"))
        all_sent.set()

    answers = client.stream_enqueue(requests(), timeout=60)
    first = next(answers)
    assert first.sequence_number == 0
    assert all_sent.wait(60), "the client had to wait for answers it did not read"
    assert [one.sequence_number for one in answers] == list(range(1, count))
    assert client.stats(queue).depth == 2 * count


def test_a_half_closed_stream_is_drained(client: Client, queue: str) -> None:
    client.create_queue(queue)
    answers = client.stream_enqueue([batch(at, message(queue, b"x")) for at in range(300)])
    assert len(list(answers)) == 300
    assert answers.code() is grpc.StatusCode.OK


def test_a_stream_without_a_request_ends_well(client: Client) -> None:
    answers = client.stream_enqueue([])
    assert list(answers) == []
    assert answers.code() is grpc.StatusCode.OK


def test_what_was_answered_before_a_malformed_request_counts(client: Client, queue: str) -> None:
    client.create_queue(queue)
    raw = client.channel.stream_stream("/fila.v1.FilaService/StreamEnqueue")
    good = batch(1, message(queue, b"x")).SerializeToString()
    answers = raw(iter([good, b"\x0a\xff", good]), timeout=10)
    assert pb.StreamEnqueueResponse.FromString(next(answers)).sequence_number == 1
    with pytest.raises(grpc.RpcError) as ended:
        next(answers)
    assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "StreamEnqueueRequest" in ended.value.details()
    assert client.stats(queue).depth == 1


def test_a_client_that_reads_no_answers_has_to_wait(own_broker: object, queue: str) -> None:
    """Its requests stay in its own socket; the broker's memory does not grow with them."""
    broker: Broker = own_broker(settings={"connection.max_unsent_bytes": 65_536})  # type: ignore[operator]
    with broker, Client(broker.address) as client:
        client.create_queue(queue)
        sent = 0
        stop = threading.Event()

        def requests() -> Iterator[Any]:
            # Small requests with large answers: 500 texts of errors each.
            nonlocal sent
            request = batch(1, *[message("x" * 100) for _ in range(500)])
            while not stop.is_set():
                sent += 1
                yield request

        answers = client.stream_enqueue(requests(), timeout=60)
        before = -1
        for _ in range(100):  # until nothing moves any more
            if sent == before:
                break
            before = sent
            stop.wait(0.3)
        assert sent == before, "the stream never came to a halt"
        assert broker.rss_bytes() < 250_000_000
        client.create_queue(queue + "-other")  # the connection goes on
        stop.set()
        taken = sum(1 for _ in answers)
        assert taken == sent


def test_a_cancelled_stream_stops_at_once(client: Client, queue: str) -> None:
    client.create_queue(queue)
    going = threading.Event()

    def requests() -> Iterator[Any]:
        yield batch(1, message(queue, b"x"))
        going.wait(10)

    answers = client.stream_enqueue(requests())
    next(answers)
    answers.cancel()
    going.set()
    wait_until(lambda: client.stats(queue).depth == 1, 5, "the first batch")
