"""Hostile HTTP/2 against a real broker: it goes away, or costs little, and others are served."""

import os
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import h2.events
import pytest

from fila.edges.grpc import frames
from fila.edges.grpc.fields import encode
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client, message
from tests.grpc.raw import RawPeer, prefixed

ENQUEUE = "/fila.v1.FilaService/Enqueue"
HELLO = frames.PREFACE + frames.settings({})


@pytest.fixture
def victim(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    """A broker that must be as alive, and nearly as small, afterwards."""
    with own_broker() as broker, Client(broker.address) as client:
        client.create_queue("q")
        client.enqueue("q", b"x")
        client.create_queue("afterwards")
        before = broker.rss_bytes()
        yield broker
        began = time.monotonic()
        with broker.peer() as peer:
            peer.ping()
            peer.enqueue("afterwards", b"y")
        client.enqueue("afterwards", b"z")
        assert client.stats("afterwards").depth == 2
        assert time.monotonic() - began < 25, "the broker is busy with something"
        assert broker.alive()
        assert broker.rss_bytes() - before < 120_000_000
        assert "Traceback" not in broker.log()


def block(path: str = ENQUEUE, *extra: tuple[bytes, bytes]) -> bytes:
    return encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *extra,
        ]
    )


def headers(id: int, content: bytes | None = None, flags: int = frames.END_HEADERS) -> bytes:
    return frames.frame(frames.HEADERS, flags, id, block() if content is None else content)


class Flood(NamedTuple):
    back: bytes  # what the server said
    closed: bool  # by the server, within the time

    def calm(self) -> bool:
        """Whether the server ended it with ENHANCE_YOUR_CALM, as far as one can tell: a reset on
        the way takes with it what was said before."""
        said = struct.pack(">I", frames.ENHANCE_YOUR_CALM) in self.back
        return self.closed and (said or self.back == b"")


def flood(broker: Broker, data: bytes, timeout_s: float = 20) -> Flood:
    """Send as fast as it takes them, read nothing until it is sent; what came of it."""
    with socket.create_connection(broker.address, timeout=timeout_s) as opened:
        back = b""
        try:
            opened.sendall(HELLO + data)
            while more := opened.recv(1 << 16):
                back += more
        except ConnectionError:
            return Flood(back, True)
        except TimeoutError:
            return Flood(back, False)
        return Flood(back, True)


def test_rapid_reset(victim: Broker) -> None:
    pairs = b"".join(headers(id) + frames.rst_stream(id, 8) for id in range(1, 40_001, 2))
    assert flood(victim, pairs, timeout_s=30).calm()


def test_rapid_reset_of_consumers(victim: Broker) -> None:
    request = prefixed(pb.ConsumeRequest(queue="q").SerializeToString())
    consume = block("/fila.v1.FilaService/Consume")
    calls = b"".join(
        headers(id, consume)
        + frames.frame(frames.DATA, frames.END_STREAM, id, request)
        + frames.rst_stream(id, 8)
        for id in range(1, 20_001, 2)
    )
    assert flood(victim, calls, timeout_s=30).calm()
    with Client(victim.address) as client:
        wait_until(lambda: client.stats("q").active_consumers == 0, 20, "consumers to be gone")


def test_a_flood_of_pings_that_reads_no_answers(victim: Broker) -> None:
    assert flood(victim, frames.frame(frames.PING, 0, 0, bytes(8)) * 500_000).calm()


def test_a_flood_of_settings_that_reads_no_answers(victim: Broker) -> None:
    assert flood(victim, frames.settings({3: 100}) * 200_000).calm()


def test_a_flood_of_empty_frames(victim: Broker) -> None:
    content = headers(1) + frames.frame(frames.DATA, 0, 1, b"") * 200_000
    assert flood(victim, content).calm()


def test_header_fields_continued_without_end(victim: Broker) -> None:
    start = frames.frame(frames.HEADERS, 0, 1, block())
    more = frames.frame(frames.CONTINUATION, 0, 1, b"\x00" * 100)
    assert flood(victim, start + more * 100_000).calm()


