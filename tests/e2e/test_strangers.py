"""Strangers at a real broker: whoever has not shown a key gets little, and takes it from nobody."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fila.edges.grpc import frames
from fila.edges.grpc.fields import encode
from fila.wire import bodies
from tests.e2e.listeners import CERTS, LISTENERS
from tests.e2e.peer import Peer
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client

MiB = 1 << 20
KEY = "a-key-nobody-guesses"


def connections(broker: Broker, count: int, data: bytes = b"") -> list[socket.socket]:
    made = []
    for _ in range(count):
        one = socket.create_connection(broker.address, 10)
        made.append(one)
        try:
            one.sendall(data)
        except ConnectionError:
            pass
    return made


def closed(one: socket.socket) -> bool:
    """Whether the broker has closed it."""
    one.settimeout(0.01)
    try:
        while one.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_silent_strangers_take_no_places_from_clients(own_broker: Callable[..., Broker]) -> None:
    settings = {"connection.max_unauthenticated": 20, "server.max_connections": 60}
    with own_broker(settings=settings) as broker, broker.peer() as before:
        strangers = connections(broker, 200)
        for _ in range(10):
            with broker.peer() as peer:  # a client that comes now
                peer.ping()
        before.ping()
        wait_until(lambda: sum(map(closed, strangers)) >= 170, 20, "strangers to go")
        for one in strangers:
            one.close()


def test_frames_before_the_handshake_cost_nothing(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"auth.bootstrap_apikey": KEY}) as broker:
        before = broker.rss_bytes()
        head = struct.pack(">IBBI", 16 * MiB, 0x01, 0, 1)
        strangers = connections(broker, 40, head + bytes(4 * MiB))
        wait_until(lambda: all(map(closed, strangers)), 20, "strangers to be closed")
        assert broker.rss_bytes() - before < 30 * MiB


def test_calls_without_a_key_cost_little(own_broker: Callable[..., Broker]) -> None:
    """Health checks ask for no key; a few may be open, with a little in them."""
    block = encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/grpc.health.v1.Health/Check"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
    )
    begun = b"".join(
        frames.frame(frames.HEADERS, frames.END_HEADERS, id, block)
        + frames.frame(frames.DATA, 0, id, struct.pack(">BI", 0, size) + bytes(4_000))
        for size in (4_090, 60_000)  # one that may come, and one that is refused
        for id in range(1 + 1_000 * (size > 5_000), 1_000 + 1_000 * (size > 5_000), 2)
    )
    with own_broker(settings={"auth.bootstrap_apikey": KEY}) as broker:
        before = broker.rss_bytes()
        ended = frames.frame(frames.PING, 0, 0, b"finished")
        hello = frames.PREFACE + frames.settings({})
        strangers = connections(broker, 20, hello + begun + ended)
        for one in strangers:
            back = b""
            try:
                while frames.ping_ack(b"finished") not in back and (more := one.recv(65_536)):
                    back += more
            except ConnectionError:
                pass  # it has sent too much
        assert broker.rss_bytes() - before < 40 * MiB
        with Client(broker.address, key=KEY) as client:
            client.create_queue("q")
            client.enqueue("q", bytes(3 * MiB))


def test_tls_handshakes_that_never_end_keep_nobody_out(own_broker: Callable[..., Broker]) -> None:
    settings = {
        "tls.cert_file": CERTS / "server.pem",
        "tls.key_file": CERTS / "server.key",
        "connection.max_unauthenticated": 20,
    }
    context = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
    with own_broker(settings=settings) as broker:
        strangers = connections(broker, 100)
        began = time.monotonic()
        with socket.create_connection(broker.address, 10) as plain:
            secured = context.wrap_socket(plain, server_hostname="localhost")
            assert secured.version() is not None
            secured.close()
        assert time.monotonic() - began < 10
        wait_until(lambda: sum(map(closed, strangers)) >= 70, 20, "handshakes to be given up")
        for one in strangers:
            one.close()
        assert broker.alive() and "Traceback" not in broker.log()


def was_closed(peer: Peer) -> bool:
    """Whether the broker has closed it, though it has not read what came before."""
    try:
        peer.post(bodies.Ping())
    except OSError:
        return True
    return False


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_clients_that_read_nothing_are_closed_before_they_cost_others_their_memory(
    tmp_path: Path, kind: str
) -> None:
    listener = LISTENERS[kind]
    listener = listener._replace(
        settings={**listener.settings, "connection.max_unread_bytes": 32 * MiB}
    )
    connect = listener.attacker()
    with listener.broker(tmp_path / "data") as broker, broker.peer() as peer:
        peer.create_queue("q")
        for _ in range(32):  # more than all their kernels take
            peer.enqueue("q", *[bytes(100_000)] * 100)
        before = broker.rss_bytes()
        reading = connect(broker.address, receive_buffer_bytes=65_536)
        stream = reading.consume("q", 100)
        enough = threading.Event()

        def read() -> int:
            """Slowly, and never one of those that are closed."""
            taken = 0
            while not enough.is_set():
                reading.ack("q", reading.take_one(stream).id)
                taken += 1
                time.sleep(0.005)
            return taken

        with ThreadPoolExecutor(1) as aside:
            read_by_then = aside.submit(read)
            stuck = [connect(broker.address, receive_buffer_bytes=4_096) for _ in range(30)]
            try:
                for one in stuck:
                    with contextlib.suppress(OSError):
                        one.post(bodies.Consume("q", 65_535))
                wait_until(lambda: any(map(was_closed, stuck)), 20, "some to be closed")
            finally:
                enough.set()
            assert read_by_then.result(30) > 0
        assert broker.rss_bytes() - before < 90 * MiB
        reading.ping()
        for one in (*stuck, reading):
            one.close()
