"""Leases without a consumer: lease batches, and handing leased messages back.

Owns one `Call` per operation and what it gives back, shared by both shells. Never touches sockets
or state.
"""

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fila.client.calls import Call, call_of
from fila.client.errors import FilaError, refused_settlement
from fila.client.message import Message
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import message_codec
from fila.wire.bodies import OpenBatch
from fila.wire.forms import ARROW, COUNT, MESSAGES
from fila.wire.message_codec import ReceivedItem

M = TypeVar("M", bound=Message)


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


def release(queue: str, message_ids: Sequence[str]) -> Call[list[FilaError | None]]:
    def parse(reply: b.ReleaseResult) -> list[FilaError | None]:
        return [
            None if one.code == codes.OK else refused_settlement(one.code, queue, id)
            for one, id in zip(reply.results, message_ids, strict=True)
        ]

    body = b.Release(tuple(b.ReleaseItem(queue, id) for id in message_ids))
    return Call(f'release messages of queue "{queue}"', body, b.ReleaseResult, parse)


def extend(
    queue: str, message_ids: Sequence[str], visibility_ms: int
) -> Call[list[FilaError | None]]:
    def parse(reply: b.ExtendResult) -> list[FilaError | None]:
        missing = set(reply.missing)
        return [
            refused_settlement(codes.MESSAGE_NOT_FOUND, queue, id) if id in missing else None
            for id in message_ids
        ]

    return call_of(b.Extend(queue, tuple(message_ids), visibility_ms), parse)


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
        received = message_codec.decode_delivery(reply.body) if reply.form == MESSAGES else []
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
