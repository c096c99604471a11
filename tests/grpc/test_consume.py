"""Consume: batches, credit, clients that do not read, and every way a stream ends."""

import threading
import time
from collections.abc import Callable

import pytest

import grpc
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client


def test_what_is_ready_comes_in_batches_and_in_order(client: Client, queue: str) -> None:
    client.create_queue(queue)
    ids = client.enqueue(queue, *[b"%d" % at for at in range(200)])
    consumed = client.consume(queue)
    got = consumed.take(200)
    assert [one.id for one in got] == ids
    assert len(consumed.batches) < 20, consumed.batches


def test_a_message_that_comes_later_is_delivered_at_once(client: Client, queue: str) -> None:
    client.create_queue(queue)
    consumed = client.consume(queue)
    wait_until(lambda: client.stats(queue).active_consumers == 1, 5, "the consumer")
    waits = []
    for at in range(10):
        began = time.monotonic()
        client.enqueue(queue, b"%d" % at)
        assert consumed.take_one().payload == b"%d" % at
        waits.append(time.monotonic() - began)
    assert sorted(waits)[5] < 0.5


def test_the_prefetch_bounds_what_is_unacknowledged(client: Client, queue: str) -> None:
    client.create_queue(queue)
    ids = client.enqueue(queue, *[b"x"] * 20)
    consumed = client.consume(queue, prefetch=5)
    consumed.take(5)
    stats = client.stats(queue)
    assert (stats.in_flight, stats.depth) == (5, 15)
    client.ack(queue, *ids[:2])
    assert [one.id for one in consumed.take(2)] == ids[5:7]


def test_without_a_prefetch_the_server_has_a_default(client: Client, queue: str) -> None:
    client.create_queue(queue)
    client.enqueue(queue, *[b"x"] * 300)
    client.consume(queue).take(256)
    assert client.stats(queue).in_flight == 256


def test_two_consumers_on_one_connection_share_a_queue(client: Client, queue: str) -> None:
    client.create_queue(queue)
    one, two = client.consume(queue), client.consume(queue)
    wait_until(lambda: client.stats(queue).active_consumers == 2, 5, "two consumers")
    ids = client.enqueue(queue, *[b"x"] * 10)
    got = [message.id for message in one.take(5) + two.take(5)]
    assert sorted(got) == sorted(ids)


def test_a_client_that_goes_is_no_consumer_any_more_and_its_leases_stay(
    broker: Broker, client: Client, queue: str
) -> None:
    client.create_queue(queue)
    client.enqueue(queue, b"x")
    for leave in (lambda other, call: call.cancel(), lambda other, call: other.close()):
        other = Client(broker.address)
        call = other.consume(queue)
        wait_until(lambda: client.stats(queue).active_consumers == 1, 5, "the consumer")
        leave(other, call)
        wait_until(lambda: client.stats(queue).active_consumers == 0, 5, "its leaving")
        other.close()
    stats = client.stats(queue)
    assert (stats.depth, stats.in_flight) == (0, 1)


def test_a_deleted_queue_ends_its_consumers(client: Client, queue: str) -> None:
    client.create_queue(queue)
    client.enqueue(queue, b"x")
    consumed = client.consume(queue)
    consumed.take_one()
    client.delete_queue(queue)
    with pytest.raises(grpc.RpcError) as ended:
        consumed.take_one()
    assert ended.value.code() is grpc.StatusCode.NOT_FOUND
    assert queue in ended.value.details()


def test_a_queue_that_is_not_there_is_not_found_at_once(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.consume("no-such-queue").take_one()
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert refused.value.details() == 'queue "no-such-queue" does not exist'


def test_a_queue_without_a_name_is_a_mistake(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.consume("").take_one()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_deadline_ends_the_stream_and_the_consumer(client: Client, queue: str) -> None:
    client.create_queue(queue)
    consumed = client.consume(queue, timeout=0.4)
    with pytest.raises(grpc.RpcError) as ended:
        consumed.take_one()
    assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: client.stats(queue).active_consumers == 0, 5, "the consumer's end")


def test_acknowledgements_and_deliveries_do_not_wait_for_each_other(
    client: Client, queue: str
) -> None:
    client.create_queue(queue)
    ids = client.enqueue(queue, *[b"x" * 1000] * 2_000)
    consumed = client.consume(queue, prefetch=50)
    seen = []
    acks = []  # kept: the library cancels calls that nobody holds
    for _ in range(2_000):
        message = consumed.take_one()
        seen.append(message.id)
        item = pb.AckMessage(queue=queue, message_id=message.id)
        acks.append(client.future("Ack", pb.AckRequest(messages=[item])))
    assert seen == ids
    assert all(one.result(30).results[0].HasField("success") for one in acks)
    assert client.stats(queue).in_flight == 0


def test_a_client_that_does_not_read_blocks_nobody_and_costs_little(
    own_broker: Callable[..., Broker], queue: str
) -> None:
    broker = own_broker(
        settings={"connection.prefetch": 65_535, "connection.prefetch_bytes": 400_000_000}
    )
    with broker, Client(broker.address) as client:
        client.create_queue(queue)
        payload = b"x" * 10_000
        for _ in range(100):
            client.enqueue(queue, *[payload] * 100)  # 100 MB
        before = broker.rss_bytes()
        silent = [client.consume(queue) for _ in range(4)]
        wait_until(lambda: client.stats(queue).active_consumers == 4, 5, "the consumers")
        for _ in range(20):  # the same connection goes on
            client.enqueue(queue, b"small")
        time.sleep(0.5)
        assert broker.rss_bytes() - before < 60_000_000
        with Client(broker.address) as other:  # and others get their messages
            assert len(other.consume(queue, prefetch=100).take(100)) == 100
        # When it reads again, it gets the rest.
        taken = 0
        acks = []
        done = threading.Event()

        def read(at: int) -> None:
            nonlocal taken
            for response in silent[at].call:
                taken += len(response.messages)
                ids = [pb.AckMessage(queue=queue, message_id=one.id) for one in response.messages]
                acks.append(client.future("Ack", pb.AckRequest(messages=ids)))
                if taken >= 9_900:
                    done.set()

        for at in range(4):
            threading.Thread(target=_quietly(read, at), daemon=True).start()
        assert done.wait(60), f"{taken} messages came"


def test_a_stopping_broker_ends_the_stream(own_broker: Callable[..., Broker], queue: str) -> None:
    broker = own_broker().start()
    with Client(broker.address) as client:
        client.create_queue(queue)
        client.enqueue(queue, b"x")
        consumed = client.consume(queue)
        consumed.take_one()
        assert broker.stop() == 0
        with pytest.raises(grpc.RpcError) as ended:
            consumed.take_one()
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert ended.value.details() == "the server is stopping"


def test_more_consumers_than_allowed_are_refused(
    own_broker: Callable[..., Broker], queue: str
) -> None:
    broker = own_broker(settings={"connection.max_consumers": 2})
    with broker, Client(broker.address) as client:
        client.create_queue(queue)
        kept = [client.consume(queue) for _ in range(2)]
        wait_until(lambda: client.stats(queue).active_consumers == 2, 5, "two consumers")
        with pytest.raises(grpc.RpcError) as refused:
            client.consume(queue).take_one()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(kept) == 2


def _quietly(read: Callable[[int], None], at: int) -> Callable[[], None]:
    def run() -> None:
        try:
            read(at)
        except grpc.RpcError:
            pass

    return run
