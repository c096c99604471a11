"""Trails gathered into columns of numbers, each value once and at its place in the order.

Every kind of event is read from its own flat lists in one go and then laid where its spans stand.
Words (names of events, consumers) and places (queue, key, throttle keys) become numbers, too: how
many different ones there are does not depend on how many events there are. Knows nothing of Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from fila.core import effect, rows, trail
from fila.core.effect import Event
from fila.core.lane import Lane
from fila.core.trail import Trail

Place = Lane | tuple[str, bytes, tuple[bytes, ...]]

WORDS: Final = ("event", "consumer", "reason", "error", "source_queue")
_NUMBERS: Final = (
    "attempt", "weight", "key_pending", "key_eligible", "active_weight_before", "active_keys",
    "since_ns", "ready_ns", "credit_delta", "enqueued_ns", "body_bytes", "key_leased",
)  # fmt: skip
_PARTS: Final = 6
_NO_ID: Final = bytes(16)
_KINDS: Final = {
    trail.ENQUEUED: effect.ENQUEUED,
    trail.DELIVERED: effect.DELIVERED,
    trail.ACKED: effect.ACKED,
}


class Events:
    """The events of some trails, by column."""

    def __init__(self, trails: list[Trail]) -> None:
        self._trails = trails
        spans = list(chain.from_iterable([one.spans for one in trails]))
        counts = np.array(list(chain.from_iterable([one.counts() for one in trails])), np.int64)
        kinds = np.repeat(np.array([one[0] for one in spans], np.int8), counts)
        self.size = size = len(kinds)
        # Where the events of each kind stand.
        self.at = [np.flatnonzero(kinds == kind) for kind in range(4)]
        self.numbers: dict[str, Any] = {name: np.zeros(size, np.int64) for name in _NUMBERS}
        self.numbers["ts_ns"] = np.repeat(np.array([one[2] for one in spans], np.int64), counts)
        self.numbers["events"] = np.ones(size, np.int64)
        self.ids = np.zeros((size, 16), np.uint8)
        self.named = np.ones(size, np.bool_)  # whether there is an id
        # Different values, and which of them each event has; the first word of all is "".
        self.words: dict[str, _Numbered] = {name: _Numbered([""]) for name in WORDS}
        self.word_at = {name: np.zeros(size, np.int32) for name in WORDS}
        self.places = _Numbered()
        self.place = np.zeros(size, np.int32)
        consumers = self.words["consumer"]
        self.word_at["consumer"] = np.repeat(consumers.of([one[3] for one in spans]), counts)
        self.waited = self.at[trail.DELIVERED]  # who has a wait
        self.waits = np.zeros((0, _PARTS), np.int64)
        for kind, word in _KINDS.items():
            if len(self.at[kind]):
                self.word_at["event"][self.at[kind]] = self.words["event"][word]
        if len(self.at[trail.ENQUEUED]):
            self._enqueued()
        if len(self.at[trail.DELIVERED]):
            self._delivered()
        if len(self.at[trail.ACKED]):
            self._acked()
        if len(self.at[trail.OTHER]):
            self._others()

    def _enqueued(self) -> None:
        at = self.at[trail.ENQUEUED]
        trails = self._trails
        numbers = self.numbers
        self.ids[at] = _bytes([one.enqueued_ids for one in trails], 16)
        self.place[at] = self.places.of(_all([one.enqueued_lanes for one in trails]))
        flat = _table([one.enqueued_numbers for one in trails], len(trail.ENQUEUED_NUMBERS))
        for name, values in zip(trail.ENQUEUED_NUMBERS, flat.T, strict=True):
            numbers[name][at] = values
        numbers["since_ns"][at] = numbers["enqueued_ns"][at] = numbers["ts_ns"][at]

    def _delivered(self) -> None:
        at = self.at[trail.DELIVERED]
        trails = self._trails
        numbers = self.numbers
        keys = _bytes([one.delivered_keys for one in trails], rows.ID_AT + 16)
        self.ids[at] = keys[:, rows.ID_AT :]
        self.place[at] = self.places.of(_all([one.delivered_lanes for one in trails]))
        flat = _table([one.delivered_numbers for one in trails], len(trail.DELIVERED_NUMBERS))
        found = dict(zip(trail.DELIVERED_NUMBERS, flat.T, strict=True))
        delayed = found.pop("stall_ns") < 0
        ready = found["since_ns"]
        if delayed.any():
            stamps = np.ascontiguousarray(keys[:, rows.STAMP_AT : rows.ID_AT]).view(">i8")[:, 0]
            ready = np.where(delayed, stamps, ready)
        found["ready_ns"] = ready
        for name, values in found.items():
            numbers[name][at] = values
        numbers["credit_delta"][at] = -1
        waits = chain.from_iterable(_all([one.delivered_waits for one in trails]))
        self.waits = np.fromiter(waits, np.int64, _PARTS * len(at)).reshape(-1, _PARTS)

    def _acked(self) -> None:
        at = self.at[trail.ACKED]
        trails = self._trails
        self.ids[at] = _bytes([one.acked_ids for one in trails], 16)
        self.place[at] = self.places.of(_all([one.acked_lanes for one in trails]))
        flat = _table([one.acked_numbers for one in trails], len(trail.ACKED_NUMBERS))
        for name, values in zip(trail.ACKED_NUMBERS, flat.T, strict=True):
            self.numbers[name][at] = values
        consumers = _all([one.acked_consumers for one in trails])
        self.word_at["consumer"][at] = self.words["consumer"].of(consumers)
        self.numbers["credit_delta"][at] = 1

    def _others(self) -> None:
        at = self.at[trail.OTHER]
        events: list[Event] = _all([one.others for one in self._trails])
        columns = dict(zip(Event._fields, zip(*events, strict=True), strict=True))
        self.ids[at] = _bytes([[id or _NO_ID for id in columns["message_id"]]], 16)
        self.named[at] = [bool(id) for id in columns["message_id"]]
        self.place[at] = self.places.of(
            list(
                zip(
                    columns["queue"], columns["fairness_key"], columns["throttle_keys"], strict=True
                )
            )
        )
        for name in _NUMBERS:
            self.numbers[name][at] = columns[name]
        for name in WORDS:
            self.word_at[name][at] = self.words[name].of(columns[name])
        waits = [wait for wait in columns["waits"] if wait is not None]
        if waits:
            waited = np.array([wait is not None for wait in columns["waits"]])
            self.waited = np.concatenate([self.waited, at[waited]])
            self.waits = np.concatenate([self.waits, np.array(waits, np.int64)])


class _Numbered(dict[Any, int]):
    """Different values, each with a number in the order they came."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        super().__init__(zip(values, range(len(values)), strict=True))

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number

    def of(self, values: Sequence[Any]) -> Any:
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


def _all(lists: list[list[Any]]) -> list[Any]:
    return lists[0] if len(lists) == 1 else list(chain.from_iterable(lists))


def _bytes(lists: Iterable[list[bytes]], width: int) -> Any:
    """Values of one width, as rows of bytes."""
    joined = b"".join(chain.from_iterable(lists))
    return np.frombuffer(joined, np.uint8).reshape(-1, width)


def _table(lists: list[list[int]], width: int) -> Any:
    size = sum(map(len, lists))
    flat = np.fromiter(chain.from_iterable(lists), np.int64, size)
    return flat.reshape(-1, width)
