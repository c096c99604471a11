"""Both clients against a small broker on a real socket: every call, every answer."""

import gc
import inspect
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from fila import (
    ApiKeyNotFoundError,
    AsyncFilaClient,
    BatchError,
    ClientClosedError,
    FilaClient,
    InvalidConfigValueError,
    LuaCompilationError,
    Message,
    MessageNotFoundError,
    NotADLQError,
    Permission,
    QueueAlreadyExistsError,
    QueueNotFoundError,
)
from fila.wire import opcodes as op
from tests.client.drivers import SyncDriver
from tests.client.peer import Peer, TinyBroker


def test_a_message_goes_in_and_comes_out(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "orders")
    message_id = driver.call(client, "enqueue", "orders", {"tenant": "acme"}, b"hello")
    consumer = driver.call(client, "consume", "orders")
    message = driver.next(consumer)
    assert isinstance(message, Message)
    assert message.id == message_id
    assert message.queue == "orders"
    assert message.headers == {"tenant": "acme"}
    assert message.payload == b"hello"
    assert message.fairness_key == message.metadata.fairness_key == "acme"
    assert message.weight == message.metadata.weight == 1
    assert message.throttle_keys == message.metadata.throttle_keys == ("t:acme",)
    assert message.attempt_count == message.metadata.attempt_count == 0
    assert message.metadata.queue_id == "orders"
    age = datetime.now(UTC) - message.enqueued_at
    assert 0 <= age.total_seconds() < 60
    assert message.leased_at_ms == message.enqueued_at_ms + 1
    assert message.leased_at > message.enqueued_at
    assert "hello" not in repr(message)
    driver.call(client, "ack", "orders", message.id)
    with pytest.raises(MessageNotFoundError, match=f'message "{message.id}" is not leased'):
        driver.call(client, "ack", "orders", message.id)
    driver.call(client, "close")


def test_arguments_may_be_keywords_and_payloads_text(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    driver.call(client, "enqueue", queue="q", headers={"k": "v"}, payload="größe")
    driver.call(client, "enqueue", "q")
    driver.call(client, "enqueue", "q", payload=bytearray(b"raw"))
    driver.call(client, "enqueue", "q", payload=memoryview(b"view"))
    payloads = [item.payload for item in broker.queues["q"]]
    assert payloads == ["größe".encode(), b"", b"raw", b"view"]
    driver.call(client, "close")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("q", None, 5), "payload must be bytes or str, not int"),
        (("q", {"k": 5}, b""), "header 'k': 5 must map a str to a str"),
        ((b"q", None, b""), "queue must be a str, not bytes"),
        (("q" * 70_000, None, b""), "queue: 70000 bytes is too long"),
        (("q", {"k": "v" * 70_000}, b""), 'header "k": 70000 bytes is too long'),
    ],
)
def test_arguments_that_cannot_be_sent_are_refused_before_sending(
    driver: SyncDriver, peer: Peer, arguments: Any, complaint: str
) -> None:
    client = driver.open(peer.address)
    with pytest.raises((TypeError, ValueError), match=complaint):
        driver.call(client, "enqueue", *arguments)
    assert peer.connections[0].count(op.ENQUEUE) == 0
    driver.call(client, "close")


def test_messages_settle_themselves(driver: SyncDriver, peer: Peer, broker: TinyBroker) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    driver.call(client, "enqueue", "q", None, b"x")
    consumer = driver.call(client, "consume", "q")
    first = driver.next(consumer)
    driver.call(first, "nack", "no luck")
    again = driver.next(consumer)
    assert (again.id, again.attempt_count) == (first.id, 1)
    driver.call(again, "ack")
    assert broker.nacked == [(first.id, "no luck")]
    assert broker.acked == [first.id]
    driver.call(client, "close")


def test_many_at_once_in_both_directions(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "a")
    driver.call(client, "create_queue", "b")
    messages = [("a" if n % 2 else "b", {"n": str(n)}, str(n)) for n in range(2500)]
    ids = driver.call(client, "enqueue_many", iter(messages))
    assert len(ids) == len(set(ids)) == 2500
    assert peer.connections[0].count(op.ENQUEUE) == 3
    consumer = driver.call(client, "consume", "a", prefetch=1000)
    seen: list[int] = []
    while len(seen) < 1250:
        received = driver.call(consumer, "receive_many", 400, 5)
        assert 1 <= len(received) <= 400
        seen += [int(message.headers["n"]) for message in received]
        driver.call(client, "ack_many", "a", [message.id for message in received])
    assert seen == list(range(1, 2500, 2))
    assert len(broker.acked) == 1250
    driver.call(client, "close")


