"""Load as ready-made frames: what a producer sends is encoded once, before it is measured, and what
a consumer answers is cut out of what it received.

Owns the connection of the raw load. All messages of a load have the same layout (keys of one
width), so the ids of a Delivery stand at equal distances. An item begins with its id and its queue,
and an Ack wants queue and id, so a run of such beginnings, shifted by one queue, is the Ack.
"""

from __future__ import annotations

import math
import random
import socket
import ssl
from collections.abc import Iterator
from struct import Struct

from fila.wire import bodies, enqueue_with_codec, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames, frame_header
from fila.wire.message import message_body

_U32 = Struct(">I")
_HEADER = Struct(">IBBI")
_HEADER_BYTES = 10
_ID_FIELD_BYTES = 38  # two of length, 36 of text
# An item of a result: code, length, id, and in EnqueueWithResult whether it is a duplicate.
_RESULT_BYTES = {op.ENQUEUE_RESULT: 39, op.ENQUEUE_WITH_RESULT: 40}
_INBOX_BYTES = 24 << 20
_ROOM_BYTES = 1 << 18
ACKS_PER_FRAME = 100

TENANT = "tenant"
# The hook by which every load with keys is spread: the header names the fairness key.
TENANT_HOOK = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


class RawError(Exception):
    """The broker did not do what the load expects of it."""


