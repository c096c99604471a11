"""A call that is sent by itself and answered by one result frame.

Owns the encoded body of such a call and the decoding of its answer. Correlating the two is the
exchange's part.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fila.client.ticket import Ticket
from fila.wire import bodies, enqueue_with_codec, layouts

# Results that are long lists have a codec of their own.
_DECODERS: Final[dict[Any, Callable[[bytes], Any]]] = {
    bodies.EnqueueWithResult: enqueue_with_codec.decode_enqueue_with_results,
}


class Encoded(NamedTuple):
    """A body that is bytes already."""

    opcode: int
    body: bytes


class Request:
    """Sent when the connection is open, answered by one result."""

    __slots__ = ("body", "opcode", "repeatable", "reply_type", "ticket")

    def __init__(
        self, body: tuple[Any, ...], reply_type: Any, repeatable: bool, ticket: Ticket
    ) -> None:
        if isinstance(body, Encoded):
            self.opcode, self.body = body
        else:
            self.opcode = layouts.opcode_of(body)
            self.body = layouts.encode(body)
        self.reply_type = reply_type
        self.repeatable = repeatable  # a read: may be sent again after a lost connection
        self.ticket = ticket

    def decode(self, reply: bytes) -> Any:
        own = _DECODERS.get(self.reply_type)
        return own(reply) if own else layouts.decode(self.reply_type, reply)
