"""The auditor's own picture of the broker: queues, keys, lanes, messages, leases, consumers.

Written from what Fila promises, not from how the core does it. A lane is two sorted lists: the line
of messages that came without a delay, in the order they were stored, and the timed ones, in the
order they become ready.
"""

from __future__ import annotations

from bisect import insort

from fila.core.override import Terms

# The core keeps arrivals of one moment apart by a nanosecond each; a timed message that falls due
# within such a burst may stand anywhere in it, and hold the rest of it back until its time.
BURST_NS = 5_000

MS = 1_000_000

COUNTED = (
    "enqueued",
    "delivered",
    "acked",
    "nacked",
    "expired",
    "requeued",
    "released",
    "dead_lettered",
    "redriven",
    "purged",
    "aged_out",
    "overflowed",
)


class Message:
    __slots__ = (
        "attempts",
        "body",
        "busy_then",
        "changes_then",
        "enqueued_ns",
        "expires_ns",
        "handed_back",
        "headed",
        "id",
        "known",
        "lane",
        "lease",
        "moved",
        "paused_then",
        "ready_ns",
        "removals_then",
        "retry_known",
        "sent",
        "serial",
        "since_ns",
        "stall_then",
        "timed",
        "token_ns",
        "token_then",
        "unjudged",
        "weight",
    )

    def __init__(self, id: bytes, weight: int, enqueued_ns: int, body: bytes) -> None:
        self.id = id
        self.weight = weight
        self.enqueued_ns = enqueued_ns
        self.body = body
        self.sent = body  # by its producer; a dead letter's says more
        self.expires_ns = 0  # 0: never
        self.attempts = 0
        self.lane: Lane
        self.lease: Lease | None = None  # None: pending
        self.serial = 0  # its place in the line
        self.since_ns = 0  # when it was stored (again)
        self.ready_ns = 0
        self.timed = False
        self.handed_back = False  # a leaving consumer gave it back
        self.unjudged = False  # it waits for a reclassification
        self.moved = False  # it waited elsewhere before
        self.retry_known = True  # unless it moved to another place when its delay was over
        # What is known about its wait; see waits.py.
        self.known = True
        self.stall_then = -1
        self.paused_then = (0, 0)  # the pause clocks of its queue and its key
        self.busy_then = (0, 0)  # see busy.py
        self.headed = False
        self.changes_then = 0
        self.removals_then = -1
        self.token_ns = 0
        self.token_then: tuple[object, int] | None = None  # the bucket, and how often it changed


class Lane:
    __slots__ = (
        "key",
        "leased",
        "limits",
        "line",
        "met_cap",
        "mixed",
        "ready",
        "removals",
        "sure",
        "throttle_keys",
        "timed",
    )

    def __init__(self, key: Key, throttle_keys: tuple[bytes, ...]) -> None:
        self.key = key
        self.throttle_keys = throttle_keys
        self.limits = (*throttle_keys, key.own_limit)  # the buckets it draws on, if there are
        self.line: list[Message] = []
        self.timed: list[Message] = []
        self.leased = 0
        self.mixed = False  # messages moved here: their order is not known from outside
        self.removals = 0  # how often a pending message was taken out
        self.ready = False  # holds a message that is not waiting for its time
        self.met_cap = False  # a cap of its was full at some time
        self.sure = False  # and surely takes part in its key's turns; see fair.py

    @property
    def pending(self) -> int:
        return len(self.line) + len(self.timed)

    @property
    def may_park(self) -> bool:
        return bool(self.throttle_keys) or self.key.limited

    def put(self, message: Message) -> None:
        if message.timed:
            insort(self.timed, message, key=by_time)
        elif not self.line or message.serial > self.line[-1].serial:
            self.line.append(message)
        else:
            insort(self.line, message, key=by_serial)

    def remove(self, message: Message) -> None:
        self.removals += 1
        line = self.timed if message.timed else self.line
        if line[0] is message:
            del line[0]
        else:
            line.remove(message)

    def has_ready(self, now: int) -> bool:
        return bool(self.line) or bool(self.timed and self.timed[0].ready_ns <= now)

    def is_hazy(self, now: int, leaving: Message | None = None) -> bool:
        """Whether a message that falls due in a moment may stand before the line, once this one
        has left."""
        timed = next((one for one in self.timed if one is not leaving), None)
        in_line = len(self.line) - (leaving is not None and not leaving.timed)
        return in_line > 0 and timed is not None and 0 < timed.ready_ns - now <= BURST_NS

    def before(self, message: Message, now: int) -> Message | None:
        """A message of this lane that should go before the given one, if there is one."""
        place = message.ready_ns
        if message.timed:
            if message.ready_ns > now:
                return message
            first = self.timed[0]
            if first.ready_ns < place:
                return first
            if self.line and self.line[0].ready_ns + BURST_NS < place:
                return self.line[0]
            return None
        if self.line[0] is not message:
            return self.line[0]
        if self.timed and self.timed[0].ready_ns + BURST_NS < place:
            return self.timed[0]
        return None

    def head_ns(self, now: int) -> int:
        """The place in time of its first message that may go; -1 if none may."""
        place = -1
        if self.line:
            place = self.line[0].ready_ns
        if self.timed:
            first = self.timed[0].ready_ns
            if first <= now and (place < 0 or first < place):
                place = first
        return place


