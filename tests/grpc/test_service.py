"""Enqueue, Ack and Nack with the official client against a real broker."""

import pytest

import grpc
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker
from tests.grpc.client import Client, message

TENANT = """
function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"], weight = 3, throttle_keys = { "p:x" } }
end
"""


def test_a_message_comes_back_as_it_went_in(client: Client, queue: str) -> None:
    client.create_queue(queue, on_enqueue=TENANT)
    headers = {"tenant": "acme", "größe": "ünï ☃", "empty": ""}
    (id,) = client.enqueue(queue, b"\x00payload\xff", headers=headers)
    got = client.consume(queue).take_one()
    assert got.id == id
    assert dict(got.headers) == headers
    assert got.payload == b"\x00payload\xff"
    assert got.metadata.fairness_key == "acme"
    assert got.metadata.weight == 3
    assert list(got.metadata.throttle_keys) == ["p:x"]
    assert got.metadata.attempt_count == 0
    assert got.metadata.queue_id == queue
    enqueued, leased = got.timestamps.enqueued_at, got.timestamps.leased_at
    assert 0 < enqueued.ToNanoseconds() <= leased.ToNanoseconds()


def test_an_acknowledged_message_is_gone(client: Client, queue: str) -> None:
    client.create_queue(queue)
    (id,) = client.enqueue(queue, b"x")
    client.consume(queue).take_one()
    (result,) = client.ack(queue, id)
    assert result.WhichOneof("result") == "success"
    stats = client.stats(queue)
    assert (stats.depth, stats.in_flight) == (0, 0)


def test_a_failed_message_comes_again_with_its_attempt_counted(client: Client, queue: str) -> None:
    client.create_queue(queue)
    (id,) = client.enqueue(queue, b"x")
    consumed = client.consume(queue)
    consumed.take_one()
    (result,) = client.nack(queue, id, error="nope")
    assert result.WhichOneof("result") == "success"
    again = consumed.take_one()
    assert (again.id, again.metadata.attempt_count) == (id, 1)


def test_a_problem_with_one_message_is_its_own(client: Client, queue: str) -> None:
    client.create_queue(queue)
    messages = [
        message(queue, b"one"),
        message("no-such-queue", b"two"),
        message("", b"three"),
        message(queue, b"four", {"x": "v" * 70_000}),
        message(queue, b"five"),
    ]
    results = client.call("Enqueue", pb.EnqueueRequest(messages=messages)).results
    assert [one.error.code for one in results] == [
        0,
        pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND,
        pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND,
        pb.ENQUEUE_ERROR_CODE_INVALID_MESSAGE,
        0,
    ]
    assert results[1].error.message == 'queue "no-such-queue" does not exist'
    assert "65,535" in results[3].error.message
    got = client.consume(queue).take(2)
    assert [one.payload for one in got] == [b"one", b"five"]
    assert [one.id for one in got] == [results[0].message_id, results[4].message_id]


def test_a_batch_may_go_to_several_queues_and_answers_in_order(client: Client, queue: str) -> None:
    others = [f"{queue}-{at}" for at in range(3)]
    for name in others:
        client.create_queue(name)
    messages = [message(others[at % 3], b"%d" % at) for at in range(30)]
    results = client.call("Enqueue", pb.EnqueueRequest(messages=messages)).results
    for at, name in enumerate(others):
        got = client.consume(name).take(10)
        assert [one.payload for one in got] == [b"%d" % number for number in range(at, 30, 3)]
        assert [one.id for one in got] == [results[at].message_id for at in range(at, 30, 3)]


@pytest.mark.parametrize("method", ["Enqueue", "Ack", "Nack"])
def test_no_messages_give_no_results(client: Client, method: str) -> None:
    request = getattr(pb, f"{method}Request")()
    assert list(client.call(method, request).results) == []


