"""Packed events gathered into columns of numbers, each value at its place in the order.

The rows of each kind lie one after another in the packed bytes, so a column is first put together
kind by kind, and then its values are taken in the order of the events. Nearly all of it is done by
numpy with the GIL released. Knows nothing of Arrow.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fila.core import effect, trail
from fila.core.entry import ID_AT, STAMP_AT
from fila.journal.packed import NUMBER, OTHER_NUMBERS, WORDS, Numbered, Packed

KEY_BYTES: Final = ID_AT + 16
_PARTS: Final = 9
_KINDS: Final = {
    trail.SPAN_ENQUEUED: effect.EVENT_ENQUEUED,
    trail.SPAN_DELIVERED: effect.EVENT_DELIVERED,
    trail.SPAN_ACKED: effect.EVENT_ACKED,
}


class Events:
    """The events of what was packed, by column."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self.size = packed.rows
        self.places = packed.places
        self.words: dict[str, Numbered] = packed.words
        kinds = np.frombuffer(packed.column("span.kind"), np.uint8)
        counts = self._numbers("span.rows")
        spans_ns = self._numbers("span.ts_ns")
        consumers = self._numbers("span.consumer")
        sizes = [int(counts[kinds == kind].sum()) for kind in range(4)]
        ends = np.cumsum(sizes)
        # Where the rows of each kind lie, one kind after another.
        self._kinds = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self._order = _order(kinds, counts, ends - sizes)
        self.ts_ns = np.repeat(spans_ns, counts)
        told = kinds == trail.SPAN_ENQUEUED
        enqueued_ns = np.repeat(spans_ns[told], counts[told])
        told = kinds == trail.SPAN_DELIVERED
        consumer = np.repeat(consumers[told], counts[told])
        # By column the values of each kind; what is not there is 0.
        self._found: dict[str, list[Any]] = {}
        self._put(trail.SPAN_OTHER, {name: self._numbers(f"other.{name}") for name in _OTHERS})
        self._put(trail.SPAN_ENQUEUED, self._enqueued(enqueued_ns))
        self._put(trail.SPAN_DELIVERED, {"consumer": consumer, **self._delivered()})
        self._put(trail.SPAN_ACKED, self._acked())
        for kind, word in _KINDS.items():
            self._put(kind, {"event": packed.words["event"][word], "events": 1})

    def number(self, name: str, kind: Any = np.int64) -> Any:
        """A column of numbers."""
        return self._laid(self._found[name], kind)

    def ids(self) -> Any:
        """Sixteen bytes for each event."""
        pieces = [
            _bytes(self._packed.column("other.id"), 16),
            _bytes(self._packed.column("enqueued.id"), 16),
            _bytes(self._packed.column("delivered.key"), KEY_BYTES)[:, ID_AT:],
            _bytes(self._packed.column("acked.key"), KEY_BYTES)[:, ID_AT:],
        ]
        # As pairs of numbers they are moved at once.
        return np.concatenate(pieces).view(np.int64)[self._order]

    def named(self) -> Any:
        """Which events have an id; None: all of them."""
        return self._flags("other.named", True)

    def waited(self) -> Any:
        """Which events have a wait; None: all of them."""
        return self._flags("other.waited", False)

    def waits_us(self) -> list[Any]:
        """The parts of the waits in whole microseconds, a column each."""
        other = self._parts_us(trail.SPAN_OTHER, "other.waits")
        delivered = self._parts_us(trail.SPAN_DELIVERED, "delivered.waits")
        return [
            self._laid([other[:, at], 0, delivered[:, at], 0], np.int64) for at in range(_PARTS)
        ]

    def _parts_us(self, kind: int, name: str) -> Any:
        """Each part is the difference of two rounded moments, not a rounded difference: so they
        add up to the wait in microseconds, too."""
        parts = self._numbers(name).reshape(-1, _PARTS)
        moments = np.empty((len(parts), _PARTS + 1), np.int64)
        moments[:, 0] = self._found["since_ns"][kind]
        moments[:, 1:] = parts
        np.cumsum(moments, axis=1, out=moments)
        moments //= 1_000
        return np.diff(moments, axis=1)

    def _flags(self, other: str, told: bool) -> Any:
        flags = np.frombuffer(self._packed.column(other), np.bool_)
        if told and flags.all():
            return None
        return self._laid([flags, told, True, told], np.bool_)

    def _enqueued(self, ts_ns: Any) -> dict[str, Any]:
        found = self._table("enqueued.numbers", trail.ENQUEUED_NUMBERS)
        found["place"] = self._numbers("enqueued.place")
        found["since_ns"] = found["enqueued_ns"] = found["ready_ns"] = ts_ns
        delayed = self._numbers("enqueued.delayed").reshape(-1, 2)
        if len(delayed):
            found["ready_ns"] = ts_ns.copy()
            found["ready_ns"][delayed[:, 0]] = delayed[:, 1]
        return found

    def _delivered(self) -> dict[str, Any]:
        names = ("place", "attempt", "weight", "enqueued_ns", "since_ns", "body_bytes")
        found = {name: self._numbers(f"delivered.{name}") for name in names}
        found["credit_delta"] = -1
        found["ready_ns"] = found["since_ns"]
        delayed = self._numbers("delivered.delayed")
        if len(delayed):
            keys = _bytes(self._packed.column("delivered.key"), KEY_BYTES)
            stamps = np.ascontiguousarray(keys[delayed, STAMP_AT:ID_AT]).view(">i8")
            found["ready_ns"] = found["since_ns"].copy()
            found["ready_ns"][delayed] = stamps[:, 0]
        visits = self._table("delivered.visits", trail.VISIT_NUMBERS)
        taken = visits.pop("taken")
        if len(taken) != len(found["place"]):  # some took more than one
            visits = {name: np.repeat(values, taken) for name, values in visits.items()}
            still = np.repeat(np.cumsum(taken), taken) - np.arange(1, len(found["place"]) + 1)
            visits["key_pending"] += still
            visits["key_eligible"] += still
            visits["queue_delivered"] -= still
        # With nothing left to send the key has left the ring.
        visits["ring_delta"] = -(visits["key_eligible"] == 0).astype(np.int64)
        return {**found, **visits}

    def _acked(self) -> dict[str, Any]:
        runs = self._numbers("acked.runs").reshape(-1, 2)
        firsts = np.cumsum(runs[:, 1]) - runs[:, 1]
        at = self._numbers("acked.standing") + np.repeat(firsts, runs[:, 0])
        found = self._table("standing.numbers", trail.STANDING_NUMBERS)
        found["place"] = self._numbers("standing.place")
        found = {name: values[at] for name, values in found.items()}
        consumers = self._numbers("acked.consumers").reshape(-1, 2)
        found["consumer"] = np.repeat(consumers[:, 1], consumers[:, 0])
        found["credit_delta"] = 1
        return found

    def _put(self, kind: int, columns: dict[str, Any]) -> None:
        for name, values in columns.items():
            self._found.setdefault(name, [0, 0, 0, 0])[kind] = values

    def _laid(self, pieces: list[Any], kind: Any) -> Any:
        """Values of the kinds, laid out in the order of the events."""
        values = np.zeros(self.size, kind)
        for at, piece in zip(self._kinds, pieces, strict=True):
            # Each step may have to acquire the GIL again: none without need.
            if isinstance(piece, np.ndarray) or piece:
                values[at] = piece
        return values[self._order]

    def _numbers(self, name: str) -> Any:
        return np.frombuffer(self._packed.column(name), NUMBER)

    def _table(self, name: str, columns: tuple[str, ...]) -> dict[str, Any]:
        table = self._numbers(name).reshape(-1, len(columns))
        return {column: table[:, at] for at, column in enumerate(columns)}


_OTHERS: Final = ("place", "events", *OTHER_NUMBERS, *WORDS)


def _order(kinds: Any, counts: Any, starts: Any) -> Any:
    """For each event in order where it lies among the rows, one kind after another."""
    firsts = np.zeros(len(kinds), np.int64)
    for kind, start in enumerate(starts):
        told = kinds == kind
        firsts[told] = start + np.cumsum(counts[told]) - counts[told]
    steps = firsts - (np.cumsum(counts) - counts)
    order = np.repeat(steps, counts)
    order += np.arange(len(order))
    return order


def _bytes(joined: bytes, width: int) -> Any:
    return np.frombuffer(joined, np.uint8).reshape(-1, width)
