"""Who was served lately: delivered messages per fairness key, in slots of time.

Owns the counts behind "who had its turns while this message waited" and behind service rates. A
delivery counts on its key alone (`Counted.served`); the slot under way remembers where each key
stood when it was first served in it. When a slot closes, its busiest keys are kept. Older slots are
joined, so that a few dozen of them reach back for hours, the coarser the longer ago.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

SLOT_NS: Final = 1_000_000_000
SLOTS_MAX: Final = 40
KEYS_PER_SLOT: Final = 64
LOOKS_NS: Final = 5 * SLOT_NS  # between two looks at what had come


class Had(NamedTuple):
    """How many messages had come by two moments, counted by what was delivered and what waits."""

    before_ns: int
    before: int
    last_ns: int
    last: int

    def look(self, count: int, now: int) -> Had:
        """The same with another look, if the last one was long enough ago."""
        if self.last_ns == 0:
            return Had(now, count, now, count)
        if now - self.last_ns < LOOKS_NS:
            return self
        return Had(self.last_ns, self.last, now, count)

    def per_second(self, count: int, now: int) -> float | None:
        """How many come in a second, by now; None: not known yet."""
        passed = now - self.before_ns
        if self.before_ns == 0 or passed < SLOT_NS:
            return None
        return max(count - self.before, 0) * SLOT_NS / passed


NEVER: Final = Had(0, 0, 0, 0)


class Counted:
    """What of a fairness key is counted here."""

    __slots__ = ("had", "mark", "name", "served")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.served = 0  # messages delivered since the broker started
        self.mark = 0  # the slot in which it was last seen to be served
        self.had = NEVER


class Slot(NamedTuple):
    begin_ns: int
    end_ns: int
    served: int
    keys: dict[bytes, int]  # the busiest ones


class Served(NamedTuple):
    """What a span of time saw."""

    span_ns: int
    served: float
    keys: dict[bytes, float]

    def per_second(self, fairness_key: bytes | None = None) -> float:
        if self.span_ns <= 0:
            return 0.0
        served = self.served if fairness_key is None else self.keys.get(fairness_key, 0.0)
        return served * SLOT_NS / self.span_ns


class Service:
    __slots__ = (
        "_begin_ns", "_first", "_gone", "_gone_served", "_slots", "had", "mark", "rolls_ns",
    )  # fmt: skip

    def __init__(self, now: int) -> None:
        self._begin_ns = now
        self.rolls_ns = now + SLOT_NS
        self.mark = 1
        self.had = NEVER  # of the whole queue
        self._first: dict[Counted, int] = {}
        # Of keys that were forgotten since the slot began: the busiest, and of all of them the sum.
        self._gone: dict[bytes, int] = {}
        self._gone_served = 0
        self._slots: list[Slot] = []  # the oldest first

    def note(self, key: Counted, count: int, now: int) -> None:
        """The key is served for the first time in this slot; its count does not show it yet. So
        many messages of it had come."""
        key.mark = self.mark
        key.had = key.had.look(count, now)
        self._first[key] = key.served

    def forget(self, key: Counted) -> None:
        """The key goes; what it was served in this slot still counts."""
        before = self._first.pop(key, -1)
        if before >= 0:
            served = key.served - before
            self._gone_served += served
            self._gone[key.name] = self._gone.get(key.name, 0) + served
            if len(self._gone) > 4 * KEYS_PER_SLOT:
                self._gone = _busiest(self._gone)

    def roll(self, now: int, count: int) -> None:
        """Close the slot under way and begin another. Called by the first delivery after its end,
        so whatever the slot counts fell into its length. So many messages had come."""
        self.had = self.had.look(count, now)
        slot = self._current(now)
        if slot.served:
            self._slots.append(slot)
            if len(self._slots) > SLOTS_MAX:
                self._join(now)
        self._first = {}
        self._gone = {}
        self._gone_served = 0
        self.mark += 1
        self._begin_ns = now
        self.rolls_ns = now + SLOT_NS

    def since(self, begin_ns: int, now: int) -> Served:
        """Deliveries from `begin_ns` on, or from the first slot after it; a slot that began earlier
        counts by its share."""
        served = 0.0
        keys: dict[bytes, float] = {}
        first_ns = now
        for slot in (*self._slots, self._current(now)):
            if slot.end_ns <= begin_ns or slot.end_ns <= slot.begin_ns:
                continue
            first_ns = min(first_ns, max(slot.begin_ns, begin_ns))
            share = 1.0
            if slot.begin_ns < begin_ns:
                share = (slot.end_ns - begin_ns) / (slot.end_ns - slot.begin_ns)
            served += slot.served * share
            for name, count in slot.keys.items():
                keys[name] = keys.get(name, 0.0) + count * share
        return Served(now - first_ns, served, keys)

    def _current(self, now: int) -> Slot:
        counts = {key.name: key.served - before for key, before in self._first.items()}
        served = sum(counts.values()) + self._gone_served
        for name, count in self._gone.items():
            counts[name] = counts.get(name, 0) + count
        end_ns = min(now, self.rolls_ns)
        return Slot(self._begin_ns, end_ns, served, _busiest(counts))

    def _join(self, now: int) -> None:
        """Two neighbours become one: those whose length together is least against their age."""
        slots = self._slots
        best = 0
        least = 0.0
        for at in range(len(slots) - 1):
            length = slots[at + 1].end_ns - slots[at].begin_ns
            coarse = length / (now - slots[at + 1].end_ns + SLOT_NS)
            if at == 0 or coarse < least:
                best, least = at, coarse
        first, second = slots[best], slots[best + 1]
        keys = dict(first.keys)
        for name, count in second.keys.items():
            keys[name] = keys.get(name, 0) + count
        served = first.served + second.served
        slots[best : best + 2] = [Slot(first.begin_ns, second.end_ns, served, _busiest(keys))]


def _busiest(counts: dict[bytes, int]) -> dict[bytes, int]:
    if len(counts) <= KEYS_PER_SLOT:
        return counts
    return dict(heapq.nlargest(KEYS_PER_SLOT, counts.items(), key=_count))


def _count(pair: tuple[bytes, int]) -> int:
    return pair[1]