def test_a_bomb_of_header_fields(victim: Broker) -> None:
    """Four kilobytes in the table, named thousands of times in a few bytes."""
    entry = b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4_000
    bomb = entry + b"\xbe" * 16_000
    assert flood(victim, headers(1, bomb)).calm()


def test_many_large_header_blocks(victim: Broker) -> None:
    noise = random.Random(1)
    sent = b""
    for id in range(1, 401, 2):
        value = bytes(noise.randrange(97, 123) for _ in range(60))
        fields = [(b"x-%d" % at, value) for at in range(150)]
        sent += headers(id, block(ENQUEUE, *fields))
    ended = frames.frame(frames.PING, 0, 0, b"finished")
    with socket.create_connection(victim.address, timeout=30) as opened:
        opened.sendall(HELLO + sent + ended)
        back = b""
        while frames.ping_ack(b"finished") not in back:
            more = opened.recv(1 << 16)
            assert more, "they are large, and allowed: the connection stays"
            back += more


def test_a_message_that_is_promised_and_never_sent(victim: Broker) -> None:
    before = victim.rss_bytes()
    peers = [RawPeer(victim.address) for _ in range(20)]
    for peer in peers:
        for _ in range(20):
            stream = peer.open(ENQUEUE)
            peer.http2.send_data(stream, struct.pack(">BI", 0, 60_000_000) + b"x" * 500)
        peer.http2.ping(b"finished")
        peer.flush()
    for peer in peers:
        while not any(isinstance(event, h2.events.PingAckReceived) for event in peer.events):
            assert peer.read(), "promises cost nothing: the connection stays"
    assert victim.rss_bytes() - before < 60_000_000, "four hundred times 60 MB are promised"
    for peer in peers:
        peer.close()


def test_large_messages_that_are_never_finished_are_bounded_per_connection(
    own_broker: Callable[..., Broker],
) -> None:
    with own_broker(settings={"connection.max_message_size": 4_000_000}) as broker:
        before = broker.rss_bytes()
        with RawPeer(broker.address).settle() as peer:
            streams = []
            for _ in range(20):
                stream = peer.open(ENQUEUE)
                peer.http2.send_data(stream, struct.pack(">BI", 0, 3_900_000))
                streams.append(stream)
            refused = set()
            for stream in streams:
                for _ in range(230):
                    room = _room(peer, stream)
                    if room <= 0 or stream in refused:
                        break
                    peer.http2.send_data(stream, b"x" * room)
                    peer.flush()
                    refused |= _drain(peer)
            assert len(refused) >= 15
            assert broker.rss_bytes() - before < 40_000_000
        with Client(broker.address) as client:
            client.create_queue("q")


def test_a_client_that_gives_no_window_holds_only_its_own_answers(victim: Broker) -> None:
    """A thousand calls whose answers it never lets through."""
    with RawPeer(victim.address, window=0) as peer:
        streams = [peer.open("/fila.v1.FilaAdmin/ListQueues") for _ in range(900)]
        for stream in streams:
            peer.send(stream, b"")
        with Client(victim.address) as client:
            depth = client.stats("q").depth
            client.enqueue("q", b"x")
            assert client.stats("q").depth == depth + 1
        assert not any(peer.data(stream) for stream in streams)


def test_windows_that_shrink_and_grow_are_followed(victim: Broker) -> None:
    with Client(victim.address) as client:
        client.enqueue("q", *[b"x" * 1_000] * 100)
    with socket.create_connection(victim.address, timeout=10) as opened:
        consume = prefixed(pb.ConsumeRequest(queue="q").SerializeToString())
        opened.sendall(
            HELLO
            + headers(1, block("/fila.v1.FilaService/Consume"))
            + frames.frame(frames.DATA, frames.END_STREAM, 1, consume)
        )
        for size in [0, 1, 65_535, 0, 1 << 30, 7] * 50:
            opened.sendall(frames.settings({frames.INITIAL_WINDOW_SIZE: size}))
        assert opened.recv(1 << 16)


