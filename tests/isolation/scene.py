"""A scene: a fresh broker with whatever a case needs, and the prober that watches it.

A case is a generator: what it does before its `yield` sets the scene, what it does after that is
what one client does while the prober pings.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fila.wire import bodies, message_codec
from fila.wire import opcodes as op
from fila.wire.enqueue_with_codec import options_field
from fila.wire.frames import encode_frames
from fila.wire.message import message_body
from fila.wire.message_codec import lane_field, queue_field
from tests.e2e.peer import Peer
from tests.http.visitor import HttpBroker
from tests.isolation.prober import Pause, Prober

ROOT = "the-bootstrap-key"
SETTLE_S = 0.3
FRAME_MESSAGES = 2_000
WAIT_S = 120.0

Acting = Callable[["Scene"], Iterator[None]]


class Case(NamedTuple):
    name: str  # for the command line
    operation: str  # for the table
    size: str
    acting: Acting
    settings: Mapping[str, object]


CASES: list[Case] = []


def case(operation: str, size: str, **settings: object) -> Callable[[Acting], Acting]:
    """A row of the table. Settings are `section__key=value`."""

    def add(acting: Acting) -> Acting:
        named = {name.replace("__", "."): value for name, value in settings.items()}
        CASES.append(Case(acting.__name__.replace("_", "-"), operation, size, acting, named))
        return acting

    return add


class Scene:
    """One broker, and connections to it that live as long as the scene."""

    def __init__(self, directory: Path, settings: Mapping[str, object]) -> None:
        self.broker = HttpBroker(directory / "data", dict(settings))
        self.broker.start()
        self.key = ROOT if "auth.bootstrap_apikey" in settings else None
        self._peers: list[Peer] = []

    def peer(self, key: str | None = None) -> Peer:
        peer = Peer(self.broker.address, handshake=False, wait_s=WAIT_S)
        peer.request(bodies.Handshake(1, key or self.key), bodies.HandshakeOk)
        self._peers.append(peer)
        return peer

    def fill(
        self,
        queue: str,
        count: int,
        *,
        keys: Iterable[str] = (),
        delay_ms: int = 0,
        payload: bytes = b"x" * 64,
        throttle_keys: Callable[[int], tuple[str, ...]] = lambda at: (),
    ) -> None:
        """Enqueue so many messages in frames of a modest size."""
        peer = self.peer()
        names = list(keys) or [""]
        for start in range(0, count, FRAME_MESSAGES):
            places = range(start, min(start + FRAME_MESSAGES, count))
            items = [
                (names[at % len(names)], delay_ms, "", payload, throttle_keys(at)) for at in places
            ]
            peer.reply(peer.send(op.ENQUEUE_WITH, enqueue_with(queue, items)))

    def hold(self, queue: str, count: int, prefetch: int = 65_535) -> tuple[Peer, list[str]]:
        """Take so many messages without acknowledging them: who has them, and their ids."""
        peer = self.peer()
        streams = [peer.consume(queue, prefetch) for _ in range(-(-count // prefetch))]
        ids: list[str] = []
        while len(ids) < count:
            peer.read(WAIT_S)
            for stream in streams:
                ids += [message.id for message in peer.waiting(stream)]
        return peer, ids

    def close(self) -> None:
        for peer in self._peers:
            if not peer.closed:
                peer.close()
        self.broker.kill()


def enqueue_with(
    queue: str, items: Iterable[tuple[str, int, str, bytes, tuple[str, ...]]]
) -> bytes:
    """The body of an EnqueueWith of (key, delay_ms, idempotency key, payload, throttle keys)."""
    field = queue_field(queue.encode())
    parts = []
    count = 0
    for key, delay_ms, idempotency_key, payload, throttle_keys in items:
        lane = lane_field(key.encode(), 1, [one.encode() for one in throttle_keys])
        parts += [
            field,
            message_body(None, payload),
            options_field(delay_ms, idempotency_key, lane),
        ]
        count += 1
    return count.to_bytes(4, "big") + b"".join(parts)


def enqueue(queues: Iterable[str], payload: bytes = b"x" * 64) -> bytes:
    """The body of an Enqueue of one message to each of the queues."""
    body = message_body(None, payload)
    return message_codec.encode_enqueue([(queue_field(one.encode()), body) for one in queues])


def frames(opcode: int, count: int, body: bytes = b"") -> bytes:
    """So many frames one after the other."""
    return b"".join([encode_frames(opcode, number, body) for number in range(1, count + 1)])


def measure(one: Case) -> tuple[Pause, float]:
    """Play a case: the worst pause the prober saw, and how long the act took in seconds."""
    with tempfile.TemporaryDirectory(prefix="fila-isolation-") as directory:
        scene = Scene(Path(directory), one.settings)
        try:
            acting = one.acting(scene)
            next(acting)
            prober = Prober(scene.broker.address, scene.broker.process.pid, scene.key)
            time.sleep(SETTLE_S)
            prober.begin()
            began = time.perf_counter()
            for _ in acting:
                raise AssertionError(f"{one.name} yields once")
            took_s = time.perf_counter() - began
            time.sleep(SETTLE_S)
            seen = prober.end()
            prober.close()
        finally:
            scene.close()
    return seen, took_s
