"""Messages as an Arrow IPC stream, for readers who want columns: the edges' only use of pyarrow.

Owns the schema of bulk bodies (`spec/fibp.md` writes it down). pyarrow and numpy are imported when
the first Arrow body is asked for; without them such requests are refused, and nothing else is.

A column is cut out of all the stored rows at once: keys and heads have fixed sizes, so joined they
are tables already, and no object is made for a message but the slice that is its payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fila.core.browse import BROWSE_ALL, BROWSE_DELAYED, BROWSE_LEASED, BROWSE_READY, StoredPage
from fila.core.effect import BatchLeased
from fila.core.entry import KEY, row_of
from fila.core.rejection import INVALID_CONFIG_VALUE, Rejection
from fila.core.rows import MESSAGE_HEAD_BYTES, MESSAGE_VERSION, LaneRow, message_row
from fila.distribution import requirement
from fila.wire.message import decode_headers, payload_of

if TYPE_CHECKING:
    import pyarrow as pa

_US: Final = 1_000
_STATES: Final = (BROWSE_READY, BROWSE_DELAYED, BROWSE_LEASED)
_STATE_NAMES: Final = ("ready", "delayed", "leased")
_READY_AT, _DELAYED_AT, _LEASED_AT = range(3)
_COUNTED_BYTES: Final = MESSAGE_HEAD_BYTES + 2  # with the number of headers
_BARE_PAYLOAD_AT: Final = _COUNTED_BYTES + 4  # of a message without headers, after its length
_ID_TEXT_BYTES: Final = 36
_DIGITS_AT: Final = [at for at in range(_ID_TEXT_BYTES) if at not in (8, 13, 18, 23)]
# As core/rows.py draws them.
_KEY_FIELDS: Final = [("queue", ">u4"), ("lane", ">u8"), ("stamp", ">u8"), ("id", "u1", 16)]
_HEAD_FIELDS: Final = [
    ("version", "u1"), ("attempts", ">u4"), ("weight", ">u4"), ("enqueued_ns", ">i8"),
    ("since_ns", ">i8"), ("stall_ns", ">i8"), ("throttled_ns", ">i8"), ("busy_ns", ">i8"),
    ("held_ns", ">i8"), ("headers", ">u2"),
]  # fmt: skip

_BODY: Final = ("payload", "headers")

Rows = list[tuple[bytes, bytes]]

_schema: pa.Schema | None = None
_schema_of_heads: pa.Schema | None = None


def unavailable() -> Rejection | None:
    """Why no Arrow body can be made here, if so."""
    try:
        import numpy  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as missing:
        return Rejection(
            INVALID_CONFIG_VALUE,
            f"form: this broker has no {missing.name} to make Arrow bodies with; ask for "
            f"messages, or install {requirement('journal')} beside the server",
        )
    return None


def preload() -> Rejection | None:
    """Import all that the first Arrow body needs. Returns why Arrow is unavailable, if it is."""
    fault = unavailable()
    if fault is None:
        # A message with a header and one without, of a lane with a throttle key.
        head = b"\2" + bytes(MESSAGE_HEAD_BYTES - 1)
        values = (head + b"\0\1\0\1k\0\1v\0\0\0\1x", head + b"\0\0\0\0\0\1x")
        rows = [(bytes(36), value) for value in values]
        lane = LaneRow(1, 0, 0, 0, 0, b"key", (b"throttle",))
        page = StoredPage(rows, [(lane, 2)], [True, False], 0, b"")
        browsed_stream("queue", page, BROWSE_LEASED)
    return fault


class LeasedStream:
    """The messages of a lease batch as an Arrow stream: each part is one record batch."""

    def __init__(self) -> None:
        self._sink: Any = None
        self._writer: Any = None
        self.messages = 0

    def add(self, part: BatchLeased) -> None:
        import numpy as np
        import pyarrow as pa

        if self._writer is None:
            self._sink = pa.BufferOutputStream()
            self._writer = pa.ipc.new_stream(self._sink, _schema_of(pa))
        rows = part.rows or [(entry[KEY], row_of(entry)) for entry in part.entries]
        if not rows:
            return
        self.messages += len(rows)
        numbers: dict[Any, int] = {}
        of_rows = [numbers.setdefault(lane, len(numbers)) for lane in part.lanes]
        kinds = [(lane.key.name, lane.throttle_keys) for lane in numbers]
        states = np.full(len(rows), _LEASED_AT)
        columns = _Columns(np, pa, rows)
        batch = columns.batch(part.queue, kinds, np.array(of_rows), None, states)
        self._writer.write_batch(batch)

    def stream(self) -> bytes:
        """All of it, when the last part was added."""
        self._writer.close()
        encoded: bytes = self._sink.getvalue().to_pybytes()
        return encoded


def browsed_stream(
    queue: str, page: StoredPage, states: int, bodies: bool = True
) -> tuple[int, bytes]:
    """The messages of a page that are in one of these states, and how many they are; without
    `bodies` neither payloads nor headers are looked at."""
    import numpy as np
    import pyarrow as pa

    if not page.rows:
        return 0, _stream(pa, None, bodies)
    columns = _Columns(np, pa, page.rows)
    kinds = [(lane.fairness_key, lane.throttle_keys) for lane, _ in page.lanes]
    of_rows = np.repeat(np.arange(len(kinds)), [count for _, count in page.lanes])
    stamps = columns.keys["stamp"].astype(np.int64)
    delays = columns.heads["stall_ns"] < 0  # it was stored with a delay: its stamp is its time
    ready_ns = np.where(delays, stamps, columns.heads["since_ns"])
    found = np.where(delays & (stamps > page.now_ns), _DELAYED_AT, _READY_AT)
    if page.leased:
        found[np.array(page.leased)] = _LEASED_AT
    batch = columns.batch(queue, kinds, of_rows, ready_ns, found, bodies)
    if states != BROWSE_ALL:
        wanted = np.array([bool(states & one) for one in _STATES])
        batch = batch.filter(pa.array(wanted[found]))
    return batch.num_rows, _stream(pa, batch, bodies)


class _Columns:
    """Stored rows, seen as tables."""

    def __init__(self, np: Any, pa: Any, rows: Rows) -> None:
        self._np = np
        self._pa = pa
        self._values = [value for _, value in rows]
        if any(value[0] != MESSAGE_VERSION for value in self._values):
            self._values = [message_row(value) for value in self._values]
        self.keys = np.frombuffer(b"".join([key for key, _ in rows]), _KEY_FIELDS)
        heads = b"".join([value[:_COUNTED_BYTES] for value in self._values])
        self.heads = np.frombuffer(heads, _HEAD_FIELDS)

    def batch(
        self,
        queue: str,
        kinds: list[tuple[bytes, tuple[bytes, ...]]],
        of_rows: Any,
        ready_ns: Any,
        states: Any,
        bodies: bool = True,
    ) -> pa.RecordBatch:
        """All columns. `kinds` are the places (fairness key, throttle keys) that occur, `of_rows`
        says which one each row has."""
        np, pa, heads = self._np, self._pa, self.heads
        size = len(self._values)
        bare = not heads["headers"].any()
        ready = pa.nulls(size, _time(pa)) if ready_ns is None else self._times(ready_ns)
        which = pa.array(of_rows)
        arrays = [
            self._ids(),
            pa.repeat(pa.scalar(queue, pa.string()), size),
            *([self._payloads(bare), self._headers(bare)] if bodies else []),
            pa.array([name for name, _ in kinds], pa.binary()).cast(pa.string()).take(which),
            pa.array(heads["weight"].astype(np.uint32)),
            _lists(pa, [keys for _, keys in kinds]).take(which),
            pa.array(heads["attempts"].astype(np.uint32)),
            self._times(heads["enqueued_ns"]),
            ready,
            pa.array(_STATE_NAMES, pa.string()).take(pa.array(states)),
        ]
        return pa.record_batch(arrays, schema=_schema_of(pa, bodies))

    def _payloads(self, bare: bool) -> Any:
        values = self._values
        if bare:
            cut = [value[_BARE_PAYLOAD_AT:] for value in values]
        else:
            cut = [payload_of(value[MESSAGE_HEAD_BYTES:]) for value in values]
        return self._pa.array(cut, self._pa.binary())

    def _headers(self, bare: bool) -> Any:
        np, pa = self._np, self._pa
        keys: list[str] = []
        values: list[str] = []
        offsets = np.zeros(len(self._values) + 1, np.int32)
        if not bare:
            for at, value in enumerate(self._values):
                if self.heads["headers"][at]:
                    headers = decode_headers(value[MESSAGE_HEAD_BYTES:])
                    keys += headers.keys()
                    values += headers.values()
                offsets[at + 1] = len(keys)
        return pa.MapArray.from_arrays(
            pa.array(offsets), pa.array(keys, pa.string()), pa.array(values, pa.string())
        )

    def _ids(self) -> Any:
        """All ids as text at once, as the buffer of a string column."""
        np, pa = self._np, self._pa
        ids = self.keys["id"]
        nibbles = np.stack((ids >> 4, ids & 15), axis=2).reshape(len(ids), 32)
        text = np.full((len(ids), _ID_TEXT_BYTES), ord("-"), np.uint8)
        text[:, _DIGITS_AT] = np.frombuffer(b"0123456789abcdef", np.uint8)[nibbles]
        ends = np.arange(0, text.size + 1, _ID_TEXT_BYTES, dtype=np.int32)
        return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(text))

    def _times(self, at_ns: Any) -> Any:
        whole_us = at_ns.astype(self._np.int64) // _US
        return self._pa.array(whole_us).cast(_time(self._pa))


def _stream(pa: Any, batch: pa.RecordBatch | None, bodies: bool = True) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _schema_of(pa, bodies)) as writer:
        if batch is not None and batch.num_rows:
            writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _lists(pa: Any, throttle_keys: list[tuple[bytes, ...]]) -> Any:
    offsets = [0]
    keys: list[bytes] = []
    for some in throttle_keys:
        keys += some
        offsets.append(len(keys))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.binary()).cast(pa.string())
    )


def _time(pa: Any) -> pa.DataType:
    return pa.timestamp("us", "UTC")


def _schema_of(pa: Any, bodies: bool = True) -> pa.Schema:
    global _schema, _schema_of_heads
    if _schema is None or _schema_of_heads is None:
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
                ("enqueued_at", _time(pa)),
                ("ready_at", _time(pa)),
                ("state", pa.string()),
            ]
        )
        _schema_of_heads = pa.schema([one for one in _schema if one.name not in _BODY])
    return _schema if bodies else _schema_of_heads
