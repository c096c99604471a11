"""Every operation, with every kind of key, over both protocols.

A refusal has the right status and text, comes before any look-up, and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any, NamedTuple

import pytest

import grpc
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2, service_pb2
from fila.wire import opcodes as op
from tests.e2e.peer import Closed
from tests.grpc.bulk_talk import bulk
from tests.grpc.client import batch, message
from tests.grpc.talkers import Fault, GrpcTalker, Talker
from tests.security.conftest import TALKERS, Key

NO_ADMIN = "key does not have admin permission"
PLACE = "function on_enqueue() return {} end"
GIVE_UP = 'function on_failure() return { action = "dlq" } end'


class World(NamedTuple):
    """What an operation may touch; everything in it exists."""

    queue: str
    leased: str  # a message somebody holds
    key: Key  # somebody's key
    snapshot: str  # of the queue


class Operation(NamedTuple):
    attempt: Callable[[Talker, World], Any]
    kind: str  # the permission it needs
    on: str  # the queue it needs it on, or "*"
    granted: Callable[[Any], bool] = lambda answer: True
    protocols: tuple[str, ...] = tuple(TALKERS)


OPERATIONS: dict[str, Operation] = {
    "Enqueue": Operation(
        lambda talker, world: talker.enqueue(world.queue, b"x", headers={}),
        "produce",
        "{queue}",
        lambda ids: len(ids[0]) == 36,
    ),
    "StreamEnqueue": Operation(
        lambda talker, world: _streamed(talker, world.queue),
        "produce",
        "{queue}",
        lambda id: len(id) == 36,
        ("grpc",),
    ),
    "Consume": Operation(
        lambda talker, world: talker.consume(world.queue).take(1),
        "consume",
        "{queue}",
        lambda got: len(got) == 1,
    ),
    "Ack": Operation(
        lambda talker, world: _settled(talker.ack(world.queue, world.leased), world.queue),
        "consume",
        "{queue}",
        lambda results: results == ["OK"],
    ),
    "Nack": Operation(
        lambda talker, world: _settled(talker.nack(world.queue, world.leased), world.queue),
        "consume",
        "{queue}",
        lambda results: results == ["OK"],
    ),
    "CreateQueue": Operation(
        lambda talker, world: talker.create_queue(f"{world.queue}-new"), "admin", "{queue}-new"
    ),
    "DeleteQueue": Operation(
        lambda talker, world: talker.delete_queue(world.queue), "admin", "{queue}"
    ),
    "GetStats": Operation(
        lambda talker, world: talker.stats(world.queue),
        "admin",
        "{queue}",
        lambda stats: stats.depth == 2,
    ),
    "Redrive": Operation(
        lambda talker, world: talker.redrive(f"{world.queue}.dlq"),
        "admin",
        "{queue}.dlq",
        lambda moved: moved == 1,
    ),
    "Explain": Operation(
        lambda talker, world: talker.explain(world.queue),
        "admin",
        "{queue}",
        lambda found: found["depth"] == 2,
    ),
    "UpdateQueue": Operation(
        lambda talker, world: talker.update_queue(world.queue, {"max_attempts": "7"}),
        "admin",
        "{queue}",
        lambda version: version == 2,
    ),
    "GetQueue": Operation(
        lambda talker, world: talker.queue_settings(world.queue),
        "admin",
        "{queue}",
        lambda settings: settings["max_attempts"] == "0",
    ),
    "ListVersions": Operation(
        lambda talker, world: talker.versions(world.queue),
        "admin",
        "{queue}",
        lambda versions: versions == [(1, "", [])],
    ),
    "SetOverride": Operation(
        lambda talker, world: talker.set_override(world.queue, "default", {"weight": "3"}),
        "admin",
        "{queue}",
    ),
    "ListOverrides": Operation(
        lambda talker, world: talker.overrides(world.queue),
        "admin",
        "{queue}",
        lambda found: found == [],
    ),
    "Reclassify": Operation(
        lambda talker, world: talker.reclassify(f"{world.queue}-hooked"),
        "admin",
        "{queue}-hooked",
        lambda found: found["state"] == "running",
    ),
    "GetReclassify": Operation(
        lambda talker, world: talker.reclassification(world.queue),
        "admin",
        "{queue}",
        lambda found: found["state"] == "none",
    ),
    "PauseQueue": Operation(
        lambda talker, world: talker.pause_queue(world.queue, "why"), "admin", "{queue}"
    ),
    "ResumeQueue": Operation(
        lambda talker, world: talker.resume_queue(world.queue), "admin", "{queue}"
    ),
    "PauseKey": Operation(
        lambda talker, world: talker.pause_key(world.queue, "default"), "admin", "{queue}"
    ),
    "ResumeKey": Operation(
        lambda talker, world: talker.resume_key(world.queue, "default"), "admin", "{queue}"
    ),
    "Purge": Operation(
        lambda talker, world: talker.purge(world.queue),
        "admin",
        "{queue}",
        lambda purged: purged == 2,
    ),
    "SetConfig": Operation(
        lambda talker, world: talker.set_config(f"{world.queue}.flag", "on"), "admin", "*"
    ),
    "GetConfig": Operation(
        lambda talker, world: talker.get_config(f"{world.queue}.old"),
        "admin",
        "*",
        lambda value: value == "1",
    ),
    "ListConfig": Operation(
        lambda talker, world: talker.list_config(world.queue),
        "admin",
        "*",
        lambda found: len(found) == 1,
    ),
    "CreateApiKey": Operation(
        lambda talker, world: talker.create_key("new"),
        "admin",
        "*",
        lambda made: len(made.key) == 32,
    ),
    "RevokeApiKey": Operation(
        lambda talker, world: talker.revoke_key(world.key.id), "admin", "*"
    ),
    "ListApiKeys": Operation(
        lambda talker, world: talker.api_keys(), "admin", "*", lambda found: len(found) > 0
    ),
    "SetAcl": Operation(
        lambda talker, world: talker.set_acl(world.key.id, ("consume", world.queue)),
        "admin",
        "*",
    ),
    "GetAcl": Operation(
        lambda talker, world: talker.get_acl(world.key.id),
        "admin",
        "*",
        lambda acl: acl == (False, [("produce", "something")]),
    ),
    "GetLimits": Operation(
        lambda talker, world: talker.limits(), "admin", "*", lambda found: len(found) > 4
    ),
    "CreateBackup": Operation(
        lambda talker, world: _backed_up(talker), "admin", "*", lambda name: len(name) == 24
    ),
    "ListBackups": Operation(
        lambda talker, world: talker.backups(),
        "admin",
        "*",
        lambda found: found.target.endswith("/backups"),
    ),
    "EnqueueWith": Operation(
        lambda talker, world: bulk(talker, "EnqueueWith", world.queue),
        "produce",
        "{queue}",
        lambda id: len(id) == 36,
    ),
    "Release": Operation(
        lambda talker, world: bulk(talker, "Release", world.queue, world.leased),
        "consume",
        "{queue}",
        lambda code: code == 0,
    ),
    "LeaseBatch": Operation(
        lambda talker, world: bulk(talker, "LeaseBatch", world.queue),
        "consume",
        "{queue}",
        lambda count: count == 1,
    ),
    "AckBatch": Operation(
        lambda talker, world: bulk(talker, "AckBatch", world.queue),
        "consume",
        "{queue}",
        lambda count: count == 1,
    ),
    "ExtendBatch": Operation(
        lambda talker, world: bulk(talker, "ExtendBatch", world.queue),
        "consume",
        "{queue}",
        lambda count: count == 1,
    ),
    "Extend": Operation(
        lambda talker, world: bulk(talker, "Extend", world.queue, "no-id"),
        "consume",
        "{queue}",
        lambda answer: answer == (30_000, ["no-id"]),
    ),
    "ReleaseBatch": Operation(
        lambda talker, world: bulk(talker, "ReleaseBatch", world.queue),
        "consume",
        "{queue}",
        lambda count: count == 1,
    ),
    "Browse": Operation(
        lambda talker, world: _browsed_and_closed(talker, world.queue),
        "consume",
        "{queue}",
        lambda token: len(token) == 32,
    ),
    "BrowsePage": Operation(
        lambda talker, world: bulk(talker, "BrowsePage", world.snapshot),
        "consume",
        "{queue}",
        lambda count: count == 4,
    ),
    "BrowseClose": Operation(
        lambda talker, world: bulk(talker, "BrowseClose", world.snapshot), "consume", "{queue}"
    ),
}  # fmt: skip
# Either of two permissions will do; a test of its own says which.
EITHER = {
    "ListBatches": Operation(
        lambda talker, world: bulk(talker, "ListBatches", world.queue),
        "admin",
        "{queue}",
        lambda count: count == 1,
    )
}
# Refused to nobody who has a key: it shows what the key may see.
LISTING = {
    "ListQueues": Operation(
        lambda talker, world: talker.queues(), "admin", "{queue}", lambda found: len(found) > 0
    ),
    "WhoAmI": Operation(
        lambda talker, world: talker.who_am_i(), "admin", "{queue}", lambda me: me.auth
    ),
}
EVERYTHING = OPERATIONS | LISTING | EITHER


def _backed_up(talker: Talker) -> str:
    """One at a time: what another test began comes to its end first."""
    while True:
        try:
            return talker.create_backup()
        except Fault as fault:
            if "still being copied" not in str(fault):
                raise
        time.sleep(0.05)


def _browsed_and_closed(talker: Talker, queue: str) -> Any:
    """Only so many snapshots may be open."""
    token = bulk(talker, "Browse", queue)
    bulk(talker, "BrowseClose", token)
    return token


@pytest.fixture
def world(root: Talker, key: Callable[..., Key], queue: str) -> Iterator[World]:
    """A queue with two messages, two more that are leased (one in a batch), and a dead letter."""
    root.create_queue(queue, on_failure=GIVE_UP)
    root.create_queue(f"{queue}-hooked", PLACE)
    ids = root.enqueue(queue, b"dead", b"leased", headers={})
    stream = root.consume(queue, prefetch=2)
    stream.take(2)
    stream.leave()
    root.nack(queue, ids[0])
    root.enqueue(queue, b"batched", headers={})
    assert bulk(root, "LeaseBatch", queue) == 1
    root.enqueue(queue, b"1", b"2", headers={})
    root.set_config(f"{queue}.old", "1")
    snapshot = bulk(root, "Browse", queue)
    yield World(queue, ids[1], key(("produce", "something")), snapshot)
    bulk(root, "BrowseClose", snapshot)


def seen(root: Talker, world: World) -> Any:
    """Everything an operation of the matrix could change."""
    return (
        root.stats(world.queue)[:3],
        set(root.queues()),  # their counts change by themselves, when leases run out
        root.list_config(""),
        [(one.key_id, one.name) for one in root.api_keys()],
        root.get_acl(world.key.id),
    )


def over_both(operations: dict[str, Operation]) -> pytest.MarkDecorator:
    """Each operation over each protocol that has it."""
    pairs = [(how, name) for name, one in operations.items() for how in one.protocols]
    return pytest.mark.parametrize(("protocol", "name"), pairs)


protocols = pytest.mark.parametrize("protocol", list(TALKERS))


def test_the_matrix_knows_every_operation_of_both_protocols() -> None:
    """A new operation is added above, with the permission it needs."""
    without_a_key = {"Handshake", "Ping"}
    requests = {op.NAMES[opcode] for opcode in op.REPLY_TO} - without_a_key
    assert requests == {name for name, one in EVERYTHING.items() if "fibp" in one.protocols}
    calls = {
        method.name
        for file in (service_pb2, bulk_pb2, admin_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert calls == {name for name, one in EVERYTHING.items() if "grpc" in one.protocols}


@over_both(EVERYTHING)
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
        "no key": (None, "API key required"),
        "wrong key": ("0" * 32, "the API key is not valid"),
        "expired key": (expired.secret, "the API key has expired"),
    }[who]
    before = seen(root, world)
    with pytest.raises(Fault) as refused:
        EVERYTHING[name].attempt(connect(protocol, secret), world)
    assert (refused.value.status, refused.value.text) == ("UNAUTHENTICATED", text)
    assert seen(root, world) == before


@over_both(EVERYTHING)
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
        EVERYTHING[name].attempt(talker, world)
    if isinstance(refused.value, Fault):
        assert refused.value.status == "UNAUTHENTICATED"
    assert seen(root, world) == before


@over_both(OPERATIONS)
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
    operation = EVERYTHING[name]
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
    if name == "SetAcl" and who == "another queue":
        expected = "one or more permissions exceed the caller's admin scope"
    assert refused.value.text == expected
    after = seen(root, world)
    assert after == before


@over_both({name: one for name, one in OPERATIONS.items() if "{queue}" in one.on})
def test_a_refusal_does_not_tell_whether_the_queue_exists(
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    mine = key()
    said = []
    for one in (world, world._replace(queue="nothing-of-that-name")):
        with pytest.raises(Fault) as refused:
            OPERATIONS[name].attempt(connect(protocol, mine.secret), one)
        text = refused.value.text.replace(world.queue, "Q").replace(one.queue, "Q")
        said.append((refused.value.status, text))
    assert said[0][0] == "PERMISSION_DENIED" and said[0] == said[1]


@over_both(EVERYTHING)
def test_the_right_permission_is_enough(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    operation = EVERYTHING[name]
    mine = key((operation.kind, operation.on.format(queue=world.queue)))
    answer = operation.attempt(connect(protocol, mine.secret), world)
    assert operation.granted(answer), answer


@over_both(EVERYTHING)
def test_a_superadmin_may_do_everything(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    world: World,
    protocol: str,
    name: str,
) -> None:
    operation = EVERYTHING[name]
    answer = operation.attempt(connect(protocol, key(superadmin=True).secret), world)
    assert operation.granted(answer), answer


@protocols
def test_batches_are_listed_to_who_consumes_or_administers(
    connect: Callable[..., Talker], key: Callable[..., Key], world: World, protocol: str
) -> None:
    for kind in ("consume", "admin"):
        mine = key((kind, world.queue))
        assert bulk(connect(protocol, mine.secret), "ListBatches", world.queue) == 1
    elsewhere = [("consume", "elsewhere"), ("admin", f"{world.queue}x")]
    for permissions in ([], [("produce", "*")], elsewhere):
        talker = connect(protocol, key(*permissions).secret)
        with pytest.raises(Fault) as refused:
            bulk(talker, "ListBatches", world.queue)
        assert refused.value.status == "PERMISSION_DENIED"


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


def test_a_stream_of_batches_ends_with_its_key(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], world: World
) -> None:
    mine = key(("produce", world.queue))
    talker = connect("grpc", mine.secret)
    assert isinstance(talker, GrpcTalker)
    waiting: Queue[Any] = Queue()
    answers = talker.client.stream_enqueue(iter(waiting.get, None))
    waiting.put(batch(1, message(world.queue, b"x")))
    assert next(answers).results[0].message_id
    root.revoke_key(mine.id)
    waiting.put(batch(2, message(world.queue, b"y")))
    with pytest.raises(grpc.RpcError) as refused:
        next(answers)
    waiting.put(None)
    assert refused.value.code().name == "UNAUTHENTICATED"
    assert root.stats(world.queue).depth == 3


def test_a_forbidden_message_over_fibp_keeps_the_whole_batch_out(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], world: World
) -> None:
    talker = connect("fibp", key(("produce", world.queue)).secret)
    with pytest.raises(Fault) as refused:
        talker.enqueue_mixed((world.queue, b"a"), ("elsewhere", b"b"))
    assert refused.value.text == 'no produce permission on queue "elsewhere"'
    assert root.stats(world.queue).depth == 2


def _streamed(talker: Talker, queue: str) -> str:
    """One message by StreamEnqueue; its refusal is raised."""
    assert isinstance(talker, GrpcTalker)
    answers = talker.client.stream_enqueue([batch(1, message(queue, b"x"))])
    try:
        (result,) = next(answers).results
    except grpc.RpcError as refused:
        raise Fault(refused.code().name, refused.details()) from refused
    if result.error.code == service_pb2.ENQUEUE_ERROR_CODE_PERMISSION_DENIED:
        raise Fault("PERMISSION_DENIED", result.error.message)
    return str(result.message_id)


def _settled(results: list[str], queue: str) -> list[str]:
    """Over gRPC a forbidden item is a result; raise it, as FIBP does."""
    if results == ["PERMISSION_DENIED"]:
        raise Fault("PERMISSION_DENIED", f'no consume permission on queue "{queue}"')
    return results
