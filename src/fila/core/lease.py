"""A lease: messages handed to a consumer in one delivery, and until when they are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.consumer import Consumer
    from fila.core.lane import Lane
    from fila.core.lease_batch import LeaseBatch


class Lease:
    __slots__ = ("batch", "consumer", "expires_ns", "keys", "number", "remaining")

    def __init__(
        self, number: int, consumer: Consumer | None, expires_ns: int, keys: list[bytes]
    ) -> None:
        self.number = number
        self.consumer = consumer  # None: it was made before a restart
        self.expires_ns = expires_ns
        self.keys = keys  # message keys; some may be finished already
        self.remaining = len(keys)
        self.batch: LeaseBatch | None = None  # whose it is; then the batch's time counts

    def held_by_other(self, connection: int) -> bool:
        """Whether a living consumer of another connection holds it."""
        consumer = self.consumer
        return consumer is not None and not consumer.gone and consumer.connection != connection


# What a queue remembers of a leased message: its lease, lane, key and body bytes.
Leased = tuple[Lease, "Lane", bytes, int]
