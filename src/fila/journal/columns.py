"""Events to columns: what `gathered` collected from the core's trails, turned into Arrow.

The wait parts are cut so that in whole microseconds, too, they add up to the wait: each part is the
difference of two rounded moments, not a rounded difference.
"""

from __future__ import annotations

from binascii import hexlify
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fila.core import effect, trail
from fila.core.effect import Event
from fila.core.trail import Trail, trail_of
from fila.journal.gathered import WORDS, Events, Place
from fila.journal.schema import arrow_schema
from fila.wire.message import decode_headers, payload_of

_US: Final = 1_000
_INT32: Final = pa.int32()
_INT64: Final = pa.int64()
_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_STRINGS: Final = pa.list_(pa.string())
_PARTS: Final = ("retry", "throttled", "no_consumer", "own", "turn", "paused")


def events_batch(
    events: list[Event], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table, of single events."""
    return trails_batch([trail_of(events)], first_seq, broker, epoch, counts)


def trails_batch(
    trails: list[Trail], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table; `counts` for the single events of the trails, where they
    stand for more than one."""
    table = Events(trails)
    if counts:
        table.numbers["events"][table.at[trail.OTHER]] = counts
    size = table.size
    strings = pa.string()
    places = [_place(one) for one in table.places]
    at_place = _number(table.place, _INT32)
    numbers = table.numbers
    since = numbers["since_ns"]
    arrays = {
        "seq": _number(np.arange(first_seq, first_seq + size)),
        "ts": _time(numbers["ts_ns"]),
        "broker": _repeated(broker, strings, size),
        "epoch": _repeated(epoch, pa.int64(), size),
        "queue": _chosen([one[0] for one in places], at_place),
        "fairness_key": _chosen([one[1].decode() for one in places], at_place),
        "throttle_keys": _lists([one[2] for one in places], at_place),
        "message_id": _ids(table.ids, table.named),
        "since": _time(since, nullable=True),
        "ready_at": _time(numbers["ready_ns"], nullable=True),
        "enqueued_at": _time(numbers["enqueued_ns"], nullable=True),
        "payload_bytes": _number(numbers["body_bytes"]),
        "replay_of": _repeated(None, strings, size),
        **_waits(table.waited, table.waits, since),
    }
    for name in WORDS:
        arrays[name] = _chosen(list(table.words[name]), _number(table.word_at[name], _INT32))
    schema = arrow_schema("events")
    for field in schema:
        if field.name not in arrays:
            arrays[field.name] = _number(numbers[field.name], field.type)
    columns = [arrays[field.name] for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _place(one: Place) -> tuple[str, bytes, tuple[bytes, ...]]:
    if isinstance(one, tuple):
        return one
    return one.queue.name, one.key.name, one.throttle_keys


def _number(values: Any, kind: Any = _INT64) -> Any:
    """A column of numbers that are all there; straight from memory, a tenth of pa.array's cost."""
    if kind == _INT32 and values.dtype != np.int32:
        values = values.astype(np.int32)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _chosen(values: list[str], at: Any) -> Any:
    """A column of few different values."""
    if len(values) == 1:
        return _repeated(values[0], pa.string(), len(at))
    return pa.array(values, pa.string()).take(at)


def _waits(waited: Any, waits: Any, since: Any) -> dict[str, Any]:
    """The parts of each delivered message's wait in microseconds; null for the others."""
    size = len(since)
    if len(waits) == 0:
        return {f"wait_{name}_us": pa.nulls(size, pa.int64()) for name in _PARTS}
    valid = np.zeros(size, np.bool_)
    valid[waited] = True
    present = _bitmap(valid)
    found = {}
    moment = since[waited]
    before = moment // _US
    for at, name in enumerate(_PARTS):
        moment = moment + waits[:, at]
        after = moment // _US
        part = np.zeros(size, np.int64)
        part[waited] = after - before
        before = after
        found[f"wait_{name}_us"] = pa.Array.from_buffers(
            pa.int64(), size, [present, pa.py_buffer(part)]
        )
    return found


def _bitmap(present: Any) -> Any:
    """Which values are there, as Arrow keeps it."""
    return pa.py_buffer(np.packbits(present, bitorder="little").tobytes())


@lru_cache(maxsize=512)
def _repeated(value: Any, kind: Any, size: int) -> Any:
    """One value throughout. Batches have few sizes and such columns few values: made once."""
    return pa.repeat(pa.scalar(value, kind), size)


def _lists(values: list[tuple[bytes, ...]], at: Any) -> Any:
    if not any(values):  # nearly always: no throttle keys anywhere
        offsets = pa.py_buffer(bytes(4 * (len(at) + 1)))
        return pa.Array.from_buffers(
            _STRINGS, len(at), [None, offsets], children=[pa.array([], pa.string())]
        )
    return pa.array([[key.decode() for key in keys] for keys in values], _STRINGS).take(at)


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
        _ids(np.frombuffer(b"".join(enqueued.ids), np.uint8).reshape(size, 16)),
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
    valid = None
    if nullable and not ns.all():
        valid = _bitmap(ns != 0)
    return pa.Array.from_buffers(_TIMESTAMP, len(ns), [valid, pa.py_buffer(ns // _US)])


def _ids(ids: Any, named: Any = None) -> Any:
    """Rows of sixteen bytes to the text form, all at once; null where nothing is named."""
    size = len(ids)
    valid = None if named is None or named.all() else _bitmap(named)
    text = np.full((size, 36), ord("-"), np.uint8)
    digits = np.frombuffer(hexlify(ids.tobytes()), np.uint8).reshape(size, 32)
    at = 0
    for start, stop in ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36)):
        text[:, start:stop] = digits[:, at : at + stop - start]
        at += stop - start
    offsets = np.arange(0, 36 * (size + 1), 36, dtype=np.int32)
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), size, buffers)
