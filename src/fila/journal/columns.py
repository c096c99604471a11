"""Events to columns: the core's tuples, turned into Arrow in bulk.

The wait parts are cut so that in whole microseconds, too, they add up to the wait: each part is the
difference of two rounded moments, not a rounded difference.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fila.core import effect
from fila.core.effect import Event
from fila.journal.schema import arrow_schema
from fila.wire.message import decode_headers, payload_of

_US: Final = 1_000
_NO_ID: Final = bytes(16)
_STRINGS: Final = pa.list_(pa.string())
_PARTS: Final = ("retry", "throttled", "no_consumer", "own", "turn", "paused")


def events_batch(
    events: list[Event], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table; `counts` where rows stand for more than one event."""
    size = len(events)
    columns = dict(zip(Event._fields, zip(*events, strict=True), strict=True))
    strings, int32, int64 = pa.string(), pa.int32(), pa.int64()
    since = np.fromiter(columns["since_ns"], np.int64, size)
    arrays = {
        "seq": pa.array(np.arange(first_seq, first_seq + size)),
        "ts": _time(np.fromiter(columns["ts_ns"], np.int64, size)),
        "event": _values(columns["event"], strings),
        "queue": _values(columns["queue"], strings),
        "broker": _repeated(broker, strings, size),
        "epoch": _repeated(epoch, int64, size),
        "message_id": _ids(columns["message_id"]),
        "attempt": _values(columns["attempt"], int32),
        "fairness_key": _values(columns["fairness_key"], pa.binary()).cast(strings),
        "weight": _values(columns["weight"], int64),
        "throttle_keys": _lists(columns["throttle_keys"]),
        "key_pending": _values(columns["key_pending"], int64),
        "key_eligible": _values(columns["key_eligible"], int64),
        "key_leased": _values(columns["key_leased"], int64),
        "active_weight_before": _values(columns["active_weight_before"], int64),
        "active_keys": _values(columns["active_keys"], int64),
        "since": _time(since, nullable=True),
        "ready_at": _time(np.fromiter(columns["ready_ns"], np.int64, size), nullable=True),
        "reason": _values(columns["reason"], strings),
        "error": _values(columns["error"], strings),
        "consumer": _values(columns["consumer"], strings),
        "credit_delta": _values(columns["credit_delta"], int32),
        "enqueued_at": _time(np.fromiter(columns["enqueued_ns"], np.int64, size), nullable=True),
        "payload_bytes": _values(columns["body_bytes"], int64),
        "source_queue": _values(columns["source_queue"], strings),
        "replay_of": _repeated(None, strings, size),
        "events": _values(tuple(counts), int64) if counts else _repeated(1, int64, size),
        **_waits(columns["waits"], since),
    }
    schema = arrow_schema("events")
    return pa.record_batch([arrays[field.name] for field in schema], schema=schema)


def _waits(waits: tuple[Any, ...], since: Any) -> dict[str, Any]:
    """The parts of each delivered message's wait in microseconds; null for the others."""
    size = len(waits)
    known = [wait for wait in waits if wait is not None]
    if not known:
        return {f"wait_{name}_us": pa.nulls(size, pa.int64()) for name in _PARTS}
    delivered = np.array([wait is not None for wait in waits])
    flat = np.fromiter(chain.from_iterable(known), np.int64, len(_PARTS) * len(known))
    began = since[delivered][:, None]
    moments = np.concatenate(
        [began, began + np.cumsum(flat.reshape(-1, len(_PARTS)), axis=1)], axis=1
    )
    parts = np.zeros((len(_PARTS), size), np.int64)
    parts[:, delivered] = np.diff(moments // _US, axis=1).T
    valid = _bitmap(delivered)
    return {
        f"wait_{name}_us": pa.Array.from_buffers(
            pa.int64(), size, [valid, pa.py_buffer(parts[at].tobytes())]
        )
        for at, name in enumerate(_PARTS)
    }


def _bitmap(present: Any) -> Any:
    """Which values are there, as Arrow keeps it."""
    return pa.py_buffer(np.packbits(present, bitorder="little").tobytes())


def _values(values: tuple[Any, ...], kind: Any) -> Any:
    """A column; most columns of most batches hold one value throughout, which is cheap to say."""
    first = values[0]
    if first == values[-1] and values.count(first) == len(values):
        return _repeated(first, kind, len(values))
    return pa.array(values, kind)


@lru_cache(maxsize=512)
def _repeated(value: Any, kind: Any, size: int) -> Any:
    """One value throughout. Batches have few sizes and such columns few values: made once."""
    return pa.repeat(pa.scalar(value, kind), size)


def _lists(values: tuple[tuple[bytes, ...], ...]) -> Any:
    if values.count(()) == len(values):  # nearly always: no throttle keys anywhere
        offsets = pa.py_buffer(bytes(4 * (len(values) + 1)))
        return pa.Array.from_buffers(
            _STRINGS, len(values), [None, offsets], children=[pa.array([], pa.string())]
        )
    return pa.array([[key.decode() for key in keys] for keys in values], _STRINGS)


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


def _time(ns: Any, nullable: bool = False) -> Any:
    """Nanoseconds to timestamps; 0 means that there is none, where there may be none."""
    return pa.array(ns // _US, pa.timestamp("us", "UTC"), mask=ns == 0 if nullable else None)


def _ids(ids: tuple[bytes, ...]) -> Any:
    """Sixteen bytes to the text form, all at once; an empty id is null."""
    raw = b"".join(ids)
    valid = None
    if len(raw) != 16 * len(ids):
        valid = _bitmap(np.fromiter(map(len, ids), np.int64, len(ids)))
        raw = b"".join([id or _NO_ID for id in ids])
    digits = np.frombuffer(raw.hex().encode(), np.uint8).reshape(len(ids), 32)
    text = np.full((len(ids), 36), ord("-"), np.uint8)
    at = 0
    for start, stop in ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36)):
        text[:, start:stop] = digits[:, at : at + stop - start]
        at += stop - start
    offsets = np.arange(0, 36 * (len(ids) + 1), 36, dtype=np.int32)
    buffers = [valid, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(ids), buffers)
