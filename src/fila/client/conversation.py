"""One side of a conversation: request ids, what is unanswered, and frames to be sent.

Owns the table from request id to the waiting caller, and the bytes that the shell takes. When
something may be sent is the exchange's decision.
"""

from fila.client.address import Address
from fila.client.errors import ProtocolError
from fila.client.request import Request
from fila.client.sender import InFlight
from fila.client.stream import Leaving, Stream
from fila.wire import bodies, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import FRAME_BYTES_MAX, encode_frames

Waiting = Request | InFlight | Stream | Leaving


class Conversation:
    def __init__(self) -> None:
        self._pending: dict[int, Waiting] = {}
        self._frame_bytes_max = FRAME_BYTES_MAX
        self._output: list[bytes] = []
        self._last_id = 0

    @property
    def has_output(self) -> bool:
        return bool(self._output)

    def take_output(self) -> bytes:
        output = self._output
        if not output:
            return b""
        self._output = []
        return output[0] if len(output) == 1 else b"".join(output)

    def _send(self, opcode: int, request_id: int, body: bytes) -> None:
        self._output.append(encode_frames(opcode, request_id, body, self._frame_bytes_max))

    def _send_batch(self, opcode: int, body: bytes, batch: InFlight) -> None:
        request_id = self._next_id()
        self._pending[request_id] = batch
        self._send(opcode, request_id, body)

    def _send_request(self, request: Request) -> None:
        request_id = self._next_id()
        self._pending[request_id] = request
        self._send(request.opcode, request_id, request.body)

    def _send_consume(self, stream: Stream) -> None:
        stream.resubscribe_at = None
        stream.request_id = self._next_id()
        self._pending[stream.request_id] = stream
        consume = bodies.Consume(stream.queue, stream.prefetch)
        self._send(op.CONSUME, stream.request_id, layouts.encode(consume))

    def _leave(self, stream: Stream) -> None:
        """Tell the broker that this stream is no longer read."""
        if stream.request_id is None:
            return
        self._send(op.CANCEL_CONSUME, stream.request_id, b"")
        leaving = Leaving(stream.queue, stream.request_id)
        self._pending[stream.request_id] = leaving  # for deliveries on their way
        self._release_unread(leaving, stream.take_unread())

    def _release_unread(self, leaving: Leaving, unread: list[message_codec.ReceivedItem]) -> None:
        """Hand back what a closed consumer was sent and did not read. Sent also with nothing in it:
        its answer tells that no delivery is on its way any more."""
        items = [bodies.ReleaseItem(leaving.queue, item[0].decode()) for item in unread]
        request_id = self._next_id()
        self._pending[request_id] = leaving
        self._send(op.RELEASE, request_id, layouts.encode(bodies.Release(tuple(items))))

    def _next_id(self) -> int:
        # Never an id that is in use: a stream may live for more than 2**32 requests.
        while True:
            self._last_id = self._last_id + 1 & 0xFFFFFFFF
            if self._last_id and self._last_id not in self._pending:
                return self._last_id


def expect_reply(peer: Address, asked: int, answered: int) -> None:
    if op.REPLY_TO[asked] != answered:
        raise ProtocolError(f"{peer} answered {op.name_of(asked)} with {op.name_of(answered)}")