class Key:
    __slots__ = (
        "busy_parts",
        "changes",
        "cut_off",
        "epoch",
        "heaviest",
        "index",
        "joined",
        "lanes",
        "largest",
        "lightest",
        "limited",
        "met_tokens",
        "name",
        "override",
        "own_limit",
        "passed",
        "paused",
        "paused_ns",
        "paused_since",
        "pending",
        "queue",
        "ready_lanes",
        "residual",
        "stands",
        "steady_since",
        "stood",
        "sure_lanes",
        "told_weight",
        "weighed",
        "weight",
    )

    def __init__(self, queue: Queue, name: bytes) -> None:
        self.queue = queue
        self.name = name
        self.index = len(queue.keys)
        self.weight = 1
        self.told_weight = 1  # by its newest message
        self.override: Terms | None = None
        self.own_limit = b"\0" + queue.name.encode() + b"\0" + name  # the bucket of its override
        self.limited = False  # it had such a bucket: it may be parked without throttle keys
        self.heaviest = 1
        self.pending = 0
        self.lanes: dict[tuple[bytes, ...], Lane] = {}
        self.changes = 0  # removals, and messages put back before others; pauses
        self.paused = False
        self.paused_ns = 0  # how long, in its queue's active time
        self.paused_since = 0
        self.busy_parts = 0  # see busy.py
        # For fair.py.
        self.ready_lanes = 0
        self.sure_lanes = 0
        self.residual = False  # an interrupted visit may go on
        self.joined = 0  # the queue's count of joins when it last began to take part
        self.met_tokens = (
            False  # when it last began to take part it did not have to wait for a token
        )
        self.passed: set[Key] = set()  # keys that had a visit since this one's last
        self.epoch = 0
        self.steady_since = 0  # counts what ends a span behind a shared bucket; -1: weight changed
        # For fair_bytes.py.
        self.stands = False  # it surely stands in the ring
        self.stood = 0  # counts what ends a span
        self.weighed = 0  # counts changes of its weight
        self.cut_off = False  # a bucket may have cut a visit of its off
        self.largest = 0  # bytes of a message of its
        self.lightest = 0  # its smallest weight; 0: it had none yet

    def paused_at(self, now: int) -> int:
        """How long it was paused up to now, not counting when nobody had credit anyway."""
        if not self.paused:
            return self.paused_ns
        return self.paused_ns + now - self.queue.stall_at(now) - self.paused_since


class Consumer:
    __slots__ = (
        "bytes_held",
        "bytes_max",
        "connection",
        "gone",
        "held",
        "id",
        "leases",
        "paused",
        "prefetch",
        "returning",
    )

    def __init__(self, id: str, connection: int, prefetch: int, bytes_max: int) -> None:
        self.id = id
        self.connection = connection
        self.prefetch = prefetch
        self.bytes_max = bytes_max
        self.held = 0
        self.bytes_held = 0
        self.paused = False  # its client does not read: it gets nothing
        self.gone = False
        self.returning = False  # it is gone, and what it holds goes back
        self.leases: dict[int, Lease] = {}

    @property
    def has_credit(self) -> bool:
        held = self.held < self.prefetch and self.bytes_held < self.bytes_max
        return held and not self.paused


