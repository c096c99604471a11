"""A queue: its fairness ring, lanes, leases, consumers and clocks; and the log group it is in."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from fila.core.busy import Busy
from fila.core.deadline import Sleeper
from fila.core.fairness import FairnessKey, Ring
from fila.core.heads import Heads
from fila.core.lane import Windowed
from fila.core.meter import QueueMeter
from fila.core.override import Override
from fila.core.pause import Pause, Pauses
from fila.core.reclassify_rows import Course
from fila.core.rejection import Rejection
from fila.core.row_batch import Op
from fila.core.rows import QueueRow
from fila.core.service import Service

if TYPE_CHECKING:
    from fila.core.bucket import Bucket, Cap
    from fila.core.lane import Lane
    from fila.core.lease import Consumer, Lease, LeaseBatch, Leased

DLQ_SUFFIX = ".dlq"


class Counters:
    """Messages that went through a queue since the broker started, by what happened to them."""

    __slots__ = (
        "acked",
        "aged_out",
        "dead_lettered",
        "delivered",
        "enqueued",
        "expired",
        "nacked",
        "overflowed",
        "purged",
        "redriven",
        "released",
        "requeued",
    )

    def __init__(self) -> None:
        self.enqueued = 0
        self.delivered = 0
        self.acked = 0
        self.nacked = 0
        self.expired = 0
        self.requeued = 0
        self.released = 0
        self.dead_lettered = 0
        self.redriven = 0
        self.purged = 0
        self.aged_out = 0
        self.overflowed = 0  # dropped for newer ones


class Group:
    """A log group: a queue with its dead-letter queue (`grouping.py`). Group 0: catalogue, config,
    levels.

    What a turn writes of it becomes one row batch (`ledger.py`).
    """

    __slots__ = (
        "dirty",
        "forgotten",
        "mentions",
        "number",
        "ops",
        "over",
        "position",
        "queues",
        "records",
        "touched",
        "uncleared",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.position = 0
        self.queues: list[Queue] = []
        self.dirty = False  # has something to write in this turn
        self.over = False  # what it writes in this turn is the last: it has no ledger any more
        self.ops: list[Op] = []
        self.touched: list[Lane] = []
        # Of the ledger: position, how many lanes it mentions, and which of them may count.
        self.records: deque[tuple[int, int, list[Lane]]] = deque()
        self.mentions = 0
        self.forgotten = 0  # lanes, since the records were last cleared of such
        self.uncleared = 0  # records, the oldest, that are still to be cleared of them


class KnownKeys:
    """Where a queue's window of idempotency keys stands."""

    __slots__ = ("head", "next", "oldest_ns")

    def __init__(self, head: int, next: int) -> None:
        self.head = head
        self.next = next
        self.oldest_ns = 0  # when the key at the head came; 0: not looked up yet


class Limits(NamedTuple):
    """What may wait, in all and of one key; 0: any number."""

    messages: int
    bytes: int
    key_messages: int
    key_bytes: int
    drops_oldest: bool


def limits_of(row: QueueRow) -> Limits | None:
    found = Limits(
        row.max_messages, row.max_bytes, row.key_max_messages, row.key_max_bytes, row.drops_oldest
    )
    return found if any(found) else None


