"""The product as its users meet it: messages through the SDK, administration through `fila`.

The same flows as in the raw tests beside this one, each once, with nothing of the broker imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from fila import FilaClient, MessageNotFoundError, QueueNotFoundError, SyncMessage
from tests.e2e.jitter import Jitter
from tests.e2e.process import Broker

Make = Callable[..., Broker]
BY_TENANT = """function on_enqueue(msg)
  return {
    fairness_key = msg.headers["tenant"] or "default",
    weight = tonumber(msg.headers["weight"]) or 1,
    throttle_keys = { msg.headers["provider"] },
  }
end"""
THREE_TRIES = """function on_failure(msg)
  local tries = tonumber(fila.get("tries") or "3")
  if msg.attempts >= tries then return { action = "dlq" } end
  return { action = "retry" }
end"""


@pytest.fixture
def client(broker: Broker) -> Iterator[FilaClient]:
    with FilaClient(address_of(broker)) as connected:
        yield connected


def address_of(broker: Broker) -> str:
    return f"{broker.address[0]}:{broker.address[1]}"


def fila(broker: Broker, *arguments: str, code: int = 0) -> str:
    """Run the command; its output, or what it says on standard error when it should fail."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
    ended = subprocess.run(
        [sys.executable, "-m", "fila.cli.main", *arguments],
        env={**environ, "FILA_ADDR": address_of(broker)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    return ended.stderr if code else ended.stdout


def take(client: FilaClient, queue: str, count: int) -> list[SyncMessage]:
    with client.consume(queue) as consumer:
        return [next(consumer) for _ in range(count)]


def test_enqueue_receive_ack(broker: Broker, client: FilaClient, queue: str) -> None:
    assert fila(broker, "queue", "create", queue) == f'Created queue "{queue}"\n'
    id = client.enqueue(queue, {"tenant": "acme"}, "hello")
    with client.consume(queue) as consumer:
        message = next(consumer)
        assert (message.id, message.payload, message.attempt_count) == (id, b"hello", 0)
        assert message.headers == {"tenant": "acme"}
        message.ack()
    with pytest.raises(MessageNotFoundError):
        client.ack(queue, id)


def test_a_nack_brings_the_message_back_with_its_attempt(client: FilaClient, queue: str) -> None:
    client.create_queue(queue)
    id = client.enqueue(queue, {}, b"x")
    with client.consume(queue) as consumer:
        next(consumer).nack("no luck")
        again = next(consumer)
        assert (again.id, again.attempt_count) == (id, 1)
        again.ack()


def test_hooks_assign_keys_weights_and_throttles(client: FilaClient, queue: str) -> None:
    client.create_queue(queue, on_enqueue=BY_TENANT)
    client.enqueue(queue, {"tenant": "acme", "weight": "3", "provider": "stripe"}, b"x")
    with client.consume(queue) as consumer:
        message = next(consumer)
        assert (message.fairness_key, message.weight) == ("acme", 3)
        assert message.throttle_keys == ("stripe",)
        message.ack()


def test_exhausted_messages_are_redriven_by_the_command(
    broker: Broker, client: FilaClient, queue: str
) -> None:
    fila(broker, "queue", "create", queue, "--on-failure", THREE_TRIES)
    id = client.enqueue(queue, {}, b"poison")
    with client.consume(queue) as consumer:
        for attempt in range(3):
            message = next(consumer)
            assert message.attempt_count == attempt
            message.nack("still broken")
        listed = fila(broker, "queue", "inspect", f"{queue}.dlq")
        assert "Depth: 1" in " ".join(listed.split())
        moved = fila(broker, "redrive", f"{queue}.dlq", "--count", "10")
        assert moved == f'Redrive complete: 1 message moved from "{queue}.dlq"\n'
        back = next(consumer)
        assert (back.id, back.attempt_count) == (id, 0)
        back.ack()


def test_weighted_tenants_get_their_shares(client: FilaClient, queue: str) -> None:
    client.create_queue(queue, on_enqueue=BY_TENANT)
    for tenant, weight in (("premium", "3"), ("standard", "1")):
        client.enqueue_many([(queue, {"tenant": tenant, "weight": weight}, b"x")] * 200)
    messages = take(client, queue, 100)
    assert Counter(one.fairness_key for one in messages) == {"premium": 75, "standard": 25}


def test_a_limit_set_by_the_command_holds_back_only_its_key(
    broker: Broker, client: FilaClient, queue: str
) -> None:
    provider = f"slow-{queue}"
    said = fila(broker, "config", "set", f"throttle.{provider}", "0.001,2")
    assert said == f'Set "throttle.{provider}" = "0.001,2"\n'
    client.create_queue(queue, on_enqueue=BY_TENANT)
    for _ in range(5):
        client.enqueue(queue, {"tenant": "a", "provider": provider}, b"limited")
        client.enqueue(queue, {"tenant": "b"}, b"free")
    payloads = Counter(one.payload for one in take(client, queue, 7))
    assert payloads == {b"limited": 2, b"free": 5}


def test_runtime_config_is_seen_by_the_command_and_by_hooks(
    broker: Broker, client: FilaClient, queue: str
) -> None:
    key = f"flag:{queue}"
    fila(broker, "config", "set", key, "on")
    assert fila(broker, "config", "get", key) == f"{key}: on\n"
    assert key in fila(broker, "config", "list", "--prefix", "flag:")
    assert client.get_config(key) == "on"
    script = f"function on_enqueue(msg) return {{ fairness_key = fila.get('{key}') }} end"
    client.create_queue(queue, on_enqueue=script)
    client.enqueue(queue, {}, b"x")
    assert take(client, queue, 1)[0].fairness_key == "on"


def test_queues_are_managed_by_the_command(broker: Broker, client: FilaClient, queue: str) -> None:
    fila(broker, "queue", "create", queue)
    lines = fila(broker, "queue", "list").splitlines()
    assert lines[0].split() == ["NAME", "DEPTH", "IN_FLIGHT", "CONSUMERS"]
    names = [line.split()[0] for line in lines[1:]]
    assert {queue, f"{queue}.dlq"} <= set(names)
    assert f"Queue: {queue}" in fila(broker, "queue", "inspect", queue)
    assert fila(broker, "queue", "delete", queue) == f'Deleted queue "{queue}"\n'
    said = fila(broker, "queue", "inspect", queue, code=1)
    assert said.startswith(f'Error: queue "{queue}" does not exist\n')
    with pytest.raises(QueueNotFoundError):
        client.enqueue(queue, {}, b"x")


def test_a_consumer_of_a_deleted_queue_is_told(
    broker: Broker, client: FilaClient, queue: str
) -> None:
    client.create_queue(queue)
    with client.consume(queue) as consumer:
        fila(broker, "queue", "delete", queue)
        with pytest.raises(QueueNotFoundError):
            next(consumer)


def test_messages_survive_a_kill_and_the_client_comes_back_by_itself(own_broker: Make) -> None:
    with own_broker() as broker, FilaClient(address_of(broker)) as client:
        client.create_queue("orders")
        ids = [client.enqueue("orders", {}, b"%d" % n) for n in range(50)]
        with client.consume("orders", prefetch=10) as consumer:
            for _ in range(5):
                next(consumer).ack()
            broker.listen = address_of(broker)
            broker.restart()
            # Five more were leased when it was killed; their time has not run out yet.
            later = [next(consumer).id for _ in range(10)]
        assert later == ids[15:25]
        client.enqueue("orders", {}, b"after")
        assert client.get_stats("orders").in_flight >= 10


def test_an_unanswered_message_is_available_again_after_its_timeout(
    broker: Broker, client: FilaClient, queue: str, jitter: Jitter
) -> None:
    fila(broker, "queue", "create", queue, "--visibility-timeout", "1000")
    id = client.enqueue(queue, {}, b"x")
    with client.consume(queue) as consumer:
        first = next(consumer)
        again = next(consumer)
        assert (again.id, again.attempt_count) == (id, 1)
        waited_s = (again.leased_at - first.leased_at).total_seconds()
        assert 1.0 <= waited_s <= 1.0 + jitter.late_ms_max / 1000
        again.ack()