class Lease:
    __slots__ = ("batch", "consumer", "expires_ns", "messages", "number")

    def __init__(self, number: int, consumer: Consumer | None, expires_ns: int) -> None:
        self.number = number
        self.consumer = consumer  # None: made before a restart
        self.expires_ns = expires_ns
        self.messages: dict[bytes, Message] = {}
        self.batch: Batch | None = None


class Batch:
    """A lease batch: filling while it has a consumer, then open until its last lease has ended."""

    __slots__ = (
        "consumer",
        "counts",
        "expires_ns",
        "first_request",
        "leases",
        "name",
        "opened",
        "order",
        "queue",
        "requests",
        "visibility_ns",
        "wait_until_ns",
        "whole",
    )

    def __init__(self, name: str, queue: Queue, visibility_ns: int, counts: bool) -> None:
        self.name = name
        self.queue = queue
        self.visibility_ns = visibility_ns
        self.counts = counts  # running out is a failure
        self.consumer: Consumer | None = None
        self.requests: list[int] = []
        self.first_request = 0  # they are answered in this order
        self.wait_until_ns = 0
        self.expires_ns = 0
        self.leases: dict[int, Lease] = {}
        self.order: list[bytes] = []  # ids in the order they came, while it is filling
        self.whole = True  # all of them came with this turn
        self.opened = 0  # what the machine calls it between two parts of an answer, once it did

    def ids(self) -> list[bytes]:
        return [id for lease in self.leases.values() for id in lease.messages]