@pytest.mark.parametrize("method", ["ack", "nack"])
def test_what_is_not_leased_here_is_not_found(client: Client, queue: str, method: str) -> None:
    client.create_queue(queue)
    (pending,) = client.enqueue(queue, b"x")
    unknown = "01890a5d-ac96-774b-bcce-b302099a8057"
    results = getattr(client, method)(queue, pending, unknown, "not a uuid", "")
    assert [one.error.code for one in results] == [pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND] * 4
    assert pending in results[0].error.message
    (result,) = getattr(client, method)("no-such-queue", unknown)
    assert result.error.code == pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND
    assert client.stats(queue).depth == 1


def test_good_and_bad_acknowledgements_travel_together(client: Client, queue: str) -> None:
    client.create_queue(queue)
    ids = client.enqueue(queue, *[b"x"] * 5)
    client.consume(queue).take(5)
    results = client.ack(queue, ids[0], "nonsense", ids[2], ids[2], ids[4])
    kinds = [one.WhichOneof("result") for one in results]
    assert kinds == ["success", "error", "success", "error", "success"]
    assert client.stats(queue).in_flight == 2


def test_an_acknowledgement_may_come_over_another_connection(
    broker: Broker, client: Client, queue: str
) -> None:
    client.create_queue(queue)
    (id,) = client.enqueue(queue, b"x")
    client.consume(queue).take_one()
    with Client(broker.address) as other:
        assert other.ack(queue, id)[0].WhichOneof("result") == "success"


def test_a_consumer_cannot_acknowledge_what_another_connection_holds(
    broker: Broker, client: Client, queue: str
) -> None:
    client.create_queue(queue)
    (id,) = client.enqueue(queue, b"x")
    client.consume(queue).take_one()
    with Client(broker.address) as other:
        consumed = other.consume(queue)
        wait_for_consumers(client, queue, 2)
        assert other.ack(queue, id)[0].error.code == pb.ACK_ERROR_CODE_MESSAGE_NOT_FOUND
        consumed.cancel()
    assert client.ack(queue, id)[0].WhichOneof("result") == "success"


def test_a_message_of_many_megabytes_goes_both_ways(client: Client, queue: str) -> None:
    client.create_queue(queue)
    payload = bytes(range(256)) * (20 * 4096)  # 20 MiB
    client.enqueue(queue, payload)
    assert client.consume(queue).take_one().payload == payload


def test_a_request_above_the_limit_is_refused_and_the_connection_goes_on(
    own_broker: object, queue: str
) -> None:
    broker: Broker = own_broker(settings={"connection.max_message_size": 1_000_000})  # type: ignore[operator]
    with broker, Client(broker.address) as client:
        client.create_queue(queue)
        client.enqueue(queue, b"x" * 999_000)
        with pytest.raises(grpc.RpcError) as refused:
            client.enqueue(queue, b"x" * 1_000_001)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "1000000 bytes" in refused.value.details()
        client.enqueue(queue, b"small")
        assert client.stats(queue).depth == 2


def test_more_messages_than_a_request_may_hold_are_refused(own_broker: object, queue: str) -> None:
    broker: Broker = own_broker(settings={"connection.max_messages_per_request": 10})  # type: ignore[operator]
    with broker, Client(broker.address) as client:
        client.create_queue(queue)
        client.enqueue(queue, *[b"x"] * 10)
        with pytest.raises(grpc.RpcError) as refused:
            client.enqueue(queue, *[b"x"] * 11)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert client.stats(queue).depth == 10


def test_many_calls_at_once_are_all_answered(client: Client, queue: str) -> None:
    client.create_queue(queue)
    requests = [
        client.future("Enqueue", pb.EnqueueRequest(messages=[message(queue, b"%d" % at)]))
        for at in range(3_000)
    ]
    ids = {one.result(30).results[0].message_id for one in requests}
    assert len(ids) == 3_000
    assert client.stats(queue).depth == 3_000


def wait_for_consumers(client: Client, queue: str, count: int) -> None:
    from tests.e2e.process import wait_until

    wait_until(
        lambda: client.stats(queue).active_consumers == count, 10, f"{count} consumers of {queue}"
    )
