"""Tracked keys: which of a queue's fairness keys have series of their own, and what they count.

The number of labels is bounded however many keys a queue has: the busiest `keys_max` are tracked,
the rest are one series, `other`. A counter must not shrink, so a key that becomes tracked counts
from that moment on, and what it did before stays in `other`. A tracked key keeps its place until
a newcomer outdoes in a few seconds what it did in ten.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final, NamedTuple

from fila.core.byte_cost import COST_BYTES
from fila.core.figures import KEY_IDLE, KeyFigures
from fila.core.meter import NOTHING, Reading
from fila.telemetry.history import KEY_FIELDS, History

_DECAY: Final = 0.9
PINNED_TICKS: Final = 600  # somebody looks at the key: it stays tracked for ten minutes
PINNED_MAX: Final = 20
_NS: Final = 1e9


class KeyNotes:
    """What is remembered of a key between two beats, tracked or not."""

    __slots__ = ("number", "seen", "since")

    def __init__(self, number: int) -> None:
        self.number = number  # which life of the key this is about
        self.seen: Reading = NOTHING  # the reading last taken
        # (given, entitled) at the beginnings of the window before and of this one.
        self.since: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


class Candidate(NamedTuple):
    """A key that may become tracked; what it did up to `base` is not counted as its own."""

    score: float
    key: KeyFigures
    base: Reading


class TrackedKey:
    __slots__ = ("base", "entitled", "given", "history", "key", "name", "pinned", "score", "totals")

    def __init__(self, key: KeyFigures, base: Reading, given: int, history: History | None) -> None:
        self.name = key.name
        self.key = key  # as it was at the last beat
        self.base = base  # the reading up to which it is counted
        self.given = given  # up to which its messages, or bytes, are counted …
        self.entitled = key.entitled  # … and its entitlement
        self.totals = [0] * len(NOTHING)
        self.history = history
        self.score = 0.0
        self.pinned = 0  # the tick until which it stays whatever its score


class TrackedKeys:
    """Of one queue."""

    def __init__(self, keys_max: int, cost: str) -> None:
        self._keys_max = keys_max
        self._by_bytes = cost == COST_BYTES
        self._given = 0  # of the queue, up to which all is counted
        self.keys: dict[bytes, TrackedKey] = {}
        self.other = [0] * len(NOTHING)
        self._counted: Reading = NOTHING  # the queue's reading up to which all is counted

    def choose(self, candidates: Iterable[Candidate], room: int) -> None:
        """Let the best of the candidates in. `room`: how many histories may still be made."""
        keys = self.keys
        ranked = heapq.nlargest(self._keys_max, candidates, key=_score)
        for score, key, base in ranked:
            if key.name in keys:
                continue
            if len(keys) >= self._keys_max:
                # Pinned keys are beside the limit: they have one of their own.
                least = min((one for one in keys.values() if not one.pinned), key=_own_score)
                if least.score >= score:
                    break
                del keys[least.name]
            self._admit(Candidate(score, key, base), room > 0)
            room -= 1

    def pin(self, key: KeyFigures, tick: int) -> TrackedKey | None:
        """Track a key because somebody looks at it; None when too many are looked at."""
        found = self.keys.get(key.name)
        if found is None:
            if sum(1 for one in self.keys.values() if one.pinned) >= PINNED_MAX:
                return None
            found = self._admit(Candidate(0.0, key, key.reading), True)
        found.pinned = tick + PINNED_TICKS
        return found

    def count(
        self, waits: Reading, given: int, keys: Iterable[KeyFigures], tick: int, step_s: float
    ) -> None:
        """Take what was delivered since the last tick into the totals and histories. `waits` and
        `given` are the queue's, `keys` those of the tracked ones that it still remembers."""
        of_all = max(given - self._given, 0)
        self._given = given
        rest = [now - before for now, before in zip(waits, self._counted, strict=True)]
        self._counted = waits
        present = {key.name: key for key in keys}
        for one in list(self.keys.values()):
            if one.pinned and one.pinned < tick:
                one.pinned = 0
                if len(self.keys) > self._keys_max:
                    del self.keys[one.name]
                    continue
            key = present.get(one.name)
            if key is None:  # forgotten while idle
                key = one.key._replace(pending=0, leased=0, throttled=0, state=KEY_IDLE)
            elif key.number != one.key.number:
                one.base, one.given, one.entitled = NOTHING, 0, 0.0  # it came back after that
            one.key = key
            delta = [now - before for now, before in zip(key.reading, one.base, strict=True)]
            one.base = key.reading
            for at, value in enumerate(delta):
                one.totals[at] += value
                rest[at] -= value
            got = key.given - one.given
            one.given = key.given
            entitled = key.entitled - one.entitled
            one.entitled = key.entitled
            one.score = one.score * _DECAY + score_of(got, entitled, key.pending)
            if one.history is not None:
                one.history.append(
                    (
                        key.pending,
                        delta[0] / step_s,
                        got / of_all if of_all else 0.0,
                        entitled / of_all if of_all else 0.0,
                        *(part / _NS for part in delta[1:]),
                    )
                )
        for at, value in enumerate(rest):
            self.other[at] += max(value, 0)

    def _admit(self, candidate: Candidate, past: bool) -> TrackedKey:
        score, key, base = candidate
        given = key.given if self._by_bytes else base[0]
        one = TrackedKey(key, base, given, History(KEY_FIELDS) if past else None)
        one.score = score
        self.keys[key.name] = one
        return one


def score_of(delivered: float, entitled: float, pending: int) -> float:
    """How much a key matters: what it was given, what it should have been, what it waits with."""
    return delivered + entitled + pending * 0.001


def _score(candidate: Candidate) -> float:
    return candidate.score


def _own_score(one: TrackedKey) -> float:
    return one.score
