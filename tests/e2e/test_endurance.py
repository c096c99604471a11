"""What a broker must bear: clients that do not read, many of them, and messages at the limits."""

from __future__ import annotations

import hashlib
import random
import resource
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from fila.wire import bodies, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, frame_header
from fila.wire.message import message_body
from tests.e2e.peer import Closed, Peer, Quiet, Refused
from tests.e2e.process import Broker, wait_until

Make = Callable[..., Broker]
MiB = 1 << 20


def fill(peer: Peer, queue: str, count: int, payload: bytes) -> None:
    for _ in range(count // 500):
        peer.enqueue(queue, *[payload] * 500)


@pytest.fixture(scope="module")
def backlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with 100,000 messages of 1 KB waiting in `orders`, leased for one second."""
    with Broker(tmp_path_factory.mktemp("backlog") / "data") as broker:
        with broker.peer() as peer:
            peer.create_queue("orders", visibility_ms=1_000)
            fill(peer, "orders", 100_000, b"x" * 1_024)
        yield broker


@pytest.mark.parametrize("consumers", [1, 20])
def test_a_client_that_stops_reading_can_go_on_enqueuing(backlog: Broker, consumers: int) -> None:
    """Leases run out and messages come back meanwhile; none of that may pile up either."""
    stuck, watcher = backlog.peer(receive_buffer_bytes=4_096), backlog.peer()
    before = watcher.stats("orders")
    for _ in range(consumers):
        stuck.post(bodies.Consume("orders", 65_535))
    rss_before = backlog.rss_bytes()
    sent = []
    end = time.monotonic() + 3.5  # three leases long
    while time.monotonic() < end:
        sent.append(stuck.post_enqueue("orders", [b"y" * 1_024] * 10))
        time.sleep(0.005)
    expected = before.depth + before.in_flight + 10 * len(sent)
    wait_until(lambda: total(watcher) == expected, 5, "every enqueue to be carried out")
    assert backlog.rss_bytes() - rss_before < 40 * MiB
    for request in sent:
        assert len(stuck.enqueue_results(request)) == 10  # it reads again
    stuck.close()
    watcher.close()


def total(peer: Peer) -> int:
    found = peer.stats("orders")
    return found.depth + found.in_flight


def test_a_client_that_does_not_read_is_no_hindrance_to_another(broker: Broker, queue: str) -> None:
    with broker.peer(receive_buffer_bytes=4_096) as stuck, broker.peer() as reader:
        reader.create_queue(queue, visibility_ms=1_000)
        stuck.post(bodies.Consume(queue, 65_535))
        fill(reader, queue, 5_000, b"x" * 4_096)
        stream = reader.consume(queue, prefetch=1_000)
        done = 0
        while done < 5_000:  # what the stuck one was given comes back when its lease runs out
            ids = [message.id for message in [reader.take_one(stream), *reader.waiting(stream)]]
            done += reader.ack(queue, *ids).count(errors.OK)
        found = reader.stats(queue)
        assert (found.depth, found.in_flight) == (0, 0)


def test_a_held_consumer_gets_messages_again_when_it_reads(broker: Broker, queue: str) -> None:
    with broker.peer(receive_buffer_bytes=4_096) as peer, broker.peer() as producer:
        producer.create_queue(queue)
        stream = peer.consume(queue, prefetch=2_000)
        fill(producer, queue, 10_000, b"x" * 2_048)
        seen: set[str] = set()
        while len(seen) < 10_000:
            messages = [peer.take_one(stream), *peer.waiting(stream)]
            seen.update(message.id for message in messages)
            peer.post_ack(queue, [message.id for message in messages])
        assert len(seen) == 10_000
        wait_until(lambda: producer.stats(queue).in_flight == 0, 20, "the acks")
        assert producer.stats(queue).depth == 0


def test_replies_that_are_not_read_stop_the_requests_not_the_broker(own_broker: Make) -> None:
    with own_broker(settings={"connection.max_outbound_bytes": MiB}) as broker:
        greedy, other = broker.peer(receive_buffer_bytes=4_096), broker.peer()
        other.set_config("long", "v" * 60_000)
        rss_before = broker.rss_bytes()
        greedy.socket.settimeout(0.5)
        request = bodies.GetConfig("long")
        asked = 0
        try:
            while asked < 1_000_000:
                greedy.post(request)
                asked += 1
        except TimeoutError:
            pass
        assert asked < 1_000_000
        assert broker.rss_bytes() - rss_before < 40 * MiB
        other.ping()
        for request_id in range(2, 200):  # it reads; more than was made before it stopped
            greedy.reply(request_id, timeout_s=10)


def test_a_thousand_idle_connections_cost_little(own_broker: Make) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2_500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    with own_broker() as broker:
        with broker.peer() as peer:
            peer.create_queue("orders")
            rss_before = broker.rss_bytes()
            idle = [broker.peer() for _ in range(1_000)]
            for number, one in enumerate(idle):
                if number % 10 == 0:
                    one.consume("orders")
            assert peer.stats("orders").active_consumers == 100
            assert broker.rss_bytes() - rss_before < 64 * MiB
            cpu_before = broker.cpu_s()
            began = time.monotonic()
            for _ in range(50):
                peer.enqueue("orders", b"x")
            assert time.monotonic() - began < 30
            time.sleep(0.5)
            assert broker.cpu_s() - cpu_before < 2  # idle ones are not looked at
        for one in idle:
            one.close()
        with broker.peer() as peer:
            wait_until(lambda: peer.stats("orders").active_consumers == 0, 5, "all to be gone")


def test_clients_cannot_use_up_the_files_the_store_needs(own_broker: Make) -> None:
    """720 files, 640 of them the store's: 80 connections, the rest is turned away."""
    with own_broker(limits={"NOFILE": 720}) as broker:
        peer = broker.peer()
        peer.create_queue("orders")
        crowd = [broker.peer(handshake=False) for _ in range(200)]
        with pytest.raises(Refused) as refused:
            broker.peer(handshake=False).reply(0)
        assert refused.value.code == errors.CHANNEL_FULL
        assert refused.value.metadata == {"retry_after_ms": "1000"}
        for _ in range(40):  # enough for new files in the store
            peer.enqueue("orders", bytes(MiB))
        for one in crowd:
            one.close()
        wait_until(lambda: connects(broker), 5, "room for another")
        assert peer.stats("orders").depth == 40
        assert "720 open files allows 80 connections" in broker.log()


def connects(broker: Broker) -> bool:
    try:
        broker.peer().close()
    except (Refused, Closed):
        return False
    return True


def test_a_message_of_50_mib_travels_whole(own_broker: Make) -> None:
    told = {"connection.max_message_size": 64 * MiB}  # more than the default
    with own_broker(settings=told) as broker, broker.peer() as peer:
        peer.create_queue("orders")
        payload = random.Random(1).randbytes(50 * MiB)
        [id] = peer.enqueue("orders", payload, headers={"size": "50 MiB"})
        small = peer.enqueue("orders", b"small")
        broker.restart()
        with broker.peer() as again:
            stream = again.consume("orders")
            message = again.take_one(stream, timeout_s=30)
            assert message.id == id
            assert message.headers == {"size": "50 MiB"}
            assert digest(message.payload) == digest(payload)
            again.ack("orders", id)
            assert again.take_one(stream).id == small[0]


def digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def test_large_messages_pass_one_after_another(broker: Broker, queue: str) -> None:
    """Each is beyond a consumer's byte credit: one at a time is let through."""
    with broker.peer() as peer:
        peer.create_queue(queue)
        payloads = [bytes([n]) * (10 * MiB) for n in range(6)]
        for payload in payloads:
            peer.enqueue(queue, payload)
        stream = peer.consume(queue)
        for payload in payloads:
            message = peer.take_one(stream, timeout_s=20)
            assert message.payload == payload
            peer.expect_quiet(stream, 0.05)
            peer.ack(queue, message.id)


def test_a_message_beyond_the_limit_is_refused_and_the_connection_lives_on(
    own_broker: Make,
) -> None:
    with own_broker(settings={"connection.max_message_size": MiB}) as broker:
        peer = broker.peer(frame_bytes_max=256 * 1024)
        peer.create_queue("orders")
        for size in (2 * MiB, MiB, 8 * MiB):
            request = peer.post_enqueue("orders", [bytes(size)])
            with pytest.raises(Refused) as refused:
                peer.reply(request)
            assert refused.value.code == errors.INVALID_FRAME
            assert f"{MiB}" in refused.value.message
        peer.enqueue("orders", bytes(MiB - 100))
        assert len(peer.take_one(peer.consume("orders")).payload) == MiB - 100


def test_a_smaller_frame_limit_holds_in_both_directions(own_broker: Make) -> None:
    with own_broker(settings={"fibp.max_frame_size": 4_096}) as broker:
        peer = broker.peer(handshake=False, frame_bytes_max=4_096)
        assert peer.request(bodies.Handshake(1, None), bodies.HandshakeOk).max_frame_size == 4_096
        peer._decoder.frame_bytes_max = 4_096  # a longer one from the server fails the test
        peer.create_queue("orders")
        payload = random.Random(2).randbytes(100_000)
        peer.enqueue("orders", payload)
        assert peer.take_one(peer.consume("orders")).payload == payload
        peer.frame_bytes_max = 8_192
        with pytest.raises((Refused, Closed)):
            peer.reply(peer.post_enqueue("orders", [payload]))


@pytest.mark.parametrize(
    ("headers", "payload"),
    [
        ({}, b""),
        ({"": ""}, b""),
        ({"k" * 65_535: "v" * 65_535}, b"x"),
        ({f"name-{n}": "v" for n in range(65_535)}, b"x"),
        ({"unicode": "\U0001f600" * 16_383}, bytes(range(256))),
    ],
    ids=["empty", "empty header", "longest header", "most headers", "wide characters"],
)
def test_messages_at_the_limits_arrive_as_sent(
    peer: Peer, queue: str, headers: dict[str, str], payload: bytes
) -> None:
    peer.create_queue(queue)
    [id] = peer.enqueue(queue, payload, headers=headers)
    message = peer.take_one(peer.consume(queue))
    assert (message.id, message.headers, message.payload) == (id, headers, payload)
    assert peer.nack(queue, id, error="e" * 65_535) == [errors.OK]


def test_more_messages_in_one_request_than_allowed_are_refused_whole(
    peer: Peer, queue: str
) -> None:
    peer.create_queue(queue)
    item = message_codec.queue_field(queue.encode()) + message_body(None, b"")
    request = peer.send(op.ENQUEUE, struct.pack(">I", 65_537) + item * 65_537)
    with pytest.raises(Refused) as refused:
        peer.reply(request)
    assert refused.value.code == errors.INVALID_FRAME
    assert "at most 65536" in refused.value.message
    assert peer.stats(queue).depth == 0
    request = peer.send(op.ENQUEUE, struct.pack(">I", 65_536) + item * 65_536)
    assert len(peer.enqueue_results(request, timeout_s=20)) == 65_536
    assert peer.stats(queue).depth == 65_536


def test_half_assembled_messages_are_bounded(own_broker: Make) -> None:
    """Sixteen messages that never end: the bytes kept stay under one message's limit."""
    with own_broker() as broker, broker.peer() as peer:
        rss_before = broker.rss_bytes()
        piece = bytes(MiB)
        for _ in range(16):
            for request_id in range(1_000, 1_016):
                peer.send_bytes(frame_header(op.ENQUEUE, CONTINUATION, request_id, MiB) + piece)
        peer.ping()
        refused = []
        for request_id in range(1_000, 1_016):
            try:
                peer.reply(request_id, timeout_s=0.05)
            except Refused as error:
                refused.append(error.message)
            except Quiet:
                continue
        assert len(refused) >= 12  # 256 MiB were sent, 64 MiB may wait
        assert all("exceed" in message for message in refused)
        assert broker.rss_bytes() - rss_before < 160 * MiB


def test_unfinished_messages_of_all_connections_together_are_bounded(own_broker: Make) -> None:
    """Thirty clients send most of a large frame and stay: those over the limit are sent away."""
    with own_broker(settings={"connection.max_inbound_bytes": 64 * MiB}) as broker:
        rss_before = broker.rss_bytes()
        crowd = [broker.peer() for _ in range(30)]
        refused = 0
        for peer in crowd:
            try:
                peer.send_bytes(frame_header(op.ENQUEUE, 0, 9, 12 * MiB) + bytes(10 * MiB))
            except OSError:
                refused += 1
        with broker.peer() as other:
            other.create_queue("orders")
            other.enqueue("orders", bytes(MiB // 2))
        assert broker.rss_bytes() - rss_before < 160 * MiB
        for peer in crowd:
            try:
                peer.reply(0, timeout_s=0.02)
            except Refused as error:
                refused += error.code == errors.CHANNEL_FULL
            except (Quiet, Closed):
                continue
        assert refused >= 20
        for peer in crowd:
            peer.close()
        with broker.peer() as again:
            wait_until(lambda: len(again.enqueue("orders", bytes(20 * MiB))) == 1, 5, "room")
