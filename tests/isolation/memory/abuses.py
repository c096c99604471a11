"""The abuses: what a client may do to make the broker hold more than its share of memory.

Each is a function that does it to a victim, as hard as its scale says, and reads nothing it need
not read. None of them asserts: what the broker must hold to is the same for all.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from fila.edges.grpc import frames
from fila.edges.grpc.fields import encode
from fila.edges.grpc.message_codec import varint
from fila.edges.grpc.v1 import bulk_pb2
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, layouts
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from tests.e2e.peer import Peer
from tests.isolation.memory.victim import MiB, Victim
from tests.isolation.scene import enqueue_with

LARGE = b"x" * 200_000  # a pass is limited by its messages first when they are small
PREFACE = frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 0})


class Abuse(NamedTuple):
    name: str
    what: str
    run: Callable[[Victim], None]
    settings: dict[str, object] = {}  # noqa: RUF012  never changed


# --- how they talk


def post(*records: tuple[Any, ...], first: int = 1) -> bytes:
    """Requests in one piece."""
    return b"".join(
        encode_frames(layouts.opcode_of(one), first + at, layouts.encode(one))
        for at, one in enumerate(records)
    )


def greeted(victim: Victim, key: str | None = None) -> socket.socket:
    """A FIBP connection that has shaken hands and reads nothing more."""
    made = victim.connect()
    made.sendall(post(bodies.Handshake(1, key), first=0))
    made.recv(64)
    return made


def push(made: socket.socket, data: bytes, wait_s: float = 3.0) -> int:
    """Send as long as the broker takes it; how much it took."""
    made.settimeout(wait_s)
    sent = 0
    view = memoryview(data)
    try:
        while sent < len(data):
            sent += made.send(view[sent : sent + MiB])
    except (TimeoutError, ConnectionError, BlockingIOError):
        pass
    return sent


def call(stream: int, path: str, message: bytes, ends: bool = True) -> bytes:
    block = encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", f"/fila.v1.{path}".encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
    )
    body = struct.pack(">BI", 0, len(message)) + message
    out = [frames.frame(frames.HEADERS, frames.END_HEADERS, stream, block)]
    for at in range(0, len(body), 16_384):
        last = ends and at + 16_384 >= len(body)
        out.append(
            frames.frame(
                frames.DATA, frames.END_STREAM if last else 0, stream, body[at : at + 16_384]
            )
        )
    return b"".join(out)


def lease_batch(victim: Victim, queue: str, name: str, messages: int) -> None:
    with victim.broker.peer() as peer:
        peer.request(
            bodies.LeaseBatch(queue, name, messages, visibility_ms=600_000),
            bodies.LeaseBatchResult,
        )


# --- answers and deliveries nobody reads


def batches_asked_for_again(victim: Victim) -> None:
    victim.fill("q", 16 * MiB)
    lease_batch(victim, "q", "b", 65_535)
    again = post(*[bodies.LeaseBatch("q", "b")] * victim.scaled(250, 20))
    for _ in range(victim.scaled(4)):
        push(greeted(victim), again)
    victim.settle()


def batches_asked_for_again_over_grpc(victim: Victim) -> None:
    victim.fill("q", 16 * MiB)
    lease_batch(victim, "q", "b", 65_535)
    request = bulk_pb2.LeaseBatchRequest(queue="q", name="b").SerializeToString()
    calls = b"".join(
        call(1 + 2 * at, "FilaBulk/LeaseBatch", request) for at in range(victim.scaled(250, 20))
    )
    for _ in range(victim.scaled(4)):
        push(victim.connect(), PREFACE + calls)
    victim.settle()


def batches_that_wait(victim: Victim) -> None:
    """A thousand requests wait on an empty queue, then it fills."""
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    names = [
        bodies.LeaseBatch("q", f"b/{at}", 65_535, wait_ms=60_000)
        for at in range(victim.scaled(1_000, 50))
    ]
    push(greeted(victim), post(*names))
    victim.fill("q", victim.scaled(400 * MiB), LARGE)
    victim.settle()


def one_batch_a_thousand_wait_for(victim: Victim) -> None:
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    same = [bodies.LeaseBatch("q", "b", 65_535, wait_ms=60_000)] * victim.scaled(1_000, 50)
    push(greeted(victim), post(*same))
    victim.fill("q", 9 * MiB)
    victim.settle()


def lease_requests_without_end(victim: Victim) -> None:
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    same = post(*[bodies.LeaseBatch("q", "b", 1, wait_ms=60_000)] * 1_000)
    made = greeted(victim)
    for _ in range(victim.scaled(500, 10)):
        if push(made, same) < len(same):
            break
    victim.settle()


def consumers_that_read_nothing(victim: Victim) -> None:
    victim.fill("q", victim.scaled(400 * MiB), LARGE)
    push(greeted(victim), post(*[bodies.Consume("q", 65_535)] * victim.scaled(1_000, 100)))
    victim.settle()


def consumers_over_grpc_that_read_nothing(victim: Victim) -> None:
    victim.fill("q", victim.scaled(400 * MiB), LARGE)
    request = pb.ConsumeRequest(queue="q", prefetch=65_535).SerializeToString()
    calls = b"".join(
        call(1 + 2 * at, "FilaService/Consume", request) for at in range(victim.scaled(1_000, 100))
    )
    push(victim.connect(), PREFACE + calls)
    victim.settle()


def connections_that_read_nothing(victim: Victim) -> None:
    victim.fill("q", victim.scaled(400 * MiB), LARGE)
    for _ in range(victim.scaled(800, 100)):
        push(greeted(victim), post(bodies.Consume("q", 65_535)))
    victim.settle()


def consumers_without_end(victim: Victim) -> None:
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    many = post(*[bodies.Consume("q", 1)] * 1_024)
    for _ in range(victim.scaled(300, 10)):
        push(greeted(victim), many)
    victim.settle()


def queues_that_come_and_go(victim: Victim) -> None:
    """Each is filled with keys that nobody had before it, and deleted."""
    keys = victim.scaled(60_000, 2_000)
    with victim.broker.peer() as peer:
        for _ in range(victim.scaled(12, 3)):
            peer.create_queue("q")
            for start in range(0, keys, 2_000):
                items = [(f"key-{at}", 0, "", b"x", ()) for at in range(start, start + 2_000)]
                peer.reply(peer.send(op.ENQUEUE_WITH, enqueue_with("q", items)))
            peer.request(bodies.DeleteQueue("q"), bodies.DeleteQueueResult)
    victim.settle()


def lists_nobody_reads(victim: Victim) -> None:
    with victim.broker.peer() as peer:
        for at in range(victim.scaled(4_000, 400)):
            peer.create_queue(f"a-queue-with-a-name-{at}")
    asked = post(*[bodies.ListQueues()] * 2_000)
    for _ in range(victim.scaled(20, 4)):
        push(greeted(victim), asked)
    victim.settle()


def pages_nobody_reads(victim: Victim) -> None:
    victim.fill("q", 8 * MiB)
    with victim.broker.peer() as peer:
        found = peer.request(bodies.Browse("q"), bodies.BrowseResult)
    start, end = found.ranges[0]
    asked = post(*[bodies.BrowsePage(found.snapshot, start, end)] * 500)
    for _ in range(victim.scaled(20, 4)):
        push(greeted(victim), asked)
    victim.settle()


def messages_released(victim: Victim) -> None:
    count = victim.fill("q", victim.scaled(100 * MiB), b"x" * 400)
    for at in range(count // 65_535 + 1):
        lease_batch(victim, "q", f"b/{at}", 65_535)
    with victim.broker.peer() as peer:
        peer.request(
            bodies.ReleaseBatch("q", "b", 1 << 40), bodies.ReleaseBatchResult, timeout_s=120
        )
    victim.settle()


def _held(victim: Victim) -> tuple[Peer, list[str]]:
    """A backlog of large messages, all of it leased to the consumers of one connection."""
    count = victim.fill("q", victim.scaled(400 * MiB, 100 * MiB), b"x" * MiB)
    peer = victim.broker.peer()
    streams = [peer.consume("q", 4) for _ in range(-(-count // 4))]
    ids: list[str] = []
    while len(ids) < count:
        peer.read(60)
        for stream in streams:
            ids += [message.id for message in peer.waiting(stream)]
    return peer, ids


def large_messages_failed(victim: Victim) -> None:
    """One small request fails all of them: each is read and stored anew."""
    peer, ids = _held(victim)
    with peer:
        peer.nack("q", *ids, error="no")
        victim.settle()


def large_messages_let_go(victim: Victim) -> None:
    """Whoever holds them leaves: all are handed back."""
    peer, _ = _held(victim)
    peer.close()
    victim.settle()


# --- requests that grow


def empty_items(victim: Victim) -> None:
    """Sixteen MiB of empty items, which are two bytes each."""
    size = victim.scaled(8 * MiB, MiB)
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    queue = b"\x0a\x01q"
    inside = b"\x42\x00" * size  # throttle keys of one message
    headers = b"\x12\x00" * size
    for path, message in (
        ("FilaBulk/EnqueueWith", b"\x0a\x00" * size),
        ("FilaBulk/EnqueueWith", b"\x0a" + varint(len(queue + inside)) + queue + inside),
        ("FilaBulk/EnqueueWith", b"\x0a" + varint(len(queue + headers)) + queue + headers),
        ("FilaBulk/Release", queue + b"\x12\x00" * size),
        ("FilaService/Enqueue", b"\x0a\x00" * size),
        ("FilaService/Enqueue", b"\x0a" + varint(len(queue + headers)) + queue + headers),
        ("FilaService/Ack", b"\x0a\x00" * size),
        ("FilaAdmin/SetAcl", b"\x12\x00" * min(size, 2 * MiB - 100)),
    ):
        made = victim.connect()
        push(made, frames.PREFACE + frames.settings({}) + frames.window_update(0, MiB))
        _talk(made, call(1, path, message))
    victim.settle()


def _talk(made: socket.socket, data: bytes) -> None:
    """Send one call as fast as the broker's windows allow, then wait for its end."""
    room = 65_535
    seen = b""
    made.settimeout(10)
    position = 0
    try:
        while True:
            while position < len(data):
                size = 9 + int.from_bytes(data[position : position + 3], "big")
                if data[position + 3] == frames.DATA and size - 9 > room:
                    break
                room -= size - 9 if data[position + 3] == frames.DATA else 0
                made.sendall(data[position : position + size])
                position += size
            got = made.recv(65_536)
            if not got:
                return
            seen += got
            while len(seen) >= 9:
                length = int.from_bytes(seen[:3], "big")
                if len(seen) < 9 + length:
                    break
                kind, flags, stream = seen[3], seen[4], int.from_bytes(seen[5:9], "big")
                if kind == frames.WINDOW_UPDATE and stream == 0:
                    room += int.from_bytes(seen[9:13], "big")
                if stream == 1 and flags & frames.END_STREAM and kind == frames.HEADERS:
                    return
                seen = seen[9 + length :]
    except (TimeoutError, ConnectionError):
        return


