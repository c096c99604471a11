"""API keys over gRPC: asked for with every call, and gone at once when they are gone."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import grpc
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client, batch, message
from tests.grpc.raw import Closed, RawPeer

ENQUEUE = "/fila.v1.FilaService/Enqueue"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    place = tmp_path_factory.mktemp("locked") / "data"
    settings = {"auth.bootstrap_apikey": "root", "log.level": "debug"}
    with Broker(place, settings=settings) as started:
        yield started


@pytest.fixture
def root(locked: Broker) -> Iterator[Client]:
    with Client(locked.address, key="root") as client:
        yield client


@pytest.fixture
def make(root: Client, locked: Broker) -> Iterator[Callable[..., tuple[Client, str]]]:
    """A client with a key of its own and these permissions; also the key's id."""
    made = []

    def make(*permissions: tuple[str, str], expires_in_s: float = 0) -> tuple[Client, str]:
        expires_ms = int((time.time() + expires_in_s) * 1000) if expires_in_s else 0
        key = root.create_key("test", expires_at_ms=expires_ms)
        root.set_acl(key.key_id, *permissions)
        client = Client(locked.address, key=key.key)
        made.append(client)
        return client, key.key_id

    yield make
    for client in made:
        client.close()


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code().name, refused.value.details()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([], "API key required"),
        ([("authorization", "Bearer wrong")], "the API key is not valid"),
        ([("authorization", "Bearer ")], "API key required"),
        ([("authorization", "Bearer")], "API key required"),
        ([("authorization", "Basic cm9vdA==")], "API key required"),
        ([("authorization", "root")], "API key required"),
        ([("authorization", "Bearer root root")], "the API key is not valid"),
        ([("authorization", "Bearer \xff\xfe")], "the API key is not valid"),
        (
            [("authorization", "Bearer wrong"), ("authorization", "Bearer root")],
            "API key required",
        ),
    ],
)
def test_without_a_valid_key_nothing_is_done(
    locked: Broker, fields: list[tuple[str, str]], text: str
) -> None:
    with RawPeer(locked.address) as peer:
        stream = peer.open(ENQUEUE, fields)
        peer.send(stream, b"")
        assert peer.status(stream) == (16, text)


@pytest.mark.parametrize("scheme", ["Bearer root", "bearer root", "BEARER  root "])
def test_the_scheme_is_read_as_http_says(locked: Broker, scheme: str) -> None:
    with RawPeer(locked.address) as peer:
        stream = peer.open(ENQUEUE, [("authorization", scheme)])
        peer.send(stream, b"")
        assert peer.status(stream) == (0, "")


