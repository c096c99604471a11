"""One port: which protocol a connection speaks is told by its first bytes."""

import socket
import time
from collections.abc import Callable

import h2.events
import pytest

from fila.edges.grpc import frames
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, layouts
from fila.wire import opcodes as op
from fila.wire.frames import FrameDecoder, encode_frames
from tests.e2e.process import Broker
from tests.grpc.client import Client, message
from tests.grpc.raw import RawPeer, prefixed

ENQUEUE = "/fila.v1.FilaService/Enqueue"


class SlowPeer(RawPeer):
    def send_bytes(self, data: bytes) -> None:
        for byte in data:
            self.socket.sendall(bytes((byte,)))
            time.sleep(0.0005)


def test_both_protocols_meet_in_one_queue(broker: Broker, client: Client, queue: str) -> None:
    with broker.peer() as peer:
        peer.create_queue(queue)
        (one,) = client.enqueue(queue, b"from gRPC", headers={"a": "b"})
        (two,) = peer.enqueue(queue, b"from FIBP", headers={"c": "d"})
        stream = peer.consume(queue)
        got = peer.take(stream, 2)
        assert [(item.id, item.payload, item.headers) for item in got] == [
            (one, b"from gRPC", {"a": "b"}),
            (two, b"from FIBP", {"c": "d"}),
        ]
        peer.cancel(stream)
        peer.nack(queue, one, two)
        again = client.consume(queue).take(2)
        assert {item.id for item in again} == {one, two}
        assert [item.metadata.attempt_count for item in again] == [1, 1]


def test_the_first_words_may_trickle_in_one_byte_at_a_time(broker: Broker) -> None:
    with SlowPeer(broker.address) as peer:
        stream = peer.open(ENQUEUE)
        peer.send(stream, b"")
        assert peer.status(stream) == (0, "")


def test_a_fibp_handshake_may_trickle_in_one_byte_at_a_time(broker: Broker) -> None:
    peer = broker.peer(handshake=False)
    handshake = encode_frames(op.HANDSHAKE, 7, layouts.encode(bodies.Handshake(1, None)))
    for byte in handshake:
        peer.send_bytes(bytes((byte,)))
        time.sleep(0.001)
    opcode, _ = peer.reply(7)
    assert opcode == op.HANDSHAKE_OK
    peer.close()