def test_one_byte_of_window_at_a_time(victim: Broker) -> None:
    with Client(victim.address) as client:
        client.enqueue("q", *[b"x" * 1_000] * 10)
    with socket.create_connection(victim.address, timeout=10) as opened:
        consume = prefixed(pb.ConsumeRequest(queue="q").SerializeToString())
        opened.sendall(
            frames.PREFACE
            + frames.settings({frames.INITIAL_WINDOW_SIZE: 0})
            + headers(1, block("/fila.v1.FilaService/Consume"))
            + frames.frame(frames.DATA, frames.END_STREAM, 1, consume)
        )
        for _ in range(3_000):
            opened.sendall(frames.window_update(1, 1))
        received = opened.recv(1 << 20)
        assert received


def test_a_connection_flooding_calls_does_not_stop_others(victim: Broker) -> None:
    """Whoever sends thousands of calls in one write gets them done in pieces."""
    with socket.create_connection(victim.address, timeout=30) as hog, victim.peer() as peer:
        hog.setblocking(False)
        peer.ping()
        calls = b"".join(
            headers(id) + frames.frame(frames.DATA, frames.END_STREAM, id, prefixed(b""))
            for id in range(1, 60_001, 2)
        )
        data = HELLO + calls
        waits = []
        sent = 0
        while sent < len(data):
            try:
                sent += hog.send(data[sent : sent + 1_000_000])
            except BlockingIOError:
                pass
            try:
                hog.recv(1 << 20)
            except BlockingIOError:
                pass
            except ConnectionError:
                break
            began = time.monotonic()
            peer.ping()
            waits.append(time.monotonic() - began)
        assert len(waits) > 3
        # All thirty thousand at once would be minutes on a busy machine.
        assert sorted(waits)[len(waits) // 2] < 5, waits


def test_random_bytes_after_a_good_beginning(victim: Broker) -> None:
    noise = random.Random(7)
    for seed in range(60):
        content = HELLO + headers(1)
        for _ in range(noise.randrange(1, 30)):
            kind = noise.randrange(0, 12)
            size = noise.choice((0, 1, 4, 5, 6, 8, 30, 300))
            content += frames.frame(
                kind, noise.randrange(256), noise.choice((0, 1, 2, 3, 5)), os.urandom(size)
            )
        with socket.create_connection(victim.address, timeout=5) as opened:
            try:
                opened.sendall(content)
                opened.shutdown(socket.SHUT_WR)
                while opened.recv(1 << 16):
                    pass
            except (ConnectionError, TimeoutError):
                pass
        assert victim.alive(), f"seed {seed}\n{victim.log()}"


def test_mutated_calls(victim: Broker) -> None:
    noise = random.Random(3)
    request = prefixed(pb.EnqueueRequest(messages=[message("q", b"x" * 20)]).SerializeToString())
    good = (
        HELLO
        + headers(1)
        + frames.frame(frames.DATA, frames.END_STREAM, 1, request)
        + headers(3, block("/fila.v1.FilaService/StreamEnqueue"))
        + frames.frame(frames.DATA, 0, 3, request * 3)
    )
    for seed in range(150):
        content = bytearray(good)
        for _ in range(noise.randrange(1, 6)):
            content[noise.randrange(len(frames.PREFACE), len(content))] = noise.randrange(256)
        with socket.create_connection(victim.address, timeout=2) as opened:
            try:
                opened.sendall(bytes(content))
                opened.shutdown(socket.SHUT_WR)
                while opened.recv(1 << 16):
                    pass
            except (ConnectionError, TimeoutError):
                pass
        assert victim.alive(), f"seed {seed}\n{victim.log()}"


def test_two_hundred_slow_connections(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"connection.handshake_timeout_ms": 1_500}) as broker:
        slow = [socket.create_connection(broker.address, timeout=10) for _ in range(200)]
        words = HELLO + headers(1)[:20]
        for at in range(len(words)):
            for opened in slow:
                try:
                    opened.sendall(words[at : at + 1])
                except ConnectionError:
                    pass
        with Client(broker.address) as client, broker.peer() as peer:
            client.create_queue("q")
            peer.ping()
        for opened in slow:
            try:
                while opened.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
            opened.close()
        assert broker.alive()