class Wire:
    """A connection, and the frames that came over it, read in place."""

    def __init__(self, address: str, tls_ca: str = "") -> None:
        host, port = address.rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), 10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(60)
        self.sock: socket.socket = plain
        if tls_ca:
            context = ssl.create_default_context(cafile=tls_ca)
            self.sock = context.wrap_socket(plain, server_hostname="localhost")
        self.data = bytearray(_INBOX_BYTES)
        self._view = memoryview(self.data)
        self._start = 0
        self._end = 0
        self.ask(bodies.Handshake(1, None), op.HANDSHAKE)

    def ask(self, body: tuple[object, ...], opcode: int) -> bytes:
        """One request of the careful kind, and its answer's body."""
        self.sock.sendall(encode_frames(opcode, 1, layouts.encode(body)))
        while True:
            for found, start, end in self.frames():  # what comes behind the answer stays unread
                if found == op.ERROR:
                    raise RawError(_error_text(self.data[start:end]))
                return bytes(self.data[start:end])

    def create_queue(self, queue: str, on_enqueue: str | None = None) -> None:
        created = bodies.CreateQueue(queue, on_enqueue, None, 600_000)
        code = self.ask(created, op.CREATE_QUEUE)[0]
        if code:
            raise RawError(f'queue "{queue}" was not created: code {code}')

    def consume(self, queue: str, prefetch: int) -> None:
        self.ask(bodies.Consume(queue, prefetch), op.CONSUME)

    def frames(self, receive: bool = True) -> Iterator[tuple[int, int, int]]:
        """Read once; the whole frames among it as (opcode, where in `data` the body is)."""
        if receive:
            self._receive()
        while self._end - self._start >= _HEADER_BYTES:
            length, opcode, flags, _ = _HEADER.unpack_from(self.data, self._start)
            start = self._start + _HEADER_BYTES
            end = self._start + 4 + length
            if end > self._end:
                return
            assert flags == 0, "the loads are made so that nothing is continued"
            self._start = end
            yield opcode, start, end

    def _receive(self) -> None:
        if self._start == self._end:
            self._start = self._end = 0
        elif _INBOX_BYTES - self._end < _ROOM_BYTES:
            rest = self._end - self._start
            self.data[:rest] = self.data[self._start : self._end]
            self._start, self._end = 0, rest
        received = self.sock.recv_into(self._view[self._end :])
        if not received:
            raise RawError("the broker closed the connection")
        self._end += received

    @property
    def more(self) -> bool:
        """Decrypted bytes wait where no poll sees them."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def close(self) -> None:
        self.sock.close()


def tenant(number: int) -> str:
    return f"t{number:06d}"


def enqueue_frames(
    queue: str, payload_bytes: int, batch: int, keys: int = 0, named: bool = False
) -> list[bytes]:
    """Frames of `batch` messages that go round `keys` tenants; 0: messages without headers. The
    tenant is a header for the hook, or is `named` as the fairness key, for queues without one.

    Payloads are random and differ inside a frame, so that nobody gains by compressing them.
    """
    field = message_codec.queue_field(queue.encode())
    source = random.Random(7)
    frames = []
    at = 0
    for _ in range(math.lcm(max(keys, 1), batch) // batch):
        items = []
        for _ in range(batch):
            headers = {TENANT: tenant(at % keys)} if keys and not named else None
            body = message_body(headers, source.randbytes(payload_bytes))
            if named:
                lane = message_codec.lane_field(tenant(at % keys).encode(), 1, ())
                body += enqueue_with_codec.options_field(0, "", lane)
            items.append((field, body))
            at += 1
        opcode = op.ENQUEUE_WITH if named else op.ENQUEUE
        frames.append(encode_frames(opcode, 1, message_codec.encode_enqueue(items)))
    return frames


def payload_at(queue: str, keys: int) -> int:
    """Where the payload stands in an item of a Delivery."""
    headers = {TENANT: tenant(0)} if keys else None
    return _ID_FIELD_BYTES + 2 + len(queue.encode()) + len(message_body(headers, b""))


def payload_offsets(frame: bytes, payload_bytes: int, batch: int) -> list[int]:
    """Where the payloads stand in an Enqueue frame that is not continued."""
    stride = (len(frame) - _HEADER_BYTES - 4) // batch
    return [_HEADER_BYTES + 4 + stride * (at + 1) - payload_bytes for at in range(batch)]


def count_stored(data: bytearray, start: int, end: int, opcode: int = op.ENQUEUE_RESULT) -> int:
    """The messages of a result, all of which must be stored."""
    stride = _RESULT_BYTES.get(opcode)
    if stride is None:
        raise RawError(f"unexpected {op.NAMES.get(opcode, opcode)}")
    count = (end - start - 4) // stride
    # An item that was refused is shorter, and breaks the pattern.
    if start + 4 + count * stride != end or any(data[start + 4 : end : stride]):
        raise RawError("an enqueue was refused")
    return count


def count_acked(data: bytearray, start: int, end: int) -> int:
    """The messages of an AckResult, all of which must have been leased."""
    if any(data[start + 4 : end]):
        raise RawError("an ack was refused")
    return end - start - 4


def acks_of(data: bytearray, start: int, end: int, queue_field: bytes) -> tuple[bytes, int, int]:
    """The Ack frames for a Delivery, how many they are, and how far apart its messages stand."""
    (count,) = _U32.unpack_from(data, start)
    stride, rest = divmod(end - start - 4, count)
    taken = _ID_FIELD_BYTES + len(queue_field)
    last = end - stride
    if rest or data[last + _ID_FIELD_BYTES : last + taken] != queue_field:
        raise RawError("the messages of a Delivery are not of one length")
    parts: list[bytes | memoryview] = []
    for first in range(start + 4, end, stride * ACKS_PER_FRAME):
        stop = min(first + stride * ACKS_PER_FRAME, end)
        body = b"".join([data[at : at + taken] for at in range(first, stop, stride)])
        parts += (
            frame_header(op.ACK, 0, 1, 4 + len(body)),
            _U32.pack((stop - first) // stride),
            queue_field,
            memoryview(body)[: len(body) - len(queue_field)],
        )
    return b"".join(parts), len(parts) // 4, stride


def _error_text(body: bytes | bytearray) -> str:
    error = layouts.decode(bodies.Error, bytes(body))
    return f"the broker answered with code {error[0]}: {error[1]}"
