"""The machine's memory, and the few transitions everything else is made of.

A pending message enters by `store` or `add_pending` and leaves by `remove_head` or by delivery.
Lane states change only here: EMPTY → READY | DELAYED, READY ⇄ PARKED, DELAYED → READY, any → EMPTY;
while a key is paused, HELD takes the place of READY and PARKED.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from fila.core import events, rows
from fila.core.batch import DELETE_STATE, PUT_MESSAGE, PUT_STATE, Op, Reader
from fila.core.bucket import TOKEN, Bucket
from fila.core.consumer import Consumer
from fila.core.deadline import Deadlines
from fila.core.effect import BatchLeased, Delivery, Ended, Event
from fila.core.fairness import FairnessKey
from fila.core.lane import (
    BODY,
    DELAYED,
    EMPTY,
    ENTRY_BYTES,
    HELD,
    KEY,
    PARKED,
    READY,
    Entry,
    Lane,
)
from fila.core.lease_batch import LeaseBatch
from fila.core.ledger import Group, put_lane
from fila.core.queue import Queue
from fila.core.settings import Settings
from fila.core.trail import Trail

MS: Final = 1_000_000


class State:
    def __init__(self, reader: Reader, settings: Settings) -> None:
        self.reader = reader
        self.settings = settings
        self.journal = False  # whether events are wanted
        self.now = 0
        self.queues: dict[str, Queue] = {}
        self.groups: dict[int, Group] = {0: Group(0)}
        self.next_queue = 1
        self.config: dict[str, str] = {}
        self.buckets: dict[bytes, Bucket] = {}
        self.lanes_of_throttle: dict[bytes, dict[Lane, None]] = {}
        self.deadlines = Deadlines()
        self.due: dict[Queue, None] = {}  # queues whose oldest lease has run out
        self.filling: dict[LeaseBatch, None] = {}  # lease batches that take their turns
        self.due_batches: dict[LeaseBatch, None] = {}  # those whose time or patience has run out
        self.window_bytes = 0
        self.idle: OrderedDict[Lane, None] = OrderedDict()  # empty lanes, the longest idle first
        # What this turn has made so far.
        self.dirty_groups: list[Group] = []
        self.dirty_buckets: list[Bucket] = []
        self.unflushed: dict[Lane, None] = {}
        self.fresh: dict[bytes, bytes] = {}  # bodies not kept in a window and not yet in the store
        self.purged: dict[Lane, None] = {}  # lanes whose rows in the store are gone with this turn
        self.waiting: dict[Bucket, None] = {}  # buckets whose waiters may have a token to take
        self.touched: deque[Queue] = deque()  # queues a delivery pass should look at
        self.deliveries: list[Delivery] = []
        self.ended: list[Ended] = []
        self.events = Trail()
        self.batches_leased: list[BatchLeased] = []
        # Idempotency keys not yet in the store: number, time and message id by row key.
        self.fresh_keys: dict[bytes, tuple[int, int, bytes]] = {}

    def ops(self, group: Group) -> list[Op]:
        """Where a change of this group's rows is written down."""
        if not group.dirty:
            group.dirty = True
            self.dirty_groups.append(group)
        return group.ops

    def touch(self, lane: Lane) -> None:
        """The lane's numbers changed: they belong in this turn's ledger record."""
        if not lane.touched:
            lane.touched = True
            lane.queue.group.touched.append(lane)

    def touch_queue(self, queue: Queue) -> None:
        if not queue.touched:
            queue.touched = True
            self.touched.append(queue)

    # --- lanes

    def lane(self, queue: Queue, fairness_key: bytes, throttle_keys: tuple[bytes, ...]) -> Lane:
        """The lane for these keys; a new one if there is none."""
        key = queue.keys.get(fairness_key)
        if key is not None:
            lane = key.lanes.get(throttle_keys)
            if lane is not None:
                return lane
        number = queue.next_lane
        queue.next_lane += 1
        lane = self.add_lane(queue, fairness_key, throttle_keys, number)
        self.ops(queue.group).append(put_lane(lane, self.now))
        return lane

    def add_lane(
        self, queue: Queue, fairness_key: bytes, throttle_keys: tuple[bytes, ...], number: int
    ) -> Lane:
        key = queue.keys.get(fairness_key)
        if key is None:
            key = queue.keys[fairness_key] = FairnessKey(fairness_key)
            key.pause = queue.key_pauses.get(fairness_key)
        lane = key.lanes[throttle_keys] = Lane(queue, key, number, throttle_keys)
        self.idle[lane] = None
        for name in throttle_keys:
            self.lanes_of_throttle.setdefault(name, {})[lane] = None
            bucket = self.buckets.get(name)
            if bucket is not None:
                lane.buckets.append(bucket)
        return lane

    def forget_lane(self, lane: Lane) -> None:
        """An empty lane without leases: nothing of it needs remembering."""
        lane.forgotten = True
        for name in lane.throttle_keys:
            lanes = self.lanes_of_throttle[name]
            del lanes[lane]
            if not lanes:
                del self.lanes_of_throttle[name]
        key = lane.key
        del key.lanes[lane.throttle_keys]
        if not key.lanes:
            del lane.queue.keys[key.name]

    def rest(self, lane: Lane) -> None:
        """The lane has neither pending nor leased messages: keep it among the idle ones."""
        self.idle[lane] = None
        if len(self.idle) > self.settings.idle_lanes:
            oldest, _ = self.idle.popitem(last=False)
            self.forget_lane(oldest)
            key = rows.lane_key(oldest.queue.number, oldest.number)
            self.ops(oldest.queue.group).append((DELETE_STATE, key, b""))

    def set_weight(self, queue: Queue, key: FairnessKey, weight: int) -> None:
        """The weight of the newest message is the key's; it is stored with all of its lanes."""
        if weight != key.weight:
            queue.ring.set_weight(key, weight)
            if self.journal and key.pending:  # one that comes anew just has it
                self.events.append(events.weight_changed(queue, key, self.now))
            for lane in key.lanes.values():
                self.touch(lane)

    # --- pending messages

    def store(
        self,
        lane: Lane,
        id: bytes,
        attempts: int,
        weight: int,
        enqueued_ns: int,
        body: bytes,
        delay_ms: int,
    ) -> Entry:
        """Put a message at the end of its lane, or at the time its delay runs out."""
        now = self.now
        queue = lane.queue
        if delay_ms > 0:
            stamp = now + delay_ms * MS
            stall_ns = -1
            throttled_ns = 0
        else:
            # Stamps rise strictly within a lane, so that equal times keep the order of arrival.
            stamp = lane.tail + 1 if lane.tail >= now else now
            lane.tail = stamp
            stall_ns = queue.stall_at(now)
            throttled_ns = lane.throttled_ns if lane.state != PARKED else lane.throttled_at(now)
        key = rows.MESSAGE_KEY.pack(queue.number, lane.number, stamp, id)
        head = rows.MESSAGE_HEAD.pack(1, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns)
        group = queue.group
        ops = group.ops if group.dirty else self.ops(group)
        ops.append((PUT_MESSAGE, key, head + body))
        entry = (key, stamp, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns, body)
        self.add_pending(lane, entry)
        return entry

    def add_pending(self, lane: Lane, entry: Entry) -> None:
        """A stored message is pending: count it, and let the lane take part if it may."""
        settings = self.settings
        key = lane.key
        queue = lane.queue
        window = lane.window
        room = self.window_bytes < settings.window_bytes_total
        if room and not lane.horizon and (not window or entry[KEY] > window[-1][KEY]):
            # The usual case of Lane.insert, without the call: at the end, all in memory.
            if len(window) < settings.window_messages:
                window.append(entry)
                grown = ENTRY_BYTES + len(entry[BODY])
                lane.window_bytes += grown
                self.window_bytes += grown
            else:
                self.window_bytes += lane.insert(entry, settings.window_messages, room)
                self.unflushed[lane] = None
        else:
            self.window_bytes += lane.insert(entry, settings.window_messages, room)
            if not room:
                self.fresh[entry[KEY]] = entry[BODY]
            if lane.unflushed:
                self.unflushed[lane] = None
        if lane.pending == 0:
            self.idle.pop(lane, None)
            if key.pending == 0:
                queue.keys_pending += 1
        lane.pending += 1
        key.pending += 1
        queue.pending += 1
        if not lane.touched:
            self.touch(lane)
        if window and (window[0] is entry or window[0][KEY] == entry[KEY]):
            self.new_head(lane)

    def remove_head(self, lane: Lane) -> Entry:
        """Take the oldest pending message out of its lane, outside of delivery."""
        entry = lane.window.popleft()
        size = ENTRY_BYTES + len(entry[BODY])
        lane.window_bytes -= size
        self.window_bytes -= size
        lane.pending -= 1
        lane.key.pending -= 1
        lane.queue.pending -= 1
        if lane.key.pending == 0:
            lane.queue.keys_pending -= 1
        self.touch(lane)
        self.fill_window(lane)
        if entry[KEY] > lane.delivered:
            lane.delivered = entry[KEY]
        if lane.window:
            self.new_head(lane)
        else:
            self.make_unready(lane, EMPTY)
            if lane.leased == 0:
                self.rest(lane)
        return self.with_body(entry)

    def with_body(self, entry: Entry) -> Entry:
        if entry[BODY]:
            return entry
        return (*entry[:BODY], self.body(entry[KEY]))

    def body(self, key: bytes) -> bytes:
        """The body of a stored message that no window holds."""
        body = self.fresh.get(key)
        if body is not None:
            return body
        value = self.reader.get(rows.MESSAGES, key)
        assert value is not None, f"message row {key.hex()} is missing"
        return value[rows.MESSAGE_HEAD_BYTES :]

    def fill_window(self, lane: Lane, rows_max: int = 0) -> None:
        """Page in what lies behind the horizon once the window has run dry.

        A page is at most a lane's share of the windows' bytes, so that many deep lanes all find
        room; a restart asks for a few rows only.
        """
        settings = self.settings
        rows_max = min(rows_max or settings.page_messages, settings.page_messages)
        share = settings.window_bytes_total // (2 * lane.queue.ring.keys + 2)
        while lane.horizon and (not lane.window or lane.horizon < lane.delivered):
            room = settings.window_bytes_total - self.window_bytes
            bytes_max = max(1, min(settings.page_bytes, share, room))
            start = lane.horizon + b"\0"
            found: list[tuple[bytes, bytes]] = []
            if lane not in self.purged:
                end = rows.after(lane.prefix)
                found = self.reader.scan(rows.MESSAGES, start, end, rows_max, bytes_max)
            size = 0
            for key, value in found:
                size += len(key) + len(value)
            complete = len(found) < rows_max and size < bytes_max
            # A restart reads on to the last leased key, for what was handed back before it.
            without_bodies = room <= 0 and bool(lane.window)
            self.window_bytes += lane.page(found, complete, without_bodies)

    # --- consumers

    def add_ready(self, queue: Queue, consumer: Consumer) -> None:
        """The consumer can take something (again); that may end a stall of its queue."""
        if queue.pause is None:
            stalled = not queue.ready and queue.pending and self.now > queue.stalled_since
            if stalled and self.journal:
                self.events.append(events.stalled(queue, self.now))
            self.touch_queue(queue)
        queue.add_ready(consumer, self.now)

    # --- lane states

    def make_ready(self, lane: Lane) -> None:
        """The lane's head may go: its key takes part in the ring."""
        queue = lane.queue
        key = lane.key
        active_ns = self.now - queue.stall_at(self.now)
        if lane.state == PARKED:
            lane.throttled_ns += active_ns - lane.parked_since
        elif lane.state == DELAYED:
            # Its head is ready from this moment on.
            lane.head_stall_ns = self.now - active_ns
            lane.head_throttled_ns = lane.throttled_ns
            lane.head_active_ns = lane.lost_since = active_ns
        was_parked = lane.state == PARKED
        if key.pause is not None:
            lane.state = HELD
            return
        lane.state = READY
        key.add_lane(lane, active_ns)
        if not key.active:
            queue.ring.join(key)
        if was_parked and self.journal:
            self.events.append(events.throttled(lane, self.now))
        if queue.ready:
            self.touch_queue(queue)

    def make_unready(self, lane: Lane, state: int) -> None:
        """The lane's head may not go (any more): it is empty, delayed, parked or held."""
        queue = lane.queue
        key = lane.key
        active_ns = self.now - queue.stall_at(self.now)
        if lane.state == READY:
            key.drop_lane(lane, active_ns)
            if key.lane is None:
                # A visit that a short bucket cuts off is taken up where it stopped, so that
                # weights hold among keys behind one bucket; otherwise a key leaves with nothing.
                if state != PARKED or key.deficit == key.granted:
                    key.deficit = 0
                queue.ring.leave(key)
        elif lane.state == PARKED:
            lane.throttled_ns += active_ns - lane.parked_since
            if self.journal:
                self.events.append(events.throttled(lane, self.now))
        elif lane.state == DELAYED:
            self.deadlines.disarm(lane)
        if state != PARKED:
            self.leave_line(lane)
        lane.state = state
        if key.pending == 0:
            key.deficit = 0
        if state == DELAYED:
            self.deadlines.arm(lane, lane.head_stamp())

    def park(self, lane: Lane, bucket: Bucket) -> None:
        """The bucket is short of a token for the lane's head: wait for it there."""
        queue = lane.queue
        resumes = 0 < lane.key.deficit < lane.key.granted
        self.make_unready(lane, PARKED)
        bucket.limited += 1
        lane.parked_since = self.now - queue.stall_at(self.now)
        if self.journal:
            self.events.append(events.parked(lane, self.now))
        if lane.line_of is not bucket:
            self.leave_line(lane)
            lane.line_of = bucket
            bucket.waiters[lane] = None
            if resumes and not lane.key.active:
                bucket.waiters.move_to_end(lane, last=False)
        self.arm_bucket(bucket)

    def leave_line(self, lane: Lane) -> None:
        """The lane waits for no bucket any more, and no bucket remembers it."""
        if lane.line_of is not None:
            del lane.line_of.waiters[lane]
            lane.line_of = None

    def arm_bucket(self, bucket: Bucket) -> None:
        """See to it that the waiters are looked at when the bucket has a token."""
        bucket.refill(self.now)
        if bucket.tokens >= TOKEN:
            self.waiting[bucket] = None
            return
        at_ns = bucket.next_token_ns()
        if at_ns:
            self.deadlines.arm(bucket, at_ns)
        else:
            self.deadlines.disarm(bucket)

    def wake_waiters(self, bucket: Bucket) -> None:
        """Let as many lanes go as there are tokens. Each keeps its place in the line until its
        visit is over: if the tokens do not reach it, it is still among the first.

        Lanes of stalled queues take none: they leave the line, or a queue without consumers could
        keep tokens from the others."""
        bucket.refill(self.now)
        tokens = bucket.tokens
        stalled = []
        woken = False
        for lane in bucket.waiters:
            if tokens < TOKEN:
                break
            if lane.queue.ready:
                tokens -= 1.0
            else:
                stalled.append(lane)
            if lane.state == PARKED:
                self.make_ready(lane)
                woken = True
        for lane in stalled:
            self.leave_line(lane)
        if bucket.waiters and (woken or self.touched or bucket.tokens < TOKEN):
            self.arm_bucket(bucket)  # a pass is to come, or a token

    def use_bucket(self, bucket: Bucket) -> None:
        """The level changed: it is stored with the leases it paid for."""
        if not bucket.dirty:
            bucket.dirty = True
            self.dirty_buckets.append(bucket)

    def new_head(self, lane: Lane) -> None:
        """Another message heads the lane: take the clocks, and see whether it may go."""
        now = self.now
        queue = lane.queue
        stall_ns = queue.stall_at(now)
        lane.head_stall_ns = stall_ns
        lane.head_throttled_ns = lane.throttled_at(now)
        lane.head_active_ns = lane.lost_since = now - stall_ns
        future = lane.head_has_delay() and lane.head_stamp() > now
        if lane.state == READY:
            if future:
                self.make_unready(lane, DELAYED)
            else:
                active_ns = now - stall_ns
                lane.key.drop_lane(lane, active_ns)
                lane.key.add_lane(lane, active_ns)
        elif lane.state == PARKED:
            if future:
                self.make_unready(lane, DELAYED)
        else:
            if future:
                self.make_unready(lane, DELAYED)
            else:
                if lane.state == DELAYED:
                    self.deadlines.disarm(lane)
                self.make_ready(lane)

    # --- events and the turn's end

    def event_of(self, kind: str, lane: Lane, entry: Entry, error: str = "") -> Event:
        key = lane.key
        message_key, stamp, attempts, weight, enqueued_ns, since_ns, stall_ns, _, body = entry
        values = (
            self.now,
            kind,
            lane.queue.name,
            message_key[rows.ID_AT :],
            attempts,
            key.name,
            weight,
            lane.throttle_keys,
            key.pending,
            events.eligible(key),
            0,
            lane.queue.ring.keys,
            since_ns,
            stamp if stall_ns < 0 else since_ns,
            None,
            "",
            error,
            "",
            0,
            enqueued_ns,
            len(body),
            "",
            0,
        )
        return tuple.__new__(Event, values)  # half the cost of calling Event

    def write_buckets(self) -> None:
        if not self.dirty_buckets:
            return
        ops = self.ops(self.groups[0])
        for bucket in self.dirty_buckets:
            bucket.dirty = False
            value = rows.bucket_row(bucket.tokens, bucket.at_ns)
            ops.append((PUT_STATE, rows.BUCKET_PREFIX + bucket.name, value))
        self.dirty_buckets = []
