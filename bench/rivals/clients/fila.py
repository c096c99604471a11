"""Fila's own SDK."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from bench.rivals.clients.contract import WINDOW, Message
from bench.system.frames import TENANT, TENANT_HOOK
from fila import FilaClient, QueueAlreadyExistsError
from fila.client.sync import Consumer, Receipt, SyncMessage


def connect(address: str, queue: str) -> Fila:
    return Fila(address, queue)


class Fila:
    def __init__(self, address: str, queue: str) -> None:
        self._client = FilaClient(address)
        self._queue = queue
        self._consumer: Consumer | None = None
        self._held: list[SyncMessage] = []
        self._under_way: deque[tuple[int, Receipt[list[str]]]] = deque()
        self._unconfirmed = 0

    def declare(self) -> None:
        try:
            self._client.create_queue(self._queue, on_enqueue=TENANT_HOOK)
        except QueueAlreadyExistsError:
            pass

    def publish(self, messages: Sequence[Message]) -> None:
        queue = self._queue
        if len(messages) == 1:
            ((tenant, payload),) = messages
            self._client.enqueue(queue, {TENANT: tenant}, payload)
            return
        triples = [(queue, {TENANT: one}, payload) for one, payload in messages]
        self._under_way.append((len(triples), self._client.enqueue_many_soon(triples)))
        self._unconfirmed += len(triples)
        self._wait(WINDOW)

    def flush(self) -> None:
        self._wait(0)

    def subscribe(self, prefetch: int) -> None:
        self._consumer = self._client.consume(self._queue, prefetch=prefetch)

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        assert self._consumer is not None, "receive comes after subscribe"
        messages = self._consumer.receive_many(limit, timeout=timeout_s)
        self._held += messages
        return [(message.headers[TENANT], message.payload) for message in messages]

    def settle(self, wait: bool = True) -> None:
        if self._held:
            settle = self._client.ack_many if wait else self._client.ack_many_soon
            settle(self._queue, [message.id for message in self._held])
            self._held.clear()

    def close(self) -> None:
        self._client.close()

    def _wait(self, under_way_max: int) -> None:
        """Until no more than so many are unconfirmed."""
        while self._unconfirmed > under_way_max:
            count, receipt = self._under_way.popleft()
            receipt.result()
            self._unconfirmed -= count
