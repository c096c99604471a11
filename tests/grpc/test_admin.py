"""FilaAdmin with the official client against a real broker."""

import time
from collections.abc import Callable

import pytest

import grpc
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client

GIVE_UP = 'function on_failure(msg) return { action = "dlq" } end'
BY_TENANT = 'function on_enqueue(msg) return { fairness_key = msg.headers["t"] or "none" } end'


def test_a_queue_comes_with_its_dead_letter_queue_and_goes_with_it(
    client: Client, queue: str
) -> None:
    assert client.create_queue(queue) == queue
    names = [one.name for one in client.queues()]
    assert {queue, f"{queue}.dlq"} <= set(names)
    assert names == sorted(names)
    client.delete_queue(queue)
    assert not {queue, f"{queue}.dlq"} & {one.name for one in client.queues()}


def test_the_visibility_timeout_is_the_lease(client: Client, queue: str) -> None:
    client.create_queue(queue, visibility_ms=1_000)
    client.enqueue(queue, b"x")
    consumed = client.consume(queue)
    first = consumed.take_one()
    again = consumed.take_one()
    assert again.id == first.id and again.metadata.attempt_count == 1
    waited_ms = (
        again.timestamps.leased_at.ToMilliseconds() - first.timestamps.leased_at.ToMilliseconds()
    )
    assert waited_ms >= 1_000


def test_dead_letters_are_redriven_with_hooks_run_again(client: Client, queue: str) -> None:
    client.create_queue(queue, on_enqueue=BY_TENANT, on_failure=GIVE_UP)
    ids = client.enqueue(queue, *[b"x"] * 5, headers={"t": "acme"})
    consumed = client.consume(queue)
    consumed.take(5)
    client.nack(queue, *ids, error="broken")
    dlq = f"{queue}.dlq"
    assert client.stats(dlq).depth == 5
    assert client.redrive(dlq, 2) == 2
    assert client.redrive(dlq) == 3
    got = consumed.take(5)
    assert [one.id for one in got] == ids
    assert {one.metadata.attempt_count for one in got} == {0}
    assert {one.metadata.fairness_key for one in got} == {"acme"}
    assert client.redrive(dlq) == 0


def test_redriving_many_answers_when_all_are_moved(client: Client, queue: str) -> None:
    client.create_queue(queue, on_failure=GIVE_UP)
    ids = client.enqueue(queue, *[b"x"] * 1_500)
    consumed = client.consume(queue, prefetch=2_000)
    consumed.take(1_500)
    client.nack(queue, *ids)
    consumed.cancel()
    wait_until(lambda: client.stats(queue).active_consumers == 0, 5, "the consumer's end")
    assert client.redrive(f"{queue}.dlq") == 1_500
    assert client.stats(queue).depth == 1_500


def test_config_is_written_read_listed_and_removed(client: Client, queue: str) -> None:
    client.set_config(f"{queue}.a", "1")
    client.set_config(f"{queue}.b", "zwei ☃")
    assert client.get_config(f"{queue}.b") == "zwei ☃"
    assert client.list_config(f"{queue}.") == {f"{queue}.a": "1", f"{queue}.b": "zwei ☃"}
    client.set_config(f"{queue}.a", "")
    assert client.list_config(f"{queue}.") == {f"{queue}.b": "zwei ☃"}
    assert fault(lambda: client.get_config(f"{queue}.a")) == "NOT_FOUND"


def test_stats_tell_of_keys_and_buckets(client: Client, queue: str) -> None:
    script = """
    function on_enqueue(msg)
      local tenant = msg.headers["t"]
      return { fairness_key = tenant, weight = 2, throttle_keys = { "stats:" .. tenant } }
    end"""
    client.create_queue(queue, on_enqueue=script)
    client.set_config("throttle.stats:a", "10,20")
    client.enqueue(queue, *[b"x"] * 3, headers={"t": "a"})
    client.enqueue(queue, b"x", headers={"t": "b"})
    stats = client.stats(queue)
    assert (stats.depth, stats.in_flight, stats.active_fairness_keys) == (4, 0, 2)
    assert (stats.quantum, stats.active_consumers) == (1, 0)
    keys = {one.key: (one.pending_count, one.weight) for one in stats.per_key_stats}
    assert keys == {"a": (3, 2), "b": (1, 2)}
    (bucket,) = stats.per_throttle_stats
    assert (bucket.key, bucket.tokens, bucket.rate_per_second, bucket.burst) == (
        "stats:a",
        20.0,
        10.0,
        20.0,
    )
    client.consume(queue, prefetch=1).take_one()
    assert (client.stats(queue).in_flight, client.stats(queue).active_consumers) == (1, 1)
    summary = next(one for one in client.queues() if one.name == queue)
    assert (summary.depth, summary.in_flight, summary.active_consumers) == (3, 1, 1)


