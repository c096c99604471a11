"""Fila's own SDK."""

from __future__ import annotations

from collections.abc import Sequence

from bench.rivals.clients.contract import Message
from bench.system.frames import TENANT, TENANT_HOOK
from fila import FilaClient, QueueAlreadyExistsError
from fila.client.sync import Consumer, SyncMessage


def connect(address: str, queue: str) -> Fila:
    return Fila(address, queue)


class Fila:
    def __init__(self, address: str, queue: str) -> None:
        self._client = FilaClient(address)
        self._queue = queue
        self._consumer: Consumer | None = None
        self._held: list[SyncMessage] = []

    def declare(self) -> None:
        try:
            self._client.create_queue(self._queue, on_enqueue=TENANT_HOOK)
        except QueueAlreadyExistsError:
            pass

    def publish(self, messages: Sequence[Message]) -> None:
        queue = self._queue
        self._client.enqueue_many([(queue, {TENANT: one}, payload) for one, payload in messages])

    def flush(self) -> None:
        pass

    def subscribe(self, prefetch: int) -> None:
        self._consumer = self._client.consume(self._queue, prefetch=prefetch)

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        assert self._consumer is not None, "receive comes after subscribe"
        messages = self._consumer.receive_many(limit, timeout=timeout_s)
        self._held += messages
        return [(message.headers[TENANT], message.payload) for message in messages]

    def settle(self) -> None:
        if self._held:
            self._client.ack_many(self._queue, [message.id for message in self._held])
            self._held.clear()

    def close(self) -> None:
        self._client.close()
