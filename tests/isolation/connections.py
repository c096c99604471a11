"""Many small things at once: frames, consumers, connections."""

from __future__ import annotations

from collections.abc import Iterator

from fila.wire import bodies, layouts
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from tests.isolation.scene import Scene, case, enqueue, frames


@case("Ping", "100,000 frames at once")
def pings(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    data = frames(op.PING, 100_000)
    yield
    peer.send_bytes(data)
    peer.reply(100_000)


@case("Ping", "2,000 frames at once on each of 20 connections")
def pings_crowd(scene: Scene) -> Iterator[None]:
    peers = [scene.peer() for _ in range(20)]
    data = frames(op.PING, 2_000)
    yield
    for peer in peers:
        peer.send_bytes(data)
    for peer in peers:
        peer.reply(2_000)


@case("Enqueue", "20,000 frames of one message at once")
def enqueue_frames(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    data = frames(op.ENQUEUE, 20_000, enqueue(["q"]))
    yield
    peer.send_bytes(data)
    peer.enqueue_results(20_000)


@case("Enqueue", "frames of 1,000 messages on 20 connections at once")
def enqueue_crowd(scene: Scene) -> Iterator[None]:
    peers = [scene.peer() for _ in range(20)]
    peers[0].create_queue("q")
    body = enqueue(["q"] * 1_000)
    yield
    for _ in range(3):
        sent = [peer.send(op.ENQUEUE, body) for peer in peers]
        for peer, request in zip(peers, sent, strict=True):
            peer.enqueue_results(request)


@case("Consume", "1,000 frames at once, 65,535 messages wait")
def consumers(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill("q", 65_535)
    body = layouts.encode(bodies.Consume("q", 64))
    yield
    peer.send_bytes(frames(op.CONSUME, 1_000, body))
    got = 0
    while got < 60_000:
        peer.read(10)
        got += sum([len(peer.waiting(stream)) for stream in range(1, 1_001)])


@case("a connection ends", "1,000 consumers among 20,000")
def consumers_leave(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    body = layouts.encode(bodies.Consume("q", 64))
    data = frames(op.CONSUME, 1_000, body)
    peers = [scene.peer() for _ in range(20)]
    for one in peers:
        one.send_bytes(data)
        one.reply(1_000)
    yield
    peers[10].close()
    peers[19].last_request = 1_000
    peers[19].send_bytes(b"".join([encode_frames(op.CANCEL_CONSUME, at) for at in range(1, 1_001)]))
    peers[19].ping()


@case("connections", "500 opened at once")
def connections(scene: Scene) -> Iterator[None]:
    yield
    for _ in range(500):
        scene.peer()
