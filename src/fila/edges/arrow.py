"""Messages as an Arrow IPC stream, for readers who want columns: the edges' only use of pyarrow.

Owns the schema of bulk bodies (`spec/fibp.md` writes it down). pyarrow is imported when the first
Arrow body is asked for; without it such requests are refused, and nothing else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fila.core.browse import DELAYED, LEASED, READY, Seen, ready_ns
from fila.core.lane import ATTEMPTS, BODY, ENQUEUED, KEY, WEIGHT, Entry, Lane
from fila.core.rejection import INVALID_CONFIG_VALUE, Rejection
from fila.core.rows import ID_AT
from fila.wire.message import decode_headers, payload_of

if TYPE_CHECKING:
    import pyarrow as pa

_US: Final = 1_000
_STATE_NAMES: Final = {READY: "ready", DELAYED: "delayed", LEASED: "leased"}
_NO_HEADERS: Final = b"\x00\x00"
_BARE_PAYLOAD_AT: Final = 6  # after no headers and the payload's length, which is the rest
_ID_TEXT_BYTES: Final = 36
_DIGITS_AT: Final = [at for at in range(_ID_TEXT_BYTES) if at not in (8, 13, 18, 23)]

_schema: pa.Schema | None = None


def unavailable() -> Rejection | None:
    """Why no Arrow body can be made here, if so."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return Rejection(
            INVALID_CONFIG_VALUE,
            "form: this broker has no pyarrow to make Arrow bodies with; ask for messages, or "
            "install fila[journal] beside the server",
        )
    return None


def leased_stream(queue: str, entries: list[Entry], lanes: list[Lane]) -> bytes:
    """The messages of a lease batch."""
    names = [lane.key.name for lane in lanes]
    throttles = [lane.throttle_keys for lane in lanes]
    return _stream(queue, entries, names, throttles, None, ["leased"] * len(entries))


def browsed_stream(queue: str, messages: list[Seen]) -> bytes:
    """The messages of a page."""
    entries = [one.entry for one in messages]
    names = [one.lane.fairness_key for one in messages]
    throttles = [one.lane.throttle_keys for one in messages]
    ready = [ready_ns(entry) // _US for entry in entries]
    states = [_STATE_NAMES[one.state] for one in messages]
    return _stream(queue, entries, names, throttles, ready, states)


def _stream(
    queue: str,
    entries: list[Entry],
    fairness_keys: list[bytes],
    throttle_keys: list[tuple[bytes, ...]],
    ready_us: list[int] | None,
    states: list[str],
) -> bytes:
    import pyarrow as pa

    schema = _schema_of(pa)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        size = len(entries)
        if size:
            time = pa.timestamp("us", "UTC")
            bodies = [entry[BODY] for entry in entries]
            enqueued = [entry[ENQUEUED] // _US for entry in entries]
            arrays = [
                _ids(pa, entries),
                pa.repeat(pa.scalar(queue, pa.string()), size),
                pa.array(
                    [
                        body[_BARE_PAYLOAD_AT:] if body[:2] == _NO_HEADERS else payload_of(body)
                        for body in bodies
                    ],
                    pa.binary(),
                ),
                _headers(pa, bodies),
                pa.array(fairness_keys, pa.binary()).cast(pa.string()),
                pa.array([entry[WEIGHT] for entry in entries], pa.uint32()),
                _lists(pa, throttle_keys),
                pa.array([entry[ATTEMPTS] for entry in entries], pa.uint32()),
                pa.array(enqueued, pa.int64()).cast(time),
                pa.nulls(size, time)
                if ready_us is None
                else pa.array(ready_us, pa.int64()).cast(time),
                pa.array(states, pa.string()),
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def _schema_of(pa: Any) -> pa.Schema:
    global _schema
    if _schema is None:
        time = pa.timestamp("us", "UTC")
        _schema = pa.schema(
            [
                ("message_id", pa.string()),
                ("queue", pa.string()),
                ("payload", pa.binary()),
                ("headers", pa.map_(pa.string(), pa.string())),
                ("fairness_key", pa.string()),
                ("weight", pa.uint32()),
                ("throttle_keys", pa.list_(pa.string())),
                ("attempts", pa.uint32()),
                ("enqueued_at", time),
                ("ready_at", time),
                ("state", pa.string()),
            ]
        )
    return _schema


def _ids(pa: Any, entries: list[Entry]) -> Any:
    """All ids as text at once, as the buffer of a string column: one by one they would cost a fifth
    of all the work here."""
    import numpy as np

    ids = np.frombuffer(b"".join([entry[KEY][ID_AT:] for entry in entries]), np.uint8)
    nibbles = np.stack((ids >> 4, ids & 15), axis=1).reshape(len(entries), 32)
    text = np.full((len(entries), _ID_TEXT_BYTES), ord("-"), np.uint8)
    text[:, _DIGITS_AT] = np.frombuffer(b"0123456789abcdef", np.uint8)[nibbles]
    ends = np.arange(0, text.size + 1, _ID_TEXT_BYTES, dtype=np.int32)
    return pa.StringArray.from_buffers(len(entries), pa.py_buffer(ends), pa.py_buffer(text))


def _headers(pa: Any, bodies: list[bytes]) -> Any:
    offsets = [0]
    keys: list[str] = []
    values: list[str] = []
    for body in bodies:
        if body[:2] != _NO_HEADERS:
            headers = decode_headers(body)
            keys += headers.keys()
            values += headers.values()
        offsets.append(len(keys))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(values, pa.string())
    )


def _lists(pa: Any, throttle_keys: list[tuple[bytes, ...]]) -> Any:
    offsets = [0]
    keys: list[bytes] = []
    for some in throttle_keys:
        keys += some
        offsets.append(len(keys))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.binary()).cast(pa.string())
    )