class Aging(Sleeper):
    """Of a queue with messages that expire: it is woken when the first of them does."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue


class Queue(Sleeper):
    __slots__ = (
        "aging",
        "attending",
        "batches_before",
        "benched",
        "busy",
        "connections",
        "consumers",
        "counters",
        "course",
        "created_ns",
        "departed",
        "drops_expired",
        "due_extended",
        "extended",
        "full_caps",
        "gone",
        "group",
        "heads",
        "key_buckets",
        "key_pauses",
        "keys",
        "keys_pending",
        "known_keys",
        "lease_batches",
        "leased",
        "leases",
        "limits",
        "loaded_ns",
        "max_attempts",
        "max_in_flight_per_key",
        "meter",
        "name",
        "next_lane",
        "next_lease",
        "notes_ns",
        "number",
        "on_enqueue",
        "on_failure",
        "overrides",
        "pause",
        "pauses",
        "pending",
        "ready",
        "ring",
        "service",
        "stall_ns",
        "stalled_since",
        "touched",
        "ttl_ms",
        "version",
        "visibility_ms",
        "weighed",
        "weighed_since",
        "windowed",
    )

    def __init__(self, name: str, row: QueueRow, group: Group, now: int) -> None:
        super().__init__()
        self.name = name
        self.number = row.number
        self.group = group
        self.visibility_ms = row.visibility_ms
        self.created_ns = row.created_ns
        self.on_enqueue = row.on_enqueue
        self.on_failure = row.on_failure
        self.max_attempts = row.max_attempts  # a message that failed so often is dead; 0: no limit
        self.max_in_flight_per_key = row.max_in_flight_per_key  # 0: no limit
        self.full_caps: dict[Cap, None] = {}  # of its keys, those with lanes in line
        self.version = row.version  # of its settings: 1, and one more with every change
        self.ttl_ms = row.ttl_ms  # of a message, from its enqueue; 0: what the message says
        self.drops_expired = row.drops_expired  # else they are dead letters
        self.limits = limits_of(row)  # None: there are none
        self.weighed_since = row.weighed_since  # from when on bytes are counted; 0: they are not
        self.weighed = 0  # bytes that wait, of what came since then
        self.aging: Aging | None = None  # None: not one of its messages expires
        self.ring = Ring(row.by_bytes)
        self.keys: dict[bytes, FairnessKey] = {}
        self.gone: Rejection | None = None  # why it is not in memory any more
        self.heads: Heads | None = None  # while dead letters are moved from here
        self.keys_pending = 0  # fairness keys with pending messages
        self.pending = 0
        self.leased: dict[bytes, Leased] = {}  # by message id
        self.leases: OrderedDict[int, Lease] = OrderedDict()  # in the order they run out
        self.extended: dict[int, Lease] = {}  # those that run out at another time
        self.due_extended: dict[int, Lease] = {}  # those of `extended` that have run out, in order
        self.next_lease = 1
        self.next_lane = 1
        self.consumers: dict[str, Consumer] = {}
        self.attending = 0  # consumers that are not held
        self.connections: dict[int, int] = {}  # how many consumers each connection has here
        # By connection: those that left and still hold messages.
        self.departed: dict[int, dict[Consumer, None]] = {}
        # Consumers with credit, in the order of their turns.
        self.ready: OrderedDict[Consumer, None] = OrderedDict()
        self.touched = False  # a delivery pass has something to look at
        # The stall clock: time in which no consumer had credit, or the queue was paused. It runs
        # from the start.
        self.stall_ns = 0
        self.stalled_since = now
        self.busy = Busy(now)
        self.loaded_ns = now  # what was stored up to then knows nothing of the busy clock
        self.counters = Counters()
        self.meter: QueueMeter | None = None  # made when somebody measures
        self.lease_batches: dict[str, LeaseBatch] = {}  # filling and open ones
        self.batches_before = 0  # the next batch to be opened when it was loaded; 0: at a start
        self.known_keys: KnownKeys | None = None  # None: not looked up since the start
        self.service = Service(now)
        self.windowed = Windowed()
        self.notes_ns = 0  # from when on a delivery is worth telling to the windows
        self.pause: Pause | None = None
        # While it is paused: who would stand in `ready`.
        self.benched: OrderedDict[Consumer, None] = OrderedDict()
        self.key_pauses: dict[bytes, Pause] = {}  # also of keys that have no messages
        self.overrides: dict[bytes, Override] = {}  # also of keys that have no messages
        self.key_buckets: dict[bytes, Bucket] = {}  # of those of them that limit the rate
        self.course: Course | None = None  # while what waits is judged again
        self.pauses: Pauses | None = None  # what is over, for the wait splits; None: nothing

    def stall_at(self, now: int) -> int:
        """Total time without a consumer that has credit, or paused, up to `now`."""
        return self.stall_ns if self.ready else self.stall_ns + now - self.stalled_since

    def dlq_name(self) -> str | None:
        """Where its dead letters go; a dead-letter queue has none of its own."""
        return None if self.name.endswith(DLQ_SUFFIX) else self.name + DLQ_SUFFIX

    def add_ready(self, consumer: Consumer, now: int) -> None:
        consumer.ready = True
        if self.pause is not None:
            self.benched[consumer] = None
            return
        if not self.ready:
            self.stall_ns += now - self.stalled_since
            if self.busy.held:
                self.busy.count(0, now)
        self.ready[consumer] = None

    def drop_ready(self, consumer: Consumer, now: int) -> None:
        consumer.ready = False
        if self.pause is not None:
            del self.benched[consumer]
            return
        del self.ready[consumer]
        if not self.ready:
            self.stalled_since = now
            self.watch(now)

    def watch(self, now: int) -> None:
        """What is in flight has changed, or who attends to it, or that somebody has credit."""
        busy = (self.attending or self.lease_batches) and not self.ready and self.pause is None
        self.busy.count(len(self.leased) if busy else 0, now)
