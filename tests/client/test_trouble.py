"""Both clients when things go wrong: lost, slow, silent and malformed peers, on real sockets."""

import socket
import ssl
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from fila import (
    BatchError,
    ConnectFailedError,
    ConnectionLostError,
    FilaError,
    OverloadedError,
    ProtocolError,
    QueueNotFoundError,
    RequestTimeoutError,
    UnauthorizedError,
    UnsupportedVersionError,
)
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from fila.wire.states import State
from tests.client.drivers import SyncDriver
from tests.client.peer import Connection, Peer, TinyBroker, ids_of, items_in
from tests.e2e.process import wait_until

FAST = {"reconnect_pause_min_ms": 5, "reconnect_pause_max_ms": 50}
CERTS = Path(__file__).parent / "certs"


def _silent(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """A peer that listens and never answers."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


# Connecting.


def test_nobody_listening_is_told_at_once(driver: SyncDriver) -> None:
    address = f"127.0.0.1:{_free_port()}"
    started = time.monotonic()
    with pytest.raises(ConnectFailedError, match=f"cannot connect to {address}: connection refus"):
        driver.open(address)
    assert time.monotonic() - started < 20  # not the half minute a connection may take


def test_a_host_that_does_not_exist_is_named(driver: SyncDriver) -> None:
    with pytest.raises(ConnectFailedError, match=r"no-such-host\.invalid:5555: the host name"):
        driver.open("no-such-host.invalid")


def test_a_peer_that_never_answers_the_handshake_is_given_up(driver: SyncDriver) -> None:
    with Peer(_silent, welcome=lambda connection, handshake: None) as peer:
        with pytest.raises(ConnectFailedError, match=r"did not answer the handshake within 0\.1 s"):
            driver.open(peer.address, connect_timeout=0.1)
        peer.wait_for(peer.connections[0].closed.is_set)


def test_a_peer_that_hangs_up_is_told(driver: SyncDriver) -> None:
    with (
        Peer(_silent, welcome=lambda connection, handshake: connection.cut()) as peer,
        pytest.raises(ConnectFailedError, match=r"the broker closed the connection|reset"),
    ):
        driver.open(peer.address)


def test_the_brokers_reason_for_refusing_is_raised(driver: SyncDriver) -> None:
    def refuse(connection: Connection, handshake: b.Handshake) -> None:
        if handshake.api_key != "right":
            connection.error(0, codes.UNAUTHORIZED, "API key is not valid")
        else:
            connection.error(0, codes.UNSUPPORTED_VERSION, "speak version 2", max_version="2")

    with Peer(_silent, welcome=refuse) as peer:
        with pytest.raises(UnauthorizedError, match="API key is not valid"):
            driver.open(peer.address, api_key="wrong")
        with pytest.raises(UnsupportedVersionError) as caught:
            driver.open(peer.address, api_key="right")
        assert caught.value.metadata == {"max_version": "2"}


def test_a_peer_that_speaks_something_else_is_a_protocol_error(driver: SyncDriver) -> None:
    def greet(connection: Connection, handshake: b.Handshake) -> None:
        connection.send_raw(b"220 mail.example ESMTP ready\r\n")

    with (
        Peer(_silent, welcome=greet) as peer,
        pytest.raises(ProtocolError, match="bytes that are no frame"),
    ):
        driver.open(peer.address)


# Losing the connection.


def test_a_client_comes_back_and_its_consumers_with_it(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address, **FAST)
    driver.call(client, "create_queue", "q")
    consumer = driver.call(client, "consume", "q")
    driver.call(client, "enqueue", "q", None, b"before")
    driver.call(driver.next(consumer), "ack")
    for _ in range(3):
        connections = len(peer.connections)
        peer.connections[-1].cut()
        assert len(driver.call(client, "list_queues")) == 2  # a read is asked again by itself
        assert len(peer.connections) == connections + 1
        driver.call(client, "enqueue", "q", None, b"after")
        message = driver.next(consumer)
        assert message.payload == b"after"
        driver.call(message, "ack")
    assert len(broker.acked) == 4
    driver.call(client, "close")


def test_a_broker_that_restarts_is_found_again(driver: SyncDriver, broker: TinyBroker) -> None:
    broker.queues["q"] = deque()
    first = Peer(broker)
    client = driver.open(first.address, **FAST)
    consumer = driver.call(client, "consume", "q")
    first.close()
    # What is sent before the client knows fails, as it should: it may have been stored.
    wait_until(lambda: client._link.exchange._state is State.CLOSED, 10, "the client to know")
    waiting = driver.start(client, "enqueue", "q", None, b"patient", timeout=10)
    time.sleep(0.1)
    with Peer(broker, port=first.port):
        assert driver.next(consumer).payload == b"patient"
        waiting.join(5)
        assert isinstance(waiting.outcome, str)  # type: ignore[attr-defined]
        driver.call(client, "close")


def test_an_unanswered_call_fails_when_the_connection_does(driver: SyncDriver) -> None:
    def hang_up(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode in (op.ENQUEUE, op.CREATE_QUEUE):
            connection.cut()

    with Peer(hang_up) as peer:
        client = driver.open(peer.address, **FAST)
        with pytest.raises(ConnectionLostError, match="lost before the broker answered"):
            driver.call(client, "enqueue", "q")
        with pytest.raises(ConnectionLostError):
            driver.call(client, "create_queue", "q")
        driver.call(client, "close")


def test_a_goodbye_from_the_broker_is_a_lost_connection(driver: SyncDriver) -> None:
    def leave(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.ENQUEUE:
            connection.send(0, b.Disconnect())

    with Peer(leave) as peer:
        client = driver.open(peer.address, **FAST)
        with pytest.raises(ConnectionLostError, match="closed the connection"):
            driver.call(client, "enqueue", "q")
        peer.wait_for(lambda: len(peer.connections) == 2)
        driver.call(client, "close")


def test_a_client_may_choose_not_to_come_back(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address, reconnect=False)
    driver.call(client, "create_queue", "q")
    consumer = driver.call(client, "consume", "q")
    assert driver.call(consumer, "receive", timeout=0.01) is None
    peer.connections[0].cut()
    with pytest.raises(ConnectionLostError):
        driver.next(consumer)
    with pytest.raises(ConnectionLostError):
        driver.call(client, "enqueue", "q")
    assert len(peer.connections) == 1
    driver.call(client, "close")


# Time.


def test_every_call_has_a_timeout(driver: SyncDriver) -> None:
    with Peer(_silent) as peer:
        client = driver.open(peer.address, timeout=0.05)
        for method, args in (
            ("enqueue", ["q"]),
            ("enqueue_many", [[("q", None, b"")]]),
            ("ack", ["q", "id"]),
            ("nack_many", ["q", ["id"]]),
            ("list_queues", []),
            ("create_queue", ["q"]),
        ):
            with pytest.raises(RequestTimeoutError, match=r"within 0\.05 s"):
                driver.call(client, method, *args)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            driver.call(client, "get_stats", "q", timeout=0.2)
        assert time.monotonic() - started > 0.15
        driver.call(client, "close")


def test_a_call_during_an_outage_says_why_it_timed_out(driver: SyncDriver) -> None:
    peer = Peer(_silent)
    client = driver.open(peer.address, **FAST)
    peer.close()
    with pytest.raises(FilaError):  # lost, or late: the client may not have noticed yet
        driver.call(client, "enqueue", "q", timeout=0.1)
    with pytest.raises(RequestTimeoutError, match=r"not connected \(connection refused"):
        driver.call(client, "enqueue", "q", timeout=0.3)
    driver.call(client, "close")


def test_a_silent_peer_is_pinged_and_left(driver: SyncDriver) -> None:
    with Peer(_silent) as peer:
        client = driver.open(peer.address, keepalive_interval=0.05, keepalive_timeout=0.05, **FAST)
        peer.wait_for(lambda: len(peer.connections) >= 2)
        assert peer.connections[0].count(op.PING) == 1
        driver.call(client, "close")


def test_pings_keep_a_quiet_connection(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address, keepalive_interval=0.03, keepalive_timeout=1.0)
    peer.wait_for(lambda: peer.connections[0].count(op.PING) >= 3)
    assert len(peer.connections) == 1
    driver.call(client, "close")


def test_the_client_answers_pings(driver: SyncDriver) -> None:
    pongs: list[int] = []

    def ping(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.PONG:
            pongs.append(request_id)
        elif opcode == op.ENQUEUE:
            connection.send(4242, b.Ping())
            connection.send(request_id, b.EnqueueResult(ids_of(1)))

    with Peer(ping) as peer:
        client = driver.open(peer.address)
        driver.call(client, "enqueue", "q")
        peer.wait_for(lambda: pongs == [4242])
        driver.call(client, "close")


# Load.


def test_calls_made_at_once_share_frames(driver: SyncDriver) -> None:
    sizes: list[int] = []

    def slow(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.ENQUEUE:
            sizes.append(items_in(body))
            time.sleep(0.05)
            connection.send(request_id, b.EnqueueResult(ids_of(sizes[-1])))

    with Peer(slow) as peer:
        client = driver.open(peer.address)
        calls = [driver.start(client, "enqueue", "q", None, str(n)) for n in range(20)]
        for call in calls:
            call.join(10)
            assert isinstance(call.outcome, str)  # type: ignore[attr-defined]
        assert sum(sizes) == 20
        assert len(sizes) <= 4
        driver.call(client, "close")


def test_linger_collects_for_its_time(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address, batch="linger", linger_ms=60)
    driver.call(client, "create_queue", "q")
    started = time.monotonic()
    for n in range(10):
        driver.call(client, "enqueue_soon", "q", None, str(n))
    driver.call(client, "flush")
    assert time.monotonic() - started >= 0.055
    assert peer.connections[0].count(op.ENQUEUE) == 1
    driver.call(client, "close")


def test_a_producer_waits_when_too_much_is_under_way(driver: SyncDriver) -> None:
    gate = threading.Event()

    def slow(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.ENQUEUE:
            gate.wait(10)
            connection.send(request_id, b.EnqueueResult(ids_of(items_in(body))))

    with Peer(slow) as peer:
        client = driver.open(peer.address, in_flight_bytes_max=10_000)
        for _ in range(9):
            driver.call(client, "enqueue_soon", "q", None, b"x" * 1000)
        with pytest.raises(RequestTimeoutError, match="enqueue_soon"):
            driver.call(client, "enqueue_soon", "q", None, b"x" * 1000, timeout=0.05)
        waiting = driver.start(client, "enqueue_soon", "q", None, b"y" * 1000)
        time.sleep(0.05)
        assert waiting.is_alive()
        gate.set()
        waiting.join(5)
        assert not waiting.is_alive()
        driver.call(client, "flush")
        driver.call(client, "close")


def test_a_peer_that_does_not_read_blocks_neither_answers_nor_deliveries(
    driver: SyncDriver,
) -> None:
    """The socket is full in our direction; what comes from the peer is still handled."""
    stuck_once: list[int] = []
    read_on = threading.Event()

    def stuck(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if opcode == op.CONSUME:
            connection.send(request_id, b.ConsumeOk("c"))
        elif opcode == op.ENQUEUE and not stuck_once:
            stuck_once.append(request_id)
            stream_id = next(i for code, i, _ in connection.frames if code == op.CONSUME)
            item = b.DeliveryItem("id", "q", {}, b"through", "default", 1, (), 0, 1, 2)
            connection.send(stream_id, b.Delivery((item,)))
            read_on.wait(10)
            connection.send(request_id, b.EnqueueResult(ids_of(1)))
        elif opcode == op.ENQUEUE:
            connection.send(request_id, b.EnqueueResult(ids_of(items_in(body))))

    with Peer(stuck) as peer:
        client = driver.open(peer.address, batch="off")
        consumer = driver.call(client, "consume", "q")
        big = b"x" * 4_000_000
        calls = [driver.start(client, "enqueue", "q", None, big, timeout=20) for _ in range(4)]
        assert driver.call(consumer, "receive", timeout=5).payload == b"through"
        read_on.set()
        for call in calls:
            call.join(20)
            assert isinstance(call.outcome, str)  # type: ignore[attr-defined]
        driver.call(client, "close")


def test_an_overloaded_broker_says_when_to_come_back(driver: SyncDriver) -> None:
    def full(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        connection.error(request_id, codes.CHANNEL_FULL, "overloaded", retry_after_ms="120")

    with Peer(full) as peer:
        client = driver.open(peer.address)
        with pytest.raises(OverloadedError) as caught:
            driver.call(client, "enqueue", "q")
        assert caught.value.retry_after_ms == 120
        with pytest.raises(BatchError):
            driver.call(client, "enqueue_many", [("q", None, b""), ("r", None, b"")])
        driver.call(client, "close")


# Nonsense.


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x00\x00\x00\x01",
        b"\xff\xff\xff\xff\x11\x00\x00\x00\x00\x01",
        encode_frames(op.ENQUEUE_RESULT, 1, b"\x00\x00\x00\x09"),
        encode_frames(op.ENQUEUE_RESULT, 1, b"\x00\x00\x00\x00"),
        encode_frames(op.ERROR, 1, b"\x01\x00\x05"),
        encode_frames(op.ACK_RESULT, 1, b"\x00\x00\x00\x00"),
    ],
    ids=["short length", "lying length", "lying count", "too few", "cut error", "wrong answer"],
)
def test_nonsense_costs_the_connection_and_not_the_client(
    driver: SyncDriver, broker: TinyBroker, nonsense: bytes
) -> None:
    def confused(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        if len(connection.peer.connections) == 1:
            connection.send_raw(nonsense)
        else:
            broker(connection, opcode, request_id, body)

    broker.queues["q"] = deque()
    with Peer(confused) as peer:
        client = driver.open(peer.address, **FAST)
        with pytest.raises(FilaError):
            driver.call(client, "enqueue", "q", timeout=5)
        assert isinstance(driver.call(client, "enqueue", "q", timeout=5), str)
        driver.call(client, "close")


# TLS.


def _server_context(client_certificates: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTS / "server.pem", CERTS / "server.key")
    context.set_alpn_protocols(["fila/1", "h2"])
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTS / "ca.pem")
    return context


def test_tls_carries_everything(driver: SyncDriver, broker: TinyBroker) -> None:
    with Peer(broker, tls=_server_context(False)) as peer:
        client = driver.open(peer.address, tls_ca=str(CERTS / "ca.pem"))
        sock: Any = peer.connections[0].sock
        assert sock.selected_alpn_protocol() == "fila/1"
        driver.call(client, "create_queue", "q")
        ids = driver.call(client, "enqueue_many", [("q", None, b"x" * 10_000)] * 300)
        consumer = driver.call(client, "consume", "q", prefetch=300)
        received = [driver.next(consumer).id for _ in range(300)]
        assert received == ids
        driver.call(client, "close")
        peer.wait_for(lambda: not broker.leased)


def test_tls_with_a_client_certificate(driver: SyncDriver, broker: TinyBroker) -> None:
    with Peer(broker, tls=_server_context(True)) as peer:
        client = driver.open(
            "https://" + peer.address,
            tls_ca=str(CERTS / "ca.pem"),
            tls_cert=str(CERTS / "client.pem"),
            tls_key=str(CERTS / "client.key"),
        )
        driver.call(client, "create_queue", "q")
        driver.call(client, "close")
    assert "q" in broker.queues


def test_a_certificate_nobody_vouches_for_is_refused(driver: SyncDriver) -> None:
    with (
        Peer(_silent, tls=_server_context(False)) as peer,
        pytest.raises(ConnectFailedError, match="certificate verify failed"),
    ):
        driver.open(peer.address, tls=True)


def test_tls_files_that_are_not_there_are_named(driver: SyncDriver) -> None:
    with pytest.raises(ValueError, match=r"cannot use the TLS files /nowhere/ca\.pem"):
        driver.open("localhost", tls_ca="/nowhere/ca.pem")


def test_a_queue_error_keeps_its_class_across_threads(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    calls = [driver.start(client, "enqueue", "nowhere") for _ in range(5)]
    outcomes = []
    for call in calls:
        call.join(5)
        outcomes.append(call.outcome)  # type: ignore[attr-defined]
    assert all(isinstance(outcome, QueueNotFoundError) for outcome in outcomes)
    assert len({id(outcome) for outcome in outcomes}) == 5
    driver.call(client, "close")
