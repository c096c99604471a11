"""The auditor's books: its model of the broker, and the moves every command is made of."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterator

from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict

from . import ages, caps, events, fair, fair_bytes, waits
from .model import BURST_NS, MS, Batch, Key, Lane, Lease, Message, Queue, dead_body
from .tokens import TOLERANCE, Tokens

# (request, again, messages, ids told, expires_ns, gone): what is answered to a request for a batch
Told = tuple[int, bool, int, list[bytes], int, bool]


class Books:
    def __init__(
        self, settings: Settings, journal: bool, hooked: Collection[str] = frozenset()
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.hooked = hooked  # queues with hooks
        self.now = 0
        self.queues: dict[str, Queue] = {}
        # Dead-letter queues that come again with the next dead letter: visibility, by bytes.
        self.hidden: dict[str, tuple[int, bool]] = {}
        self.messages: dict[bytes, Message] = {}
        self.gone: dict[bytes, str] = {}  # finished messages and how they ended
        self.config: dict[str, str] = {}  # settings that are no throttles
        self.tokens = Tokens()
        self.met: Counter[str] = Counter()  # how often what is rare came up
        self.serial = 0
        self.timers: list[tuple[int, int, Lane]] = []
        # Batches that were to end and did not with the last step: by what the next one says.
        self.ending: dict[tuple[object, ...], list[Batch]] = {}
        # Of the turn that is being followed.
        self.turns_apart: set[str] = set()  # queues that are quarantined with this turn
        self.left_late = False  # with this turn, of what was expired
        self.expired_left = False  # expired messages are pending still
        self.at_tokens: list[Message] = []  # stored with it, and what they need is a token
        self.told: list[Told] = []  # answers to requests for batches
        # Of requests for open batches: which it is, and after which lease the next part begins.
        self.told_open: dict[int, tuple[Batch, int]] = {}
        self.events: Iterator[events.Event] = iter(())

    def served(self) -> dict[str, Queue]:
        """Those in memory."""
        return {name: queue for name, queue in self.queues.items() if not queue.away}

    # --- messages

    def lane(self, queue: Queue, fairness_key: bytes, throttle_keys: tuple[bytes, ...]) -> Lane:
        lane = queue.lane(fairness_key, tuple(sorted(set(throttle_keys))))
        self.tokens.know(lane)
        return lane

    def store(self, message: Message, lane: Lane, delay_ms: int) -> None:
        """To the end of the lane, or to the time its delay runs out."""
        self.serial += 1
        message.serial = self.serial
        message.lane = lane
        message.since_ns = self.now
        message.ready_ns = self.now + delay_ms * MS
        message.timed = delay_ms > 0
        message.handed_back = False
        message.retry_known = True
        if message.timed:
            self.wait_till(message.ready_ns, message.serial, lane)
        self.put(message)

    def tell_weight(self, key: Key, weight: int) -> None:
        """Its newest message says this weight."""
        key.told_weight = weight
        if not (key.override and key.override.weight):
            fair.weight_changes(key, weight)

    def wait_till(self, ready_ns: int, serial: int, lane: Lane) -> None:
        heapq.heappush(self.timers, (ready_ns, serial, lane))

    def put(self, message: Message) -> None:
        lane = message.lane
        lane.put(message)
        key = lane.key
        if key.pending == 0:
            key.queue.keys_pending += 1
        key.pending += 1
        key.queue.pending += 1
        if len(key.lanes) > 1:
            key.changes += 1  # within a burst, either of two lanes may count as the older one
        if waits.stored(message, self.now, self.tokens):
            self.at_tokens.append(message)
        self.refresh(lane)

    def move(self, message: Message, lane: Lane, stamp: int) -> None:
        """It waits on in another lane, among those it finds there by age."""
        key = lane.key
        key.changes += 1
        lane.removals += 1  # whoever headed it may not do so any more
        lane.mixed = True
        message.lane = lane
        message.handed_back = False
        if message.timed and message.ready_ns <= self.now < stamp:
            message.timed = False  # its delay is over: it does not wait for its place's time
            message.retry_known = True
        elif message.timed:
            message.retry_known = message.retry_known and message.ready_ns == stamp
            message.ready_ns = stamp
            if stamp > self.now:
                self.serial += 1
                heapq.heappush(self.timers, (stamp, self.serial, lane))
        lane.put(message)
        message.known = False
        message.moved = True
        if key.pending == 0:
            key.queue.keys_pending += 1
        key.pending += 1
        key.queue.pending += 1
        self.refresh(lane)

    def remove(self, message: Message) -> None:
        """Take a pending message out of its lane."""
        lane = message.lane
        key = lane.key
        message.unjudged = False
        lane.remove(message)
        key.changes += 1
        key.pending -= 1
        key.queue.pending -= 1
        if key.pending == 0:
            key.queue.keys_pending -= 1

    def settle(self, queue: Queue, message: Message) -> None:
        """Its lease is over: credit returns to the consumer that held it."""
        lease = message.lease
        assert lease is not None
        message.lease = None
        message.lane.leased -= 1
        del queue.leased[message.id]
        del lease.messages[message.id]
        consumer = lease.consumer
        if not lease.messages and lease.batch is not None:
            batch = lease.batch
            del batch.leases[lease.number]
            if not batch.leases and batch.consumer is None:
                del queue.batches[batch.name]
        elif not lease.messages:
            del queue.leases[lease.number]
            if consumer is not None:
                del consumer.leases[lease.number]
        if consumer is None or consumer.gone:
            return
        consumer.held -= 1
        consumer.bytes_held -= len(message.body)
        if not queue.stands(consumer) and consumer.has_credit:
            queue.gain_credit(consumer, self.now)

    def fail(
        self, queue: Queue, message: Message, verdict: FailureVerdict, kind: str, error: str
    ) -> None:
        """A nack or an expiry: one more attempt, then back to the line or to the dead letters."""
        lane = message.lane
        message.attempts += 1
        lease = message.lease
        assert lease is not None
        holder = lease.consumer.id if lease.consumer is not None else ""
        if self.journal:
            events.expect(self.events, kind, message, error=error, consumer=holder)
        self.settle(queue, message)
        dlq = self.dlq_of(queue) if verdict.dead_letter else None
        queue.counted["requeued" if dlq is None else "dead_lettered"] += 1
        if dlq is None:
            self.store(message, lane, verdict.delay_ms)
            if self.journal:
                events.expect(self.events, events.EVENT_REQUEUED, message, error=error)
            return
        lane = self.lane(dlq, lane.key.name, lane.throttle_keys)
        reason = verdict.reason or "hook"
        body = dead_body(message, reason, error, self.now, queue.name)
        ages.bury(self, dlq, message, body)
        self.tell_weight(lane.key, message.weight)
        self.store(message, lane, 0)
        if self.journal:
            events.expect(
                self.events, events.EVENT_DEAD_LETTERED, message, error=error, source=queue.name
            )

    def release(self, queue: Queue, leases: list[Lease]) -> int:
        """Handed back: to its old place, no attempt counted, only its waiting starts anew."""
        released = 0
        for lease in leases:
            for message in list(lease.messages.values()):
                self.release_one(queue, message)
                released += 1
        return released

    def release_one(self, queue: Queue, message: Message) -> None:
        self.settle(queue, message)
        message.since_ns = self.now
        message.handed_back = True
        message.lane.key.changes += 1
        self.put(message)
        queue.counted["released"] += 1
        if self.journal:
            events.expect(self.events, events.EVENT_RELEASED, message)

    # --- queues

    def dlq_of(self, queue: Queue) -> Queue | None:
        """Its dead-letter queue, there again if somebody deleted it."""
        if queue.name.endswith(".dlq"):
            return None
        name = queue.name + ".dlq"
        if name not in self.queues:
            self.add_queue(name, self.hidden[name][0], queue.name, self.hidden[name][1])
        return self.queues[name]

    def add_queue(self, name: str, visibility_ms: int, owner: str, by_bytes: bool = False) -> None:
        self.hidden.pop(name, None)
        self.queues[name] = Queue(name, visibility_ms, owner, self.now, by_bytes)
        if self.journal:
            events.expect_plain(self.events, events.EVENT_QUEUE_CREATED, name)

    def hide_dlq(self, queue: Queue) -> None:
        """What the queue's dead letters will be kept in has been decided."""
        self.hidden[queue.name + ".dlq"] = (queue.visibility_ns // MS, queue.by_bytes)

    def drop_queue(self, queue: Queue) -> None:
        del self.queues[queue.name]
        for key in queue.keys.values():
            self.tokens.buckets.pop(key.own_limit, None)
            for lane in key.lanes.values():
                self.tokens.forget(lane)
                for message in lane.line + lane.timed:
                    self._delete(message)
                lane.line, lane.timed = [], []
        for message in queue.leased.values():
            self._delete(message)
        for batch in queue.batches.values():
            for request in batch.requests:
                self.told.append((request, False, 0, [], 0, True))
        if self.journal:
            events.expect_plain(self.events, events.EVENT_QUEUE_DELETED, queue.name)

    def _delete(self, message: Message) -> None:
        del self.messages[message.id]
        self.gone[message.id] = "deleted with its queue"

    # --- time, tokens and the order of turns

    def fall_due(self) -> None:
        """Delays run out, each at its own time."""
        due: dict[int, dict[Lane, None]] = {}
        while self.timers and self.timers[0][0] <= self.now:
            ready_ns, _, lane = heapq.heappop(self.timers)
            for message in lane.timed:
                if message.ready_ns > ready_ns:
                    break
                if message.stall_then < 0:
                    waits.becomes_ready(message)
            if not lane.ready and lane.timed and lane.timed[0].ready_ns <= ready_ns:
                due.setdefault(ready_ns, {})[lane] = None
        for lanes in due.values():
            keys: set[Key] = {lane.key for lane in lanes}
            for lane in lanes:
                self.refresh(lane, placed=len(keys) == 1)
        if self.timers and self.timers[0][0] <= self.now + BURST_NS:
            for _, _, lane in self.timers:
                self.refresh(lane)

    def refresh(self, lane: Lane, placed: bool = True) -> None:
        """The lane may have come to have something ready, or have nothing ready any more."""
        ready = lane.has_ready(self.now) and not lane.key.paused
        if ready == lane.ready:
            if lane.sure and lane.timed and lane.is_hazy(self.now):
                fair.becomes_unsure(lane)
        elif ready:
            fair.becomes_ready(lane, self.is_sure(lane), placed)
            self.tokens.ready_changes(lane)
        else:
            fair.becomes_unready(lane)
            self.tokens.ready_changes(lane)

    def is_sure(self, lane: Lane) -> bool:
        """Whether nothing can keep the lane from taking part."""
        if lane.is_hazy(self.now) or ages.passed_over(self, lane.key):
            return False
        return self.tokens.has(lane, self.now, TOLERANCE)

    def doubt(self, name: bytes) -> None:
        """This throttle key's bucket is short: lanes that name it may be parked now."""
        self._doubt(list(self.tokens.lanes.get(name, ())))

    def doubt_caps(self, lane: Lane) -> None:
        """One more of it is in flight: lanes with the same caps may be parked now."""
        self._doubt(caps.beside(self.tokens, lane))

    def limit_in_flight(self, queue: Queue, limit: int) -> None:
        """How much of each key may be in flight."""
        if limit == queue.max_in_flight:
            return
        queue.max_in_flight = limit
        queue.shared = {}
        for key in queue.keys.values():
            fair_bytes.may_be_parked(key)
            self._doubt(list(key.lanes.values()))

    def _doubt(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            if not self.tokens.has(lane, self.now, TOLERANCE) and lane.sure:
                fair.becomes_unsure(lane)
