"""pika: its asynchronous connection for publishing with many confirms under way, its blocking one
for consuming.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pika
from pika.adapters.select_connection import SelectConnection

from bench.rivals.clients.contract import WINDOW, Message

_TENANT = "tenant"


def connect(address: str, queue: str) -> RabbitMq:
    return RabbitMq(address, queue)


class RabbitMq:
    def __init__(self, address: str, queue: str) -> None:
        host, port = address.rsplit(":", 1)
        self._parameters = pika.ConnectionParameters(host=host, port=int(port), heartbeat=0)
        self._queue = queue
        self._connection: Any = pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        self._arrived: deque[tuple[int, Message]] = deque()
        self._last_tag = 0
        self._publisher: Publisher | None = None

    def declare(self) -> None:
        self._channel.queue_declare(self._queue, durable=True, arguments={"x-queue-type": "quorum"})

    def publish(self, messages: Sequence[Message]) -> None:
        if self._publisher is None:
            self._publisher = Publisher(self._parameters, self._queue)
        self._publisher.publish(messages)

    def flush(self) -> None:
        if self._publisher is not None:
            self._publisher.wait(0)

    def subscribe(self, prefetch: int) -> None:
        self._channel.basic_qos(prefetch_count=prefetch)
        self._channel.basic_consume(self._queue, self._on_message)

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        if not self._arrived:
            self._connection.process_data_events(time_limit=timeout_s)
        messages: list[Message] = []
        while self._arrived and len(messages) < limit:
            self._last_tag, message = self._arrived.popleft()
            messages.append(message)
        return messages

    def settle(self, wait: bool = True) -> None:
        """The protocol does not confirm acks: nothing to wait for."""
        if self._last_tag:
            self._channel.basic_ack(self._last_tag, multiple=True)
            self._last_tag = 0

    def close(self) -> None:
        self._connection.close()

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((method.delivery_tag, (properties.headers[_TENANT], body)))


class Publisher:
    """Publishes with confirms; its event loop runs only while there is something to wait for."""

    def __init__(self, parameters: Any, queue: str) -> None:
        self._queue = queue
        self._channel: Any = None
        self._published = 0
        self._confirmed = 0
        self._goal = 0
        self._connection: Any = SelectConnection(parameters, self._on_open, self._on_failure)
        self._loop: Any = self._connection.ioloop
        self._loop.start()

    def publish(self, messages: Sequence[Message]) -> None:
        channel = self._channel
        for tenant, payload in messages:
            properties = pika.BasicProperties(headers={_TENANT: tenant}, delivery_mode=2)
            channel.basic_publish("", self._queue, payload, properties)
        self._published += len(messages)
        self.wait(WINDOW)

    def wait(self, under_way_max: int) -> None:
        """Until no more than so many are unconfirmed."""
        self._goal = self._published - under_way_max
        if self._confirmed < self._goal:
            self._loop.start()

    def _on_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.confirm_delivery(self._on_confirm, lambda _: self._loop.stop())

    def _on_confirm(self, frame: Any) -> None:
        if frame.method.NAME != "Basic.Ack":
            raise RuntimeError(f"rabbitmq answered {frame.method!r}")
        self._confirmed = frame.method.delivery_tag
        if self._confirmed >= self._goal:
            self._loop.stop()

    def _on_failure(self, connection: Any, error: BaseException) -> None:
        raise RuntimeError(f"rabbitmq: {error!r}")
