"""The trail: what a turn has to tell the journal, in order, as flat lists.

Three kinds of event make up nearly all of a busy broker's: enqueued, delivered and acked. An object
for each would cost more than the transition itself, so their values lie in lists, row after row,
and what a whole run of them shares is said once, in its span. Everything else is an `Event`.

    span       kind, the row of that kind at which it begins, time, consumer
    numbers    so many values for each row, in the order that `ENQUEUED_NUMBERS` and so on say

`expand` makes single events of it, for whoever wants them so. Values that change are read when the
row is told; of a lane only what never changes is read later: its queue, its key, its throttle keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fila.core import effect, rows
from fila.core.effect import Event, Waits
from fila.core.lane import Entry, Lane

OTHER: Final = 0
ENQUEUED: Final = 1
DELIVERED: Final = 2
ACKED: Final = 3

# What the numbers of a row are, by the names of the event's fields.
ENQUEUED_NUMBERS: Final = (
    "weight", "body_bytes", "key_pending", "key_eligible", "active_keys", "ready_ns",
)  # fmt: skip
DELIVERED_NUMBERS: Final = (
    "attempt", "weight", "enqueued_ns", "since_ns", "stall_ns", "body_bytes", "key_pending",
    "key_eligible", "active_weight_before", "active_keys",
)  # fmt: skip
ACKED_NUMBERS: Final = ("key_pending", "key_eligible", "active_keys")
_ENQUEUED: Final = 6
_DELIVERED: Final = 10
_ACKED: Final = 3

Span = tuple[int, int, int, str]


class Trail:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.others: list[Event] = []
        self.enqueued_ids: list[bytes] = []
        self.enqueued_lanes: list[Lane] = []
        self.enqueued_numbers: list[int] = []
        # Delivered messages by their whole key in the store: it holds the stamp, too.
        self.delivered_keys: list[bytes] = []
        self.delivered_lanes: list[Lane] = []
        self.delivered_waits: list[Waits] = []
        self.delivered_numbers: list[int] = []
        self.acked_ids: list[bytes] = []
        self.acked_lanes: list[Lane] = []
        self.acked_consumers: list[str] = []
        self.acked_numbers: list[int] = []
        self._run = OTHER  # the kind of the run under way
        self._run_ns = 0
        self._run_consumer = ""

    def __len__(self) -> int:
        return (
            len(self.others)
            + len(self.enqueued_ids)
            + len(self.delivered_keys)
            + len(self.acked_ids)
        )

    def __iter__(self) -> Iterator[Event]:
        return iter(self.expand())

    def append(self, event: Event) -> None:
        """One event. It may come in the middle of a run, which then goes on after it."""
        self.spans.append((OTHER, len(self.others), event.ts_ns, ""))
        self.others.append(event)
        if self._run != OTHER:
            self.spans.append((self._run, self._told(), self._run_ns, self._run_consumer))

    def extend(self, events: Iterable[Event]) -> None:
        for event in events:
            self.append(event)

    def begin(self, kind: int, now: int, consumer: str = "") -> None:
        """A run of events of one kind begins; `end` says that it is over."""
        self._run = kind
        self._run_ns = now
        self._run_consumer = consumer
        self.spans.append((kind, self._told(), now, consumer))

    def end(self) -> None:
        self._run = OTHER

    def visited(
        self,
        lane: Lane,
        entries: list[Entry],
        taken: int,
        eligible: int,
        left_behind: int,
    ) -> None:
        """A visit of delivery took the last `taken` of the entries.

        `eligible` is what the key then has ready; `left_behind` of these wait for their time once
        the last of the entries is gone.
        """
        waiting = lane.key.pending
        ring = lane.queue.ring
        weight = ring.weight  # the key itself still stands in the ring
        keys = ring.keys
        numbers = self.delivered_numbers
        while taken:
            entry = entries[-taken]
            taken -= 1
            if taken == 0:
                eligible -= left_behind
            _, _, attempts, own_weight, enqueued_ns, since_ns, stall_ns, _, body = entry
            numbers += (
                attempts, own_weight, enqueued_ns, since_ns, stall_ns, len(body),
                waiting + taken, eligible + taken, weight, keys,
            )  # fmt: skip

    def delivered(self, keys: list[bytes], lanes: list[Lane], waits: list[Waits]) -> None:
        """The run of visits is over: these are the messages that they took."""
        self.delivered_keys += keys
        self.delivered_lanes += lanes
        self.delivered_waits += waits
        self._run = OTHER

    def first_ns(self) -> int:
        return self.spans[0][2]

    def last_ns(self) -> int:
        return self.spans[-1][2]

    def counts(self) -> list[int]:
        """How many rows each span has."""
        ends = [
            len(self.others),
            len(self.enqueued_ids),
            len(self.delivered_keys),
            len(self.acked_ids),
        ]
        found = []
        for kind, start, _, _ in reversed(self.spans):
            found.append(ends[kind] - start)
            ends[kind] = start
        found.reverse()
        return found

    def expand(self) -> list[Event]:
        """Every event by itself, in order."""
        found: list[Event] = []
        for (kind, start, now, consumer), count in zip(self.spans, self.counts(), strict=True):
            for row in range(start, start + count):
                if kind == OTHER:
                    found.append(self.others[row])
                elif kind == ENQUEUED:
                    found.append(self._enqueued(row, now))
                elif kind == DELIVERED:
                    found.append(self._delivered(row, now, consumer))
                else:
                    found.append(self._acked(row, now))
        return found

    # --- single rows

    def _told(self) -> int:
        """How many rows of the kind under way there are."""
        if self._run == ENQUEUED:
            return len(self.enqueued_ids)
        if self._run == DELIVERED:
            return len(self.delivered_numbers) // _DELIVERED
        return len(self.acked_ids)

    def _enqueued(self, row: int, now: int) -> Event:
        lane = self.enqueued_lanes[row]
        at = row * _ENQUEUED
        weight, size, pending, ready, keys, ready_ns = self.enqueued_numbers[at : at + _ENQUEUED]
        return Event(
            now,
            effect.ENQUEUED,
            lane.queue.name,
            self.enqueued_ids[row],
            fairness_key=lane.key.name,
            weight=weight,
            throttle_keys=lane.throttle_keys,
            key_pending=pending,
            key_eligible=ready,
            active_keys=keys,
            since_ns=now,
            ready_ns=ready_ns,
            enqueued_ns=now,
            body_bytes=size,
        )

    def _delivered(self, row: int, now: int, consumer: str) -> Event:
        key = self.delivered_keys[row]
        lane = self.delivered_lanes[row]
        at = row * _DELIVERED
        numbers = self.delivered_numbers[at : at + _DELIVERED]
        attempts, weight, enqueued_ns, since_ns, stall_ns, size = numbers[:6]
        pending, ready, active_weight, keys = numbers[6:]
        return Event(
            now,
            effect.DELIVERED,
            lane.queue.name,
            key[rows.ID_AT :],
            attempts,
            lane.key.name,
            weight,
            lane.throttle_keys,
            pending,
            ready,
            active_weight,
            keys,
            since_ns,
            _stamp_of(key) if stall_ns < 0 else since_ns,
            self.delivered_waits[row],
            consumer=consumer,
            credit_delta=-1,
            enqueued_ns=enqueued_ns,
            body_bytes=size,
        )

    def _acked(self, row: int, now: int) -> Event:
        lane = self.acked_lanes[row]
        at = row * _ACKED
        pending, ready, keys = self.acked_numbers[at : at + _ACKED]
        return Event(
            now,
            effect.ACKED,
            lane.queue.name,
            self.acked_ids[row],
            fairness_key=lane.key.name,
            throttle_keys=lane.throttle_keys,
            key_pending=pending,
            key_eligible=ready,
            active_keys=keys,
            consumer=self.acked_consumers[row],
            credit_delta=1,
        )


def trail_of(events: Iterable[Event]) -> Trail:
    """Single events as a trail."""
    trail = Trail()
    trail.extend(events)
    return trail


def _stamp_of(key: bytes) -> int:
    return int.from_bytes(key[rows.STAMP_AT : rows.ID_AT], "big")