def test_calls_with_different_keys_may_share_a_connection(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    producer, _ = make(("produce", queue))
    consumer, _ = make(("consume", queue))
    request = pb.EnqueueRequest(messages=[message(queue, b"x")])
    for metadata, code in (
        (producer.metadata, 0),
        (consumer.metadata, pb.ENQUEUE_ERROR_CODE_PERMISSION_DENIED),
        (root.metadata, 0),
        (producer.metadata, 0),
    ):
        (result,) = root.call("Enqueue", request, metadata=metadata).results
        assert result.error.code == code


def test_a_forbidden_message_is_its_own_error_and_the_others_are_stored(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    root.create_queue(f"{queue}-other")
    client, _ = make(("produce", queue))
    messages = [message(queue, b"a"), message(f"{queue}-other", b"b"), message(queue, b"c")]
    for results in (
        client.call("Enqueue", pb.EnqueueRequest(messages=messages)).results,
        next(client.stream_enqueue([batch(1, *messages)])).results,
    ):
        assert [one.error.code for one in results] == [
            0,
            pb.ENQUEUE_ERROR_CODE_PERMISSION_DENIED,
            0,
        ]
        assert results[1].error.message == f'no produce permission on queue "{queue}-other"'
    assert root.stats(queue).depth == 4
    assert root.stats(f"{queue}-other").depth == 0


def test_a_forbidden_acknowledgement_is_its_own_error(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    (id,) = root.enqueue(queue, b"x")
    root.consume(queue).take_one()
    client, _ = make(("consume", "elsewhere"))
    for results in (client.ack(queue, id), client.nack(queue, id)):
        assert results[0].error.code == pb.ACK_ERROR_CODE_PERMISSION_DENIED
        assert results[0].error.message == f'no consume permission on queue "{queue}"'
    assert root.stats(queue).in_flight == 1


def test_a_revoked_key_ends_its_streams_and_calls_at_once(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    client, key_id = make(("consume", queue), ("produce", queue))
    consumed = client.consume(queue)
    going = threading.Event()

    def requests() -> Iterator[Any]:
        yield batch(1, message(queue, b"x"))
        going.wait(10)

    stream = client.stream_enqueue(requests())
    assert next(stream).sequence_number == 1
    consumed.take_one()
    root.revoke_key(key_id)
    assert refusal(consumed.take_one) == ("UNAUTHENTICATED", "the API key was revoked")
    assert refusal(lambda: next(stream)) == ("UNAUTHENTICATED", "the API key was revoked")
    going.set()
    assert refusal(lambda: client.enqueue(queue, b"x")) == (
        "UNAUTHENTICATED",
        "the API key is not valid",
    )
    assert root.stats(queue).active_consumers == 0


def test_a_key_may_revoke_itself_and_hears_that_it_did(root: Client, locked: Broker) -> None:
    key = root.create_key("self", superadmin=True)
    with Client(locked.address, key=key.key) as client:
        client.revoke_key(key.key_id)
        assert refusal(client.queues)[0] == "UNAUTHENTICATED"


def test_an_expiring_key_ends_its_streams_when_it_does(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    client, _ = make(("consume", queue), expires_in_s=1.5)
    consumed = client.consume(queue)
    assert refusal(consumed.take_one) == ("UNAUTHENTICATED", "the API key has expired")
    assert refusal(lambda: client.ack(queue, "x")) == (
        "UNAUTHENTICATED",
        "the API key has expired",
    )


def test_a_changed_acl_ends_the_consumers_it_no_longer_allows(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    root.create_queue(f"{queue}-kept")
    client, key_id = make(("consume", queue), ("consume", f"{queue}-kept"))
    lost, kept = client.consume(queue), client.consume(f"{queue}-kept")
    wait_until(lambda: root.stats(f"{queue}-kept").active_consumers == 1, 5, "the consumers")
    root.set_acl(key_id, ("consume", f"{queue}-kept"))
    assert refusal(lost.take_one) == (
        "PERMISSION_DENIED",
        f'no consume permission on queue "{queue}"',
    )
    root.enqueue(f"{queue}-kept", b"x")
    assert kept.take_one().payload == b"x"
    assert root.stats(queue).active_consumers == 0


def test_a_changed_acl_acts_on_a_running_stream_of_batches(
    root: Client, make: Callable[..., tuple[Client, str]], queue: str
) -> None:
    root.create_queue(queue)
    client, key_id = make(("produce", queue))
    more = threading.Event()

    def requests() -> Iterator[Any]:
        yield batch(1, message(queue, b"x"))
        more.wait(10)
        yield batch(2, message(queue, b"x"))

    stream = client.stream_enqueue(requests())
    assert not next(stream).results[0].HasField("error")
    root.set_acl(key_id)
    more.set()
    assert next(stream).results[0].error.code == pb.ENQUEUE_ERROR_CODE_PERMISSION_DENIED


def test_many_keys_on_one_connection_are_fine(root: Client, locked: Broker, queue: str) -> None:
    root.create_queue(queue)
    request = pb.EnqueueRequest(messages=[message(queue, b"x")])
    keys = [root.create_key(f"k{at}") for at in range(150)]
    for key in keys:
        root.set_acl(key.key_id, ("produce", queue))
    with Client(locked.address) as client:
        for key in keys:
            metadata = [("authorization", f"Bearer {key.key}")]
            (result,) = client.call("Enqueue", request, metadata=metadata).results
            assert result.message_id
    for key in keys:
        root.revoke_key(key.key_id)


def test_a_caller_who_keeps_guessing_is_sent_away(locked: Broker) -> None:
    with RawPeer(locked.address) as peer:
        answered = _guess(peer, 700)
    assert 20 < answered < 200


def _guess(peer: RawPeer, times: int) -> int:
    """Try keys until the server has enough; how many were answered."""
    for at in range(times):
        try:
            stream = peer.open(ENQUEUE, [("authorization", f"Bearer guess{at}")], end=True)
            assert peer.status(stream)[0] == 16
        except (Closed, OSError):
            return at
    return times


def test_no_key_is_ever_written_to_the_log(locked: Broker, root: Client, queue: str) -> None:
    root.create_queue(queue)
    key = root.create_key("secret-holder")
    with Client(locked.address, key=key.key) as client:
        refusal(client.api_keys)
    with RawPeer(locked.address) as peer:
        stream = peer.open(ENQUEUE, [("authorization", "Bearer my-mistyped-key")], end=True)
        peer.status(stream)
    log = locked.log()
    assert "create queue" in log and "refused" in log, "the audit log tells who did what"
    assert key.key not in log
    assert "my-mistyped-key" not in log
    assert "Bearer" not in log


def test_every_refusal_comes_before_any_look_up(
    make: Callable[..., tuple[Client, str]], root: Client, queue: str
) -> None:
    """Whether the thing exists or not, a stranger hears the same."""
    root.create_queue(queue)
    client, key_id = make(("admin", "elsewhere"))
    for name in (queue, "no-such-queue"):
        denied = ("PERMISSION_DENIED", f'no admin permission on queue "{name}"')
        assert refusal(lambda name=name: client.stats(name)) == denied  # type: ignore[misc]
        assert refusal(lambda name=name: client.delete_queue(name)) == denied  # type: ignore[misc]
        assert refusal(lambda name=name: client.create_queue(name)) == denied  # type: ignore[misc]
        assert refusal(lambda name=name: client.redrive(name)) == denied  # type: ignore[misc]
        code, text = refusal(lambda name=name: client.consume(name).take_one())  # type: ignore[misc]
        assert (code, text) == (
            "PERMISSION_DENIED",
            f'no consume permission on queue "{name}"',
        )
    for id in (key_id, "0123456789abcdef"):
        denied = ("PERMISSION_DENIED", "key does not have admin permission")
        assert refusal(lambda id=id: client.get_acl(id)) == denied  # type: ignore[misc]
        assert refusal(lambda id=id: client.revoke_key(id)) == denied  # type: ignore[misc]
