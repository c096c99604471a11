"""Messages enqueued with options: delay, idempotency key, assignment.

Owns `NewMessage`, the EnqueueWith frames made of many, and what comes back for each. Never touches
sockets or state.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fila.client.calls import Call
from fila.client.errors import FilaError, refused_enqueue
from fila.client.outgoing import Headers, Payload, outgoing
from fila.client.request import Encoded
from fila.client.trace import traced
from fila.wire import bodies as b
from fila.wire import enqueue_with_codec, message_codec
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.fields import string_field

FRAME_BYTES: Final = 1024 * 1024  # messages of one EnqueueWith frame
FRAME_MESSAGES: Final = 4_096
FRAMES_AHEAD: Final = 4


class NewMessage(NamedTuple):
    """A message to enqueue with options; what is left out is not given."""

    queue: str
    payload: Payload = b""
    headers: Headers = None
    delay_ms: int = 0
    idempotency_key: str = ""
    fairness_key: str = ""
    weight: int = 0
    throttle_keys: Sequence[str] = ()


class Enqueued(NamedTuple):
    """`duplicate`: the queue knew the idempotency key; `id` is the first message's."""

    id: str
    duplicate: bool


def enqueue_frames(
    messages: Iterable[NewMessage], trace: str | None = None
) -> Iterator[tuple[Call[list[Any]], int]]:
    """EnqueueWith calls of about a MiB each, with their number of messages. An answer has an
    `Enqueued` or an exception for every message."""
    if trace is not None:
        messages = (one._replace(headers=traced(one.headers, trace)) for one in messages)
    parts: list[bytes] = []
    queues: list[str] = []
    size = 0
    keyed = True
    for message in messages:
        piece = _encoded(message)
        parts.append(piece)
        queues.append(message.queue)
        keyed = keyed and bool(message.idempotency_key)
        size += len(piece)
        if size >= FRAME_BYTES or len(parts) >= FRAME_MESSAGES:
            yield _enqueue_with(parts, queues, keyed), len(parts)
            parts, queues, size, keyed = [], [], 0, True
    if parts:
        yield _enqueue_with(parts, queues, keyed), len(parts)


def one_id(results: list[Any]) -> str:
    """The id of a single enqueue, or why there is none, raised."""
    (result,) = results
    if isinstance(result, FilaError):
        raise result
    return str(result.id)


def _encoded(message: NewMessage) -> bytes:
    _, field, body = outgoing(message.queue, message.headers, message.payload)
    lane = lane_of(message.fairness_key, message.weight, tuple(message.throttle_keys))
    return (
        field
        + body
        + enqueue_with_codec.options_field(message.delay_ms, message.idempotency_key, lane)
    )


@lru_cache(maxsize=4_096)
def lane_of(fairness_key: str, weight: int, throttle_keys: tuple[str, ...]) -> bytes:
    """An encoded assignment; cached, because bulk writers repeat a few often."""
    return message_codec.lane_field(
        string_field(fairness_key, "fairness_key")[2:],
        weight,
        [string_field(key, "throttle key")[2:] for key in throttle_keys],
    )


def _enqueue_with(parts: list[bytes], queues: list[str], keyed: bool) -> Call[list[Any]]:
    def parse(results: list[tuple[int, bytes, bool]]) -> list[Any]:
        return [
            Enqueued(text.decode(), duplicate) if code == codes.OK else refused_enqueue(code, queue)
            for (code, text, duplicate), queue in zip(results, queues, strict=True)
        ]

    body = Encoded(op.ENQUEUE_WITH, b"".join([len(parts).to_bytes(4, "big"), *parts]))
    # With a key in every message a frame whose answer was lost may be sent again.
    return Call("enqueue", body, b.EnqueueWithResult, parse, repeatable=keyed)
