"""A pause: who stopped a queue or a fairness key, when and why; and the pauses that are over.

Owns the arithmetic that takes paused time out of a wait. What pausing does is in `pausing.py`.

A queue's pause is a span of the broker's time, in which its stall clock runs; a key's pause is a
span of its queue's active (unstalled) time. So the two never overlap, and neither overlaps the time
a lane stood parked on a bucket or a head waited for its turn.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.entry import SINCE_NS, STALL_NS, STAMP, Entry
from fila.core.waits import Waits

SPANS_MAX: Final = 32  # pauses of one queue or key that are remembered; older ones count as before
KEYS_MAX: Final = 1_024  # keys of one queue whose pauses are remembered

Span = tuple[int, int]  # in the broker's time
KeySpan = tuple[int, int, int]  # in the queue's active time, and when it began in the broker's


class Pause(NamedTuple):
    since_ns: int
    active_ns: int  # the queue's active time at that moment
    who: str
    reason: str


class Pauses:
    """What is over of one queue and its keys, while messages may have waited in it."""

    __slots__ = ("keys", "last_ns", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.keys: dict[bytes, list[KeySpan]] = {}
        self.last_ns = 0  # the end of the last one: what came later was never paused

    def add(self, span: Span, now: int) -> None:
        """A pause of the queue is over."""
        self.last_ns = now
        self.spans.append(span)
        if len(self.spans) > SPANS_MAX:
            del self.spans[0]

    def add_key(self, fairness_key: bytes, span: KeySpan, now: int) -> None:
        """A pause of a key is over. Keys whose last one is longest ago are forgotten first."""
        self.last_ns = now
        spans = self.keys.pop(fairness_key, [])
        self.keys[fairness_key] = spans
        spans.append(span)
        if len(spans) > SPANS_MAX:
            del spans[0]
        if len(self.keys) > KEYS_MAX:
            del self.keys[next(iter(self.keys))]

    def account(
        self,
        fairness_key: bytes,
        entries: list[Entry],
        waits: list[Waits],
        taken: int,
        now: int,
        stall_ns: int,
    ) -> None:
        """Take the pauses out of the waits of the last `taken` entries, all of this key."""
        key_spans = self.keys.get(fairness_key, [])
        for at in range(len(entries) - taken, len(entries)):
            if entries[at][SINCE_NS] < self.last_ns:
                waits[at] = without_pauses(
                    waits[at], entries[at], self.spans, key_spans, now, now - stall_ns
                )


def without_pauses(
    waits: Waits,
    entry: Entry,
    queue_spans: list[Span],
    key_spans: list[KeySpan],
    now: int,
    active_ns: int,
) -> Waits:
    """The split with what fell into pauses as a part of its own."""
    stamp = entry[STAMP]
    since_ns = entry[SINCE_NS]
    stall_then = entry[STALL_NS]
    of_queue = of_key = 0
    if stall_then >= 0:
        of_queue = _overlap(queue_spans, since_ns, now)
        of_key = _overlap([span[:2] for span in key_spans], since_ns - stall_then, active_ns)
    else:
        # What the queue's active time was when its delay was over is not known: of a pause that
        # had begun by then, at least so much came after it.
        of_queue = _overlap(queue_spans, stamp, now)
        for begin, end, begin_ns in key_spans:
            of_key += max(end - begin - max(stamp - begin_ns, 0), 0)
    of_queue = min(of_queue, waits.no_consumer)
    of_key = min(of_key, waits.own)
    if of_queue == 0 and of_key == 0:
        return waits
    return waits._replace(
        no_consumer=waits.no_consumer - of_queue,
        own=waits.own - of_key,
        paused=waits.paused + of_queue + of_key,
    )


def _overlap(spans: list[Span], begin: int, end: int) -> int:
    total = 0
    for start, stop in spans:
        common = min(stop, end) - max(start, begin)
        if common > 0:
            total += common
    return total