def messages_never_finished(victim: Victim) -> None:
    """Every connection sends nearly all of a large message."""
    header = struct.pack(">IBBI", 16 * MiB, 0x10, 0, 1)
    piece = b"x" * (16 * MiB - 100)
    for _ in range(victim.scaled(40, 10)):
        push(greeted(victim), header + piece, 1.0)
    victim.settle()


def large_messages_at_once(victim: Victim) -> None:
    """All of them end in the same moment."""
    with victim.broker.peer() as peer:
        peer.create_queue("q")
    size = 15 * MiB
    message = post(bodies.Enqueue((bodies.EnqueueItem("q", {}, b"x" * size),)))
    made = [greeted(victim) for _ in range(victim.scaled(30, 8))]
    for one in made:
        push(one, message[:-1], 1.0)
    for one in made:
        push(one, message[-1:], 0.2)
    victim.settle()


def the_largest_message(victim: Victim) -> None:
    with victim.broker.peer() as peer:
        peer.create_queue("q")
        for _ in range(victim.scaled(5, 2)):
            peer.enqueue("q", b"x" * (31 * MiB))
        stream = peer.consume("q", 10)
        for _ in range(victim.scaled(5, 2)):
            message = peer.take_one(stream)
            peer.ack("q", message.id)


def payloads_in_the_journal(victim: Victim) -> None:
    victim.fill("q", victim.scaled(1_000 * MiB, 150 * MiB), b"x" * MiB)
    victim.settle()