@pytest.mark.parametrize("words", [b"P", b"PRI", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"])
def test_a_connection_that_closes_in_the_middle_of_the_words_is_no_matter(
    broker: Broker, words: bytes
) -> None:
    with socket.create_connection(broker.address) as opened:
        opened.sendall(words)
    with broker.peer() as peer:
        peer.ping()
    assert "Traceback" not in broker.log()


def test_a_connection_without_a_byte_is_no_matter(broker: Broker) -> None:
    for _ in range(20):
        socket.create_connection(broker.address).close()
    with broker.peer() as peer:
        peer.ping()
    assert "error" not in broker.log()


def test_words_that_only_begin_like_http2_are_fibp(broker: Broker) -> None:
    with socket.create_connection(broker.address, timeout=5) as opened:
        opened.sendall(b"PRIX" + bytes(20))
        decoder = FrameDecoder()
        received = []
        while data := opened.recv(65_536):
            received += decoder.feed(data)
        ((opcode, _, body),) = received
        assert opcode == op.ERROR
        assert layouts.decode(bodies.Error, body).code == 0x0E


def test_http_1_gets_no_answer_that_it_could_mistake(broker: Broker) -> None:
    with socket.create_connection(broker.address, timeout=5) as opened:
        opened.sendall(b"POST /fila.v1.FilaService/Enqueue HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        while more := opened.recv(65_536):
            data += more
        assert not data.startswith(b"HTTP/")


def test_who_says_nothing_is_not_waited_for_forever(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"connection.handshake_timeout_ms": 300}) as broker:
        for words in (b"", b"PRI * HT", frames.PREFACE, frames.PREFACE + frames.settings({})):
            with socket.create_connection(broker.address, timeout=30) as opened:
                opened.sendall(words)
                while received := opened.recv(65_536):  # or it times out
                    assert received


def test_who_called_once_may_be_silent_for_long(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker(settings={"connection.handshake_timeout_ms": 300})
    with broker, RawPeer(broker.address) as peer:
        peer.send(peer.open(ENQUEUE), b"")
        time.sleep(0.8)
        stream = peer.open(ENQUEUE)
        peer.send(stream, b"")
        assert peer.status(stream) == (0, "")


def test_the_broker_keeps_a_deadline_its_client_forgot(
    broker: Broker, client: Client, queue: str
) -> None:
    client.create_queue(queue)
    with RawPeer(broker.address) as peer:
        stream = peer.open("/fila.v1.FilaService/Consume", [("grpc-timeout", "300m")])
        began = time.monotonic()
        peer.send(stream, pb.ConsumeRequest(queue=queue).SerializeToString())
        assert peer.status(stream)[0] == 4
        assert time.monotonic() - began > 0.2


@pytest.mark.parametrize("text", ["", "5", "S", "-1S", "5x", "123456789S", "1.5S"])
def test_a_deadline_that_is_no_duration_is_refused(broker: Broker, text: str) -> None:
    with RawPeer(broker.address) as peer:
        stream = peer.open(ENQUEUE, [("grpc-timeout", text)])
        peer.send(stream, b"")
        assert peer.status(stream)[0] == (0 if text == "" else 3)


def test_a_deadline_of_nothing_has_passed(broker: Broker) -> None:
    with RawPeer(broker.address) as peer:
        stream = peer.open(ENQUEUE, [("grpc-timeout", "0S")], end=True)
        assert peer.status(stream)[0] == 4


def test_a_message_may_come_in_frames_of_one_byte(
    broker: Broker, client: Client, queue: str
) -> None:
    client.create_queue(queue)
    request = pb.EnqueueRequest(messages=[message(queue, b"hello")]).SerializeToString()
    with RawPeer(broker.address) as peer:
        stream = peer.open(ENQUEUE)
        for byte in prefixed(request):
            peer.http2.send_data(stream, bytes((byte,)))
            peer.flush()
        peer.http2.end_stream(stream)
        peer.flush()
        assert peer.status(stream) == (0, "")
    assert client.stats(queue).depth == 1


def test_a_message_that_is_cut_short_is_refused(broker: Broker) -> None:
    for content in (b"\x00", b"\x00\x00\x00\x00\x09abc"):
        with RawPeer(broker.address) as peer:
            stream = peer.open(ENQUEUE)
            peer.http2.send_data(stream, content, end_stream=True)
            peer.flush()
            assert peer.status(stream) == (3, "a message is cut short")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([(":method", "GET")], "405"),
        ([("content-type", "text/html")], "415"),
        ([("content-type", "application/grpc-web")], "415"),
        ([("content-type", "application/grpc+json")], "415"),
        ([("content-type", "application/grpc+proto; x=y")], "200"),
    ],
)
def test_what_is_not_grpc_is_told_so_in_http(
    broker: Broker, fields: list[tuple[str, str]], status: str
) -> None:
    base = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/",
        ":authority": "localhost",
        "content-type": "application/grpc",
    }
    with RawPeer(broker.address) as peer:
        peer.http2.send_headers(1, list((base | dict(fields)).items()), end_stream=True)
        peer.flush()
        while not any(getattr(event, "headers", None) for event in peer.events):
            assert peer.read()
        found = next(event for event in peer.events if getattr(event, "headers", None))
        assert (":status", status) in found.headers  # type: ignore[attr-defined]
        if status != "200":  # why, for a person to read
            while not any(isinstance(event, h2.events.StreamEnded) for event in peer.events):
                assert peer.read()
            assert peer.data(1) in (
                b"gRPC calls are POST requests\n",
                b"the content type is not application/grpc\n",
            )


def test_a_head_request_gets_no_body(broker: Broker) -> None:
    with RawPeer(broker.address) as peer:
        fields = [(":method", "HEAD"), (":scheme", "http"), (":path", "/"), (":authority", "x")]
        peer.http2.send_headers(1, fields, end_stream=True)
        peer.flush()
        while not any(isinstance(event, h2.events.StreamEnded) for event in peer.events):
            assert peer.read()
        assert peer.data(1) == b""


def test_what_is_not_grpc_is_answered_when_it_has_arrived(broker: Broker) -> None:
    with RawPeer(broker.address) as peer:
        stream = peer.open(ENQUEUE, [("content-length", "3")])
        fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "x")]
        other = peer.http2.get_next_available_stream_id()
        peer.http2.send_headers(other, fields)
        peer.flush()
        peer.http2.ping(b"12345678")
        peer.flush()
        while not any(isinstance(event, h2.events.PingAckReceived) for event in peer.events):
            assert peer.read()
        assert not any(isinstance(event, h2.events.ResponseReceived) for event in peer.events)
        peer.http2.send_data(other, b"body", end_stream=True)
        peer.http2.send_data(stream, b"four", end_stream=True)
        peer.flush()
        while not any(isinstance(event, h2.events.StreamReset) for event in peer.events):
            assert peer.read()
        (reset,) = [one for one in peer.events if isinstance(one, h2.events.StreamReset)]
        assert (reset.stream_id, int(reset.error_code or 0)) == (stream, frames.PROTOCOL_ERROR)
        assert peer.data(other) == b"gRPC calls are POST requests\n"
