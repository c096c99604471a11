"""nats-py on uvloop: asynchronous publish, a pull consumer, explicit acks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import nats
import uvloop
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from bench.rivals.clients.contract import WINDOW, Message


def connect(address: str, queue: str) -> Nats:
    return Nats(address, queue)


class Nats:
    def __init__(self, address: str, queue: str) -> None:
        self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._run = self._loop.run_until_complete
        self._connection: Any = self._run(nats.connect(f"nats://{address}"))
        self._stream: Any = self._connection.jetstream(publish_async_max_pending=WINDOW)
        self._queue = queue
        self._subscription: Any = None
        self._held: list[Any] = []

    def declare(self) -> None:
        config = StreamConfig(
            name=self._queue,
            subjects=[f"{self._queue}.*"],
            storage=StorageType.FILE,
            retention=RetentionPolicy.WORK_QUEUE,
        )
        self._run(self._stream.add_stream(config))

    def publish(self, messages: Sequence[Message]) -> None:
        self._run(self._publish(messages))

    def flush(self) -> None:
        self._run(self._stream.publish_async_completed())

    def subscribe(self, prefetch: int) -> None:
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=prefetch * 10)
        self._subscription = self._run(
            self._stream.pull_subscribe(f"{self._queue}.*", durable="workers", config=config)
        )

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        try:
            messages = self._run(self._subscription.fetch(limit, timeout=timeout_s))
        except NatsTimeoutError:
            return []
        self._held += messages
        return [(message.subject.rsplit(".", 1)[1], message.data) for message in messages]

    def settle(self, wait: bool = True) -> None:
        if self._held:
            self._run(self._settle(wait))
            self._held.clear()

    def close(self) -> None:
        self._run(self._connection.close())

    async def _publish(self, messages: Sequence[Message]) -> None:
        for tenant, payload in messages:
            await self._stream.publish_async(f"{self._queue}.{tenant}", payload, wait_stall=10.0)

    async def _settle(self, wait: bool) -> None:
        for message in self._held:
            await message.ack()
        if wait:
            await self._connection.flush()
