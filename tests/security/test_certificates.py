"""Certificates: what keeps the broker from starting, what stops a client, new ones on SIGHUP."""

import json
import signal
import socket
import ssl
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

import grpc
from fila import FilaClient
from fila.edges.grpc.v1 import health_pb2
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client
from tests.http.visitor import HttpBroker
from tests.security.certificates import OPENSSL, Authority, Certificate, encrypted

HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")


class World(NamedTuple):
    authority: Authority
    server: Certificate
    client: Certificate
    stranger: Authority


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    place = tmp_path_factory.mktemp("certificates")
    authority = Authority(place / "ours")
    return World(
        authority, authority.issue("server"), authority.issue("client"), Authority(place / "other")
    )


def settings(pair: Certificate, ca: Path | None = None) -> dict[str, object]:
    found: dict[str, object] = {"tls.cert_file": pair.cert, "tls.key_file": pair.key}
    return found | ({"tls.ca_file": ca} if ca else {})


@pytest.fixture(scope="module")
def secured(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Certificates on both sides, and little patience."""
    patience = {"connection.handshake_timeout_ms": 1_000}
    every = settings(world.server, world.authority.cert) | patience
    with Broker(tmp_path_factory.mktemp("mtls") / "data", settings=every) as started:
        yield started


def context(world: World, pair: Certificate | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(world.authority.cert))
    if pair is not None:
        made.load_cert_chain(pair.cert, pair.key)
    return made


def get_through(broker: Broker, world: World) -> None:
    """Both protocols work for a client as it should be."""
    host, port = broker.address
    options = {"tls_ca": str(world.authority.cert)}
    pair = {"tls_cert": str(world.client.cert), "tls_key": str(world.client.key)}
    with FilaClient(f"{host}:{port}", **options, **pair) as fibp:  # type: ignore[arg-type]
        assert isinstance(fibp.list_queues(), list)
    credentials = grpc.ssl_channel_credentials(
        world.authority.cert.read_bytes(),
        world.client.key.read_bytes(),
        world.client.cert.read_bytes(),
    )
    with Client(broker.address, credentials=credentials) as client:
        found = client.call("Check", health_pb2.HealthCheckRequest())
        assert found.status == health_pb2.HealthCheckResponse.SERVING


# --- starting


def test_a_broker_says_in_one_line_why_it_cannot_use_its_certificate(
    world: World, tmp_path: Path
) -> None:
    early = world.authority.issue("early", days_from=10, days_until=20)
    other = world.authority.issue("other")
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    missing = tmp_path / "missing.pem"
    server = world.server
    cases: list[tuple[dict[str, object], str]] = [
        (settings(Certificate(missing, server.key)), f"tls.cert_file: {missing}: No such file"),
        (settings(Certificate(server.cert, missing)), f"tls.key_file: {missing}: No such file"),
        (settings(Certificate(server.cert, other.key)), "does not belong to"),
        (settings(early), f"{early.cert} is not valid before"),
        (settings(Certificate(nothing, server.key)), "holds no certificate"),
        (settings(Certificate(server.cert, encrypted(server.key))), "is encrypted"),
        (settings(server, nothing), "tls.ca_file"),
        (settings(server, missing), f"tls.ca_file: {missing}: No such file"),
        ({"tls.cert_file": server.cert}, "cert_file and key_file go together"),
        ({"tls.ca_file": world.authority.cert}, "cert_file and key_file are missing"),
    ]
    for number, (given, expected) in enumerate(cases):
        broker = Broker(tmp_path / f"data{number}", settings=given)
        broker.launch()
        assert broker.wait(20) == 1, expected
        lines = [line for line in broker.log().splitlines() if line.startswith("fila-server:")]
        assert len(lines) == 1 and expected in lines[0], broker.log()
        assert "Traceback" not in broker.log()


def test_an_expired_certificate_is_told_loudly_and_does_not_keep_the_broker_from_starting(
    world: World, tmp_path: Path
) -> None:
    expired = world.authority.issue("expired", days_from=-20, days_until=-10)
    broker = HttpBroker(tmp_path / "data", settings=settings(expired))
    with broker.start():
        # The log is written by a thread of its own.
        wait_until(lambda: "certificate expired on" in broker.log(), 30, "the log line")
        said = [json.loads(line) for line in broker.log().splitlines()]
        (loud,) = [line for line in said if "certificate expired on" in line["message"]]
        assert loud["level"] == "error" and loud["cert_file"] == str(expired.cert)
        careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(broker.address, timeout=5) as plain:
            assert careless.wrap_socket(plain).version() is not None
        address = "{}:{}".format(*broker.http_address)
        ready = urlopen(f"https://{address}/readyz", context=careless, timeout=5)
        assert ready.status == 200
        first, second = ready.read().decode().splitlines()
        assert first == "ready" and second.startswith("warning: the server certificate expired on")
        assert str(expired.cert) not in second  # everybody may read this page
        metrics = urlopen(f"https://{address}/metrics", context=careless, timeout=5).read().decode()
        (value,) = [
            float(line.split()[-1])
            for line in metrics.splitlines()
            if line.startswith("fila_tls_certificate_expires_in")
        ]
        assert -11 * 86_400 < value < -9 * 86_400


# --- clients


def test_a_client_with_its_certificate_gets_through(secured: Broker, world: World) -> None:
    get_through(secured, world)


@pytest.mark.parametrize("who", ["none", "of another authority", "expired", "not yet valid"])
def test_a_client_without_a_valid_certificate_does_not(
    secured: Broker, world: World, who: str
) -> None:
    pair = {
        "none": lambda: None,
        "of another authority": lambda: world.stranger.issue("intruder"),
        "expired": lambda: world.authority.issue("late", -20, -10),
        "not yet valid": lambda: world.authority.issue("soon", 10, 20),
    }[who]()
    plain = socket.create_connection(secured.address, timeout=5)
    port = plain.getsockname()[1]
    with (
        plain,
        # In TLS 1.3 the client believes itself through until it reads.
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        _say_hello(context(world, pair), plain)
    get_through(secured, world)
    reason = {
        "none": "peer did not return a certificate",
        "of another authority": "unable to get local issuer certificate",
        "expired": "certificate has expired",
        "not yet valid": "certificate is not yet valid",
    }[who]
    wait_until(lambda: reason in secured.log(), 5, f'"{reason}" in the log')
    lines = [json.loads(line) for line in secured.log().splitlines()]
    (told,) = [line for line in lines if reason in line["message"]]
    assert told["message"].startswith("a client was refused by TLS: ")
    assert told["peer"] == f"127.0.0.1:{port}"


def test_a_client_that_does_not_know_the_authority_goes_away(secured: Broker, world: World) -> None:
    made = ssl.create_default_context(cafile=str(world.stranger.cert))
    with (
        socket.create_connection(secured.address, timeout=5) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        made.wrap_socket(plain, server_hostname="localhost")
    get_through(secured, world)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_versions_are_not_spoken(
    secured: Broker, world: World, version: ssl.TLSVersion
) -> None:
    made = context(world, world.client)
    made.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made.minimum_version = version
        made.maximum_version = version
    with (
        socket.create_connection(secured.address, timeout=5) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        made.wrap_socket(plain, server_hostname="localhost")


def test_tls_1_2_is_spoken(secured: Broker, world: World) -> None:
    made = context(world, world.client)
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(secured.address, timeout=5) as plain:
        assert _say_hello(made, plain)


def test_a_plain_client_at_a_tls_port_is_refused_and_nobody_else_minds(
    secured: Broker, world: World
) -> None:
    for words in (
        b"\x00\x00\x00\x09\x01\x00\x00\x00\x00\x01\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\n",
    ):
        with socket.create_connection(secured.address, timeout=5) as plain:
            plain.sendall(words)
            _until_closed(plain, 5)
    get_through(secured, world)


def test_half_a_handshake_is_not_waited_for_forever(secured: Broker, world: World) -> None:
    hello = _client_hello(context(world, world.client))
    opened = []
    for content in (b"", hello[:3], hello[: len(hello) // 2], hello):
        plain = socket.create_connection(secured.address, timeout=10)
        plain.sendall(content)
        opened.append(plain)
    get_through(secured, world)
    for plain in opened:
        _until_closed(plain, 8)
        plain.close()


def test_two_hundred_slow_handshakes_are_timed_out(secured: Broker, world: World) -> None:
    hello = _client_hello(context(world, world.client))
    slow = [socket.create_connection(secured.address, timeout=10) for _ in range(200)]
    for at in range(0, 60, 10):
        for plain in slow:
            try:
                plain.sendall(hello[at : at + 10])
            except ConnectionError:
                pass
    began = time.monotonic()
    get_through(secured, world)
    assert time.monotonic() - began < 25
    for plain in slow:
        _until_closed(plain, 10)
        plain.close()
    get_through(secured, world)


def test_a_tls_client_at_a_plain_port_is_refused(tmp_path: Path, world: World) -> None:
    every = {"connection.handshake_timeout_ms": 1_000}
    with Broker(tmp_path / "data", settings=every) as broker:
        with (
            socket.create_connection(broker.address, timeout=5) as plain,
            pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)),
        ):
            context(world).wrap_socket(plain, server_hostname="localhost")
        with broker.peer() as peer:
            peer.ping()


# --- new certificates


def test_new_certificates_are_taken_up_and_open_connections_stay(
    world: World, tmp_path: Path
) -> None:
    cert, key = tmp_path / "live.pem", tmp_path / "live.key"
    first, second = world.authority.issue("first"), world.authority.issue("second")

    def put(pair: Certificate) -> None:
        cert.write_bytes(pair.cert.read_bytes())
        key.write_bytes(pair.key.read_bytes())

    put(first)
    with Broker(tmp_path / "data", settings=settings(Certificate(cert, key))) as broker:
        credentials = grpc.ssl_channel_credentials(world.authority.cert.read_bytes())
        with Client(broker.address, credentials=credentials) as client:
            client.create_queue("q")
            consumed = client.consume("q")
            assert _name(broker, world) == "first"
            put(second)
            broker.process.send_signal(signal.SIGHUP)
            wait_until(lambda: _name(broker, world) == "second", 10, "the new certificate")
            client.enqueue("q", b"x")
            assert consumed.take_one().payload == b"x"
            # A pair that does not fit is refused, and the old one stays.
            cert.write_bytes(first.cert.read_bytes())
            broker.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "certificates not reloaded" in broker.log(), 10, "the complaint")
            assert "does not belong to" in broker.log()
            assert _name(broker, world) == "second"
            assert client.stats("q").in_flight == 1


def test_an_authority_that_was_taken_out_of_the_file_is_not_trusted_after_sighup(
    world: World, tmp_path: Path
) -> None:
    ca = tmp_path / "trusted.pem"
    guest = world.stranger.issue("guest")
    ca.write_bytes(world.authority.cert.read_bytes() + world.stranger.cert.read_bytes())
    every = settings(world.server, ca)
    with Broker(tmp_path / "data", settings=every) as broker:
        welcome = context(world, guest)
        assert _gets_in(broker, welcome)
        ca.write_bytes(world.authority.cert.read_bytes())
        _reload(broker)
        assert not _gets_in(broker, welcome)
        get_through(broker, world)


def test_a_session_of_before_is_not_resumed_after_sighup(world: World, tmp_path: Path) -> None:
    ca = tmp_path / "trusted.pem"
    guest = world.stranger.issue("regular")
    ca.write_bytes(world.authority.cert.read_bytes() + world.stranger.cert.read_bytes())
    with Broker(tmp_path / "data", settings=settings(world.server, ca)) as broker:
        welcome = context(world, guest)
        with (
            socket.create_connection(broker.address, timeout=5) as plain,
            welcome.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            wrapped.sendall(HTTP2_HELLO)
            assert wrapped.recv(100)
            session = wrapped.session
        assert session is not None and session.has_ticket
        ca.write_bytes(world.authority.cert.read_bytes())
        _reload(broker)
        with (
            socket.create_connection(broker.address, timeout=5) as plain,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            _say_hello(welcome, plain, session)


def test_a_revoked_client_is_refused_and_the_list_is_read_again_on_sighup(
    world: World, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "revoking")
    good, bad, next_bad = (authority.issue(name) for name in ("good", "bad", "next-bad"))
    authority.revoke(bad)
    crl = authority.revocation_list(tmp_path / "crl.pem")
    every = settings(world.server, authority.cert) | {"tls.crl_file": crl}
    with HttpBroker(tmp_path / "data", settings=every) as broker:
        assert _gets_in(broker, context(world, good))
        assert not _gets_in(broker, context(world, bad))
        wait_until(lambda: "certificate revoked" in broker.log(), 10, "the reason in the log")
        assert _gets_in(broker, context(world, next_bad))
        authority.revoke(next_bad)
        authority.revocation_list(crl)
        _reload(broker)
        assert not _gets_in(broker, context(world, next_bad))
        assert _gets_in(broker, context(world, good))
        # A file that is no list changes nothing.
        crl.write_text("nothing")
        broker.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "holds no revocation list" in broker.log(), 10, "the complaint")
        assert not _gets_in(broker, context(world, bad))
        address = "{}:{}".format(*broker.http_address)
        line = 'fila_tls_handshakes_refused_total{kind="certificate"} '

        def refused() -> float:
            page = urlopen(f"https://{address}/metrics", context=context(world, good), timeout=30)
            (found,) = [one for one in page.read().decode().splitlines() if one.startswith(line)]
            return float(found.removeprefix(line))

        wait_until(lambda: refused() == 3, 30, "three refused handshakes in the metrics")


def test_a_revocation_list_without_an_authority_or_that_is_none_keeps_the_broker_from_starting(
    world: World, tmp_path: Path
) -> None:
    cases = [
        (settings(world.server) | {"tls.crl_file": world.authority.cert}, "ca_file"),
        (
            settings(world.server, world.authority.cert) | {"tls.crl_file": world.authority.cert},
            "holds no revocation list",
        ),
    ]
    for number, (given, expected) in enumerate(cases):
        broker = Broker(tmp_path / f"data{number}", settings=given)
        broker.launch()
        assert broker.wait(20) == 1
        assert expected in broker.log().splitlines()[-1]


def _reload(broker: Broker) -> None:
    before = broker.log().count("certificates reloaded")
    broker.process.send_signal(signal.SIGHUP)
    wait_until(
        lambda: broker.log().count("certificates reloaded") > before, 10, "the new certificates"
    )


def _gets_in(broker: Broker, made: ssl.SSLContext) -> bool:
    with socket.create_connection(broker.address, timeout=5) as plain:
        try:
            return bool(_say_hello(made, plain))
        except (ssl.SSLError, ConnectionError):
            return False


def _name(broker: Broker, world: World) -> str:
    with (
        socket.create_connection(broker.address, timeout=5) as plain,
        context(world).wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        found = wrapped.getpeercert()
    assert found is not None
    return dict(pair[0] for pair in found["subject"])["commonName"]  # type: ignore[misc]


def _say_hello(
    made: ssl.SSLContext, plain: socket.socket, session: ssl.SSLSession | None = None
) -> bytes:
    with made.wrap_socket(plain, server_hostname="localhost", session=session) as wrapped:
        wrapped.sendall(HTTP2_HELLO)
        data = wrapped.recv(100)
        if not data:
            raise ConnectionError("closed")
        return data


def _client_hello(made: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = made.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        wrapped.do_handshake()
    return outgoing.read()


def _until_closed(plain: socket.socket, seconds: float) -> None:
    plain.settimeout(seconds)
    try:
        while plain.recv(65_536):
            pass
    except ConnectionError:
        pass