def test_many_items_in_few_bytes_are_refused_before_they_grow(victim: Broker) -> None:
    """Ten million empty messages in twenty megabytes."""
    before = victim.rss_bytes()
    peak = before
    with Client(victim.address) as client:
        for path in ("Enqueue", "Ack", "Nack"):
            raw = client.channel.unary_unary(f"/fila.v1.FilaService/{path}")
            call = raw.future(b"\x0a\x00" * 10_000_000, timeout=30)
            while not call.done():
                peak = max(peak, victim.rss_bytes())
                time.sleep(0.005)
            assert call.code().name == "INVALID_ARGUMENT"
    assert peak - before < 120_000_000


def _room(peer: RawPeer, stream: int) -> int:
    """How much may be sent now; waits a while for a busy broker to open the window."""
    limit = time.monotonic() + 5
    while time.monotonic() < limit:
        room = peer.http2.local_flow_control_window(stream)
        if room > 0 or stream in _drain(peer):
            return min(16_384, room)
        time.sleep(0.01)
    return 0


def _drain(peer: RawPeer) -> set[int]:
    """Streams that were refused so far."""
    peer.socket.setblocking(False)
    try:
        while data := peer.socket.recv(1 << 18):
            peer.events += peer.http2.receive_data(data)
    except (BlockingIOError, InterruptedError):
        pass
    finally:
        peer.socket.setblocking(True)
    return {
        event.stream_id  # type: ignore[attr-defined]
        for event in peer.events
        if ("grpc-status", "8") in (getattr(event, "headers", None) or [])
    }


def test_whole_messages_of_calls_that_never_finish_are_bounded(
    own_broker: Callable[..., Broker],
) -> None:
    with own_broker(settings={"connection.max_message_size": 1_000_000}) as broker:
        before = broker.rss_bytes()
        with RawPeer(broker.address).settle() as peer:
            refused: set[int] = set()
            content = prefixed(bytes(400_000))
            for _ in range(100):
                stream = peer.open(ENQUEUE)
                for at in range(0, len(content), 16_000):
                    while stream not in refused and (
                        peer.http2.local_flow_control_window(stream) < 16_000
                    ):
                        time.sleep(0.001)  # a slow broker: its window grows, or it refuses
                        refused |= _drain(peer)
                    if stream in refused:
                        break
                    peer.http2.send_data(stream, content[at : at + 16_000])
                    peer.flush()
                refused |= _drain(peer)

            def all_told() -> bool:
                return len(refused | _drain(peer)) >= 97

            wait_until(all_told, 20, "97 of a hundred to be refused")
            assert broker.rss_bytes() - before < 20_000_000


def test_unfinished_messages_of_many_connections_are_bounded_together(
    own_broker: Callable[..., Broker],
) -> None:
    settings = {
        "connection.max_inbound_bytes": 20_000_000,
        "connection.max_message_size": 16_000_000,
    }
    with own_broker(settings=settings) as broker:
        peers = [RawPeer(broker.address).settle() for _ in range(8)]
        refused = 0
        for peer in peers:
            stream = peer.open(ENQUEUE)
            peer.http2.send_data(stream, struct.pack(">BI", 0, 15_000_000))
            while peer.http2.local_flow_control_window(stream) >= 16_000:
                peer.http2.send_data(stream, bytes(16_000))
                peer.flush()
            time.sleep(0.05)
        for peer in peers:
            refused += len(_drain(peer))
        assert refused >= 2, "eight times four megabytes are more than twenty"
        with Client(broker.address) as client:
            client.create_queue("q")
            client.enqueue("q", b"small")
        for peer in peers:
            peer.close()