def test_keys_and_acls_are_managed(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker(settings={"auth.bootstrap_apikey": "root"})
    with broker, Client(broker.address, key="root") as client:
        later_ms = int(time.time() * 1000) + 3_600_000
        made = client.create_key("ci", expires_at_ms=later_ms)
        assert len(made.key) == 32 and made.key != made.key_id and not made.is_superadmin
        boss = client.create_key("boss", superadmin=True)
        assert boss.is_superadmin
        listed = {one.key_id: one for one in client.api_keys()}
        assert listed[made.key_id].name == "ci"
        assert listed[made.key_id].expires_at_ms == later_ms
        assert listed[made.key_id].created_at_ms > 0
        assert listed[boss.key_id].is_superadmin
        assert made.key not in str(client.api_keys())
        client.set_acl(made.key_id, ("produce", "orders.*"), ("consume", "*"))
        acl = client.get_acl(made.key_id)
        assert [(one.kind, one.pattern) for one in acl.permissions] == [
            ("produce", "orders.*"),
            ("consume", "*"),
        ]
        assert acl.key_id == made.key_id and not acl.is_superadmin
        client.revoke_key(made.key_id)
        assert made.key_id not in {one.key_id for one in client.api_keys()}
        assert fault(lambda: client.get_acl(made.key_id)) == "NOT_FOUND"


FAULTS: dict[str, tuple[str, Callable[[Client, str], object]]] = {
    "a queue that exists": ("ALREADY_EXISTS", lambda client, queue: client.create_queue(queue)),
    "a queue without a name": ("INVALID_ARGUMENT", lambda client, queue: client.create_queue("")),
    "a name of control characters": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.create_queue("a\x07b"),
    ),
    "a name that is too long": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.create_queue("x" * 300),
    ),
    "Lua that does not compile": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.create_queue(queue + "2", on_enqueue="function ("),
    ),
    "a visibility of 999 ms": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.create_queue(queue + "2", visibility_ms=999),
    ),
    "deleting what is not there": (
        "NOT_FOUND",
        lambda client, queue: client.delete_queue("no-such-queue"),
    ),
    "deleting without a name": ("INVALID_ARGUMENT", lambda client, queue: client.delete_queue("")),
    "stats of what is not there": (
        "NOT_FOUND",
        lambda client, queue: client.stats("no-such-queue"),
    ),
    "config that is not set": (
        "NOT_FOUND",
        lambda client, queue: client.get_config("no.such.key"),
    ),
    "a throttle that is no number": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.set_config("throttle.x", "fast"),
    ),
    "config without a key": ("INVALID_ARGUMENT", lambda client, queue: client.set_config("", "x")),
    "redriving what is no dead letter queue": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.redrive(queue),
    ),
    "redriving what is not there": (
        "NOT_FOUND",
        lambda client, queue: client.redrive("no-such-queue.dlq"),
    ),
    "a dead letter queue whose queue is gone": (
        "FAILED_PRECONDITION",
        lambda client, queue: (
            client.create_queue(queue + "-alone.dlq"),
            client.redrive(queue + "-alone.dlq"),
        ),
    ),
    "revoking a key that is not there": (
        "NOT_FOUND",
        lambda client, queue: client.revoke_key("0123456789abcdef"),
    ),
    "the ACL of a key that is not there": (
        "NOT_FOUND",
        lambda client, queue: client.get_acl("0123456789abcdef"),
    ),
    "an unknown kind of permission": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.set_acl("0123456789abcdef", ("destroy", "*")),
    ),
    "a key without a name": ("INVALID_ARGUMENT", lambda client, queue: client.create_key("")),
    "a key that has expired": (
        "INVALID_ARGUMENT",
        lambda client, queue: client.create_key("late", expires_at_ms=1),
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_mistake_has_its_status_and_a_text(client: Client, queue: str, what: str) -> None:
    expected, attempt = FAULTS[what]
    client.create_queue(queue)
    assert fault(lambda: attempt(client, queue)) == expected


def fault(attempt: Callable[[], object]) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        attempt()
    assert refused.value.details(), "a refusal says why"
    return str(refused.value.code().name)
