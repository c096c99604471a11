"""Requests that carry messages, as large as they may be."""

from __future__ import annotations

from collections.abc import Iterator

from fila.wire import bodies, message_codec
from fila.wire import opcodes as op
from fila.wire.message_codec import queue_field
from tests.isolation.scene import ROOT, Scene, case, enqueue, enqueue_with

MANY = 65_535
_ON_FAILURE = """
function on_failure(msg)
  return { action = "retry", delay_ms = 60000 }
end
"""
_ON_ENQUEUE = """
function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"] or "nobody", weight = 1 }
end
"""


@case("nothing at all", "for comparison")
def nothing(scene: Scene) -> Iterator[None]:
    yield


@case("Enqueue", "65,535 messages of one key")
def enqueue_one_key(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue(["q"] * MANY)
    yield
    peer.enqueue_results(peer.send(op.ENQUEUE, body))


@case("Enqueue", "65,535 messages of as many keys")
def enqueue_keys(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue_with("q", [(f"key-{at}", 0, "", b"x" * 64, ()) for at in range(MANY)])
    yield
    peer.reply(peer.send(op.ENQUEUE_WITH, body))


@case("Enqueue", "65,535 messages with delays")
def enqueue_delays(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue_with("q", [("", 600_000 - at, "", b"x" * 64, ()) for at in range(MANY)])
    yield
    peer.reply(peer.send(op.ENQUEUE_WITH, body))


@case("Enqueue", "65,535 messages with idempotency keys")
def enqueue_idempotent(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue_with("q", [("", 0, f"once-{at}", b"x" * 64, ()) for at in range(MANY)])
    yield
    peer.reply(peer.send(op.ENQUEUE_WITH, body))


@case("Enqueue", "65,535 messages through a hook")
def enqueue_hook(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q", on_enqueue=_ON_ENQUEUE)
    field = queue_field(b"q")
    items = [
        (field, b"\x00\x01\x00\x06tenant\x00\x05" + b"t%04d" % (at % 5_000) + b"\0\0\0\x04abcd")
        for at in range(MANY)
    ]
    body = message_codec.encode_enqueue(items)
    yield
    peer.enqueue_results(peer.send(op.ENQUEUE, body))


@case("Enqueue", "16,384 queues, a key with 1,000 permissions", auth__bootstrap_apikey=ROOT)
def enqueue_queues(scene: Scene) -> Iterator[None]:
    root = scene.peer()
    made = root.request(bodies.CreateApiKey("many"), bodies.CreateApiKeyResult)
    grants = [bodies.Permission("produce", f"team-{at}.*") for at in range(999)]
    grants.append(bodies.Permission("produce", "z.*"))
    root.request(bodies.SetAcl(made.key_id, tuple(grants)), bodies.SetAclResult)
    peer = scene.peer(made.key)
    body = enqueue([f"z.{at}" for at in range(16_384)])
    yield
    peer.enqueue_results(peer.send(op.ENQUEUE, body))


@case("Enqueue", "240 messages of 64 KiB in one frame")
def enqueue_megabytes(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue(["q"] * 240, b"x" * 65_536)
    yield
    peer.enqueue_results(peer.send(op.ENQUEUE, body))


@case("Enqueue", "one message of 31 MiB")
def enqueue_large(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = enqueue(["q"], b"x" * (31 << 20))
    yield
    peer.enqueue_results(peer.send(op.ENQUEUE, body))


@case("Delivery", "one message of 31 MiB")
def deliver_large(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    peer.enqueue("q", b"x" * (31 << 20))
    yield
    peer.take_one(peer.consume("q", 1))


@case("Delivery", "65,535 messages to one consumer")
def deliver_many(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill("q", MANY)
    yield
    peer.take(peer.consume("q", MANY), MANY)


@case("Delivery", "1,024 messages of 64 KiB to 8 consumers")
def deliver_megabytes(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    for _ in range(16):
        peer.enqueue("q", *[b"x" * 65_536] * 64)
    yield
    streams = [peer.consume("q", MANY) for _ in range(8)]
    got = 0
    while got < 1_000:
        peer.read(10)
        got += sum([len(peer.waiting(stream)) for stream in streams])


@case("Delivery", "10,000 lanes not read since the start")
def deliver_unread(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", 20_000, keys=[f"key-{at}" for at in range(10_000)])
    scene.broker.kill()
    scene.broker.start()
    yield
    peer = scene.peer()
    peer.take(peer.consume("q", MANY), 20_000)


@case("Delivery", "50,000 keys whose delay ends at one moment")
def deliver_delayed(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    stream = peer.consume("q", MANY)
    body = enqueue_with("q", [(f"key-{at}", 5_000, "", b"x", ()) for at in range(50_000)])
    peer.reply(peer.send(op.ENQUEUE_WITH, body))
    yield
    peer.take(stream, 50_000)


@case("Ack", "65,535 messages")
def ack_many(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    yield
    peer.ack("q", *ids)


@case("Nack", "65,535 messages")
def nack_many(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    yield
    peer.nack("q", *ids, error="no")


@case("Nack", "65,535 messages through a hook")
def nack_hook(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q", on_failure=_ON_FAILURE)
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    yield
    peer.nack("q", *ids, error="no")


@case("Release", "65,535 messages")
def release_many(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    field = queue_field(b"q")
    body = message_codec.encode_acks([(field, id.encode()) for id in ids])
    yield
    peer.reply(peer.send(op.RELEASE, body))


@case("Release", "2,000 requests, each of one message of a lease of 512")
def release_singly(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", MANY)
    peer, ids = scene.hold("q", MANY)
    field = queue_field(b"q")
    bodies_ = [message_codec.encode_acks([(field, id.encode())]) for id in ids[::32]]
    yield
    last = [peer.send(op.RELEASE, body) for body in bodies_][-1]
    peer.reply(last)
