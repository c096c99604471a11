"""Leases and who holds them: a consumer with its credit, or a lease batch under its name.

Owns what is remembered of each; `delivery.py` makes leases, `settlement.py` ends them, `leasing.py`
and `lease_batch.py` do so for batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila.core.deadline import Sleeper

if TYPE_CHECKING:
    from fila.core.lane import Lane
    from fila.core.queue import Queue


class Consumer:
    """Who may be handed messages, and how many it may have unacknowledged."""

    __slots__ = (
        "connection",
        "credit_bytes",
        "credit_messages",
        "gone",
        "held",
        "id",
        "leases",
        "prefetch",
        "queue",
        "ready",
        "returning",
    )

    def __init__(
        self, id: str, queue: Queue, connection: int, prefetch: int, prefetch_bytes: int
    ) -> None:
        self.id = id
        self.queue = queue
        self.connection = connection
        self.prefetch = prefetch
        self.credit_messages = prefetch
        self.credit_bytes = prefetch_bytes
        self.ready = False  # stands in the queue's round of consumers with credit
        self.gone = False
        self.returning = False  # it is gone, and what it holds is handed back
        self.held = False  # gets nothing for a while: its client does not read
        self.leases: dict[int, Lease] = {}

    def may_receive(self) -> bool:
        return self.credit_messages > 0 and self.credit_bytes > 0 and not self.held


class Lease(Sleeper):
    """Messages handed to a consumer in one delivery, and until when they are its own."""

    __slots__ = ("batch", "consumer", "expires_ns", "keys", "number", "queue", "remaining")

    def __init__(
        self,
        number: int,
        queue: Queue,
        consumer: Consumer | None,
        expires_ns: int,
        keys: list[bytes],
    ) -> None:
        super().__init__()  # armed only if it does not run out in the order of the others
        self.number = number
        self.queue = queue
        self.consumer = consumer  # None: it was made before a restart, or is a batch's
        self.expires_ns = expires_ns
        self.keys = keys  # message keys; some may be finished already
        self.remaining = len(keys)
        self.batch: LeaseBatch | None = None  # whose it is; then the batch's time counts

    def belongs_to_other(self, connection: int) -> bool:
        """Whether it is a living consumer's of another connection."""
        consumer = self.consumer
        return consumer is not None and not consumer.gone and consumer.connection != connection


# What a queue remembers of a leased message: its lease, lane, key and body bytes.
Leased = tuple[Lease, "Lane", bytes, int]


def stream_of(name: str) -> tuple[str, int] | None:
    """The stream and number a batch name tells; None if it is no stream's."""
    stream, slash, rest = name.partition("/")
    digits = rest.partition("/")[0]
    if not slash or not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    return stream, int(digits)


class LeaseBatch(Sleeper):
    """Messages leased together under a name, so that who asks again gets the same.

    It is *filling* while its consumer takes turns with the others for its messages, and *open* from
    then on until the last of its leases has ended. Its leases are its own: they stand in its
    `leases`, not among the queue's, and end with the batch's time.
    """

    __slots__ = (
        "bytes",
        "bytes_max",
        "consumer",
        "count_attempt",
        "expires_ns",
        "leased_ns",
        "leases",
        "name",
        "numbered",
        "opened",
        "queue",
        "requests",
        "serial",
        "visibility_ms",
        "wait_until_ns",
    )

    def __init__(self, name: str, queue: Queue, count_attempt: bool, visibility_ms: int) -> None:
        super().__init__()
        self.name = name
        self.numbered = stream_of(name)
        self.queue = queue
        self.count_attempt = count_attempt  # whether running out is a failure
        self.visibility_ms = visibility_ms
        self.leases: dict[int, Lease] = {}
        self.bytes = 0  # of its messages, those that are finished by now included
        self.leased_ns = 0
        self.expires_ns = 0
        self.opened = 0  # in which order they were complete
        # Only while it is filling.
        self.bytes_max = 0
        self.serial = 0  # in which order they were asked for
        self.consumer: Consumer | None = None
        self.wait_until_ns = 0
        self.requests: dict[int, None] = {}  # who waits for it, the first of them made it

    def messages(self) -> int:
        return sum([lease.remaining for lease in self.leases.values()])

    def first_leases(self, messages_max: int) -> list[Lease]:
        """Its first leases, until they hold so many messages."""
        found = []
        messages = 0
        for lease in self.leases.values():
            if messages >= messages_max:
                break
            found.append(lease)
            messages += lease.remaining
        return found
