"""What was answered over gRPC is stored: through a stop, a kill, and with fsync."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import grpc
from tests.e2e.process import Broker
from tests.grpc.client import Client, batch, message

BATCH = 10


def endless(queue: str, stop: threading.Event) -> Iterator[Any]:
    number = 0
    while not stop.is_set():
        yield batch(number, *[message(queue, b"%d" % number) for _ in range(BATCH)])
        number += 1


def answered_until(answers: Any, count: int, then: Callable[[], object]) -> list[Any]:
    """Read answers; after `count` of them do something; go on until the stream ends."""
    got = []
    try:
        for answer in answers:
            got.append(answer)
            if len(got) == count:
                then()
    except grpc.RpcError:
        pass
    assert answers.code() is grpc.StatusCode.UNAVAILABLE
    return got


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_every_answer_holds_after_a_restart(
    own_broker: Callable[..., Broker], durability: str, end: str
) -> None:
    broker = own_broker(settings={"storage.durability": durability}).start()
    stop = threading.Event()
    with Client(broker.address) as client:
        client.create_queue("q")
        answers = client.stream_enqueue(endless("q", stop), timeout=60)
        leave = broker.kill if end == "kill" else broker.process.terminate
        got = answered_until(answers, 100, leave)
        stop.set()
    if end == "stop":
        assert broker.wait() == 0
    broker.start()
    ids = [result.message_id for answer in got for result in answer.results]
    assert [answer.sequence_number for answer in got] == list(range(len(got)))
    with Client(broker.address) as client:
        depth = client.stats("q").depth
        assert depth >= len(ids) >= 100 * BATCH
        stored = client.consume("q", prefetch=65_535).take(depth)
        assert [one.id for one in stored[: len(ids)]] == ids
        if end == "stop" and durability == "os":
            assert depth == len(ids), "a stopping broker answers everything it has stored"


def test_leases_survive_and_late_acknowledgements_count(
    own_broker: Callable[..., Broker],
) -> None:
    broker = own_broker().start()
    with Client(broker.address) as client:
        client.create_queue("q")
        ids = client.enqueue("q", b"1", b"2")
        client.consume("q").take(2)
        broker.restart()
    with Client(broker.address) as client:
        assert client.stats("q").in_flight == 2
        assert [one.WhichOneof("result") for one in client.ack("q", *ids)] == ["success"] * 2
