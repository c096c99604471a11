"""Trails packed into bytes: all that the loop's thread has to do for a record of its events.

What the core tells are lists of Python's numbers and objects, and only a thread that holds the
interpreter can read them; as bytes they can be worked on while the loop goes on. Words (names of
events, consumers) and places (queue, key, throttle keys) become numbers: how many different ones
there are does not depend on how many events there are. Knows nothing of Arrow nor of numpy;
`gathered` reads what is packed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from struct import pack
from typing import Any, Final

from fila.core.effect import Event
from fila.core.lane import Lane
from fila.core.trail import Trail

Place = Lane | tuple[str, bytes, tuple[bytes, ...]]

WORDS: Final = ("event", "consumer", "reason", "error", "source_queue")
OTHER_NUMBERS: Final = (
    "attempt", "weight", "key_pending", "key_eligible", "active_weight_before", "active_keys",
    "since_ns", "ready_ns", "credit_delta", "enqueued_ns", "body_bytes", "key_leased",
    "ring_delta", "queue_delivered",
)  # fmt: skip
NUMBER: Final = "l"  # how a number is packed: for struct the fastest of those with eight bytes
_NO_ID: Final = bytes(16)
_NO_WAIT: Final = (0,) * 9
_NO_OTHERS: Final = {
    f"other.{name}": b""
    for name in ("id", "named", "place", "waited", "waits", "events", *OTHER_NUMBERS, *WORDS)
}


class Packed:
    """Events by kind and column, in pieces that only have to be joined."""

    def __init__(self) -> None:
        self.rows = 0
        # Different values, each with a number; the first word of all is "".
        self.words: dict[str, Numbered] = {name: Numbered([""]) for name in WORDS}
        self.places = Numbered()
        self._enqueued_rows = 0
        self._delivered_rows = 0
        self._pieces: list[dict[str, bytes]] = []

    def add(self, trails: list[Trail], counts: list[int] | None = None) -> None:
        """Pack these, too. `counts` is for single events that stand for more than one."""
        pieces = {
            **self._spans(trails),
            **self._enqueued(trails),
            **self._delivered(trails),
            **self._acked(trails),
            **self._others(_all([one.others for one in trails]), counts),
        }
        # Only now: of trails that cannot be packed nothing is left behind.
        self._pieces.append(pieces)
        self.rows += sum(map(len, trails))
        self._enqueued_rows += sum([len(one.enqueued_lanes) for one in trails])
        self._delivered_rows += sum([one.delivered_rows for one in trails])

    def column(self, name: str) -> bytes:
        return b"".join([piece[name] for piece in self._pieces])

    def _spans(self, trails: list[Trail]) -> dict[str, bytes]:
        spans = _all([one.spans for one in trails])
        counts = _all([one.counts() for one in trails])
        consumers = self.words["consumer"]
        return {
            "span.kind": bytes([one[0] for one in spans]),
            "span.rows": _numbers(counts),
            "span.ts_ns": _numbers([one[2] for one in spans]),
            "span.consumer": _numbers([consumers[one[3]] for one in spans]),
        }

    def _enqueued(self, trails: list[Trail]) -> dict[str, bytes]:
        delayed: list[int] = []
        row = self._enqueued_rows
        for one in trails:
            for at, ready_ns in one.enqueued_delayed:
                delayed += (row + at, ready_ns)
            row += len(one.enqueued_lanes)
        return {
            "enqueued.id": b"".join(_all([one.enqueued_ids for one in trails])),
            "enqueued.place": self.places.of(_all([one.enqueued_lanes for one in trails])),
            "enqueued.numbers": _numbers(_all([one.enqueued_numbers for one in trails])),
            "enqueued.delayed": _numbers(delayed),
        }

    def _delivered(self, trails: list[Trail]) -> dict[str, bytes]:
        delayed: list[int] = []
        row = self._delivered_rows
        for one in trails:
            delayed += [row + at for at in one.delivered_delayed]
            row += one.delivered_rows
        waits = chain.from_iterable(_all([one.delivered_waits for one in trails]))
        return {
            "delivered.key": b"".join(_all([one.delivered_keys for one in trails])),
            "delivered.place": self.places.of(_all([one.delivered_lanes for one in trails])),
            "delivered.attempt": _numbers(_all([one.delivered_attempts for one in trails])),
            "delivered.weight": _numbers(_all([one.delivered_weights for one in trails])),
            "delivered.enqueued_ns": _numbers(_all([one.delivered_enqueued_ns for one in trails])),
            "delivered.since_ns": _numbers(_all([one.delivered_since_ns for one in trails])),
            "delivered.body_bytes": _numbers(_all([one.delivered_bytes for one in trails])),
            "delivered.delayed": _numbers(delayed),
            "delivered.visits": _numbers(_all([one.visits for one in trails])),
            "delivered.waits": _numbers(list(waits)),
        }

    def _acked(self, trails: list[Trail]) -> dict[str, bytes]:
        consumers = self.words["consumer"]
        runs = chain.from_iterable(_all([one.acked_runs for one in trails]))
        named = _all([one.acked_consumers for one in trails])
        return {
            "acked.key": b"".join([one[2] for trail in trails for one in trail.acked_leased]),
            "acked.standing": _numbers(_all([one.acked_standings for one in trails])),
            "acked.runs": _numbers(list(runs)),
            "acked.consumers": _numbers(
                [number for rows, name in named for number in (rows, consumers[name])]
            ),
            "standing.place": self.places.of(_all([one.standing_lanes for one in trails])),
            "standing.numbers": _numbers(_all([one.standing_numbers for one in trails])),
        }

    def _others(self, events: list[Event], counts: list[int] | None) -> dict[str, bytes]:
        if not events:
            return _NO_OTHERS
        columns = dict(zip(Event._fields, zip(*events, strict=True), strict=True))
        ids = columns["message_id"]
        waits = columns["waits"]
        places = zip(
            columns["queue"], columns["fairness_key"], columns["throttle_keys"], strict=True
        )
        found = {
            "other.id": b"".join([id or _NO_ID for id in ids]),
            "other.named": bytes(map(bool, ids)),
            "other.place": self.places.of(list(places)),
            "other.waited": bytes([wait is not None for wait in waits]),
            "other.waits": _numbers(list(chain.from_iterable([one or _NO_WAIT for one in waits]))),
            "other.events": _numbers(counts or [1] * len(events)),
        }
        for name in OTHER_NUMBERS:
            found[f"other.{name}"] = _numbers(columns[name])
        for name in WORDS:
            found[f"other.{name}"] = self.words[name].of(columns[name])
        return found


class Numbered(dict[Any, int]):
    """Different values, each with a number in the order they came."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        super().__init__(zip(values, range(len(values)), strict=True))

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number

    def of(self, values: Iterable[Any]) -> bytes:
        return _numbers([*map(self.__getitem__, values)])


def _numbers(values: Sequence[int]) -> bytes:
    return pack(f"{len(values)}{NUMBER}", *values)


def _all(lists: list[list[Any]]) -> list[Any]:
    found = lists[0]
    if len(lists) > 1:
        found = []
        for one in lists:
            found += one  # a tenth of what it costs to go through them one by one
    return found