def test_refused_items_of_a_batch_are_named_and_the_others_go_through(
    driver: SyncDriver, peer: Peer
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    with pytest.raises(BatchError, match='1 of 3 items failed; first: queue "x" does') as caught:
        driver.call(
            client, "enqueue_many", [("q", None, b"1"), ("x", None, b"2"), ("q", None, b"3")]
        )
    assert [type(result) for result in caught.value.results] == [str, QueueNotFoundError, str]
    assert list(caught.value.errors) == [1]
    consumer = driver.call(client, "consume", "q")
    held = [driver.next(consumer).id, driver.next(consumer).id]
    with pytest.raises(BatchError) as caught:
        driver.call(client, "nack_many", "q", [held[0], "not-a-uuid", held[1]], "oops")
    assert caught.value.results[0] is None
    assert isinstance(caught.value.errors[1], MessageNotFoundError)
    driver.call(client, "close")


def test_batches_may_be_empty(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    assert driver.call(client, "enqueue_many", []) == []
    driver.call(client, "ack_many", "q", [])
    driver.call(client, "nack_many", "q", [])
    driver.call(client, "flush")
    driver.call(client, "close")


def test_fire_and_forget_is_counted_and_flushed(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    receipts = [driver.call(client, "enqueue_soon", "q", None, str(n)) for n in range(200)]
    driver.call(client, "flush")
    assert all(receipt.done for receipt in receipts)
    assert len({driver.call(receipt, "result") for receipt in receipts}) == 200
    assert [item.payload for item in broker.queues["q"]] == [b"%d" % n for n in range(200)]
    lost = driver.call(client, "enqueue_soon", "nowhere")
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "flush")
    driver.call(client, "flush")
    with pytest.raises(QueueNotFoundError):
        driver.call(lost, "result")
    consumer = driver.call(client, "consume", "q", prefetch=10)
    receipt = driver.call(client, "ack_soon", "q", driver.next(consumer).id)
    assert driver.call(receipt, "result") is None
    driver.call(client, "enqueue_soon", "nowhere")
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "close")


def test_batches_handed_over_without_waiting_are_told_of_by_receipts_and_flush(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    triples = [("q", None, str(n)) for n in range(300)]
    receipts = [
        driver.call(client, "enqueue_many_soon", triples[start : start + 100])
        for start in (0, 100, 200)
    ]
    driver.call(client, "flush")
    ids = [driver.call(receipt, "result") for receipt in receipts]
    assert [len(one) for one in ids] == [100, 100, 100]
    assert [item.payload for item in broker.queues["q"]] == [b"%d" % n for n in range(300)]
    assert driver.call(driver.call(client, "enqueue_many_soon", []), "result") == []
    mixed = driver.call(client, "enqueue_many_soon", [("q", None, b"x"), ("nowhere", None, b"y")])
    with pytest.raises(BatchError) as refused:
        driver.call(mixed, "result")
    stored, missing = refused.value.results
    assert isinstance(stored, str)
    assert isinstance(missing, QueueNotFoundError)
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "flush")
    with pytest.raises(TypeError):
        driver.call(client, "enqueue_many_soon", ["no triple"])
    driver.call(client, "flush")  # what never left is not waited for
    consumer = driver.call(client, "consume", "q", prefetch=10)
    taken = [driver.next(consumer).id for _ in range(5)]
    receipt = driver.call(client, "ack_many_soon", "q", taken)
    assert driver.call(receipt, "result") is None
    again = driver.call(client, "ack_many_soon", "q", taken)
    with pytest.raises(BatchError):
        driver.call(again, "result")
    with pytest.raises(MessageNotFoundError):
        driver.call(client, "close")


def test_a_consumer_waits_and_gives_up_when_asked_to(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    consumer = driver.call(client, "consume", "q")
    assert driver.call(consumer, "receive", timeout=0.05) is None
    assert driver.call(consumer, "receive_many", 10, timeout=0.05) == []
    waiting = driver.start(consumer, "receive", timeout=5)
    time.sleep(0.05)
    driver.call(client, "enqueue", "q", None, b"late")
    waiting.join(5)
    assert waiting.outcome.payload == b"late"  # type: ignore[attr-defined]
    driver.call(client, "close")


def test_closing_a_consumer_ends_its_iteration_and_tells_the_broker(
    driver: SyncDriver, peer: Peer
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    consumer = driver.call(client, "consume", "q")
    waiting = driver.start(consumer, "receive")
    time.sleep(0.02)
    driver.call(consumer, "close")
    waiting.join(5)
    assert not waiting.is_alive()
    assert waiting.outcome is None  # type: ignore[attr-defined]
    with pytest.raises((StopIteration, StopAsyncIteration)):
        driver.next(consumer)
    peer.wait_for(lambda: peer.connections[0].count(op.CANCEL_CONSUME) == 1)
    driver.call(client, "close")


def test_a_consumer_nobody_holds_is_cancelled(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    driver.call(client, "enqueue", "q")
    driver.next(driver.call(client, "consume", "q"))
    gc.collect()
    peer.wait_for(lambda: peer.connections[0].count(op.CANCEL_CONSUME) == 1)
    driver.call(client, "close")


def test_several_consumers_share_a_connection(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    for queue in ("a", "b"):
        driver.call(client, "create_queue", queue)
        driver.call(client, "enqueue", queue, None, queue)
    consumers = {queue: driver.call(client, "consume", queue) for queue in ("a", "b")}
    for queue, consumer in consumers.items():
        assert consumer.queue == queue
        assert driver.next(consumer).payload == queue.encode()
    driver.call(client, "close")


def test_consuming_an_unknown_queue_says_so(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    with pytest.raises(QueueNotFoundError, match='queue "nowhere" does not exist'):
        driver.next(driver.call(client, "consume", "nowhere"))
    driver.call(client, "close")


def test_a_deleted_queue_ends_its_consumers(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    consumer = driver.call(client, "consume", "q")
    assert driver.call(consumer, "receive", timeout=0.01) is None
    driver.call(client, "delete_queue", "q")
    with pytest.raises(QueueNotFoundError, match="was deleted"):
        driver.next(consumer)
    driver.call(client, "close")


def test_every_administrative_call_has_its_answer(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)

    def call(method: str, *args: Any, **named: Any) -> Any:
        return driver.call(client, method, *args, **named)

    assert call("create_queue", "q", visibility_timeout_ms=45_000) == "q"
    with pytest.raises(QueueAlreadyExistsError, match='queue "q" already exists'):
        call("create_queue", "q")
    with pytest.raises(LuaCompilationError, match="line 1: '=' expected"):
        call("create_queue", "r", on_enqueue="not lua")
    queues = call("list_queues")
    assert [queue.name for queue in queues] == ["q", "q.dlq"]
    assert queues.cluster_node_count == 1
    call("enqueue", "q")
    stats = call("get_stats", "q")
    assert (stats.depth, stats.in_flight, stats.quantum) == (1, 0, 1)
    assert stats.fairness_keys[0].key == "default"
    with pytest.raises(QueueNotFoundError):
        call("get_stats", "nowhere")
    call("set_config", "throttle.a", "10,20")
    assert call("get_config", "throttle.a") == "10,20"
    assert call("list_config", "throttle.") == {"throttle.a": "10,20"}
    with pytest.raises(InvalidConfigValueError, match='"bad" is not a number'):
        call("set_config", "throttle.a", "bad")
    call("set_config", "throttle.a", None)
    assert call("get_config", "throttle.a") is None
    assert call("list_config") == {}
    assert call("redrive", "q.dlq") == 7
    assert call("redrive", "q.dlq", count=3) == 3
    with pytest.raises(NotADLQError):
        call("redrive", "q")
    key = call("create_api_key", "ci", expires_at_ms=5, is_superadmin=True)
    assert (key.key_id, key.key, key.is_superadmin) == ("k1", "0" * 32, True)
    assert call("list_api_keys")[0].name == "ci"
    call("set_acl", "k1", [("produce", "orders.*"), ("consume", "*")])
    acl = call("get_acl", "k1")
    assert acl.permissions == (Permission("produce", "orders.*"), Permission("consume", "*"))
    call("revoke_api_key", "k1")
    for method in ("revoke_api_key", "get_acl"):
        with pytest.raises(ApiKeyNotFoundError, match='API key "k1"'):
            call(method, "k1")
    with pytest.raises(ApiKeyNotFoundError):
        call("set_acl", "k1", [])
    call("delete_queue", "q")
    with pytest.raises(QueueNotFoundError, match='queue "q" does not exist'):
        call("delete_queue", "q")
    call("close")


def test_a_closed_client_says_goodbye_and_refuses_further_calls(
    driver: SyncDriver, peer: Peer, broker: TinyBroker
) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    driver.call(client, "enqueue_many", [("q", None, b"x" * 1000)] * 500)
    consumer = driver.call(client, "consume", "q", prefetch=400)
    driver.next(consumer)
    waiting = driver.start(driver.call(client, "consume", "q.dlq"), "receive")
    driver.call(client, "close")
    waiting.join(5)
    assert waiting.outcome is None  # type: ignore[attr-defined]
    peer.wait_for(peer.connections[0].closed.is_set)
    assert peer.connections[0].frames[-1][0] == op.DISCONNECT
    assert not broker.leased
    for method, args in (("enqueue", ["q"]), ("list_queues", []), ("ack", ["q", "id"])):
        with pytest.raises(ClientClosedError):
            driver.call(client, method, *args)
    with pytest.raises(ClientClosedError):
        driver.call(client, "consume", "q")
    driver.call(client, "close")


def test_a_message_larger_than_a_frame_travels_both_ways(
    driver: SyncDriver, broker: TinyBroker
) -> None:
    with Peer(broker, frame_bytes_max=4096) as peer:
        client = driver.open(peer.address)
        driver.call(client, "create_queue", "q")
        payload = bytes(range(256)) * 8192
        driver.call(client, "enqueue", "q", {"size": "2 MiB"}, payload)
        message = driver.next(driver.call(client, "consume", "q"))
        assert message.payload == payload
        driver.call(message, "ack")
        driver.call(client, "close")


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    def shape(client: type) -> dict[str, list[str]]:
        return {
            name: [p for p in inspect.signature(method).parameters if p != "self"]
            for name, method in inspect.getmembers(client, callable)
            if not name.startswith("_")
        }

    sync, aio = shape(FilaClient), shape(AsyncFilaClient)
    assert sync.pop("consume") == ["queue", "prefetch", "heartbeat", "timeout"]
    assert aio.pop("consume") == ["queue", "prefetch", "heartbeat"]
    assert sync == aio


def test_an_ack_that_cannot_be_sent_does_not_hold_up_a_flush(
    driver: SyncDriver, peer: Peer
) -> None:
    client = driver.open(peer.address)
    with pytest.raises(ValueError, match="message id"):
        driver.call(client, "ack_soon", "q", "x" * 70_000)
    driver.call(client, "flush", timeout=5)
    driver.call(client, "close")


def test_several_wait_for_one_receipt(driver: SyncDriver, peer: Peer) -> None:
    client = driver.open(peer.address)
    driver.call(client, "create_queue", "q")
    receipt = driver.call(client, "enqueue_soon", "q", None, b"x")
    waiting = [driver.start(receipt, "result") for _ in range(4)]
    for thread in waiting:
        thread.join(20)
    assert len({thread.outcome for thread in waiting}) == 1  # type: ignore[attr-defined]
    assert isinstance(waiting[0].outcome, str)  # type: ignore[attr-defined]
    driver.call(client, "close")


def test_a_fault_in_the_reading_thread_ends_the_calls_that_wait(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FilaClient(peer.address)
    told: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda fault: told.append(str(fault.exc_value)))

    def break_off(now: float) -> None:
        raise RuntimeError("a planted fault")

    monkeypatch.setattr(client._link, "_read", break_off)
    with pytest.raises(ClientClosedError):
        client.list_queues(timeout=20)
    client.close()
    assert told == ["a planted fault"]
