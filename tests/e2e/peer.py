"""A raw FIBP peer on a plain socket: full control over every byte, and bounded waits.

Written on `fila.wire` alone, so that what the SDK does or hides cannot colour a result.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from fila.wire import bodies, errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import FrameDecoder, encode_frames
from fila.wire.message import decode_headers, message_body, payload_of

WAIT_S = 30.0
_RECEIVE_BYTES = 1 << 18

Body = TypeVar("Body", bound=tuple[Any, ...])


class Received(NamedTuple):
    """A delivered message."""

    id: str
    queue: str
    headers: dict[str, str]
    payload: bytes
    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    attempts: int
    enqueued_at_ms: int
    leased_at_ms: int
    arrived_s: float  # time.monotonic() when its frame was read


class Refused(Exception):  # noqa: N818
    """An Error frame, or a result with a code other than Ok."""

    def __init__(self, code: int, message: str, metadata: dict[str, str] | None = None) -> None:
        super().__init__(f"{errors.name_of(code)}: {message}")
        self.code = code
        self.message = message
        self.metadata = metadata or {}


class Closed(Exception):  # noqa: N818
    """The server closed the connection."""


class Quiet(Exception):  # noqa: N818
    """What was waited for did not come in time."""


class Peer:
    def __init__(
        self,
        address: tuple[str, int],
        handshake: bool = True,
        receive_buffer_bytes: int = 0,
        frame_bytes_max: int = 16 * 1024 * 1024,
        wait_s: float = WAIT_S,
        source: str = "",
    ) -> None:
        """`wait_s` is how long its calls wait for an answer unless they are told otherwise;
        `source` the address it calls from."""
        self.wait_s = wait_s
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(self.wait_s)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        if self.socket.getsockname() == self.socket.getpeername():
            # The broker is gone, its port is free, and the kernel picked it for this very end.
            self.socket.close()
            raise ConnectionRefusedError("connected to itself")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frame_bytes_max = frame_bytes_max
        self.closed = False
        self.last_request = 0
        self._decoder = FrameDecoder(assembly_bytes_max=256 * 1024 * 1024)
        self._replies: dict[int, deque[tuple[int, bytes]]] = {}
        self._inboxes: dict[int, deque[Received]] = {}
        self.disconnected = False  # the server has said Disconnect
        if handshake:
            self.request(bodies.Handshake(1, None), bodies.HandshakeOk)

    # --- bytes and frames

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, opcode: int, body: bytes = b"", request_id: int | None = None) -> int:
        """Send a request without waiting; its request id."""
        if request_id is None:
            self.last_request += 1
            request_id = self.last_request
        self.send_bytes(encode_frames(opcode, request_id, body, self.frame_bytes_max))
        return request_id

    def post(self, record: tuple[Any, ...], request_id: int | None = None) -> int:
        return self.send(layouts.opcode_of(record), layouts.encode(record), request_id)

    def reply(self, request_id: int, timeout_s: float | None = None) -> tuple[int, bytes]:
        """The next frame with this request id that is no Delivery. An Error raises Refused."""
        end = self._end(timeout_s)
        waiting = self._replies.setdefault(request_id, deque())
        while not waiting:
            self._read(end)
        opcode, body = waiting.popleft()
        if not waiting:
            del self._replies[request_id]
        if opcode == op.ERROR:
            raise Refused(*layouts.decode(bodies.Error, body))
        return opcode, body

    def request(
        self, record: tuple[Any, ...], expected: type[Body], timeout_s: float | None = None
    ) -> Body:
        """Send and wait for the result; a code other than Ok raises Refused."""
        request_id = self.post(record)
        opcode, body = self.reply(request_id, timeout_s)
        result = layouts.decode(expected, body)
        assert opcode == layouts.opcode_of(result), f"{op.name_of(opcode)} is not {expected}"
        code = getattr(result, "code", errors.OK)
        if code != errors.OK:
            raise Refused(code, getattr(result, "message", None) or "")
        return result

    def expect_close(self, timeout_s: float | None = None) -> None:
        """Read until the server closes the connection."""
        end = self._end(timeout_s)
        try:
            while True:
                self._read(end)
        except Closed:
            pass

    def read(self, timeout_s: float) -> None:
        """Take in what the next read brings, for whomever; return empty-handed in time."""
        try:
            self._read(time.monotonic() + timeout_s)
        except Quiet:
            pass

    # --- messages

    def enqueue(
        self, queue: str, *payloads: bytes, headers: dict[str, str] | None = None
    ) -> list[str]:
        """Store messages in one frame; their ids."""
        results = self.enqueue_results(self.post_enqueue(queue, payloads, headers))
        for code, _ in results:
            if code != errors.OK:
                raise Refused(code, f"enqueue to {queue}")
        return [id for _, id in results]

    def post_enqueue(
        self, queue: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None
    ) -> int:
        field = message_codec.queue_field(queue.encode())
        items = [(field, message_body(headers, payload)) for payload in payloads]
        return self.send(op.ENQUEUE, message_codec.encode_enqueue(items))

    def enqueue_results(
        self, request_id: int, timeout_s: float | None = None
    ) -> list[tuple[int, str]]:
        opcode, body = self.reply(request_id, timeout_s)
        assert opcode == op.ENQUEUE_RESULT
        return [(code, text.decode()) for code, text in message_codec.decode_enqueue_results(body)]

    def consume(self, queue: str, prefetch: int | None = None) -> int:
        """Open a stream; its request id, by which deliveries are asked for."""
        request_id = self.post(bodies.Consume(queue, prefetch))
        opcode, _ = self.reply(request_id)
        assert opcode == op.CONSUME_OK
        return request_id

    def cancel(self, stream: int) -> None:
        self.send(op.CANCEL_CONSUME, request_id=stream)

    def take(self, stream: int, count: int = 1, timeout_s: float | None = None) -> list[Received]:
        """The stream's next messages; raises Quiet if fewer than `count` come in time."""
        end = self._end(timeout_s)
        inbox = self._inboxes.setdefault(stream, deque())
        while len(inbox) < count:
            self._read(end)
        return [inbox.popleft() for _ in range(count)]

    def take_one(self, stream: int, timeout_s: float | None = None) -> Received:
        return self.take(stream, 1, timeout_s)[0]

    def waiting(self, stream: int) -> list[Received]:
        """What has been read for the stream and not been taken."""
        inbox = self._inboxes.get(stream, deque())
        messages = list(inbox)
        inbox.clear()
        return messages

    def expect_quiet(self, stream: int, for_s: float) -> None:
        """Nothing arrives on the stream for this long."""
        try:
            message = self.take_one(stream, for_s)
        except Quiet:
            return
        raise AssertionError(f"unexpected delivery: {message}")

    def ack(self, queue: str, *ids: str) -> list[int]:
        """Acknowledge; one code per id."""
        return self.codes(self.post_ack(queue, ids))

    def post_ack(self, queue: str, ids: Sequence[str]) -> int:
        field = message_codec.queue_field(queue.encode())
        return self.send(op.ACK, message_codec.encode_acks([(field, id.encode()) for id in ids]))

    def nack(self, queue: str, *ids: str, error: str = "") -> list[int]:
        field = message_codec.queue_field(queue.encode())
        items = [(field, id.encode(), error.encode()) for id in ids]
        return self.codes(self.send(op.NACK, message_codec.encode_nacks(items)))

    def codes(self, request_id: int, timeout_s: float | None = None) -> list[int]:
        opcode, body = self.reply(request_id, timeout_s)
        assert opcode in (op.ACK_RESULT, op.NACK_RESULT)
        return list(message_codec.decode_codes(body))

    # --- administration

    def create_queue(
        self,
        name: str,
        on_enqueue: str | None = None,
        on_failure: str | None = None,
        visibility_ms: int = 0,
    ) -> None:
        record = bodies.CreateQueue(name, on_enqueue, on_failure, visibility_ms)
        self.request(record, bodies.CreateQueueResult)

    def delete_queue(self, name: str) -> None:
        self.request(bodies.DeleteQueue(name), bodies.DeleteQueueResult)

    def queues(self) -> dict[str, bodies.QueueSummary]:
        found = self.request(bodies.ListQueues(), bodies.ListQueuesResult)
        return {one.name: one for one in found.queues}

    def stats(self, queue: str) -> bodies.GetStatsResult:
        return self.request(bodies.GetStats(queue), bodies.GetStatsResult)

    def set_config(self, key: str, value: str) -> None:
        self.request(bodies.SetConfig(key, value), bodies.SetConfigResult)

    def get_config(self, key: str) -> str:
        return self.request(bodies.GetConfig(key), bodies.GetConfigResult).value

    def list_config(self, prefix: str) -> dict[str, str]:
        found = self.request(bodies.ListConfig(prefix), bodies.ListConfigResult)
        return {one.key: one.value for one in found.entries}

    def redrive(self, queue: str, count: int = 0, timeout_s: float | None = None) -> int:
        return self.request(bodies.Redrive(queue, count), bodies.RedriveResult, timeout_s).redriven

    def ping(self) -> None:
        opcode, _ = self.reply(self.send(op.PING))
        assert opcode == op.PONG

    # --- ending

    def disconnect(self) -> None:
        """Say goodbye, and wait for the server to close."""
        self.send(op.DISCONNECT)
        self.expect_close()
        self.close()

    def close(self) -> None:
        self.closed = True
        self.socket.close()

    def reset(self) -> None:
        """Close with RST instead of FIN, as a killed client's kernel may."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _end(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self.wait_s if timeout_s is None else timeout_s)

    def _read(self, end: float) -> None:
        """Take in what the next read brings; raises Quiet at `end`, Closed at the stream's end."""
        if self.closed:
            raise Closed("the connection is closed")
        self.socket.settimeout(max(0.001, end - time.monotonic()))
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except TimeoutError:
            raise Quiet("nothing arrived in time") from None
        except ConnectionError as error:
            self.closed = True
            raise Closed(str(error)) from None
        finally:
            self.socket.settimeout(self.wait_s)
        if not data:
            self.closed = True
            raise Closed("closed by the server")
        now = time.monotonic()
        for opcode, request_id, body in self._decoder.feed(data):
            if opcode == op.DELIVERY:
                inbox = self._inboxes.setdefault(request_id, deque())
                inbox.extend(_received(item, now) for item in message_codec.decode_delivery(body))
            elif opcode == op.DISCONNECT:
                self.disconnected = True
            else:
                self._replies.setdefault(request_id, deque()).append((opcode, body))
        assert not self._decoder.take_errors(), "the server sent something that is no frame"


def _received(item: message_codec.ReceivedItem, now: float) -> Received:
    id, queue, body, fairness_key, weight, throttle_keys, attempts, enqueued_ms, leased_ms = item
    return Received(
        id.decode(),
        queue.decode(),
        decode_headers(body),
        payload_of(body),
        fairness_key.decode(),
        weight,
        tuple(key.decode() for key in throttle_keys),
        attempts,
        enqueued_ms,
        leased_ms,
        now,
    )
