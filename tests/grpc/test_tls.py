"""TLS on the port: ALPN, client certificates, and both protocols under it."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

import grpc
from fila import FilaClient
from fila.edges.grpc.v1 import health_pb2
from tests.e2e.process import Broker
from tests.grpc.client import Client
from tests.grpc.raw import RawPeer

CERTS = Path(__file__).parents[1] / "client" / "certs"
TLS = {"tls.cert_file": CERTS / "server.pem", "tls.key_file": CERTS / "server.key"}
MTLS = TLS | {"tls.ca_file": CERTS / "ca.pem"}
ENQUEUE = "/fila.v1.FilaService/Enqueue"


def credentials(client: bool = False) -> grpc.ChannelCredentials:
    read = lambda name: (CERTS / name).read_bytes()  # noqa: E731
    if not client:
        return grpc.ssl_channel_credentials(read("ca.pem"))
    return grpc.ssl_channel_credentials(read("ca.pem"), read("client.key"), read("client.pem"))


def context(*protocols: str, client: bool = False) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
    if protocols:
        made.set_alpn_protocols(list(protocols))
    if client:
        made.load_cert_chain(CERTS / "client.pem", CERTS / "client.key")
    return made


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> object:
    with Broker(tmp_path_factory.mktemp("tls") / "data", settings=TLS) as started:
        yield started


def test_a_whole_lifecycle_under_tls(secured: Broker, queue: str) -> None:
    with Client(secured.address, credentials=credentials()) as client:
        client.create_queue(queue)
        ids = client.enqueue(queue, *[b"x" * 50_000] * 40)
        got = client.consume(queue).take(40)
        assert [one.id for one in got] == ids
        assert all(one.HasField("success") for one in client.ack(queue, *ids))


def test_both_protocols_share_the_port_under_tls(secured: Broker, queue: str) -> None:
    host, port = secured.address
    with (
        Client(secured.address, credentials=credentials()) as client,
        FilaClient(f"{host}:{port}", tls_ca=str(CERTS / "ca.pem")) as fibp,
    ):
        fibp.create_queue(queue)
        id = fibp.enqueue(queue, {"a": "b"}, b"x")
        assert client.consume(queue).take_one().id == str(id)


@pytest.mark.parametrize("protocols", [("h2",), (), ("h2", "fila/1"), ("fila/1", "h2")])
def test_http2_is_found_by_alpn_or_by_its_first_words(
    secured: Broker, protocols: tuple[str, ...]
) -> None:
    with RawPeer(secured.address, tls=context(*protocols)) as peer:
        assert isinstance(peer.socket, ssl.SSLSocket)
        assert peer.socket.selected_alpn_protocol() == ("h2" if protocols else None)
        stream = peer.open(ENQUEUE)
        peer.send(stream, b"")
        assert peer.status(stream) == (0, "")


def test_who_agrees_on_fibp_gets_fibp(secured: Broker) -> None:
    with socket.create_connection(secured.address, timeout=5) as plain:
        wrapped = context("fila/1").wrap_socket(plain, server_hostname="localhost")
        assert wrapped.selected_alpn_protocol() == "fila/1"
        wrapped.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        answer = wrapped.recv(65_536)
        assert answer[4] == 0xFE, "an Error frame"


def test_who_agrees_on_http2_gets_http2(secured: Broker) -> None:
    with socket.create_connection(secured.address, timeout=5) as plain:
        wrapped = context("h2").wrap_socket(plain, server_hostname="localhost")
        assert wrapped.recv(9)[3] == 4, "a SETTINGS frame"
        wrapped.sendall(bytes(24))
        received = b""
        while data := wrapped.recv(65_536):
            received += data
        assert b"this is not HTTP/2" in received


def test_a_handshake_and_nothing_more_is_no_matter(secured: Broker) -> None:
    for protocols in ((), ("h2",), ("fila/1",)):
        with socket.create_connection(secured.address, timeout=5) as plain:
            context(*protocols).wrap_socket(plain, server_hostname="localhost").close()
    with Client(secured.address, credentials=credentials()) as client:
        found = client.call("Check", health_pb2.HealthCheckRequest())
        assert found.status == health_pb2.HealthCheckResponse.SERVING
    assert "Traceback" not in secured.log()


def test_a_plain_client_cannot_talk_to_a_tls_port(secured: Broker) -> None:
    with Client(secured.address) as client, pytest.raises(grpc.RpcError) as refused:
        client.call("Check", health_pb2.HealthCheckRequest())
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_tls_client_cannot_talk_to_a_plain_port(broker: Broker) -> None:
    with (
        Client(broker.address, credentials=credentials()) as client,
        pytest.raises(grpc.RpcError) as refused,
    ):
        client.call("Check", health_pb2.HealthCheckRequest())
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_client_that_trusts_another_ca_goes_no_further(secured: Broker) -> None:
    other = grpc.ssl_channel_credentials((CERTS / "client.pem").read_bytes())
    with Client(secured.address, credentials=other) as client, pytest.raises(grpc.RpcError):
        client.call("Check", health_pb2.HealthCheckRequest())


def test_with_a_ca_clients_need_a_certificate_of_it(
    own_broker: Callable[..., Broker], queue: str
) -> None:
    with own_broker(settings=MTLS) as broker:
        with Client(broker.address, credentials=credentials(client=True)) as client:
            client.create_queue(queue)
            client.enqueue(queue, b"x")
        with (
            Client(broker.address, credentials=credentials()) as stranger,
            pytest.raises(grpc.RpcError) as refused,
        ):
            stranger.call("Check", health_pb2.HealthCheckRequest())
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        with RawPeer(broker.address, tls=context("h2", client=True)) as peer:
            stream = peer.open(ENQUEUE)
            peer.send(stream, b"")
            assert peer.status(stream) == (0, "")


def test_keys_are_asked_for_under_tls_too(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker(settings=MTLS | {"auth.bootstrap_apikey": "root"})
    with broker, Client(broker.address, credentials=credentials(client=True)) as client:
        with pytest.raises(grpc.RpcError) as refused:
            client.queues()
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert client.call(
            "Check", health_pb2.HealthCheckRequest(), metadata=[("authorization", "Bearer root")]
        )
