"""The trail: a turn's events for the journal, in order, as flat lists.

Three kinds of event make up nearly all of a busy broker's: enqueued, delivered and acked. An object
for each would cost more than the transition itself, so their values lie in lists, row after row,
and what a whole run of them shares is said once, in its span. Everything else is an `Event`.

    span       kind, the row of that kind at which it begins, time, consumer
    numbers    so many values for each row, in the order that `ENQUEUED_NUMBERS` and so on say
    visits     so many values for each visit of delivery, as `VISIT_NUMBERS` says
    standings  what a key had when messages of it were acked: once for a run, rows point at it

`expand` makes single events of it, for callers that want them so. Values that change are read when
the row is recorded; of a lane only what never changes is read later: its queue,
its key, its throttle keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fila.core import effect
from fila.core.effect import Event
from fila.core.entry import Entry, id_of, stamp_of
from fila.core.lane import Lane
from fila.core.later import UNKNOWN
from fila.core.lease import Leased
from fila.core.waits import Waits

SPAN_OTHER: Final = 0
SPAN_ENQUEUED: Final = 1
SPAN_DELIVERED: Final = 2
SPAN_ACKED: Final = 3

# What the numbers of a row are, by the names of the event's fields.
ENQUEUED_NUMBERS: Final = (
    "weight", "body_bytes", "key_pending", "key_eligible", "active_keys", "ring_delta",
    "queue_delivered",
)  # fmt: skip
# How many messages it took, then what was left when the last of them was gone.
VISIT_NUMBERS: Final = (
    "taken", "key_pending", "key_eligible", "active_weight_before", "active_keys",
    "queue_delivered",
)  # fmt: skip
STANDING_NUMBERS: Final = ("key_pending", "key_eligible", "active_keys", "queue_delivered")
NOT_KNOWN: Final = -(1 << 40)  # what a visit has left: any number below 0 means that
_ENQUEUED: Final = 7
_VISIT: Final = 6
_STANDING: Final = 4

Span = tuple[int, int, int, str]


class Trail:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.others: list[Event] = []
        self.enqueued_ids: list[bytes] = []
        self.enqueued_lanes: list[Lane] = []
        self.enqueued_numbers: list[int] = []
        self.enqueued_delayed: list[tuple[int, int]] = []  # rows with a delay, and when it ends
        # Delivered messages by their whole key in the store: it holds the stamp, too.
        self.delivered_rows = 0  # told; the lists follow when the run is over
        self.delivered_keys: list[bytes] = []
        self.delivered_lanes: list[Lane] = []
        self.delivered_waits: list[Waits] = []
        self.delivered_attempts: list[int] = []
        self.delivered_weights: list[int] = []
        self.delivered_enqueued_ns: list[int] = []
        self.delivered_since_ns: list[int] = []
        self.delivered_bytes: list[int] = []
        self.delivered_delayed: list[int] = []  # rows whose wait had a delay: ready at their stamp
        self.visits: list[int] = []
        self.acked_leased: list[Leased] = []
        self.acked_standings: list[int] = []  # each row's, counted from the first of its run
        self.acked_runs: list[tuple[int, int]] = []  # rows and standings of each run
        self.acked_consumers: list[tuple[int, str]] = []  # so many rows of one consumer
        self.standing_lanes: list[Lane] = []
        self.standing_numbers: list[int] = []
        self._run = SPAN_OTHER  # the kind of the run under way
        self._run_ns = 0
        self._run_consumer = ""

    def __len__(self) -> int:
        return (
            len(self.others)
            + len(self.enqueued_lanes)
            + self.delivered_rows
            + len(self.acked_leased)
        )

    def __iter__(self) -> Iterator[Event]:
        return iter(self.expand())

    def append(self, event: Event) -> None:
        """One event. It may come in the middle of a run, which then goes on after it."""
        self.spans.append((SPAN_OTHER, len(self.others), event.ts_ns, ""))
        self.others.append(event)
        if self._run != SPAN_OTHER:
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
        self._run = SPAN_OTHER

    def delivered(
        self, keys: list[bytes], entries: list[Entry], lanes: list[Lane], waits: list[Waits]
    ) -> None:
        """The run of visits is over: these are the messages that they took."""
        start = len(self.delivered_keys)
        _, _, attempts, weights, enqueued_ns, since_ns, stalls_ns, _, bodies, _, _ = zip(
            *entries, strict=True
        )
        self.delivered_keys += keys
        self.delivered_lanes += lanes
        self.delivered_waits += waits
        self.delivered_attempts += attempts
        self.delivered_weights += weights
        self.delivered_enqueued_ns += enqueued_ns
        self.delivered_since_ns += since_ns
        self.delivered_bytes += map(len, bodies)
        if min(stalls_ns) < 0:
            self.delivered_delayed += [
                start + at for at, stall_ns in enumerate(stalls_ns) if stall_ns < 0
            ]
        self._run = SPAN_OTHER

    def acked(
        self, lanes: tuple[Lane, ...], standings: dict[Lane, int], consumers: list[tuple[int, str]]
    ) -> None:
        """The run at the end of `acked_leased` is over: its messages' lanes, and which of the last
        standings is whose."""
        self.acked_standings += [standings[lane] for lane in lanes]
        self.acked_runs.append((len(lanes), len(standings)))
        self.acked_consumers += consumers
        self.standing_lanes += standings
        self._run = SPAN_OTHER

    def first_ns(self) -> int:
        return self.spans[0][2]

    def last_ns(self) -> int:
        return self.spans[-1][2]

    def counts(self) -> list[int]:
        """How many rows each span has."""
        ends = [
            len(self.others),
            len(self.enqueued_lanes),
            self.delivered_rows,
            len(self.acked_leased),
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
        delays = dict(self.enqueued_delayed)
        left = self._left_by_visits()
        standings = self._standings()
        consumers = [name for count, name in self.acked_consumers for _ in range(count)]
        for (kind, start, now, consumer), count in zip(self.spans, self.counts(), strict=True):
            for row in range(start, start + count):
                if kind == SPAN_OTHER:
                    found.append(self.others[row])
                elif kind == SPAN_ENQUEUED:
                    found.append(self._enqueued(row, now, delays.get(row, now)))
                elif kind == SPAN_DELIVERED:
                    found.append(self._delivered(row, now, consumer, left[row]))
                else:
                    found.append(self._acked(row, now, consumers[row], standings[row]))
        return found

    # --- single rows

    def _told(self) -> int:
        """How many rows of the kind under way there are."""
        if self._run == SPAN_ENQUEUED:
            return len(self.enqueued_lanes)
        if self._run == SPAN_DELIVERED:
            return self.delivered_rows
        return len(self.acked_leased)

    def _left_by_visits(self) -> list[tuple[int, int, int, int, int]]:
        """For each delivered message what was left after it: pending, eligible, active weight
        before it, active keys, delivered of the queue."""
        found = []
        for at in range(0, len(self.visits), _VISIT):
            taken, pending, ready, weight, keys, delivered = self.visits[at : at + _VISIT]
            while taken:
                taken -= 1
                known = max(ready + taken, UNKNOWN)
                found.append((pending + taken, known, weight, keys, delivered - taken))
        return found

    def _standings(self) -> list[int]:
        """For each acked message which of the standings is its own."""
        found = []
        at = first = 0
        for count, standings in self.acked_runs:
            found += [first + one for one in self.acked_standings[at : at + count]]
            at += count
            first += standings
        return found

    def _enqueued(self, row: int, now: int, ready_ns: int) -> Event:
        lane = self.enqueued_lanes[row]
        at = row * _ENQUEUED
        weight, size, pending, ready, keys, joins, delivered = self.enqueued_numbers[
            at : at + _ENQUEUED
        ]
        return Event(
            now,
            effect.EVENT_ENQUEUED,
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
            ring_delta=joins,
            queue_delivered=delivered,
        )

    def _delivered(
        self, row: int, now: int, consumer: str, left: tuple[int, int, int, int, int]
    ) -> Event:
        key = self.delivered_keys[row]
        lane = self.delivered_lanes[row]
        since_ns = self.delivered_since_ns[row]
        pending, ready, active_weight, keys, delivered = left
        return Event(
            now,
            effect.EVENT_DELIVERED,
            lane.queue.name,
            id_of(key),
            self.delivered_attempts[row],
            lane.key.name,
            self.delivered_weights[row],
            lane.throttle_keys,
            pending,
            ready,
            active_weight,
            keys,
            since_ns,
            stamp_of(key) if row in self.delivered_delayed else since_ns,
            self.delivered_waits[row],
            consumer=consumer,
            credit_delta=-1,
            enqueued_ns=self.delivered_enqueued_ns[row],
            body_bytes=self.delivered_bytes[row],
            ring_delta=-1 if ready == 0 else 0,
            queue_delivered=delivered,
        )

    def _acked(self, row: int, now: int, consumer: str, standing: int) -> Event:
        _, lane, key, _ = self.acked_leased[row]
        at = standing * _STANDING
        pending, ready, keys, delivered = self.standing_numbers[at : at + _STANDING]
        return Event(
            now,
            effect.EVENT_ACKED,
            lane.queue.name,
            id_of(key),
            fairness_key=lane.key.name,
            throttle_keys=lane.throttle_keys,
            key_pending=pending,
            key_eligible=ready,
            active_keys=keys,
            consumer=consumer,
            credit_delta=1,
            queue_delivered=delivered,
        )


def trail_of(events: Iterable[Event]) -> Trail:
    """Single events as a trail."""
    trail = Trail()
    trail.extend(events)
    return trail
