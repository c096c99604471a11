"""Tracked keys: which of a queue's fairness keys have series of their own, and what they count.

The number of labels is bounded however many keys a queue has: the busiest `keys_max` are tracked,
the rest are one series, `other`. A counter must not shrink, so a key that becomes tracked counts
from that moment on, and what it did before stays in `other`. A tracked key keeps its place until
a newcomer outdoes in a few seconds what it did in ten.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from fila.core.fairness import FairnessKey
from fila.core.meter import NOTHING, Meter, QueueMeter, Reading
from fila.core.queue import Queue
from fila.telemetry.history import KEY_FIELDS, History

_DECAY: Final = 0.9
PINNED_TICKS: Final = 600  # somebody looks at the key: it stays tracked for ten minutes
PINNED_MAX: Final = 20
_NS: Final = 1e9


class TrackedKey:
    __slots__ = ("base", "history", "key", "name", "pinned", "score", "totals")

    def __init__(self, key: FairnessKey, base: Reading, history: History | None) -> None:
        self.name = key.name
        self.key = key
        self.base = base  # the reading up to which it is counted
        self.totals = [0] * len(NOTHING)
        self.history = history
        self.score = 0.0
        self.pinned = 0  # the tick until which it stays whatever its score


class TrackedKeys:
    """Of one queue."""

    def __init__(self, keys_max: int) -> None:
        self._keys_max = keys_max
        self.keys: dict[bytes, TrackedKey] = {}
        self.other = [0] * len(NOTHING)
        self._counted: Reading = NOTHING  # the queue's reading up to which all is counted

    def choose(
        self,
        candidates: Iterable[tuple[float, FairnessKey]],
        clock: float,
        whole: bool,
        room: int,
    ) -> None:
        """Let the best of the candidates in. `whole`: their readings since the last tick are known
        (`seen`), so nothing of them is counted yet. `room`: how many histories may still be made.
        """
        keys = self.keys
        ranked = heapq.nlargest(self._keys_max, candidates, key=_score)
        for score, key in ranked:
            if key.name in keys:
                continue
            if len(keys) >= self._keys_max:
                # Pinned keys are beside the limit: they have one of their own.
                least = min((one for one in keys.values() if not one.pinned), key=_own_score)
                if least.score >= score:
                    break
                del keys[least.name]
            self._admit(key, score, clock, whole, room > 0)
            room -= 1

    def pin(self, key: FairnessKey, clock: float, tick: int) -> TrackedKey | None:
        """Track a key because somebody looks at it; None when too many are looked at."""
        found = self.keys.get(key.name)
        if found is None:
            if sum(1 for one in self.keys.values() if one.pinned) >= PINNED_MAX:
                return None
            found = self._admit(key, 0.0, clock, False, True)
        found.pinned = tick + PINNED_TICKS
        return found

    def count(self, queue: Queue, tick: int, step_s: float) -> None:
        """Take what was delivered since the last tick into the totals and histories."""
        now = (queue.meter or _UNMEASURED).waits.reading()
        delivered = max(now[0] - self._counted[0], 0)
        rest = [one - before for one, before in zip(now, self._counted, strict=True)]
        self._counted = now
        clock = queue.ring.clock
        for one in list(self.keys.values()):
            if one.pinned and one.pinned < tick:
                one.pinned = 0
                if len(self.keys) > self._keys_max:
                    del self.keys[one.name]
                    continue
            key = queue.keys.get(one.name)
            if key is not None and key is not one.key:
                one.key, one.base = key, NOTHING  # it was forgotten while idle, and came back
            reading = _meter(one.key).reading()
            delta = [now - before for now, before in zip(reading, one.base, strict=True)]
            one.base = reading
            for at, value in enumerate(delta):
                one.totals[at] += value
                rest[at] -= value
            meter = _meter(one.key)
            entitled = one.key.entitled_at(clock)
            due = entitled - meter.due
            meter.due = entitled
            one.score = one.score * _DECAY + score_of(delta[0], due, one.key.pending)
            if one.history is not None:
                one.history.append(
                    (
                        one.key.pending,
                        delta[0] / step_s,
                        delta[0] / delivered if delivered else 0.0,
                        due / delivered if delivered else 0.0,
                        *(part / _NS for part in delta[1:]),
                    )
                )
        for at, value in enumerate(rest):
            self.other[at] += max(value, 0)

    def _admit(
        self, key: FairnessKey, score: float, clock: float, whole: bool, past: bool
    ) -> TrackedKey:
        meter = _meter(key)
        meter.due = key.entitled_at(clock)
        base = meter.seen if whole else meter.reading()
        one = TrackedKey(key, base, History(KEY_FIELDS) if past else None)
        one.score = score
        self.keys[key.name] = one
        return one


def score_of(delivered: float, due: float, pending: int) -> float:
    """How much a key matters: what it was given, what it should have been, what it waits with."""
    return delivered + due + pending * 0.001


def _score(pair: tuple[float, FairnessKey]) -> float:
    return pair[0]


def _own_score(one: TrackedKey) -> float:
    return one.score


def _meter(key: FairnessKey) -> Meter:
    if key.meter is None:
        key.meter = Meter()
    return key.meter


_UNMEASURED: Final = QueueMeter()