# --- strangers


def strangers_with_large_frames(victim: Victim) -> None:
    """A connection that has not shaken hands sends a frame of 16 MiB and stops before its end."""
    data = struct.pack(">IBBI", 16 * MiB, 0x01, 0, 1) + b"x" * (16 * MiB - 100)
    for _ in range(victim.scaled(200, 40)):
        push(victim.connect(), data, 0.3)
    victim.settle()


def strangers_over_grpc(victim: Victim) -> None:
    """Health checks, which ask for no key, that never end; and a frame that is never finished."""
    check = b"\x0a" + varint(60_000) + b"x" * 59_990
    calls = b"".join(_health(1 + 2 * at, check) for at in range(200))
    cut = frames.frame(frames.DATA, 0, 1, b"x" * 200_000)[:-10]
    for _ in range(victim.scaled(200, 40)):
        push(victim.connect(), PREFACE + calls + cut, 0.3)
    victim.settle()


def _health(stream: int, message: bytes) -> bytes:
    block = encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/grpc.health.v1.Health/Check"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
    )
    body = struct.pack(">BI", 0, 65_000) + message
    cut = [body[at : at + 16_000] for at in range(0, len(body), 16_000)]
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream, block) + b"".join(
        frames.frame(frames.DATA, 0, stream, piece) for piece in cut
    )


