"""Scripted peers, for what a real broker that stands alone does not do.

Owns the sockets, the scripts by name, and a record of what clients sent (`seen`). A script is only
used where the real broker cannot produce the situation.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any
from uuid import UUID

from fila.wire import bodies as b
from fila.wire import errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import FRAME_BYTES_MAX, FrameDecoder, encode_frames
from harness.certificates import Certificates

_PING_ID = 4_000_000_000
_UNKNOWN_OPCODE = 0x77


class Peer:
    """Listens on a free port of 127.0.0.1 and plays one script for every connection."""

    def __init__(self, script: str, leader: str, first: int) -> None:
        self.address = ""
        self.seen: dict[str, Any] = {
            "connections": 0,
            "open": 0,
            "keys": [],  # API keys in handshakes, in order; None for a handshake without one
            "frames": {},  # how many of each operation
            "payload_bytes": 0,  # of all enqueued messages
            "first_bytes": [],  # the first byte of each connection (22: a TLS handshake)
            "pongs": 0,
        }
        self.leader = leader
        self.first = first
        self._script = SCRIPTS[script]
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, certificates: Certificates | None) -> None:
        context = None
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.server, certificates.server_key)
            context.set_alpn_protocols(["fila/1"])
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{port}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def send_raw(self, data: bytes) -> None:
        """To the newest connection."""
        self._writers[-1].write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.append(writer)
        self.seen["connections"] += 1
        self.seen["open"] += 1
        decoder = FrameDecoder(FRAME_BYTES_MAX)
        connection = Connection(self, writer)
        first = True
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(1 << 18):
                if first:
                    self.seen["first_bytes"].append(data[0])
                    first = False
                for opcode, request_id, body in decoder.feed(data):
                    self._record(opcode, body)
                    self._script(connection, opcode, request_id, body)
        self.seen["open"] -= 1
        writer.close()

    def _record(self, opcode: int, body: bytes) -> None:
        name = op.NAMES.get(opcode, "unknown")
        frames = self.seen["frames"]
        frames[name] = frames.get(name, 0) + 1
        if opcode == op.HANDSHAKE:
            self.seen["keys"].append(layouts.decode(b.Handshake, body).api_key)
        elif opcode == op.PONG:
            self.seen["pongs"] += 1
        elif opcode in (op.ENQUEUE, op.ENQUEUE_WITH):
            kind: Any = b.Enqueue if opcode == op.ENQUEUE else b.EnqueueWith
            for item in layouts.decode(kind, body).messages:
                self.seen["payload_bytes"] += len(item.payload)


class Connection:
    """One client of a peer."""

    def __init__(self, peer: Peer, writer: asyncio.StreamWriter) -> None:
        self.peer = peer
        self.enqueues = 0
        self._writer = writer

    def send(self, request_id: int, body: tuple[Any, ...]) -> None:
        opcode = layouts.opcode_of(body)
        self.write(encode_frames(opcode, request_id, layouts.encode(body)))

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def welcome(self) -> None:
        self.send(0, b.HandshakeOk(1, 0, FRAME_BYTES_MAX))

    def store(self, request_id: int, body: bytes) -> None:
        count = len(layouts.decode(b.Enqueue, body).messages)
        self.enqueues += count
        ids = [str(UUID(int=self.enqueues + n)) for n in range(count)]
        self.send(request_id, b.EnqueueResult(tuple(b.EnqueueResultItem(0, one) for one in ids)))


Script = Callable[[Connection, int, int, bytes], None]


def _mute(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Accepts connections and never says a word."""


def _silent(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Shakes hands and then answers nothing, not even a Ping: a half-open connection."""
    if opcode == op.HANDSHAKE:
        connection.welcome()


def _stalled(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Alive, but no request is ever answered."""
    if opcode == op.HANDSHAKE:
        connection.welcome()
    elif opcode == op.PING:
        connection.send(request_id, b.Pong())


def _overloaded(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    if opcode == op.HANDSHAKE:
        connection.welcome()
    elif opcode == op.PING:
        connection.send(request_id, b.Pong())
    elif opcode in op.REPLY_TO:
        metadata = {"retry_after_ms": "250"}
        connection.send(request_id, b.Error(errors.CHANNEL_FULL, "the broker is full", metadata))


def _not_leader(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Leads nothing: every request is sent to `leader`. The first ones are answered, `first` of
    them, so that a client has settled in before it must move."""
    peer = connection.peer
    if opcode == op.HANDSHAKE:
        connection.welcome()
    elif opcode == op.PING:
        connection.send(request_id, b.Pong())
    elif opcode == op.ENQUEUE and connection.enqueues < peer.first:
        connection.store(request_id, body)
    elif opcode in op.REPLY_TO:
        metadata = {"leader_addr": peer.leader} if peer.leader else {}
        refusal = b.Error(errors.NOT_LEADER, "another node leads this queue", metadata)
        connection.send(request_id, refusal)


def _stranger(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """A later version: sends what no client knows, asks whether the client is alive, and works."""
    if opcode == op.HANDSHAKE:
        connection.welcome()
        connection.write(encode_frames(_UNKNOWN_OPCODE, 9, b"news of a later version"))
        connection.send(0, b.HandshakeOk(1, 0, FRAME_BYTES_MAX))
        connection.send(_PING_ID, b.Ping())
    elif opcode == op.PING:
        connection.send(request_id, b.Pong())
    elif opcode == op.ENQUEUE:
        connection.store(request_id, body)


def _garbage(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Answers every request with bytes that are no frame."""
    if opcode == op.HANDSHAKE:
        connection.welcome()
    elif opcode == op.PING:
        connection.send(request_id, b.Pong())
    elif opcode in op.REPLY_TO:
        connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _newer(connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
    """Does not speak the client's version."""
    text = "version 1 is not spoken here"
    connection.send(0, b.Error(errors.UNSUPPORTED_VERSION, text, {"max_version": "9"}))


SCRIPTS: dict[str, Script] = {
    "mute": _mute,
    "silent": _silent,
    "stalled": _stalled,
    "overloaded": _overloaded,
    "not_leader": _not_leader,
    "stranger": _stranger,
    "garbage": _garbage,
    "newer": _newer,
}
