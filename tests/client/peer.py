"""A scripted FIBP peer on a real socket, and a small broker to put behind it.

`Peer` accepts connections, shakes hands and hands every frame to a script. `TinyBroker` is such a
script: queues in memory, first in, first out, enough to give each SDK call its true answer.
"""

import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from fila.wire import bodies as b
from fila.wire import errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import FRAME_BYTES_MAX, FrameDecoder, encode_frames

Script = Callable[["Connection", int, int, bytes], None]


class Connection:
    """One accepted connection, as the peer sees it."""

    def __init__(self, sock: socket.socket, peer: "Peer") -> None:
        self.sock = sock
        self.peer = peer
        self.handshake: b.Handshake | None = None
        self.frames: list[tuple[int, int, bytes]] = []
        self.closed = threading.Event()
        self._lock = threading.Lock()

    def send(self, request_id: int, body: tuple[Any, ...]) -> None:
        self.send_raw(
            encode_frames(
                layouts.opcode_of(body), request_id, layouts.encode(body), self.peer.frame_bytes_max
            )
        )

    def send_raw(self, data: bytes) -> None:
        try:
            with self._lock:
                self.sock.sendall(data)
        except OSError:
            pass

    def error(self, request_id: int, code: int, text: str, **metadata: str) -> None:
        self.send(request_id, b.Error(code, text, metadata))

    def cut(self) -> None:
        """End the connection without a word."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def count(self, opcode: int) -> int:
        return sum(1 for frame in self.frames if frame[0] == opcode)


class Peer:
    """Listens on a free port of 127.0.0.1 until closed."""

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        welcome: Callable[[Connection, b.Handshake], None] | None = None,
        tls: ssl.SSLContext | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.connections: list[Connection] = []
        self._script = script
        self._welcome = welcome or self._accept_all
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        for connection in self.connections:
            connection.cut()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def wait_for(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the peer waited in vain"
            time.sleep(0.002)

    def _accept_all(self, connection: Connection, handshake: b.Handshake) -> None:
        connection.send(0, b.HandshakeOk(1, 0, self.frame_bytes_max))

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        connection = Connection(sock, self)
        self.connections.append(connection)
        decoder = FrameDecoder(self.frame_bytes_max)
        try:
            while data := sock.recv(65536):
                for opcode, request_id, body in decoder.feed(data):
                    connection.frames.append((opcode, request_id, body))
                    if opcode == op.HANDSHAKE:
                        connection.handshake = layouts.decode(b.Handshake, body)
                        self._welcome(connection, connection.handshake)
                    else:
                        self._script(connection, opcode, request_id, body)
        except OSError:
            pass
        finally:
            connection.closed.set()
            sock.close()


class TinyBroker:
    """Queues in memory. One lock, no fairness, no timeouts; ids count up."""

    def __init__(self) -> None:
        self.queues: dict[str, deque[b.DeliveryItem]] = {}
        self.leased: dict[str, b.DeliveryItem] = {}
        self.holders: dict[str, tuple[Connection, int]] = {}
        self.config: dict[str, str] = {}
        self.keys: dict[str, b.ApiKeySummary] = {}
        self.acls: dict[str, tuple[b.Permission, ...]] = {}
        self.acked: list[str] = []
        self.nacked: list[tuple[str, str]] = []
        self._consumers: list[tuple[Connection, int, str, int]] = []
        self._last_id = 0
        self._lock = threading.RLock()

    def __call__(self, connection: Connection, opcode: int, request_id: int, body: bytes) -> None:
        with self._lock:
            answer = self._answers.get(opcode)
            if answer is not None:
                reply = answer(self, connection, request_id, body)
                if reply is not None:
                    connection.send(request_id, reply)
            elif opcode == op.PING:
                connection.send(request_id, b.Pong())
            self._deliver()

    def _enqueue(self, connection: Connection, request_id: int, body: bytes) -> b.EnqueueResult:
        results = []
        now_ms = int(time.time() * 1000)
        for item in layouts.decode(b.Enqueue, body).messages:
            if item.queue not in self.queues:
                results.append(b.EnqueueResultItem(errors.QUEUE_NOT_FOUND, ""))
                continue
            self._last_id += 1
            message_id = str(UUID(int=self._last_id))
            key = item.headers.get("tenant", "default")
            self.queues[item.queue].append(
                b.DeliveryItem(message_id, *item, key, 1, ("t:" + key,), 0, now_ms, now_ms + 1)
            )
            results.append(b.EnqueueResultItem(0, message_id))
        return b.EnqueueResult(tuple(results))

    def _consume(self, connection: Connection, request_id: int, body: bytes) -> Any:
        wanted = layouts.decode(b.Consume, body)
        if wanted.queue not in self.queues:
            text = f'queue "{wanted.queue}" does not exist'
            return b.Error(errors.QUEUE_NOT_FOUND, text, {})
        self._consumers.append((connection, request_id, wanted.queue, wanted.prefetch or 256))
        return b.ConsumeOk(f"c-{request_id}")

    def _cancel(self, connection: Connection, request_id: int, body: bytes) -> None:
        self._consumers = [c for c in self._consumers if c[:2] != (connection, request_id)]

    def _disconnect(self, connection: Connection, request_id: int, body: bytes) -> None:
        self._consumers = [c for c in self._consumers if c[0] is not connection]
        for message_id, holder in list(self.holders.items()):
            if holder[0] is connection:
                item = self._release(message_id)
                assert item is not None
                self.queues[item.queue].appendleft(item)

    def _release(self, message_id: str) -> b.DeliveryItem | None:
        self.holders.pop(message_id, None)
        return self.leased.pop(message_id, None)

    def _ack(self, connection: Connection, request_id: int, body: bytes) -> b.AckResult:
        codes = []
        for queue, message_id in layouts.decode(b.Ack, body).messages:
            item = self.leased.get(message_id)
            if item is None or item.queue != queue:
                codes.append(b.CodeItem(errors.MESSAGE_NOT_FOUND))
            else:
                self._release(message_id)
                self.acked.append(message_id)
                codes.append(b.CodeItem(0))
        return b.AckResult(tuple(codes))

    def _nack(self, connection: Connection, request_id: int, body: bytes) -> b.NackResult:
        codes = []
        for queue, message_id, error in layouts.decode(b.Nack, body).messages:
            item = self._release(message_id)
            if item is None:
                codes.append(b.CodeItem(errors.MESSAGE_NOT_FOUND))
                continue
            self.nacked.append((message_id, error))
            self.queues[queue].append(item._replace(attempt_count=item.attempt_count + 1))
            codes.append(b.CodeItem(0))
        return b.NackResult(tuple(codes))

    def _hand_back(self, connection: Connection, request_id: int, body: bytes) -> b.ReleaseResult:
        codes = []
        for queue, message_id in reversed(layouts.decode(b.Release, body).messages):
            item = self._release(message_id)
            codes.append(b.ReleaseCode(errors.MESSAGE_NOT_FOUND if item is None else 0))
            if item is not None:
                self.queues[queue].appendleft(item)
        return b.ReleaseResult(tuple(reversed(codes)))

    def _create(self, connection: Connection, request_id: int, body: bytes) -> b.CreateQueueResult:
        wanted = layouts.decode(b.CreateQueue, body)
        if wanted.name in self.queues:
            return b.CreateQueueResult(errors.QUEUE_ALREADY_EXISTS)
        if wanted.on_enqueue == "not lua":
            return b.CreateQueueResult(errors.LUA_COMPILATION_ERROR, "", "line 1: '=' expected")
        self.queues[wanted.name] = deque()
        self.queues[wanted.name + ".dlq"] = deque()
        return b.CreateQueueResult(0, wanted.name)

    def _delete(self, connection: Connection, request_id: int, body: bytes) -> b.DeleteQueueResult:
        queue = layouts.decode(b.DeleteQueue, body).queue
        if self.queues.pop(queue, None) is None:
            return b.DeleteQueueResult(errors.QUEUE_NOT_FOUND)
        for consumer, stream_id, consumed, _ in self._consumers:
            if consumed == queue:
                consumer.error(stream_id, errors.QUEUE_NOT_FOUND, f'queue "{queue}" was deleted')
        return b.DeleteQueueResult(0)

    def _stats(self, connection: Connection, request_id: int, body: bytes) -> Any:
        queue = layouts.decode(b.GetStats, body).queue
        if queue not in self.queues:
            return b.Error(errors.QUEUE_NOT_FOUND, f'queue "{queue}" does not exist', {})
        depth = len(self.queues[queue])
        keys = (b.FairnessKeyStats("default", depth, 0, 1),)
        return b.GetStatsResult(0, depth, len(self.leased), 1, 0, 1, 0, 1, keys, ())

    def _list(self, connection: Connection, request_id: int, body: bytes) -> b.ListQueuesResult:
        rows = [b.QueueSummary(name, len(q), 0, 0, 0) for name, q in sorted(self.queues.items())]
        return b.ListQueuesResult(0, 1, tuple(rows))

    def _set_config(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.SetConfigResult:
        key, value = layouts.decode(b.SetConfig, body)
        if value == "bad":
            return b.SetConfigResult(errors.INVALID_CONFIG_VALUE, '"bad" is not a number')
        self.config[key] = value
        if not value:
            del self.config[key]
        return b.SetConfigResult(0)

    def _get_config(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.GetConfigResult:
        return b.GetConfigResult(0, self.config.get(layouts.decode(b.GetConfig, body).key, ""))

    def _list_config(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.ListConfigResult:
        prefix = layouts.decode(b.ListConfig, body).prefix
        rows = [b.ConfigEntry(*item) for item in self.config.items() if item[0].startswith(prefix)]
        return b.ListConfigResult(0, tuple(rows))

    def _redrive(self, connection: Connection, request_id: int, body: bytes) -> Any:
        name, limit = layouts.decode(b.Redrive, body)
        if not name.endswith(".dlq"):
            return b.Error(errors.NOT_A_DLQ, f'queue "{name}" is not a dead letter queue', {})
        if name not in self.queues:
            return b.Error(errors.QUEUE_NOT_FOUND, f'queue "{name}" does not exist', {})
        return b.RedriveResult(0, limit or 7)

    def _create_key(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.CreateApiKeyResult:
        name, expires_at_ms, is_superadmin = layouts.decode(b.CreateApiKey, body)
        key_id = f"k{len(self.keys) + 1}"
        self.keys[key_id] = b.ApiKeySummary(key_id, name, 1, expires_at_ms, is_superadmin)
        return b.CreateApiKeyResult(0, key_id, "0" * 32, is_superadmin)

    def _revoke_key(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.RevokeApiKeyResult:
        found = self.keys.pop(layouts.decode(b.RevokeApiKey, body).key_id, None)
        return b.RevokeApiKeyResult(0 if found else errors.API_KEY_NOT_FOUND)

    def _list_keys(
        self, connection: Connection, request_id: int, body: bytes
    ) -> b.ListApiKeysResult:
        return b.ListApiKeysResult(0, tuple(self.keys.values()))

    def _set_acl(self, connection: Connection, request_id: int, body: bytes) -> b.SetAclResult:
        key_id, permissions = layouts.decode(b.SetAcl, body)
        if key_id not in self.keys:
            return b.SetAclResult(errors.API_KEY_NOT_FOUND, f'API key "{key_id}" does not exist')
        self.acls[key_id] = permissions
        return b.SetAclResult(0)

    def _get_acl(self, connection: Connection, request_id: int, body: bytes) -> b.GetAclResult:
        key_id = layouts.decode(b.GetAcl, body).key_id
        if key_id not in self.keys:
            return b.GetAclResult(errors.API_KEY_NOT_FOUND)
        return b.GetAclResult(0, key_id, False, self.acls.get(key_id, ()))

    def _deliver(self) -> None:
        self._consumers = [c for c in self._consumers if not c[0].closed.is_set()]
        for connection, request_id, queue, prefetch in self._consumers:
            waiting = self.queues.get(queue, deque())
            items: list[b.DeliveryItem] = []
            held = sum(1 for holder in self.holders.values() if holder == (connection, request_id))
            while waiting and held + len(items) < prefetch:
                item = waiting.popleft()
                self.leased[item.id] = item
                self.holders[item.id] = (connection, request_id)
                items.append(item)
            if items:
                connection.send(request_id, b.Delivery(tuple(items)))

    _answers: ClassVar[dict[int, Callable[..., Any]]] = {
        op.ENQUEUE: _enqueue,
        op.CONSUME: _consume,
        op.CANCEL_CONSUME: _cancel,
        op.DISCONNECT: _disconnect,
        op.ACK: _ack,
        op.NACK: _nack,
        op.RELEASE: _hand_back,
        op.CREATE_QUEUE: _create,
        op.DELETE_QUEUE: _delete,
        op.GET_STATS: _stats,
        op.LIST_QUEUES: _list,
        op.SET_CONFIG: _set_config,
        op.GET_CONFIG: _get_config,
        op.LIST_CONFIG: _list_config,
        op.REDRIVE: _redrive,
        op.CREATE_API_KEY: _create_key,
        op.REVOKE_API_KEY: _revoke_key,
        op.LIST_API_KEYS: _list_keys,
        op.SET_ACL: _set_acl,
        op.GET_ACL: _get_acl,
    }


def ids_of(count: int, first: int = 1) -> tuple[b.EnqueueResultItem, ...]:
    """An EnqueueResult's items for so many accepted messages."""
    return tuple(b.EnqueueResultItem(0, str(UUID(int=first + n))) for n in range(count))


def items_in(body: bytes) -> int:
    """How many messages an Enqueue carries."""
    return len(message_codec.decode_enqueue(body))
