"""Leases: handed back, run out, and in batches."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fila.wire import bodies
from fila.wire import opcodes as op
from fila.wire.forms import ARROW
from tests.isolation.scene import Scene, case

MANY = 65_535


def _leased(scene: Scene, batches: int) -> None:
    """A queue with so many open batches of 65,535 messages, of the stream `s`."""
    peer = scene.peer()
    peer.create_queue("q", visibility_ms=600_000)
    scene.fill("q", MANY * batches, payload=b"x" * 16)
    for number in range(batches):
        wanted = bodies.LeaseBatch("q", f"s/{number}", MANY, 64 << 20, form=2)
        assert peer.request(wanted, bodies.LeaseBatchResult).messages == MANY


@case("Disconnect", "160,000 messages held")
def disconnect(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", 160_000)
    peer, _ = scene.hold("q", 160_000, 40_000)
    yield
    peer.send(op.DISCONNECT)
    peer.expect_close()
    watcher = scene.peer()
    while watcher.queues()["q"].in_flight:
        time.sleep(0.05)


@case("Disconnect", "65,535 messages of as many keys held")
def disconnect_keys(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY, keys=[f"key-{at}" for at in range(MANY)])
    peer, _ = scene.hold("q", MANY)
    yield
    peer.send(op.DISCONNECT)
    peer.expect_close()
    watcher = scene.peer()
    while watcher.queues()["q"].in_flight:
        time.sleep(0.05)


@case("leases that run out", "160,000 messages at once")
def expiry(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q", visibility_ms=15_000)
    scene.fill("q", 160_000)
    peer, _ = scene.hold("q", 160_000, 40_000)
    peer.close()
    yield
    watcher = scene.peer()
    while watcher.queues()["q"].in_flight:
        time.sleep(0.05)


@case("AckBatch below", "500 requests at once, 9,000 open batches")
def ack_below(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q", visibility_ms=600_000)
    scene.fill("q", 9_000)
    last = 0
    for number in range(9_000):
        last = peer.post(bodies.LeaseBatch("q", f"s/{number}", 1, form=2))
        if number % 500 == 0:
            peer.reply(last)
    peer.reply(last)
    yield
    for _ in range(500):
        last = peer.post(bodies.AckBatch("q", "another", 10))
    peer.reply(last)


@case("AckBatch", "65,535 messages")
def ack_batch(scene: Scene) -> Iterator[None]:
    _leased(scene, 1)
    peer = scene.peer()
    yield
    peer.request(bodies.AckBatch("q", "s/0"), bodies.AckBatchResult)


@case("ReleaseBatch below", "262,140 messages in 4 batches")
def release_batches(scene: Scene) -> Iterator[None]:
    _leased(scene, 4)
    peer = scene.peer()
    yield
    peer.request(bodies.ReleaseBatch("q", "s", 10), bodies.ReleaseBatchResult)


@case("ExtendBatch below", "9,000 batches")
def extend_batches(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q", visibility_ms=600_000)
    scene.fill("q", 9_000)
    last = 0
    for number in range(9_000):
        last = peer.post(bodies.LeaseBatch("q", f"s/{number}", 1, form=2))
        if number % 500 == 0:
            peer.reply(last)
    peer.reply(last)
    yield
    peer.request(bodies.ExtendBatch("q", "s", 60_000, 100_000), bodies.ExtendBatchResult)


@case("LeaseBatch", "65,535 messages")
def lease_batch(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill("q", MANY, payload=b"x" * 16)
    yield
    peer.request(bodies.LeaseBatch("q", "b", MANY, 64 << 20), bodies.LeaseBatchResult)


@case("LeaseBatch", "65,535 messages, as Arrow", browse__preload_arrow=True)
def lease_batch_arrow(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill("q", MANY, payload=b"x" * 16)
    wanted = bodies.LeaseBatch("q", "b", MANY, 64 << 20, form=ARROW)
    yield
    peer.request(wanted, bodies.LeaseBatchResult)


@case("LeaseBatch", "65,535 messages told again")
def lease_again(scene: Scene) -> Iterator[None]:
    _leased(scene, 1)
    peer = scene.peer()
    yield
    peer.request(bodies.LeaseBatch("q", "s/0", 0), bodies.LeaseBatchResult)


@case("ListBatches", "9,000 batches")
def list_batches(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q", visibility_ms=600_000)
    scene.fill("q", 9_000)
    last = 0
    for number in range(9_000):
        last = peer.post(bodies.LeaseBatch("q", f"s/{number}", 1, form=2))
        if number % 500 == 0:
            peer.reply(last)
    peer.reply(last)
    yield
    peer.request(bodies.ListBatches("q"), bodies.ListBatchesResult)