def silent_strangers(victim: Victim) -> None:
    for _ in range(victim.scaled(3_000, 300)):
        victim.connect()
    victim.settle()


# --- HTTP


def http_answers_nobody_reads(victim: Victim) -> None:
    one = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with victim.broker.peer() as peer:
        for at in range(victim.scaled(1_000, 200)):
            peer.create_queue(f"a-queue-with-a-name-{at}")
    for _ in range(victim.scaled(200, 40)):
        push(victim.connect(http=True), one * 1_000, 0.2)
    victim.settle()


ABUSES = [
    Abuse("again", "open batches asked for again, answers not read", batches_asked_for_again),
    Abuse("again-grpc", "the same over gRPC", batches_asked_for_again_over_grpc),
    Abuse("batches", "1,000 batches wait for 400 MiB, answers not read", batches_that_wait),
    Abuse("one-batch", "1,000 requests wait for one batch", one_batch_a_thousand_wait_for),
    Abuse("lease-requests", "500,000 lease requests wait", lease_requests_without_end),
    Abuse("consumers", "1,000 consumers of one connection, 400 MiB", consumers_that_read_nothing),
    Abuse("consumers-grpc", "the same over gRPC", consumers_over_grpc_that_read_nothing),
    Abuse("readers", "800 connections that do not read, 400 MiB", connections_that_read_nothing),
    Abuse("consumer-count", "300 connections with 1,024 consumers each", consumers_without_end),
    Abuse("deleted", "12 times 60,000 keys in a queue that is deleted", queues_that_come_and_go),
    Abuse("lists", "2,000 lists of 4,000 queues on 20 connections", lists_nobody_reads),
    Abuse("pages", "500 browse pages on 20 connections", pages_nobody_reads),
    Abuse("release", "262,000 leased messages released at once", messages_released),
    Abuse("failed", "400 messages of 1 MiB fail in one request", large_messages_failed),
    Abuse("let-go", "400 messages of 1 MiB are held by who leaves", large_messages_let_go),
    Abuse("empty-items", "gRPC requests of 16 MiB of empty items", empty_items),
    Abuse("unfinished", "40 connections with 16 MiB unfinished each", messages_never_finished),
    Abuse("at-once", "30 messages of 15 MiB end in one moment", large_messages_at_once),
    Abuse("largest", "messages of 31 MiB", the_largest_message),
    Abuse(
        "journal",
        "1 GB into a journal with payloads",
        payloads_in_the_journal,
        {"journal.enabled": True, "journal.messages": True},
    ),
    Abuse("strangers", "200 strangers with 16 MiB each", strangers_with_large_frames),
    Abuse("strangers-grpc", "200 strangers with unfinished health checks", strangers_over_grpc),
    Abuse("silent", "3,000 connections that say nothing", silent_strangers),
    Abuse("http", "200,000 scrapes nobody reads", http_answers_nobody_reads),
]
