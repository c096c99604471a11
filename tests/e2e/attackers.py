"""Attackers that speak gRPC or HTTP/1.1, for the fuzzer: frames that are nearly right, and noise.

Like the frames in `fuzz`, what they send follows from the seed alone.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fila.edges.grpc import frames
from fila.edges.grpc.fields import encode
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2
from fila.edges.grpc.v1 import service_pb2 as pb
from tests.e2e.sqs_attacker import SqsGenerator

WAIT_S = 10.0
LATER_S = 0.01
SERVICE = "/fila.v1.FilaService/"
ADMIN = "/fila.v1.FilaAdmin/"
BULK = "/fila.v1.FilaBulk/"


class GrpcGenerator:
    """Makes hostile HTTP/2. `next` gives the bytes of some frames, how many, and their kind."""

    def __init__(self, chance: random.Random, queues: int) -> None:
        self.chance = chance
        self._queues = queues
        self._stream = -1
        self._kinds: list[tuple[str, Callable[[], list[bytes]], int]] = [
            ("gRPC: a call", self.call, 30),
            ("gRPC: a mutated message", self.mutated_message, 20),
            ("gRPC: mutated frames", self.mutated_frames, 8),
            ("gRPC: noise in a message", self.noise_in_a_message, 10),
            ("gRPC: a stream of batches", self.stream_enqueue, 6),
            ("gRPC: a cancelled call", self.cancelled, 6),
            ("gRPC: control frames", self.control, 8),
            ("gRPC: any frame", self.any_frame, 4),
            ("gRPC: strange fields", self.strange_fields, 8),
            ("gRPC: a lying content-length", self.lying_length, 4),
            ("gRPC: data for nobody", self.data_for_nobody, 3),
        ]
        self._weights = [weight for _, _, weight in self._kinds]

    def begin(self) -> bytes:
        self._stream = -1
        return frames.PREFACE + frames.settings({})

    def next(self) -> tuple[bytes, int, str]:
        [(name, make, _)] = self.chance.choices(self._kinds, self._weights)
        made = make()
        return b"".join(made), len(made), name

    # --- kinds

    def call(self) -> list[bytes]:
        path, body = self.request()
        return self.framed(path, body)

    def mutated_message(self) -> list[bytes]:
        path, body = self.request()
        return self.framed(path, self.mutated(body))

    def mutated_frames(self) -> list[bytes]:
        return [self.mutated(one) for one in self.call()]

    def noise_in_a_message(self) -> list[bytes]:
        return self.framed(self.request()[0], self.chance.randbytes(self.chance.randrange(60)))

    def stream_enqueue(self) -> list[bytes]:
        fields, *_ = self.framed(SERVICE + "StreamEnqueue", b"")
        made = [fields]
        for number in range(self.chance.randrange(1, 5)):
            batch = pb.StreamEnqueueRequest(messages=[self.message()], sequence_number=number)
            body = batch.SerializeToString()
            if self.chance.random() < 0.3:
                body = self.mutated(body)
            made.append(frames.frame(frames.DATA, 0, self._stream, prefixed(body)))
        return made

    def cancelled(self) -> list[bytes]:
        request = pb.ConsumeRequest(queue=self.queue()).SerializeToString()
        made = self.framed(SERVICE + "Consume", request)
        return [*made, frames.rst_stream(self._stream, self.chance.randrange(14))]

    def control(self) -> list[bytes]:
        chance = self.chance
        return [
            chance.choice(
                (
                    frames.frame(frames.PING, 0, 0, bytes(8)),
                    frames.settings({frames.INITIAL_WINDOW_SIZE: chance.choice((0, 1, 65_535))}),
                    frames.settings({chance.randrange(1, 10): chance.randrange(1 << 20)}),
                    frames.window_update(0, chance.randrange(1, 1000)),
                    frames.window_update(max(1, self._stream), chance.choice((0, 1, 1 << 30))),
                    frames.frame(frames.PRIORITY, 0, max(1, self._stream), bytes(5)),
                )
            )
        ]

    def any_frame(self) -> list[bytes]:
        chance = self.chance
        body = chance.randbytes(chance.choice((0, 1, 4, 5, 6, 8, 30, 300)))
        stream = chance.choice((0, 1, 2, 3, 5, max(1, self._stream)))
        return [frames.frame(chance.randrange(12), chance.randrange(256), stream, body)]

    def strange_fields(self) -> list[bytes]:
        name = self.chance.choice(
            (b"X-Upper", b"connection", b"te", b":path", b"x", b"grpc-timeout")
        )
        value = self.chance.choice((b"", b"5x", b"trailers", b"\xff" * 30, b"v" * 300))
        return self.framed(SERVICE + "Ack", b"", (name, value))

    def lying_length(self) -> list[bytes]:
        path, body = self.request()
        return self.framed(path, body, (b"content-length", b"%d" % self.chance.randrange(20)))

    def data_for_nobody(self) -> list[bytes]:
        stream = self.chance.randrange(1, max(2, self._stream + 2))
        return [frames.frame(frames.DATA, self.chance.randrange(2), stream, b"late")]

    # --- parts

    def request(self) -> tuple[str, bytes]:
        queue, ids = self.queue(), [self.message_id() for _ in range(self.chance.randrange(3))]
        path, made = self.chance.choice(
            (
                (SERVICE + "Enqueue", pb.EnqueueRequest(messages=[self.message()])),
                (
                    SERVICE + "Ack",
                    pb.AckRequest(
                        messages=[pb.AckMessage(queue=queue, message_id=id) for id in ids]
                    ),
                ),
                (
                    SERVICE + "Nack",
                    pb.NackRequest(
                        messages=[pb.NackMessage(queue=queue, message_id=id) for id in ids]
                    ),
                ),
                (SERVICE + "Consume", pb.ConsumeRequest(queue=queue)),
                (ADMIN + "CreateQueue", admin_pb2.CreateQueueRequest(name=queue)),
                (ADMIN + "GetStats", admin_pb2.GetStatsRequest(queue=queue)),
                (ADMIN + "ListQueues", admin_pb2.ListQueuesRequest()),
                (BULK + "LeaseBatch", bulk_pb2.LeaseBatchRequest(queue=queue, name="b")),
                (SERVICE + "Nothing", pb.AckRequest()),
            )
        )
        return path, made.SerializeToString()

    def framed(self, path: str, body: bytes, *extra: tuple[bytes, bytes]) -> list[bytes]:
        self._stream += 2
        fields = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *extra,
        ]
        block = encode(fields)
        return [
            frames.frame(frames.HEADERS, frames.END_HEADERS, self._stream, block),
            frames.frame(frames.DATA, frames.END_STREAM, self._stream, prefixed(body)),
        ]

    def mutated(self, data: bytes) -> bytes:
        changed = bytearray(data or b"\x00")
        for _ in range(self.chance.choice((1, 1, 2, 6))):
            changed[self.chance.randrange(len(changed))] = self.chance.randrange(256)
        return bytes(changed)

    def message(self) -> pb.EnqueueMessage:
        headers = {"k": "v"} if self.chance.random() < 0.5 else {}
        return pb.EnqueueMessage(
            queue=self.queue(), headers=headers, payload=self.chance.randbytes(20)
        )

    def queue(self) -> str:
        return f"f{self.chance.randrange(self._queues)}"

    def message_id(self) -> str:
        return self.chance.choice(("", "no id", "0" * 8 + "-0000-7000-8000-" + "0" * 12))


class GrpcAttacker:
    def __init__(self, address: tuple[str, int], chance: random.Random, queues: int) -> None:
        self._address = address
        self._chance = chance
        self._generator = GrpcGenerator(chance, queues)

    def attack(self, pieces: int, told: Callable[[str, int], None]) -> tuple[bool, list[int]]:
        """One connection. Whether the server closed it, and the codes of its GOAWAYs."""
        back = bytearray()
        closed = False
        with _connected(self._address) as opened:
            try:
                opened.sendall(self._generator.begin())
                for number in range(pieces):
                    data, count, kind = self._generator.next()
                    told(kind, count)
                    opened.sendall(data)
                    if number % 10 == 9:
                        _receive(opened, 0.0001, back)
                _receive(opened, self._chance.choice((0.0001, 0.0001, LATER_S)), back)
            except ConnectionError:
                closed = True
        return closed, goaways(bytes(back))


class HttpGenerator:
    """Makes hostile HTTP/1.1. `next` gives the bytes of a request, and their kind."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._kinds: list[tuple[str, Callable[[], bytes], int]] = [
            ("HTTP: a request", self.good, 20),
            ("HTTP: a mutated request", self.mutated, 25),
            ("HTTP: a cut request", self.cut, 6),
            ("HTTP: a lying length", self.lying_length, 8),
            ("HTTP: chunks", self.chunks, 8),
            ("HTTP: JSON", self.json, 15),
            ("HTTP: many at once", self.many, 4),
            ("HTTP: long fields", self.long_fields, 3),
            ("HTTP: strange fields", self.strange_fields, 8),
            ("HTTP: noise", self.noise, 3),
        ]
        self._weights = [weight for _, _, weight in self._kinds]

    def next(self) -> tuple[bytes, str]:
        [(name, make, _)] = self.chance.choices(self._kinds, self._weights)
        return make(), name

    def good(self) -> bytes:
        return self.request(b"GET", b"")

    def mutated(self) -> bytes:
        data = bytearray(self.chance.choice((self.good, self.json, self.chunks))())
        for _ in range(self.chance.choice((1, 1, 2, 6))):
            data[self.chance.randrange(len(data))] = self.chance.randrange(256)
        return bytes(data)

    def cut(self) -> bytes:
        data = self.json()
        return data[: self.chance.randrange(1, len(data))]

    def lying_length(self) -> bytes:
        told = self.chance.choice((b"0", b"-1", b"99999999999", b"5", b"1e3", b"0x10"))
        return self.request(b"POST", b"{}", (b"Content-Length", told))

    def chunks(self) -> bytes:
        size = self.chance.choice((b"0", b"5", b"ffffffff", b"-1", b"zz", b"5;x=y"))
        body = size + b"\r\n" + self.chance.randbytes(5) + b"\r\n0\r\n\r\n"
        return self.request(b"POST", body, (b"Transfer-Encoding", b"chunked"))

    def json(self) -> bytes:
        body = self.chance.choice(
            (
                b"{}",
                b"[" * 2_000,
                b'{"queue":"f1","reason":"\\ud800"}',
                b'{"queue":' + b"9" * 400 + b"}",
                b'{"api_key":"wrong"}',
                b'{"queue":"f2","count":-1}',
                b"\xff\xfe",
                b'{"queue":"' + b"x" * 30_000 + b'"}',
            )
        )
        length = (b"Content-Length", b"%d" % len(body))
        return self.request(b"POST", body, length, (b"Content-Type", b"application/json"))

    def many(self) -> bytes:
        return self.good() * self.chance.randrange(2, 200)

    def long_fields(self) -> bytes:
        return self.request(b"GET", b"", (b"X-Long", b"v" * self.chance.choice((8_000, 40_000))))

    def strange_fields(self) -> bytes:
        name = self.chance.choice(
            (b"Host", b"Expect", b"Upgrade", b"Cookie", b"Authorization", b"Connection", b"X\x00")
        )
        value = self.chance.choice(
            (b"100-continue", b"h2c", b"fila_session=x", b"Bearer x", b"close", b"\xff", b"")
        )
        return self.request(b"GET", b"", (name, value))

    def noise(self) -> bytes:
        return self.chance.choice(
            (
                self.chance.randbytes(self.chance.randrange(1, 300)),
                frames.PREFACE + frames.settings({}),
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            )
        )

    def request(self, method: bytes, body: bytes, *extra: tuple[bytes, bytes]) -> bytes:
        method = self.chance.choice((method, method, method, b"PUT", b"HEAD", b"OPTIONS"))
        path = self.chance.choice(
            (
                *(b"/healthz", b"/readyz", b"/metrics", b"/", b"/%ff?a=%", b"/../../etc/passwd"),
                *(b"/api/v1/overview", b"/api/v1/queue?queue=f1", b"/api/v1/explain?queue=f1"),
                *(b"/api/v1/login", b"/api/v1/pause", b"/api/v1/purge", b"/api/v1/redrive"),
                b"/api/v1/session?" + b"a=1&" * 40,
            )
        )
        fields = b"".join(name + b": " + value + b"\r\n" for name, value in extra)
        return method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n" + body


