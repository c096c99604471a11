"""What a turn's effects are made of: deliveries, events, what ended and what was leased."""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.consumer import Consumer
from fila.core.lane import Entry, Lane


class Waits(NamedTuple):
    """Where a message's wait went, in nanoseconds; the parts add up to delivered - since."""

    retry: int  # until it became ready: a retry or enqueue delay
    throttled: int  # a bucket of its own was short
    no_consumer: int  # no consumer had credit
    own: int  # older messages of its own key stood before it
    turn: int  # it was its key's next, and other keys had their turns
    paused: int = 0  # its queue or its key was paused


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
    the request wished: as entries, as stored rows, or not at all. `gone`: its queue was deleted
    meanwhile."""

    request: int
    queue: str
    leased_ns: int
    expires_ns: int
    again: bool
    messages: int
    entries: list[Entry]
    lanes: list[Lane]
    rows: list[tuple[bytes, bytes]]
    gone: bool = False


class Ended(NamedTuple):
    """A consumer whose queue is gone."""

    consumer: Consumer


ENQUEUED: Final = "enqueued"
REQUEUED: Final = "requeued"
DELIVERED: Final = "delivered"
ACKED: Final = "acked"
NACKED: Final = "nacked"
EXPIRED: Final = "expired"
DEAD_LETTERED: Final = "dead_lettered"
REDRIVEN: Final = "redriven"
RELEASED: Final = "released"
PARKED: Final = "parked"
THROTTLED: Final = "throttled"
STALLED: Final = "stalled"
CONSUMER_JOINED: Final = "consumer_joined"
CONSUMER_LEFT: Final = "consumer_left"
WEIGHT_CHANGED: Final = "weight_changed"
CONFIG_CHANGED: Final = "config_changed"
SNAPSHOT: Final = "snapshot"
QUEUE_CREATED: Final = "queue_created"
QUEUE_DELETED: Final = "queue_deleted"
QUEUE_PAUSED: Final = "queue_paused"
QUEUE_RESUMED: Final = "queue_resumed"
KEY_PAUSED: Final = "key_paused"
KEY_RESUMED: Final = "key_resumed"
PURGED: Final = "purged"


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
    key_eligible: int = 0  # after the event: pending in lanes that may go now
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
