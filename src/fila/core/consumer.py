"""A consumer: who may be handed messages, and how many it may hold unacknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.lease import Lease
    from fila.core.queue import Queue


class Consumer:
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
        self.held = False  # gets nothing until it is resumed: its client does not read
        self.leases: dict[int, Lease] = {}

    def may_receive(self) -> bool:
        return self.credit_messages > 0 and self.credit_bytes > 0 and not self.held