class Queue:
    __slots__ = (
        "apart",
        "away",
        "batches",
        "benched",
        "busy_ns",
        "busy_since",
        "by_bytes",
        "connections",
        "consumers",
        "counted",
        "credit",
        "drops_expired",
        "floating",
        "had_credit",
        "joins",
        "keys",
        "keys_known",
        "keys_pending",
        "keys_seen",
        "last_lease",
        "leads",
        "leased",
        "leases",
        "leaving",
        "loading",
        "loads",
        "max_attempts",
        "max_in_flight",
        "name",
        "newcomers",
        "overshoot",
        "owner",
        "pairs",
        "paused",
        "paused_ns",
        "paused_since",
        "pending",
        "ready_lanes",
        "reclassifying",
        "ring",
        "settings",
        "shared",
        "stale",
        "stall_ns",
        "stalled_since",
        "ttl_ms",
        "versions",
        "visibility_ns",
        "visit_exact",
        "visit_joins",
        "visit_key",
        "visit_left",
        "visit_run",
        "visit_weight",
        "weighed_since",
    )

    def __init__(
        self, name: str, visibility_ms: int, owner: str, now: int, by_bytes: bool = False
    ) -> None:
        self.name = name
        self.by_bytes = by_bytes  # a message costs its bytes
        self.visibility_ns = visibility_ms * 1_000_000
        self.owner = owner  # the queue whose automatic dead-letter queue this is
        self.keys: dict[bytes, Key] = {}
        self.keys_pending = 0
        self.pending = 0
        self.away = False  # unloaded; see moves.py
        self.leaving = False  # with this turn
        self.loading = False  # it was loaded in this turn: what is due waits for the next
        self.loads = 0  # how often it was unloaded
        self.stale: set[int] = set()  # rests of batches that were ended in steps before that
        self.apart = False  # quarantined with this turn: a lane may have dropped out of it
        self.leased: dict[bytes, Message] = {}
        self.leases: dict[int, Lease] = {}
        self.last_lease = 0
        self.max_attempts = 0
        self.ttl_ms = 0
        self.drops_expired = False
        self.max_in_flight = 0  # of each key; 0: no limit
        self.weighed_since = 0  # when somebody first limited its bytes
        # What it is told to be; see updates.py. Those about hooks are in the config.
        self.settings = {
            "on_enqueue": "",
            "on_failure": "",
            "visibility_timeout_ms": str(visibility_ms),
            "max_attempts": "0",
            "cost": "bytes" if by_bytes else "messages",
            "message_ttl_ms": "0",
            "max_messages": "0",
            "max_bytes": "0",
            "key_max_messages": "0",
            "key_max_bytes": "0",
            "overflow": "reject",
            "expired": "drop" if name.endswith(".dlq") else "dead-letter",
            "max_in_flight_per_key": "0",
        }
        # Those that are kept; the first is written down when there is a second.
        self.versions: dict[int, dict[str, str]] = {1: {}}
        self.consumers: dict[str, Consumer] = {}
        self.connections: dict[int, int] = {}
        self.credit: dict[Consumer, None] = {}  # consumers with credit; the first is the next
        self.paused = False
        self.paused_ns = 0
        self.paused_since = 0
        self.reclassifying = False
        self.benched: dict[Consumer, None] = {}  # while it is paused: those with credit
        self.had_credit = False  # some consumer had credit at some point of this turn
        self.counted = dict.fromkeys(COUNTED, 0)  # since the broker started
        self.batches: dict[str, Batch] = {}
        # Idempotency keys: how many came, and of each its number, time and message.
        self.keys_seen = 0
        self.keys_known: dict[bytes, tuple[int, int, bytes]] = {}
        self.stall_ns = 0
        self.stalled_since = now
        self.busy_ns = 0  # see busy.py
        self.busy_since = now
        self.ready_lanes: dict[Lane, None] = {}
        # The fair order; see fair.py.
        self.ring: dict[Key, None] = {}
        self.floating: dict[Key, None] = {}
        self.joins = 0
        self.newcomers: list[Key] = []  # that came in this turn while their bucket was short
        self.visit_key: Key | None = None
        self.visit_left = 0
        self.visit_exact = False
        self.visit_run = 0
        self.visit_joins = 0
        self.visit_weight = 1
        self.pairs: dict[tuple[Key, Key], list[float]] = {}
        self.shared: dict[tuple[Key, Key], list[float]] = {}  # spans behind a shared bucket
        self.leads: dict[tuple[Key, Key], list[float]] = {}  # of keys that come and go
        self.overshoot = 0.0  # bytes per weight of the largest message

    @property
    def absent(self) -> bool:
        """Nothing of it is waited for at the end of this turn."""
        return self.apart or self.away or self.leaving

    def stall_at(self, now: int) -> int:
        return self.stall_ns if self.credit else self.stall_ns + now - self.stalled_since

    def paused_at(self, now: int) -> int:
        return self.paused_ns + (now - self.paused_since if self.paused else 0)

    def stands(self, consumer: Consumer) -> bool:
        return consumer in self.credit or consumer in self.benched

    def gain_credit(self, consumer: Consumer, now: int) -> None:
        if self.paused:
            self.benched[consumer] = None
            return
        if not self.credit:
            self.stall_ns += now - self.stalled_since
        self.credit[consumer] = None
        self.had_credit = True

    def lose_credit(self, consumer: Consumer, now: int) -> None:
        if self.paused:
            del self.benched[consumer]
            return
        del self.credit[consumer]
        if not self.credit:
            self.stalled_since = now
            self.shared = {}

    def receiver(self, id: str) -> Consumer | None:
        """Who may be delivered to under this id: a consumer, or a batch that is filling."""
        if id.startswith("batch:"):
            batch = self.batches.get(id.removeprefix("batch:"))
            return batch.consumer if batch is not None else None
        return self.consumers.get(id)

    def all_leases(self) -> dict[int, Lease]:
        """Those of consumers, and those of batches."""
        found = dict(self.leases)
        for batch in self.batches.values():
            found.update(batch.leases)
        return found

    def key(self, name: bytes) -> Key:
        key = self.keys.get(name)
        if key is None:
            key = self.keys[name] = Key(self, name)
        return key

    def lane(self, fairness_key: bytes, throttle_keys: tuple[bytes, ...]) -> Lane:
        key = self.key(fairness_key)
        lane = key.lanes.get(throttle_keys)
        if lane is None:
            lane = key.lanes[throttle_keys] = Lane(key, throttle_keys)
        return lane


def by_time(message: Message) -> tuple[int, int]:
    return message.ready_ns, message.serial


def by_serial(message: Message) -> int:
    return message.serial


def dead_body(message: Message, reason: str, error: str, now: int, queue: str) -> bytes:
    """What a dead letter says of itself, before what its producer sent."""
    told = (
        ("reason", reason),
        ("error", error),
        ("at_ms", str(now // MS)),
        ("attempts", str(message.attempts)),
        ("queue", queue),
    )
    sent = message.sent
    found = (int.from_bytes(sent[:2], "big") + 5).to_bytes(2, "big")
    for name, value in told:
        for text in (f"fila.dead.{name}", value):
            found += len(text.encode()).to_bytes(2, "big") + text.encode()
    return found + sent[2:]
