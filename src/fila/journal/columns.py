"""Events to columns: the core's tuples, turned into Arrow in bulk.

The wait parts are cut so that in whole microseconds, too, they add up to the wait: each part is the
difference of two rounded moments, not a rounded difference.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fila.core import effect
from fila.core.effect import Event
from fila.journal.schema import arrow_schema
from fila.wire.message import decode_headers, payload_of

_US: Final = 1_000
# Places in an Event, in the order of its fields.
_PLACES: Final = {name: at for at, name in enumerate(Event._fields)}
_NO_WAITS: Final = (0, 0, 0, 0, 0)


def events_batch(
    events: list[Event], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table; `counts` where rows stand for more than one event."""
    size = len(events)
    columns = list(zip(*events, strict=True))

    def column(name: str) -> tuple[Any, ...]:
        return columns[_PLACES[name]]

    ts = np.fromiter(column("ts_ns"), np.int64, size)
    since = np.fromiter(column("since_ns"), np.int64, size)
    ready = np.fromiter(column("ready_ns"), np.int64, size)
    enqueued = np.fromiter(column("enqueued_ns"), np.int64, size)
    waits = column("waits")
    delivered = np.fromiter((wait is not None for wait in waits), np.bool_, size)
    parts = np.array([wait or _NO_WAITS for wait in waits], np.int64).reshape(size, 5)
    moments = (since[:, None] + np.cumsum(parts, axis=1)) // _US
    starts = np.concatenate([(since // _US)[:, None], moments[:, :-1]], axis=1)
    waits_us = moments - starts
    strings = pa.string()
    none_if_zero = _nullable
    arrays = {
        "seq": pa.array(np.arange(first_seq, first_seq + size)),
        "ts": _time(ts),
        "event": pa.array(column("event"), strings),
        "queue": pa.array(column("queue"), strings),
        "broker": pa.array([broker] * size, strings),
        "epoch": pa.array(np.full(size, epoch, np.int64)),
        "message_id": _ids(column("message_id")),
        "attempt": pa.array(column("attempt"), pa.int32()),
        "fairness_key": _texts(column("fairness_key")),
        "weight": pa.array(column("weight"), pa.int64()),
        "throttle_keys": pa.array(
            [[key.decode() for key in keys] for keys in column("throttle_keys")],
            pa.list_(strings),
        ),
        "key_pending": pa.array(column("key_pending"), pa.int64()),
        "key_eligible": pa.array(column("key_eligible"), pa.int64()),
        "key_leased": pa.array(column("key_leased"), pa.int64()),
        "active_weight_before": pa.array(column("active_weight_before"), pa.int64()),
        "active_keys": pa.array(column("active_keys"), pa.int64()),
        "since": none_if_zero(since),
        "ready_at": none_if_zero(ready),
        "reason": pa.array(column("reason"), strings),
        "error": pa.array(column("error"), strings),
        "consumer": pa.array(column("consumer"), strings),
        "credit_delta": pa.array(column("credit_delta"), pa.int32()),
        "enqueued_at": none_if_zero(enqueued),
        "payload_bytes": pa.array(column("body_bytes"), pa.int64()),
        "source_queue": pa.array(column("source_queue"), strings),
        "replay_of": pa.nulls(size, strings),
        "events": pa.array(counts or np.ones(size, np.int64), pa.int64()),
    }
    names = ("retry", "throttled", "no_consumer", "own", "turn")
    for at, name in enumerate(names):
        arrays[f"wait_{name}_us"] = pa.array(waits_us[:, at], pa.int64(), mask=~delivered)
    schema = arrow_schema("events")
    return pa.record_batch([arrays[field.name] for field in schema], schema=schema)


class Enqueued(NamedTuple):
    """Messages of one enqueue, with their bodies as they travel."""

    queue: str
    now_ns: int
    ids: list[bytes]
    bodies: list[bytes]


def messages_batch(enqueued: Enqueued) -> Any:
    """A record batch of the messages table."""
    size = len(enqueued.ids)
    schema = arrow_schema("messages")
    headers = [list(decode_headers(body).items()) for body in enqueued.bodies]
    arrays = [
        _ids(tuple(enqueued.ids)),
        pa.array([enqueued.queue] * size, pa.string()),
        _time(np.full(size, enqueued.now_ns, np.int64)),
        pa.array(headers, schema.field("headers").type),
        pa.array([payload_of(body) for body in enqueued.bodies], pa.binary()),
    ]
    return pa.record_batch(arrays, schema=schema)


def config_batch(events: list[Event], broker: str, epoch: int) -> Any:
    """A record batch of the config table: settings as they changed."""
    pairs = [_setting(one) for one in events]
    arrays = [
        _time(np.array([one.ts_ns for one in events], np.int64)),
        pa.array([broker] * len(events), pa.string()),
        pa.array([epoch] * len(events), pa.int64()),
        pa.array([one.queue for one in events], pa.string()),
        pa.array([key for key, _ in pairs], pa.string()),
        pa.array([value for _, value in pairs], pa.string()),
    ]
    return pa.record_batch(arrays, schema=arrow_schema("config"))


def _setting(event: Event) -> tuple[str, str]:
    """A changed setting travels as `key=value` in its event's reason."""
    if event.event != effect.CONFIG_CHANGED:
        return event.event, event.reason
    key, _, value = event.reason.partition("=")
    return key, value


def _time(ns: Any) -> Any:
    return pa.array(ns // _US, pa.timestamp("us", "UTC"))


def _nullable(ns: Any) -> Any:
    return pa.array(ns // _US, pa.timestamp("us", "UTC"), mask=ns == 0)


def _texts(values: tuple[bytes, ...]) -> Any:
    return pa.array(values, pa.binary()).cast(pa.string())


def _ids(ids: tuple[bytes, ...]) -> Any:
    """Sixteen bytes to the text form, all at once; an empty id is null."""
    present = np.fromiter((len(id) == 16 for id in ids), np.bool_, len(ids))
    raw = b"".join(id if len(id) == 16 else bytes(16) for id in ids)
    digits = np.frombuffer(raw.hex().encode(), np.uint8).reshape(len(ids), 32)
    text = np.full((len(ids), 36), ord("-"), np.uint8)
    at = 0
    for start, stop in ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36)):
        text[:, start:stop] = digits[:, at : at + stop - start]
        at += stop - start
    offsets = np.arange(0, 36 * (len(ids) + 1), 36, dtype=np.int32)
    strings = pa.StringArray.from_buffers(
        len(ids), pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes())
    )
    if present.all():
        return strings
    return pc.if_else(pa.array(present), strings, pa.scalar(None, pa.string()))
