"""The bulk calls: enqueues with options, releases, lease batches and browsing.

Owns one `Call` per operation and what it gives back, shared by both shells. Never touches sockets
or state.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from fila.client.calls import Call
from fila.client.errors import FilaError, refused_enqueue, refused_settlement
from fila.client.exchange import Encoded
from fila.client.message import Message
from fila.client.outgoing import Headers, Payload, outgoing
from fila.wire import bodies as b
from fila.wire import bulk, hot
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.bodies import BrowseRange, OpenBatch
from fila.wire.bulk_bodies import ALL_STATES, ARROW, COUNT, DELAYED, LEASED, MESSAGES, READY
from fila.wire.fields import string_field
from fila.wire.hot import ReceivedItem

STATES: Final = {"ready": READY, "delayed": DELAYED, "leased": LEASED}
_STATE_NAMES: Final = {bit: name for name, bit in STATES.items()}
FRAME_BYTES: Final = 1024 * 1024  # messages of one EnqueueWith frame
FRAME_MESSAGES: Final = 4_096
FRAMES_AHEAD: Final = 4

M = TypeVar("M", bound=Message)


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


class LeasedBatch(NamedTuple, Generic[M]):
    """`again`: the batch was open before this call. Asked for Arrow, `arrow` holds the messages as
    an Arrow IPC stream and `messages` is empty; `message_count` tells how many there are."""

    name: str
    again: bool
    message_count: int
    expires_at_ms: int
    messages: list[M]
    arrow: bytes


class BatchCount(NamedTuple):
    """What an operation on batches acted on."""

    batches: int
    messages: int


class Snapshot(NamedTuple):
    """A queue as it was at one moment, to be read in `ranges` until it expires."""

    token: str
    expires_at_ms: int
    messages: int
    ranges: tuple[BrowseRange, ...]


class Page(NamedTuple):
    """`next` is where the following page starts; empty when the range is read."""

    message_count: int
    next: bytes
    messages: "list[BrowsedMessage]"
    arrow: bytes


class BrowsedMessage(Message):
    """A message seen by browsing: it is not leased to anybody by that."""

    __slots__ = ("_state",)

    def __init__(self, seen: bulk.SeenItem) -> None:
        super().__init__(seen[:9])
        self._state = seen[9]

    @property
    def state(self) -> str:
        """ready, delayed or leased, when the snapshot was taken."""
        return _STATE_NAMES.get(self._state, str(self._state))

    @property
    def ready_at_ms(self) -> int:
        """Since or from when it may be delivered."""
        return self._received[8]

    @property
    def leased_at_ms(self) -> int:
        return 0


def enqueue_frames(messages: Iterable[NewMessage]) -> Iterator[tuple[Call[list[Any]], int]]:
    """EnqueueWith calls of about a MiB each, with their number of messages. An answer has an
    `Enqueued` or an exception for every message."""
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


def release(queue: str, message_ids: Sequence[str]) -> Call[list[FilaError | None]]:
    def parse(reply: b.ReleaseResult) -> list[FilaError | None]:
        return [
            None if one.code == codes.OK else refused_settlement(one.code, queue, id)
            for one, id in zip(reply.results, message_ids, strict=True)
        ]

    body = b.Release(tuple(b.ReleaseItem(queue, id) for id in message_ids))
    return Call(f'release messages of queue "{queue}"', body, b.ReleaseResult, parse)


def lease_batch(
    queue: str,
    name: str,
    max_messages: int,
    max_bytes: int,
    visibility_ms: int,
    wait_ms: int,
    count_attempt: bool,
    arrow: bool,
    count_only: bool = False,
) -> Call[tuple[LeasedBatch[Message], list[ReceivedItem]]]:
    """Safe to repeat: the same name gives the same messages."""

    def parse(reply: b.LeaseBatchResult) -> tuple[LeasedBatch[Message], list[ReceivedItem]]:
        as_arrow = reply.form == ARROW
        received = hot.decode_delivery(reply.body) if reply.form == MESSAGES else []
        found: LeasedBatch[Message] = LeasedBatch(
            name,
            reply.again,
            reply.messages,
            reply.expires_at_ms,
            [],
            reply.body if as_arrow else b"",
        )
        return found, received

    form = COUNT if count_only else ARROW if arrow else MESSAGES
    body = b.LeaseBatch(
        queue, name, max_messages, max_bytes, visibility_ms, wait_ms, count_attempt, form
    )
    return Call(
        f'lease batch "{name}" of queue "{queue}"',
        body,
        b.LeaseBatchResult,
        parse,
        repeatable=True,
    )


def ack_batch(queue: str, name: str, below: int | None) -> Call[BatchCount]:
    body = b.AckBatch(queue, name, below)
    return _on_batches("ack", name, queue, body, b.AckBatchResult, below)


def extend_batch(queue: str, name: str, visibility_ms: int, below: int | None) -> Call[BatchCount]:
    body = b.ExtendBatch(queue, name, visibility_ms, below)
    return _on_batches("extend", name, queue, body, b.ExtendBatchResult, below)


def release_batch(queue: str, name: str, below: int | None) -> Call[BatchCount]:
    body = b.ReleaseBatch(queue, name, below)
    return _on_batches("release", name, queue, body, b.ReleaseBatchResult, below)


def list_batches(queue: str) -> Call[list[OpenBatch]]:
    return Call(
        f'batches of queue "{queue}"',
        b.ListBatches(queue),
        b.ListBatchesResult,
        lambda r: list(r.batches),
        repeatable=True,
    )


def browse_open(queue: str, fairness_key: str | None, parts: int, ttl_ms: int) -> Call[Snapshot]:
    return Call(
        f'browse queue "{queue}"',
        b.Browse(queue, fairness_key, parts, ttl_ms),
        b.BrowseResult,
        lambda r: Snapshot(r.snapshot, r.expires_at_ms, r.messages, r.ranges),
    )


def browse_page(
    token: str,
    start: bytes,
    end: bytes,
    states: Iterable[str],
    max_messages: int,
    max_bytes: int,
    arrow: bool,
) -> Call[Page]:
    def parse(reply: b.BrowsePageResult) -> Page:
        if reply.form == ARROW:
            return Page(reply.messages, reply.next, [], reply.body)
        messages = [BrowsedMessage(seen) for seen in bulk.decode_browsed(reply.body)]
        return Page(reply.messages, reply.next, messages, b"")

    form = ARROW if arrow else MESSAGES
    body = b.BrowsePage(token, start, end, state_bits(states), max_messages, max_bytes, form)
    return Call("read a page", body, b.BrowsePageResult, parse, repeatable=True)


def browse_close(token: str) -> Call[None]:
    return Call("close a snapshot", b.BrowseClose(token), b.BrowseCloseResult, lambda r: None)


def state_bits(states: Iterable[str]) -> int:
    bits = 0
    for name in states:
        if name not in STATES:
            raise ValueError(f'state must be "ready", "delayed" or "leased", not {name!r}')
        bits |= STATES[name]
    return bits or ALL_STATES


def milliseconds(seconds: float | None, what: str) -> int:
    """None and 0 are 0: not given."""
    if not seconds:
        return 0
    if seconds < 0:
        raise ValueError(f"{what} must not be negative, not {seconds!r}")
    return max(1, round(seconds * 1000))


def _on_batches(
    verb: str, name: str, queue: str, body: tuple[Any, ...], reply_type: Any, below: int | None
) -> Call[BatchCount]:
    # With `below` it may be repeated: what is done already is not found again, and that is fine.
    return Call(
        f'{verb} batch "{name}" of queue "{queue}"',
        body,
        reply_type,
        lambda r: BatchCount(r.batches, r.messages),
        repeatable=below is not None,
    )


def _encoded(message: NewMessage) -> bytes:
    _, field, body = outgoing(message.queue, message.headers, message.payload)
    lane = lane_of(message.fairness_key, message.weight, tuple(message.throttle_keys))
    return field + body + bulk.options_field(message.delay_ms, message.idempotency_key, lane)


@lru_cache(maxsize=4_096)
def lane_of(fairness_key: str, weight: int, throttle_keys: tuple[str, ...]) -> bytes:
    """A place as it travels; remembered, because bulk writers name few often."""
    return hot.lane_field(
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