class HttpAttacker:
    """Requests to the dashboard's port, or to that of SQS: good ones, bad ones, cut ones."""

    def __init__(self, address: tuple[str, int], chance: random.Random, sqs: bool = False) -> None:
        self._address = address
        self._generator = SqsGenerator(chance) if sqs else HttpGenerator(chance)
        self._chance = chance

    def attack(self, pieces: int, told: Callable[[str, int], None]) -> bool:
        """One connection. Whether the server closed it."""
        with _connected(self._address) as opened:
            try:
                for _ in range(pieces):
                    data, kind = self._generator.next()
                    told(kind, 1)
                    opened.sendall(data)
                    _receive(opened, self._chance.choice((0.0001, 0.0001, LATER_S)), bytearray())
            except ConnectionError:
                return True
        return False


@contextmanager
def _connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=WAIT_S) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield opened


def _receive(opened: socket.socket, wait_s: float, back: bytearray) -> None:
    """Take what has come, after waiting a little. Raises ConnectionError once it is closed."""
    opened.settimeout(wait_s)
    try:
        while data := opened.recv(1 << 18):
            back += data
        raise ConnectionResetError("closed")
    except (TimeoutError, BlockingIOError):
        pass
    finally:
        opened.settimeout(WAIT_S)


def goaways(back: bytes) -> list[int]:
    """The codes of the GOAWAY frames in what a server said. Raises ValueError for what is none."""
    codes = []
    position = 0
    while position + frames.HEADER_BYTES <= len(back):
        head, _, _ = frames.HEADER.unpack_from(back, position)
        end = position + frames.HEADER_BYTES + (head >> 8)
        if head & 0xFF > frames.CONTINUATION:
            raise ValueError(f"the server sent a frame of type {head & 0xFF}")
        if head & 0xFF == frames.GOAWAY and end <= len(back):
            codes.append(int.from_bytes(back[end - (head >> 8) + 4 :][:4], "big"))
        position = end
    return codes


def prefixed(message: bytes) -> bytes:
    return b"\x00" + len(message).to_bytes(4, "big") + message
