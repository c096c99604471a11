"""What a turn's effects are made of: deliveries, events, what ended and what was leased."""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.entry import Entry
from fila.core.lane import Lane
from fila.core.lease import Consumer
from fila.core.rejection import Rejection
from fila.core.waits import Waits


class Delivery(NamedTuple):
    """Messages for one consumer under one lease, in delivery order."""

    consumer: Consumer
    lease: int
    leased_ns: int
    entries: list[Entry]
    lanes: list[Lane]
    waits: list[Waits]


class BatchLeased(NamedTuple):
    """The answer to a Lease: the batch's messages. A batch that was open already has them the way
    the request wished: as entries, as stored rows, or not at all.

    `unread`: it has messages that are not told here, because they came over several turns, or
    another request is told of them. Whoever wants them asks for the batch again, which is open now.
    A batch that is open is told in parts: `messages` are all it has, and `rest` is not 0 if more
    follow. The next part is that of a Lease with this `opened`, and this `rest` as its `after`.
    `gone`: why its queue is not served any more."""

    request: int
    queue: str
    leased_ns: int
    expires_ns: int
    again: bool
    messages: int
    entries: list[Entry]
    lanes: list[Lane]
    rows: list[tuple[bytes, bytes]]
    gone: Rejection | None = None
    unread: bool = False
    opened: int = 0
    rest: int = 0


class Ended(NamedTuple):
    """A consumer whose queue is not served any more, and why."""

    consumer: Consumer
    why: Rejection


EVENT_ENQUEUED: Final = "enqueued"
EVENT_REQUEUED: Final = "requeued"
EVENT_DELIVERED: Final = "delivered"
EVENT_ACKED: Final = "acked"
EVENT_NACKED: Final = "nacked"
EVENT_EXPIRED: Final = "expired"
EVENT_DEAD_LETTERED: Final = "dead_lettered"
EVENT_REDRIVEN: Final = "redriven"
EVENT_RELEASED: Final = "released"
EVENT_PARKED: Final = "parked"
EVENT_THROTTLED: Final = "throttled"
EVENT_STALLED: Final = "stalled"
EVENT_CONSUMER_JOINED: Final = "consumer_joined"
EVENT_CONSUMER_LEFT: Final = "consumer_left"
EVENT_WEIGHT_CHANGED: Final = "weight_changed"
EVENT_CONFIG_CHANGED: Final = "config_changed"
EVENT_SNAPSHOT: Final = "snapshot"
EVENT_QUEUE_CREATED: Final = "queue_created"
EVENT_QUEUE_UPDATED: Final = "queue_updated"
EVENT_QUEUE_DELETED: Final = "queue_deleted"
EVENT_QUEUE_PAUSED: Final = "queue_paused"
EVENT_QUEUE_RESUMED: Final = "queue_resumed"
EVENT_KEY_PAUSED: Final = "key_paused"
EVENT_KEY_RESUMED: Final = "key_resumed"
EVENT_RECLASSIFIED: Final = "reclassified"
EVENT_QUEUE_RECLASSIFIED: Final = "queue_reclassified"
EVENT_KEY_OVERRIDDEN: Final = "key_overridden"
EVENT_KEY_OVERRIDE_ENDED: Final = "key_override_ended"
EVENT_PURGED: Final = "purged"
EVENT_DUE: Final = "due"
EVENT_MOVED: Final = "moved"
EVENT_CAPPED: Final = "capped"


class Event(NamedTuple):
    """One lifecycle transition, for the journal. Made only when somebody listens; the most frequent
    kinds travel as rows of a trail instead (trail.py)."""

    ts_ns: int
    event: str
    queue: str
    message_id: bytes = b""
    attempt: int = 0
    fairness_key: bytes = b""
    weight: int = 0
    throttle_keys: tuple[bytes, ...] = ()
    key_pending: int = 0  # after the event
    key_eligible: int = 0  # after the event: may go now; UNKNOWN: some, but not known how many
    active_weight_before: int = 0  # delivered: sum of the weights of the keys in the ring
    active_keys: int = 0
    since_ns: int = 0
    ready_ns: int = 0
    waits: Waits | None = None
    reason: str = ""
    error: str = ""
    consumer: str = ""
    credit_delta: int = 0
    enqueued_ns: int = 0
    body_bytes: int = 0
    source_queue: str = ""
    key_leased: int = 0  # snapshot: leased messages of the key
    ring_delta: int = 0  # 1: with this event its key joined the ring; -1: it left
    queue_delivered: int = 0  # messages of the queue handed out up to the event, with it
