"""Events to columns: what `gathered` laid out in order, as Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fila.core import effect
from fila.core.effect import Event
from fila.core.trail import Trail, trail_of
from fila.core.waits import Waits
from fila.journal.gathered import Events
from fila.journal.packed import WORDS, Packed, Place
from fila.journal.schema import arrow_schema, compact_schema, fitted
from fila.wire.message import decode_headers, payload_of

_US: Final = 1_000
_INT64: Final = pa.int64()
_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_STRINGS: Final = pa.list_(pa.string())
_PARTS: Final = Waits._fields
_NUMPY: Final = {pa.int32(): np.int32, pa.int64(): np.int64}
# Where the digits of an id stand in its text.
_GROUPS: Final = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36))


def events_batch(
    events: list[Event], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table, of single events; `counts` where they stand for more
    than one."""
    return trails_batch([trail_of(events)], first_seq, broker, epoch, counts)


def trails_batch(
    trails: list[Trail], first_seq: int, broker: str, epoch: int, counts: list[int] | None = None
) -> Any:
    """A record batch of the events table."""
    packed = Packed()
    packed.add(trails, counts)
    table = pa.Table.from_batches([compact_batch(packed, first_seq, broker, epoch)])
    (batch,) = fitted(table, "events").combine_chunks().to_batches()
    return batch


def compact_batch(packed: Packed, first_seq: int, broker: str, epoch: int) -> Any:
    """A record batch in the events table's compact form: each different word once."""
    events = Events(packed)
    size = events.size
    schema = compact_schema("events")
    queues, keys, throttle_keys = _places(events.places)
    at_place = events.number("place", np.int32)
    arrays = {
        "seq": _number(np.arange(first_seq, first_seq + size)),
        "ts": _time(events.ts_ns),
        "broker": _words([broker], _zeros(size)),
        "epoch": _repeated(epoch, _INT64, size),
        "queue": _words(queues, at_place),
        "fairness_key": _words(keys, at_place),
        "throttle_keys": _lists(throttle_keys, at_place),
        "message_id": _ids(events.ids(), events.named()),
        "since": _time(events.number("since_ns"), nullable=True),
        "ready_at": _time(events.number("ready_ns"), nullable=True),
        "enqueued_at": _time(events.number("enqueued_ns"), nullable=True),
        "key_eligible": _known(events.number("key_eligible")),
        "payload_bytes": _number(events.number("body_bytes")),
        "replay_of": _repeated(None, schema.field("replay_of").type, size),
        **_waits(events),
    }
    for name in WORDS:
        arrays[name] = _words(list(events.words[name]), events.number(name, np.int32))
    for field in schema:
        if field.name not in arrays:
            arrays[field.name] = _number(events.number(field.name, _NUMPY[field.type]), field.type)
    columns = [arrays[field.name] for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _places(places: Iterable[Place]) -> tuple[list[str], list[bytes], list[tuple[bytes, ...]]]:
    """Queue, key and throttle keys of each. There may be as many as events: short, and no calls."""
    return (
        [one[0] if isinstance(one, tuple) else one.queue.name for one in places],
        [one[1] if isinstance(one, tuple) else one.key.name for one in places],
        [one[2] if isinstance(one, tuple) else one.throttle_keys for one in places],
    )


def _number(values: Any, kind: Any = _INT64) -> Any:
    """A column of numbers that are all there; straight from memory, a tenth of pa.array's cost."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _known(values: Any) -> Any:
    """A column of numbers; null where one is below 0."""
    if not (values < 0).any():
        return _number(values)
    return pa.Array.from_buffers(
        _INT64, len(values), [_bitmap(values >= 0), pa.py_buffer(np.maximum(values, 0))]
    )


def _words(values: list[str] | list[bytes], at: Any) -> Any:
    """A column of few different values: numbers that point at them. Bytes are UTF-8."""
    return pa.DictionaryArray.from_arrays(
        _number(at, pa.int32()), pa.array(values, pa.string()), safe=False
    )


def _waits(events: Events) -> dict[str, Any]:
    """The parts of each delivered message's wait in microseconds; null for the others."""
    present = _bitmap(events.waited())
    return {
        f"wait_{name}_us": pa.Array.from_buffers(_INT64, len(part), [present, pa.py_buffer(part)])
        for name, part in zip(_PARTS, events.waits_us(), strict=True)
    }


def _bitmap(present: Any) -> Any:
    """Which values are there, as Arrow keeps it."""
    return pa.py_buffer(np.packbits(present, bitorder="little"))


@lru_cache(maxsize=64)
def _repeated(value: Any, kind: Any, size: int) -> Any:
    """One value throughout. Small batches have few sizes and such columns few values."""
    return pa.repeat(pa.scalar(value, kind), size)


def _zeros(size: int) -> Any:
    return np.zeros(size, np.int32)


def _lists(values: list[tuple[bytes, ...]], at: Any) -> Any:
    if not any(values):  # nearly always: no throttle keys anywhere
        offsets = pa.py_buffer(_zeros(len(at) + 1))
        return pa.Array.from_buffers(
            _STRINGS, len(at), [None, offsets], children=[pa.array([], pa.string())]
        )
    lists = pa.array([[key.decode() for key in keys] for keys in values], _STRINGS)
    return lists.take(_number(at, pa.int32()))


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
    if event.event != effect.EVENT_CONFIG_CHANGED:
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
    halves = np.empty((size, 32), np.uint8)
    octets = ids.view(np.uint8).reshape(size, 16)
    np.right_shift(octets, 4, out=halves[:, ::2])
    np.bitwise_and(octets, 15, out=halves[:, 1::2])
    # From ten on letters: what lies between "9" and "a" is left out.
    letters = np.multiply(halves > 9, ord("a") - ord("9") - 1, dtype=np.uint8)
    halves += letters
    halves += ord("0")
    text = np.full((size, 36), ord("-"), np.uint8)
    at = 0
    for start, stop in _GROUPS:
        text[:, start:stop] = halves[:, at : at + stop - start]
        at += stop - start
    offsets = np.arange(0, 36 * (size + 1), 36, dtype=np.int32)
    valid = None if named is None else _bitmap(named)
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), size, buffers)
