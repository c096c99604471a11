"""The pulse: reads the core once a second for all exporters and pages, and keeps a short history.

Owns rates, histories, tracked keys, windows and the notes about keys of all queues. Reads the
core's view on the loop's thread. A queue with many keys is read in slices with the loop's other
work in between, and only every fifth second; what is asked of one key or of one page of keys is
computed when somebody asks (`shares.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from fila.core.figures import Counts, KeyFigures, QueueFigures
from fila.core.meter import NOTHING, Reading
from fila.core.view import View
from fila.telemetry.buckets import TrackedBuckets
from fila.telemetry.history import QUEUE_FIELDS, History
from fila.telemetry.tracked import Candidate, KeyNotes, TrackedKey, TrackedKeys, score_of

STEP_S: Final = 1.0
WINDOW_TICKS: Final = 5  # a share is measured over one to two of these
SMALL_KEYS: Final = 1_000  # a queue with at most so many keys is read in one go, every second
SLICE_KEYS: Final = 250  # about a third of a millisecond
SLICE_BUCKETS: Final = 250
SLICE_QUEUES: Final = 100  # that are met at a time
QUEUE_COST: Final = 8  # a queue costs as much as so many keys
MINUTE_TICKS: Final = 10  # readings for the last minute are kept this far apart
HISTORIES_MAX: Final = 1_000  # of queues and keys together: 24 MB at most
_NS: Final = 1_000_000_000

COUNTERS: Final = Counts._fields


class QueuePulse:
    """What is remembered of one queue."""

    __slots__ = (
        "counted",
        "history",
        "minute",
        "name",
        "notes",
        "number",
        "rates",
        "read_tick",
        "throttled",
        "tracked",
        "window",
    )

    def __init__(self, queue: QueueFigures, keys_max: int, past: bool) -> None:
        self.name = queue.name
        self.number = queue.number
        self.notes: dict[bytes, KeyNotes] = {}
        self.tracked = TrackedKeys(keys_max, queue.cost)
        self.history = History(QUEUE_FIELDS) if past else None
        self.counted = [0] * len(COUNTERS)
        self.rates = [0.0] * len(COUNTERS)
        self.throttled = 0  # pending messages behind an empty bucket
        self.read_tick = 0  # when all keys were last read
        self.window = (0, 0)  # given, at the beginning of the window before and of this one
        # (latency counts, waits) some seconds apart, the oldest about a minute old.
        self.minute: deque[tuple[list[int], Reading]] = deque(maxlen=60 // MINUTE_TICKS + 1)
        self.minute.append(([], NOTHING))

    def window_given(self, queue: QueueFigures) -> int:
        """Messages, or bytes, delivered in the window shares are measured over."""
        return queue.given - self.window[0]

    def since(self, key: KeyFigures) -> tuple[float, float]:
        """(given, entitled) of a key at the beginning of that window."""
        notes = self.notes.get(key.name)
        if notes is None or notes.number != key.number:
            return 0.0, 0.0
        return notes.since[0], notes.since[1]


class Pulse:
    def __init__(self, view: View, now_ns: Callable[[], int], keys_max: int) -> None:
        self.view = view
        self.queues: dict[str, QueuePulse] = {}
        self.tick = 0
        self.at_ms = now_ns() // 1_000_000
        self.started_ms = self.at_ms
        self._now_ns = now_ns
        self._keys_max = keys_max
        self._at_ns = now_ns()
        self.buckets = TrackedBuckets(keys_max)
        self._listeners: set[asyncio.Event] = set()

    def now_ms(self) -> int:
        return self._now_ns() // 1_000_000

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while True:
            next_s = max(next_s + STEP_S, loop.time() + STEP_S / 2)
            await asyncio.sleep(next_s - loop.time())
            await self.beat()

    async def beat(self) -> None:
        """Read everything once."""
        now_ns = self._now_ns()
        step_s = max((now_ns - self._at_ns) / _NS, 0.001)
        self._at_ns = now_ns
        self.tick += 1
        throttled = await self._read_buckets()
        for _ in self.meeting():
            await asyncio.sleep(0)
        room = HISTORIES_MAX - self._histories()
        left = SLICE_KEYS
        for one in list(self.queues.values()):
            await self._read_keys(one, room)
            self._read_queue(one, throttled.get(one.name, 0), step_s)
            left -= QUEUE_COST + len(one.tracked.keys)
            if left <= 0:
                left = SLICE_KEYS
                await asyncio.sleep(0)
        self.at_ms = now_ns // 1_000_000
        listeners, self._listeners = self._listeners, set()
        for listener in listeners:
            listener.set()

    async def next_beat(self) -> None:
        """Wait until there is something new."""
        beat = asyncio.Event()
        self._listeners.add(beat)
        try:
            await beat.wait()
        finally:
            self._listeners.discard(beat)

    def pin(self, name: str, key: KeyFigures) -> TrackedKey | None:
        """Somebody looks at a key: remember its past from now on."""
        one = self.queues.get(name)
        if one is None:
            return None
        return one.tracked.pin(key, self.tick)

    async def _read_buckets(self) -> dict[str, int]:
        """Count what buckets did; by queue, how many messages wait behind one."""
        view = self.view
        names = view.all_bucket_names()
        self.buckets.begin(names)
        throttled: dict[str, int] = {}
        for start in range(0, len(names), SLICE_BUCKETS):
            if start:
                await asyncio.sleep(0)
            part = names[start : start + SLICE_BUCKETS]
            self.buckets.count(view.buckets(part))
            for queue, waiting in view.throttled(part).items():
                throttled[queue] = throttled.get(queue, 0) + waiting
        self.buckets.end()
        return throttled

    def meeting(self) -> Iterator[None]:
        """Queues come and go; one that was deleted and made again is another. Some at a time."""
        view = self.view
        for name in [name for name in self.queues if not view.has_queue(name)]:
            del self.queues[name]
        histories = self._histories()
        met = 0
        for name, number in view.queue_numbers().items():
            known = self.queues.get(name)
            if known is None or known.number != number:
                queue = view.queue(name)
                if queue is None:
                    continue  # it went meanwhile
                self.queues[name] = QueuePulse(queue, self._keys_max, histories < HISTORIES_MAX)
                histories += 1
                met += 1
                if met % SLICE_QUEUES == 0:
                    yield

    def _histories(self) -> int:
        return len(self.queues) + sum(len(one.tracked.keys) for one in self.queues.values())

    async def _read_keys(self, one: QueuePulse, room: int) -> None:
        """Find the keys that matter, and begin a new window every few beats."""
        queue = self._figures(one)
        if queue is None:
            return
        small = queue.keys <= SMALL_KEYS
        rolls = self.tick % WINDOW_TICKS == 0
        room_for_more = len(one.tracked.keys) < min(self._keys_max, queue.keys_pending)
        if not small and not rolls and not room_for_more:
            return
        if rolls:
            one.window = (one.window[1], queue.given)
        tracked = one.tracked.keys
        # What a small queue's keys did since the last beat is known, so nothing of it is lost.
        whole = small and one.read_tick == self.tick - 1
        kept: dict[bytes, KeyNotes] = {}
        read: list[tuple[KeyNotes, Reading]] = []
        candidates: list[Candidate] = []
        names = self.view.key_names(one.name)
        for start in range(0, len(names), SLICE_KEYS):
            if start:
                await asyncio.sleep(0)
            for key in self.view.keys(one.name, names[start : start + SLICE_KEYS]):
                given = key.given
                notes = one.notes.get(key.name)
                if notes is None or notes.number != key.number:
                    if not key.pending and not given:
                        continue
                    notes = KeyNotes(key.number)
                kept[key.name] = notes
                since = notes.since
                if not key.pending and since[0] == given and since[1] == key.entitled:
                    continue
                if key.name not in tracked:
                    score = score_of(given - since[2], key.entitled - since[3], key.pending)
                    candidates.append(Candidate(score, key, notes.seen if whole else key.reading))
                    if small:
                        read.append((notes, key.reading))
                if rolls:
                    notes.since = (since[2], since[3], given, key.entitled)
        one.notes = kept  # keys that were forgotten go with it
        one.tracked.choose(candidates, room)
        one.read_tick = self.tick
        for notes, reading in read:
            notes.seen = reading

    def _figures(self, one: QueuePulse) -> QueueFigures | None:
        """The queue now, unless it was deleted or is another of the same name."""
        queue = self.view.queue(one.name)
        return queue if queue is not None and queue.number == one.number else None

    def _read_queue(self, one: QueuePulse, throttled: int, step_s: float) -> None:
        queue = self._figures(one)
        if queue is None:
            return
        counted = list(queue.counts)
        rates = [(now - then) / step_s for now, then in zip(counted, one.counted, strict=True)]
        one.counted = counted
        one.rates = rates
        one.throttled = throttled
        keys = self.view.keys(one.name, list(one.tracked.keys))
        one.tracked.count(_waits(queue), queue.given, keys, self.tick, step_s)
        if self.tick % MINUTE_TICKS == 0 and queue.measured is not None:
            one.minute.append((queue.measured.latency_counts, queue.measured.waits))
        if one.history is not None:
            dlq = self.view.queue(queue.dlq) if queue.dlq is not None else None
            one.history.append(
                (
                    queue.pending,
                    queue.leased,
                    rates[0],
                    rates[1],
                    rates[2],
                    rates[3] + rates[4],
                    rates[7],
                    throttled,
                    dlq.pending if dlq is not None else 0,
                    queue.active_keys,
                )
            )


def _waits(queue: QueueFigures) -> Reading:
    return NOTHING if queue.measured is None else queue.measured.waits
