"""Two hundred connections that say their first words a byte at a time: all are shown the door.

What they say never ends in time, however lively it looks: the time for it counts from the beginning
of the connection, not from the last byte.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fila.wire import bodies, layouts
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from tests.e2e.listeners import LISTENERS
from tests.e2e.peer import Peer
from tests.e2e.process import Broker
from tests.grpc.client import Client

CONNECTIONS = 200
PATIENCE_MS = 1_500
PAUSE_S = 0.1
SERVED_S = 20.0  # a busy machine is no fault of the broker; half a minute of waiting would be
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)


def fibp_handshake() -> bytes:
    return encode_frames(op.HANDSHAKE, 1, layouts.encode(bodies.Handshake(1, "x" * 200)))


def tls_hello() -> bytes:
    """What a client says first, as bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("listener", "words"),
    [
        ("plain", fibp_handshake),
        ("plain", lambda: PREFACE),
        ("plain", lambda: b""),
        ("tls", tls_hello),
        ("tls", lambda: b""),
        ("keys", fibp_handshake),
    ],
    ids=["handshake", "HTTP/2 preface", "nothing", "TLS hello", "nothing to TLS", "asked for keys"],
)
def test_two_hundred_slow_connections_are_closed_and_nobody_else_waits(
    tmp_path: Path, listener: str, words: Callable[[], bytes]
) -> None:
    kind = LISTENERS[listener]
    settings = {**kind.settings, "connection.handshake_timeout_ms": PATIENCE_MS}
    with kind._replace(settings=settings).broker(tmp_path / "data") as broker:
        begun = time.monotonic()
        slow = [socket.create_connection(broker.address, timeout=10) for _ in range(CONNECTIONS)]
        said = words()
        slowest_s = 0.0
        with broker.peer() as open_already:
            open_already.create_queue("q")
            at = 0
            while time.monotonic() - begun < PATIENCE_MS / 1000 + 0.5:
                _say(slow, said[at : at + 1])
                at = min(at + 1, len(said) - 2) if said else 0  # the last byte never comes
                slowest_s = max(slowest_s, _served(broker, open_already))
                time.sleep(PAUSE_S)
            for opened in slow:
                _until_closed(opened)
        assert slowest_s < SERVED_S
        assert "Traceback" not in broker.log()
        with broker.peer() as peer:
            assert peer.stats("q").depth > 0


def test_two_hundred_calls_that_never_end_hold_nobody_up(tmp_path: Path) -> None:
    """Past the first words: HTTP/2 clients with a call whose message never comes."""
    from tests.grpc.test_abuse import HELLO, headers

    with LISTENERS["plain"].broker(tmp_path / "data") as broker:
        slow = [socket.create_connection(broker.address, timeout=10) for _ in range(CONNECTIONS)]
        for opened in slow:
            opened.sendall(HELLO + headers(1))
        with Client(broker.address) as client, broker.peer() as peer:
            client.create_queue("q")
            for number in range(10):
                _say(slow, b"")
                began = time.monotonic()
                client.enqueue("q", b"%d" % number)
                peer.ping()
                assert time.monotonic() - began < SERVED_S
        for opened in slow:
            opened.close()
        assert broker.stop() == 0


def _say(slow: list[socket.socket], word: bytes) -> None:
    for opened in slow:
        with contextlib.suppress(ConnectionError):
            opened.sendall(word)


def _served(broker: Broker, open_already: object) -> float:
    """How long an old and a new client wait for a whole exchange."""
    began = time.monotonic()
    open_already.enqueue("q", b"x")  # type: ignore[attr-defined]
    with broker.peer() as new:
        new.ping()
    return time.monotonic() - began


def _until_closed(opened: socket.socket) -> None:
    """Whatever was said on the way, the end has to come."""
    opened.settimeout(3)
    with contextlib.suppress(ConnectionError), opened:
        while opened.recv(1 << 16):
            pass


@pytest.mark.parametrize("words", [b"", b"\x00\x00", PREFACE], ids=["none", "FIBP", "HTTP/2"])
def test_tls_connections_that_come_and_go_leave_nothing_behind(
    tmp_path: Path, words: bytes
) -> None:
    """The buffers of one are a hundred KiB and more: they must go with it, not some time later."""
    listener = LISTENERS["tls"]
    with listener.broker(tmp_path / "data") as broker:
        for _ in range(20):
            _come_and_go(listener.attacker()(broker.address, handshake=False), words)
        before = broker.rss_bytes()
        for _ in range(CONNECTIONS):
            _come_and_go(listener.attacker()(broker.address, handshake=False), words)
        with broker.peer() as peer:
            peer.ping()
        grown = broker.rss_bytes() - before
    assert grown < CONNECTIONS * 16 * 1024, f"{grown // CONNECTIONS} bytes for each"


def _come_and_go(peer: Peer, words: bytes) -> None:
    if words:
        peer.send_bytes(words)
    peer.close()
