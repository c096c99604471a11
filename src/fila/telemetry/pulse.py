"""The pulse: once a second, for everybody who wants to know, read the core and remember a little.

Owns rates, histories, tracked keys and windows of all queues. Reads the core on the loop's thread
and changes nothing in it but the notes in its meters. A queue with many keys is read in slices with
the loop's other work in between, and only every fifth second; what is asked of one key or of one
page of keys is computed when somebody asks (`shares.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from fila.core.fairness import FairnessKey
from fila.core.lane import PARKED
from fila.core.meter import NOTHING, Meter, QueueMeter, Reading
from fila.core.queue import Queue
from fila.core.state import State
from fila.telemetry.buckets import TrackedBuckets
from fila.telemetry.history import QUEUE_FIELDS, History
from fila.telemetry.tracked import TrackedKey, TrackedKeys, score_of

STEP_S: Final = 1.0
WINDOW_TICKS: Final = 5  # a share is measured over one to two of these
SMALL_KEYS: Final = 1_000  # a queue with at most so many keys is read in one go, every second
SLICE_KEYS: Final = 400  # about a third of a millisecond
MINUTE_TICKS: Final = 10  # readings for the last minute are kept this far apart
HISTORIES_MAX: Final = 1_000  # of queues and keys together: 24 MB at most
_NS: Final = 1_000_000_000

COUNTERS: Final = (
    *("enqueued", "delivered", "acked", "nacked", "expired"),
    *("requeued", "released", "dead_lettered", "redriven", "purged"),
)


class QueuePulse:
    """What is remembered of one queue."""

    __slots__ = (
        "counted",
        "history",
        "minute",
        "queue",
        "rates",
        "read_tick",
        "throttled",
        "tracked",
        "window",
    )

    def __init__(self, queue: Queue, keys_max: int, past: bool) -> None:
        self.queue = queue
        self.tracked = TrackedKeys(keys_max)
        self.history = History(QUEUE_FIELDS) if past else None
        self.counted = [0] * len(COUNTERS)
        self.rates = [0.0] * len(COUNTERS)
        self.throttled = 0  # pending messages behind an empty bucket
        self.read_tick = 0  # when all keys were last read
        self.window = (0, 0)  # delivered, at the beginning of the window before and of this one
        # (latency counts, waits) some seconds apart, the oldest about a minute old.
        self.minute: deque[tuple[list[int], Reading]] = deque(maxlen=60 // MINUTE_TICKS + 1)
        self.minute.append(([], NOTHING))

    def window_delivered(self) -> int:
        """Messages delivered in the window shares are measured over."""
        return _waits(self.queue).delivered - self.window[0]


class Pulse:
    def __init__(self, state: State, now_ns: Callable[[], int], keys_max: int) -> None:
        self.state = state
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
        throttled = self._throttled()
        self.buckets.count(self.state.buckets)
        self.meet()
        room = HISTORIES_MAX - self._histories()
        for one in list(self.queues.values()):
            await self._read_keys(one, room)
            self._read_queue(one, throttled.get(one.queue, 0), step_s)
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

    def pin(self, name: str, key: FairnessKey) -> TrackedKey | None:
        """Somebody looks at a key: remember its past from now on."""
        one = self.queues.get(name)
        if one is None:
            return None
        return one.tracked.pin(key, one.queue.ring.clock, self.tick)

    def meet(self) -> None:
        """Queues come and go; one that was deleted and made again is another."""
        queues = self.state.queues
        for name in [name for name in self.queues if name not in queues]:
            del self.queues[name]
        histories = self._histories()
        for name, queue in queues.items():
            known = self.queues.get(name)
            if known is None or known.queue is not queue:
                self.queues[name] = QueuePulse(queue, self._keys_max, histories < HISTORIES_MAX)
                histories += 1

    def _histories(self) -> int:
        return len(self.queues) + sum(len(one.tracked.keys) for one in self.queues.values())

    def _throttled(self) -> dict[Queue, int]:
        found: dict[Queue, int] = {}
        for bucket in self.state.buckets.values():
            for lane in bucket.waiters:
                if lane.state == PARKED:
                    found[lane.queue] = found.get(lane.queue, 0) + lane.pending
        return found

    async def _read_keys(self, one: QueuePulse, room: int) -> None:
        """Find the keys that matter, and begin a new window every few beats."""
        queue = one.queue
        small = len(queue.keys) <= SMALL_KEYS
        rolls = self.tick % WINDOW_TICKS == 0
        room_for_more = len(one.tracked.keys) < min(self._keys_max, queue.keys_pending)
        if not small and not rolls and not room_for_more:
            return
        if rolls:
            one.window = (one.window[1], _waits(queue).delivered)
        clock = queue.ring.clock
        tracked = one.tracked.keys
        whole = small and one.read_tick == self.tick - 1
        moved: list[Meter] = []
        candidates: list[tuple[float, FairnessKey]] = []
        read = 0
        for key in list(queue.keys.values()):
            read += 1
            if read % SLICE_KEYS == 0:
                await asyncio.sleep(0)
            meter = key.meter
            pending = key.pending
            if meter is None:
                if not pending:
                    continue
                meter = key.meter = Meter()
            delivered = meter.delivered
            since = meter.since
            if not pending and since[0] == delivered and since[1] == key.entitled:
                continue
            entitled = key.entitled_at(clock)
            if key.name not in tracked:
                score = score_of(delivered - since[2], entitled - since[3], pending)
                candidates.append((score, key))
                if small:
                    moved.append(meter)
            if rolls:
                meter.since = (since[2], since[3], delivered, entitled)
        one.tracked.choose(candidates, clock, whole, room)
        one.read_tick = self.tick
        for meter in moved:
            meter.seen = meter.reading()

    def _read_queue(self, one: QueuePulse, throttled: int, step_s: float) -> None:
        queue = one.queue
        counters = queue.counters
        counted = [getattr(counters, name) for name in COUNTERS]
        rates = [(now - then) / step_s for now, then in zip(counted, one.counted, strict=True)]
        one.counted = counted
        one.rates = rates
        one.throttled = throttled
        one.tracked.count(queue, self.tick, step_s)
        if self.tick % MINUTE_TICKS == 0 and queue.meter is not None:
            reading = queue.meter.waits.reading()
            one.minute.append((list(queue.meter.latency_counts), reading))
        if one.history is not None:
            dlq = self.state.queues.get(queue.dlq_name() or "")
            one.history.append(
                (
                    queue.pending,
                    len(queue.leased),
                    rates[0],
                    rates[1],
                    rates[2],
                    rates[3] + rates[4],
                    rates[7],
                    throttled,
                    dlq.pending if dlq is not None else 0,
                    queue.ring.keys,
                )
            )


def _waits(queue: Queue) -> Meter:
    return (queue.meter or _UNMEASURED).waits


_UNMEASURED: Final = QueueMeter()
