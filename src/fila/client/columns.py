"""Messages given by columns, as bulk writers have them: EnqueueWith frames without an object each.

Owns the encoding of columns as frames, and the result of a frame. Shared by both shells; never
touches sockets or state. What is the same for many messages is encoded once.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from struct import Struct
from typing import Any, Final, NamedTuple

from fila.client.calls import Call
from fila.client.errors import FilaError, refused_enqueue
from fila.client.new_message import FRAME_BYTES, FRAME_MESSAGES, lane_of
from fila.client.outgoing import Headers, outgoing, queue_field
from fila.client.request import Encoded
from fila.client.trace import traced
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.enqueue_with_codec import options_field
from fila.wire.fields import BYTES_MAX

_U32: Final = Struct(">I")
_NO_HEADERS: Final = b"\x00\x00"
_NO_OPTIONS: Final = bytes(10)  # no delay, no idempotency key


class Columns(NamedTuple):
    """One value for each message, in order; a column that is left out is given by none. Keys may be
    bytes in UTF-8."""

    queues: str | Sequence[str]  # one name for all of them, or one for each
    payloads: Sequence[bytes | memoryview]
    headers: Sequence[Headers] | None = None
    delays_ms: Sequence[int] | None = None
    idempotency_keys: Sequence[str | bytes] | None = None
    fairness_keys: Sequence[str] | None = None
    weights: Sequence[int] | None = None
    throttle_keys: Sequence[Sequence[str]] | None = None

    def take(self, places: Iterable[int]) -> "Columns":
        """Only the messages at these places."""
        chosen = list(places)
        taken: list[Any] = []
        for column in self:
            if column is None or isinstance(column, str):
                taken.append(column)
            else:
                taken.append([column[at] for at in chosen])
        return Columns(*taken)


class Stored(NamedTuple):
    """What came of a frame: the messages of `columns` from `first` on. `duplicates` were known to
    the queue already; `refused` says why by their place in `columns`."""

    columns: Columns
    first: int
    messages: int
    duplicates: int
    refused: dict[int, FilaError]


def frames(given: Columns, trace: str | None = None) -> Iterator[Call[Stored]]:
    """EnqueueWith calls of about a MiB each."""
    columns = given
    if trace is not None:
        headers = given.headers or [None] * len(given.payloads)
        columns = given._replace(headers=[traced(one, trace) for one in headers])
    pack = _U32.pack
    parts: list[bytes | memoryview] = []
    size = count = first = 0
    for start, payload, end in zip(_starts(columns), columns.payloads, _ends(columns), strict=True):
        bytes_here = len(payload)
        if bytes_here > BYTES_MAX:
            outgoing("", None, payload)  # raises what it says of a message that is too long
        parts += (start, pack(bytes_here), payload, end)
        size += bytes_here + len(end)
        count += 1
        if size >= FRAME_BYTES or count >= FRAME_MESSAGES:
            yield _call(given, first, count, parts)
            first += count
            parts = []
            size = count = 0
    if count:
        yield _call(given, first, count, parts)


def _starts(columns: Columns) -> Iterable[bytes]:
    """What comes before the length of each payload: the queue and the headers."""
    queues = columns.queues
    if columns.headers is None:
        if isinstance(queues, str):
            return repeat(queue_field(queues) + _NO_HEADERS, len(columns.payloads))
        return [queue_field(queue) + _NO_HEADERS for queue in queues]
    named = repeat(queues, len(columns.payloads)) if isinstance(queues, str) else queues
    return [
        queue_field(queue) + (outgoing(queue, some, b"")[2][:-4] if some else _NO_HEADERS)
        for queue, some in zip(named, columns.headers, strict=True)
    ]


def _ends(columns: Columns) -> Iterable[bytes]:
    """What comes after each payload: the options and the place."""
    count = len(columns.payloads)
    names = columns.fairness_keys if columns.fairness_keys is not None else [""] * count
    lanes: Iterable[bytes]
    if columns.weights is None and columns.throttle_keys is None:
        fields = {name: lane_of(name, 0, ()) for name in set(names)}
        lanes = [fields[name] for name in names]
    else:
        weights = columns.weights if columns.weights is not None else repeat(0, count)
        throttles = (
            columns.throttle_keys if columns.throttle_keys is not None else repeat((), count)
        )
        lanes = [
            lane_of(name, weight, tuple(keys))
            for name, weight, keys in zip(names, weights, throttles, strict=True)
        ]
    if columns.delays_ms is None and columns.idempotency_keys is None:
        return [_NO_OPTIONS + lane for lane in lanes]
    delays = columns.delays_ms if columns.delays_ms is not None else repeat(0, count)
    keys_given = columns.idempotency_keys
    known = keys_given if keys_given is not None else repeat("", count)
    return [
        options_field(delay, key, lane)
        for delay, key, lane in zip(delays, known, lanes, strict=True)
    ]


def _call(
    columns: Columns, first: int, count: int, parts: list[bytes | memoryview]
) -> Call[Stored]:
    def parse(results: list[tuple[int, bytes, bool]]) -> Stored:
        duplicates = sum([known for _, _, known in results])
        refused: dict[int, FilaError] = {}
        for at, (code, _, _) in enumerate(results, first):
            if code != codes.OK:
                queues = columns.queues
                refused[at] = refused_enqueue(
                    code, queues if isinstance(queues, str) else queues[at]
                )
        return Stored(columns, first, count, duplicates, refused)

    body = Encoded(op.ENQUEUE_WITH, b"".join([_U32.pack(count), *parts]))
    keys = columns.idempotency_keys
    # With a key in every message a frame whose answer was lost may be sent again.
    keyed = keys is not None and all(keys[first : first + count])
    return Call("enqueue", body, b.EnqueueWithResult, parse, repeatable=keyed)
