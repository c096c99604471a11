"""The machine's memory: everything it knows between two commands, and what a turn has made so far.

Owns the lanes' coming and going, and which rows a turn writes. How messages come to stand in lanes
is in `pending.py`, when a lane may go in `readiness.py`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from fila.core import events, rows, unloaded
from fila.core.bucket import Bucket, Cap
from fila.core.deadline import Deadlines
from fila.core.effect import BatchLeased, Delivery, Ended
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.later import Times
from fila.core.lease import Consumer, Lease, LeaseBatch
from fila.core.ledger import put_lane
from fila.core.quarantine import Quarantined, refused
from fila.core.queue import Group, Queue
from fila.core.reader import Reader
from fila.core.rejection import Rejection, queue_not_found
from fila.core.returning import Returning
from fila.core.row_batch import DELETE_STATE, PUT_STATE, Op
from fila.core.rows import QueueRow
from fila.core.settings import Settings
from fila.core.trail import Trail
from fila.core.unloaded import Unloaded
from fila.core.windows import Windows
from fila.core.work import Work

MS: Final = 1_000_000


class State:
    def __init__(self, reader: Reader, settings: Settings) -> None:
        self.reader = reader
        self.settings = settings
        self.journal = False  # whether events are wanted
        self.now = 0
        self.queues: dict[str, Queue] = {}
        self.groups: dict[int, Group] = {0: Group(0)}
        self.quarantined: dict[str, Quarantined] = {}  # queues that are not served
        self.unloaded: dict[str, Unloaded] = {}  # queues that are not in memory
        # Dead-letter queues that were deleted and are there again with the next dead letter.
        self.hidden: dict[str, QueueRow] = {}
        self.next_queue = 1
        self.config: dict[str, str] = {}
        self.buckets: dict[bytes, Bucket] = {}
        self.caps: dict[bytes, Cap] = {}  # of throttle keys
        self.lanes_of_throttle: dict[bytes, dict[Lane, None]] = {}
        self.deadlines = Deadlines()
        self.times = Times(reader)  # of delayed messages, while events are recorded
        self.due_queues: dict[Queue, None] = {}  # queues whose oldest lease has run out
        self.due_aging: dict[Queue, None] = {}  # queues that have expired messages
        self.returning = Returning()  # leases that are handed back
        self.filling: dict[LeaseBatch, None] = {}  # lease batches to be looked at after a pass
        self.patient: dict[LeaseBatch, None] = {}  # those that wait for their first message
        self.batches_opened = 0  # lease batches that were complete, since the start
        self.due_lease_batches: dict[LeaseBatch, None] = {}  # those whose time has run out
        self.windows = Windows(settings.window_bytes_total, settings.window_idle_ms * MS)
        self.idle: OrderedDict[Lane, None] = OrderedDict()  # empty lanes, the longest idle first
        # What this turn has made so far.
        self.work = Work(settings.turn_work)
        self.parted: dict[Lease, Queue] = {}  # leases some of whose messages were handed back
        self.parted_batches: dict[LeaseBatch, None] = {}  # some of whose leases ended
        self.dirty_groups: list[Group] = []
        self.dirty_buckets: list[Bucket] = []
        # Lanes from which a message went before its time, outside of delivery, with this turn.
        self.removed_early: dict[Lane, None] = {}
        self.purged: dict[Lane, None] = {}  # lanes whose rows in the store are gone with this turn
        self.taken: dict[bytes, None] = {}  # messages that went from the middle of their lanes
        self.waiting: dict[Bucket, None] = {}  # buckets whose waiters may have a token to take
        self.freed: dict[Cap, None] = {}  # caps that may have slots for those in line
        self.touched: deque[Queue] = deque()  # queues a delivery pass should look at
        self.deliveries: list[Delivery] = []
        self.pass_left = 0  # messages
        self.pass_bytes_left = 0  # what this turn's deliveries may yet hold
        self.ended: list[Ended] = []
        self.events = Trail()
        self.batches_leased: list[BatchLeased] = []
        self.remains: deque[Queue] = deque()  # of queues that went (remains.py)
        self.damaged: dict[Group, Exception] = {}  # to be quarantined at the turn's end
        self.unloading: dict[Group, str] = {}  # to be unloaded at the turn's end, and why
        # Idempotency keys not yet in the store: number, time and message id by row key.
        self.fresh_keys: dict[bytes, tuple[int, int, bytes]] = {}
        self.fresh_versions: dict[bytes, bytes] = {}  # rows of queues' versions, likewise

    def record(self, wanted: bool) -> None:
        """Whether events are recorded. Of what was delayed before that nothing is known."""
        if wanted and not self.journal:
            for queue in self.queues.values():
                for key in queue.keys.values():
                    for lane in key.lanes.values():
                        lane.later = self.times.unread if lane.pending else None
        self.journal = wanted

    def no_queue(self, name: str) -> Rejection:
        """Why nothing can be asked of it: there is no such queue, or it is quarantined."""
        one = self.quarantined.get(name)
        if one is None and name in self.unloaded:
            return unloaded.refused(self.unloaded[name])
        return queue_not_found(name) if one is None else refused(one)

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
        self.work.done += 1
        lane = self.add_lane(queue, fairness_key, throttle_keys, number)
        self.ops(queue.group).append(put_lane(lane, self.now))
        return lane

    def add_lane(
        self, queue: Queue, fairness_key: bytes, throttle_keys: tuple[bytes, ...], number: int
    ) -> Lane:
        key = queue.keys.get(fairness_key)
        if key is None:
            key = queue.keys[fairness_key] = FairnessKey(fairness_key, number)
            key.pause = queue.key_pauses.get(fairness_key)
            if queue.overrides:
                self.weigh(queue, key)
        lane = key.lanes[throttle_keys] = Lane(queue, key, number, throttle_keys)
        self.idle[lane] = None
        for name in throttle_keys:
            self.lanes_of_throttle.setdefault(name, {})[lane] = None
            bucket = self.buckets.get(name)
            if bucket is not None:
                lane.buckets.append(bucket)
        if queue.key_buckets:
            bucket = queue.key_buckets.get(fairness_key)
            if bucket is not None:
                lane.buckets = [*lane.buckets, bucket]
        caps = [self.caps[name] for name in throttle_keys if name in self.caps]
        if key.cap is not None:
            caps.append(key.cap)
        if caps:
            lane.caps = caps
        return lane

    def forget_lane(self, lane: Lane) -> None:
        """An empty lane without leases: nothing of it needs remembering."""
        lane.forgotten = True
        lane.queue.group.forgotten += 1
        if lane.windowed:
            lane.queue.windowed.leave(lane)
        for name in lane.throttle_keys:
            lanes = self.lanes_of_throttle[name]
            del lanes[lane]
            if not lanes:
                del self.lanes_of_throttle[name]
        key = lane.key
        del key.lanes[lane.throttle_keys]
        if not key.lanes:
            del lane.queue.keys[key.name]
            lane.queue.service.forget(key)

    def rest(self, lane: Lane) -> None:
        """The lane has neither pending nor leased messages: keep it among the idle ones."""
        self.idle[lane] = None
        for _ in range(
            2
        ):  # a start may have found more, of groups that were not in memory together
            if len(self.idle) > self.settings.idle_lanes:
                self._forget_idle()

    def trim_idle(self) -> None:
        """A group came into memory with its idle lanes: the oldest of all go."""
        while len(self.idle) > self.settings.idle_lanes:
            self._forget_idle()

    def _forget_idle(self) -> None:
        oldest, _ = self.idle.popitem(last=False)
        self.forget_lane(oldest)
        key = rows.lane_key(oldest.queue.number, oldest.number)
        self.ops(oldest.queue.group).append((DELETE_STATE, key, b""))

    def set_weight(self, queue: Queue, key: FairnessKey, weight: int) -> None:
        """The weight of the newest message is the key's, unless an override says otherwise; it is
        stored with all of its lanes."""
        weight = min(weight, self.settings.weight_max)  # messages of a time without the limit
        if weight != key.told_weight:
            key.told_weight = weight
            self.weigh(queue, key)
            for lane in key.lanes.values():
                self.touch(lane)

    def weigh(self, queue: Queue, key: FairnessKey) -> None:
        """Let the key have the weight that its override or, without one, its messages say."""
        one = queue.overrides.get(key.name)
        weight = one.terms.weight if one is not None else 0
        weight = min(weight or key.told_weight, self.settings.weight_max)
        if weight != key.weight:
            queue.ring.set_weight(key, weight)
            if self.journal and key.pending:  # a key that has just come has it already
                self.events.append(events.weight_changed(queue, key, self.now))

    # --- consumers

    def add_ready(self, queue: Queue, consumer: Consumer) -> None:
        """The consumer can take something (again); that may end a stall of its queue."""
        if queue.pause is None:
            stalled = not queue.ready and queue.pending and self.now > queue.stalled_since
            if stalled and self.journal:
                self.events.append(events.stalled(queue, self.now))
            self.touch_queue(queue)
        queue.add_ready(consumer, self.now)

    # --- buckets

    def use_bucket(self, bucket: Bucket) -> None:
        """The level changed: it is stored with the leases it paid for."""
        if not bucket.dirty:
            bucket.dirty = True
            self.dirty_buckets.append(bucket)

    def write_buckets(self) -> None:
        if not self.dirty_buckets:
            return
        for bucket in self.dirty_buckets:
            bucket.dirty = False
            value = rows.bucket_row(bucket.tokens, bucket.at_ns)
            self.ops(self.groups[bucket.group]).append((PUT_STATE, bucket.row, value))
        self.dirty_buckets = []

    def drop_bucket(self, bucket: Bucket) -> None:
        """There is no such limit any more: nothing of it is due or to be stored."""
        self.deadlines.disarm(bucket)
        self.waiting.pop(bucket, None)
        if bucket.dirty:
            bucket.dirty = False
            self.dirty_buckets.remove(bucket)
