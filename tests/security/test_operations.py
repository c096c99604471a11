"""Every operation, with every kind of key, over both protocols.

A refusal has the right status and text, comes before any look-up, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.e2e.peer import Closed
from tests.grpc.client import batch, message
from tests.grpc.talkers import Fault, GrpcTalker, Talker
from tests.security.conftest import TALKERS, Key

NO_ADMIN = "key does not have admin permission"
GIVE_UP = 'function on_failure() return { action = "dlq" } end'


class World(NamedTuple):
    """What an operation may touch; everything in it exists."""

    queue: str
    leased: str  # a message somebody holds
    key: Key  # somebody's key


class Operation(NamedTuple):
    attempt: Callable[[Talker, World], Any]
    kind: str  # the permission it needs
    on: str  # the queue it needs it on, or "*"
    granted: Callable[[Any], bool] = lambda answer: True


OPERATIONS: dict[str, Operation] = {
    "enqueue": Operation(
        lambda talker, world: talker.enqueue(world.queue, b"x", headers={}),
        "produce",
        "{queue}",
        lambda ids: len(ids[0]) == 36,
    ),
    "consume": Operation(
        lambda talker, world: talker.consume(world.queue).take(1),
        "consume",
        "{queue}",
        lambda got: len(got) == 1,
    ),
    "ack": Operation(
        lambda talker, world: _settled(talker.ack(world.queue, world.leased), world.queue),
        "consume",
        "{queue}",
        lambda results: results == ["OK"],
    ),
    "nack": Operation(
        lambda talker, world: _settled(talker.nack(world.queue, world.leased), world.queue),
        "consume",
        "{queue}",
        lambda results: results == ["OK"],
    ),
    "create queue": Operation(
        lambda talker, world: talker.create_queue(f"{world.queue}-new"), "admin", "{queue}-new"
    ),
    "delete queue": Operation(
        lambda talker, world: talker.delete_queue(world.queue), "admin", "{queue}"
    ),
    "stats": Operation(
        lambda talker, world: talker.stats(world.queue),
        "admin",
        "{queue}",
        lambda stats: stats.depth == 2,
    ),
    "redrive": Operation(
        lambda talker, world: talker.redrive(f"{world.queue}.dlq"),
        "admin",
        "{queue}.dlq",
        lambda moved: moved == 1,
    ),
    "set config": Operation(
        lambda talker, world: talker.set_config(f"{world.queue}.flag", "on"), "admin", "*"
    ),
    "get config": Operation(
        lambda talker, world: talker.get_config(f"{world.queue}.old"),
        "admin",
        "*",
        lambda value: value == "1",
    ),
    "list config": Operation(
        lambda talker, world: talker.list_config(world.queue),
        "admin",
        "*",
        lambda found: len(found) == 1,
    ),
    "create key": Operation(
        lambda talker, world: talker.create_key("new"),
        "admin",
        "*",
        lambda made: len(made.key) == 32,
    ),
    "revoke key": Operation(
        lambda talker, world: talker.revoke_key(world.key.id), "admin", "*"
    ),
    "list keys": Operation(
        lambda talker, world: talker.api_keys(), "admin", "*", lambda found: len(found) > 0
    ),
    "set ACL": Operation(
        lambda talker, world: talker.set_acl(world.key.id, ("consume", world.queue)),
        "admin",
        "*",
    ),
    "get ACL": Operation(
        lambda talker, world: talker.get_acl(world.key.id),
        "admin",
        "*",
        lambda acl: acl == (False, [("produce", "something")]),
    ),
}  # fmt: skip


@pytest.fixture
def world(root: Talker, key: Callable[..., Key], queue: str) -> World:
    """A queue with two messages, one more that is leased, and a dead letter."""
    root.create_queue(queue, on_failure=GIVE_UP)
    ids = root.enqueue(queue, b"dead", b"leased", headers={})
    stream = root.consume(queue, prefetch=2)
    stream.take(2)
    stream.leave()
    root.nack(queue, ids[0])
    root.enqueue(queue, b"1", b"2", headers={})
    root.set_config(f"{queue}.old", "1")
    return World(queue, ids[1], key(("produce", "something")))


def seen(root: Talker, world: World) -> Any:
    """Everything an operation of the matrix could change."""
    return (
        root.stats(world.queue)[:3],
        root.queues(),
        root.list_config(""),
        [(one.key_id, one.name) for one in root.api_keys()],
        root.get_acl(world.key.id),
    )


protocols = pytest.mark.parametrize("protocol", list(TALKERS))
operations = pytest.mark.parametrize("name", list(OPERATIONS))


@protocols
@operations
@pytest.mark.parametrize("who", ["no key", "wrong key", "expired key"])
def test_without_a_valid_key_nobody_gets_in(
    root: Talker,
    connect: Callable[..., Talker],
    expired: Key,
    world: World,
    protocol: str,
    name: str,
    who: str,
) -> None:
    secret, text = {
        "no key": (None, "an API key is required"),
        "wrong key": ("0" * 32, "the API key is not valid"),
        "expired key": (expired.secret, "the API key has expired"),
    }[who]
    before = seen(root, world)
    with pytest.raises(Fault) as refused:
        OPERATIONS[name].attempt(connect(protocol, secret), world)
    assert (refused.value.status, refused.value.text) == ("UNAUTHENTICATED", text)
    assert seen(root, world) == before


@protocols
@operations
def test_a_key_revoked_on_an_open_connection_does_nothing_more(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    mine = key(superadmin=True)
    talker = connect(protocol, mine.secret)
    talker.queues()
    root.revoke_key(mine.id)
    before = seen(root, world)
    with pytest.raises((Fault, Closed, OSError)) as refused:
        OPERATIONS[name].attempt(talker, world)
    if isinstance(refused.value, Fault):
        assert refused.value.status == "UNAUTHENTICATED"
    assert seen(root, world) == before


@protocols
@operations
@pytest.mark.parametrize("who", ["no permission", "another queue", "another kind"])
def test_without_the_permission_it_is_refused_by_name(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
    who: str,
) -> None:
    operation = OPERATIONS[name]
    on = operation.on.format(queue=world.queue)
    others = [kind for kind in ("produce", "consume", "admin") if kind != operation.kind]
    mine = {
        "no permission": lambda: key(),
        "another queue": lambda: key(
            (operation.kind, "elsewhere"), (operation.kind, f"{on.strip('*')}x")
        ),
        "another kind": lambda: key(*[(kind, "*") for kind in others]),
    }[who]()
    before = seen(root, world)
    with pytest.raises(Fault) as refused:
        operation.attempt(connect(protocol, mine.secret), world)
    assert refused.value.status == "PERMISSION_DENIED"
    if operation.kind != "admin":
        expected = f'no {operation.kind} permission on queue "{on}"'
    elif who != "another queue" or on == "*":
        expected = NO_ADMIN
    else:
        expected = f'no admin permission on queue "{on}"'
    if name == "set ACL" and who == "another queue":
        expected = "one or more permissions exceed the caller's admin scope"
    assert refused.value.text == expected
    after = seen(root, world)
    assert after == before


@protocols
@operations
def test_the_right_permission_is_enough(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    operation = OPERATIONS[name]
    mine = key((operation.kind, operation.on.format(queue=world.queue)))
    answer = operation.attempt(connect(protocol, mine.secret), world)
    assert operation.granted(answer), answer


@protocols
@operations
def test_a_superadmin_may_do_everything(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    operation = OPERATIONS[name]
    answer = operation.attempt(connect(protocol, key(superadmin=True).secret), world)
    assert operation.granted(answer), answer


@protocols
def test_a_list_of_queues_shows_what_the_key_may_see(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], queue: str, protocol: str
) -> None:
    for name in ("a", "b", "c", "d"):
        root.create_queue(f"{queue}.{name}")
    mine = key(("produce", f"{queue}.a"), ("consume", f"{queue}.b"), ("admin", f"{queue}.c.*"))
    talker = connect(protocol, mine.secret)
    assert set(talker.queues()) == {f"{queue}.a", f"{queue}.b", f"{queue}.c.dlq"}
    assert connect(protocol, key().secret).queues() == {}


@pytest.mark.parametrize("who", ["no key", "no permission", "right permission"])
def test_a_stream_of_batches_is_held_to_the_same(
    connect: Callable[..., Talker], key: Callable[..., Key], world: World, who: str
) -> None:
    secret = {
        "no key": None,
        "no permission": key(("produce", "elsewhere")).secret,
        "right permission": key(("produce", world.queue)).secret,
    }[who]
    talker = connect("grpc", secret)
    assert isinstance(talker, GrpcTalker)
    answers = talker.client.stream_enqueue([batch(1, message(world.queue, b"x"))])
    if who == "no key":
        import grpc

        with pytest.raises(grpc.RpcError) as refused:
            next(answers)
        assert refused.value.code().name == "UNAUTHENTICATED"
    else:
        (result,) = next(answers).results
        assert bool(result.message_id) == (who == "right permission")
        assert result.error.code == (0 if who == "right permission" else 4)


def test_a_forbidden_message_over_fibp_keeps_the_whole_batch_out(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], world: World
) -> None:
    talker = connect("fibp", key(("produce", world.queue)).secret)
    with pytest.raises(Fault) as refused:
        talker.enqueue_mixed((world.queue, b"a"), ("elsewhere", b"b"))
    assert refused.value.text == 'no produce permission on queue "elsewhere"'
    assert root.stats(world.queue).depth == 2


def _settled(results: list[str], queue: str) -> list[str]:
    """Over gRPC a forbidden item is a result; raise it, as FIBP does."""
    if results == ["PERMISSION_DENIED"]:
        raise Fault("PERMISSION_DENIED", f'no consume permission on queue "{queue}"')
    return results
