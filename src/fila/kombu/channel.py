"""A Kombu channel: declares queues, publishes, consumes and settles on a Fila broker.

Owns what the verbs of AMQP mean here:

    ack                     ack
    reject, requeue         nack: counts an attempt, the queue's on_failure hook decides
    reject                  the message goes to the dead letter queue
    cancel, close           what was not worked on goes back to its old place, no attempt counted
    priority                the weight of the message's fairness key
    prefetch count          the credit of each queue's consumer, and of the channel
"""

from __future__ import annotations

from collections import deque
from queue import Empty
from typing import TYPE_CHECKING, Any, Final

from kombu.transport import virtual

from fila.client.errors import FilaError, ForbiddenError, QueueNotFoundError
from fila.client.options import PREFETCH_DEFAULT, PREFETCH_MAX
from fila.kombu import envelope
from fila.kombu.bindings import Binding
from fila.kombu.inbox import Subscription

if TYPE_CHECKING:
    from fila.client.sync import FilaClient
    from fila.client.sync_methods.consumer import SyncMessage

_DLQ: Final = ".dlq"


class QoS(virtual.QoS):
    """What was delivered and is not settled; settling is the channel's part."""

    def ack(self, delivery_tag: str) -> None:
        self.channel.settle_ack(delivery_tag)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self.channel.settle_reject(delivery_tag, requeue)
        super().ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        self._flush()
        tags = list(self._delivered)
        self._delivered.clear()
        self.channel.give_back(tags)
        return []


class Channel(virtual.Channel):
    QoS = QoS
    supports_fanout = True
    body_encoding = None  # payloads are bytes
    #: Seconds a message may be worked on before another worker gets it; extended while it is.
    visibility_timeout = 0.0
    #: Lua for queues that are declared and not there yet.
    on_enqueue: str | None = None
    on_failure: str | None = None
    from_transport_options = (
        *virtual.Channel.from_transport_options,
        "visibility_timeout",
        "on_enqueue",
        "on_failure",
    )

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._subscriptions: dict[str, Subscription] = {}  # by consumer tag
        self._waiting: deque[tuple[str, SyncMessage]] = deque()  # until there is credit
        self._queue_of: dict[str, str] = {}  # of delivered messages, by delivery tag
        self._transient: set[str] = set()

    @property
    def fila(self) -> FilaClient:
        client: FilaClient = self.connection.fila
        return client

    # Queues

    def _new_queue(self, queue: str, auto_delete: bool = False, **_: Any) -> None:
        if auto_delete:
            self._transient.add(queue)
        try:
            self.fila.create_queue(
                queue,
                on_enqueue=self.on_enqueue,
                on_failure=self.on_failure,
                visibility_timeout_ms=round(self.visibility_timeout * 1_000),
                exist_ok=True,
            )
        except ForbiddenError:
            pass  # a key that may only produce or consume: somebody else has made the queue

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return any(one.name == queue for one in self.fila.list_queues())

    def _size(self, queue: str) -> int:
        try:
            return self.fila.get_stats(queue).depth
        except (ForbiddenError, QueueNotFoundError):
            return 0

    def _purge(self, queue: str) -> int:
        try:
            return self.fila.purge(queue)
        except QueueNotFoundError:
            return 0

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        try:
            self.fila.delete_queue(queue)
        except QueueNotFoundError:
            pass
        self.connection.bindings.forget_queue(queue)

    def queue_delete(self, queue: str, if_empty: bool = False, **_: Any) -> None:
        """Unlike the base class: queues without a binding in this process, too."""
        if if_empty and self._size(queue):
            return
        self._delete(queue)
        self.state.queue_bindings_delete(queue)

    # Exchanges

    def _queue_bind(self, exchange: str, routing_key: str, _: Any, queue: str) -> None:
        if routing_key != queue or self.typeof(exchange).type != "direct":
            self.connection.bindings.add(Binding(exchange, routing_key or "", queue))

    def get_table(self, exchange: str) -> list[tuple[str, Any, str]]:
        kind = self.typeof(exchange)
        return [
            kind.prepare_bind(one.queue, exchange, one.routing_key, None)
            for one in self.connection.bindings.of(exchange)
        ]

    def _lookup(self, exchange: str, routing_key: str, default: Any = None) -> Any:
        if exchange and self.typeof(exchange).type == "direct":
            found = {queue for key, _, queue in self.get_table(exchange) if key == routing_key}
            if self.state.has_binding(routing_key, exchange, routing_key) or not found:
                found.add(routing_key)
            return found
        return super()._lookup(exchange, routing_key, default)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **_: Any) -> None:
        for binding in self.connection.bindings.of(exchange):
            self._put(binding.queue, message)

    # Publishing

    def _put(self, queue: str, message: Any, **_: Any) -> None:
        headers, payload = envelope.packed(message)
        delay_s = envelope.delay_s(message)
        self.fila.enqueue(
            queue, headers, payload, delay=delay_s, **envelope.keys(message)._asdict()
        )

    # Consuming

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any
    ) -> None:
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        if no_ack:
            self.connection.unacknowledged.add(queue)
        prefetch = min(self.qos.prefetch_count or PREFETCH_DEFAULT, PREFETCH_MAX)
        inbox = self.connection.inbox

        def bring(what: SyncMessage | FilaError) -> None:
            inbox.put((self, queue, what))

        self._subscriptions[consumer_tag] = Subscription(
            self.fila.consume(queue, prefetch=prefetch, heartbeat=True), bring
        )

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        subscription = self._subscriptions.pop(consumer_tag, None)
        if subscription is not None and not self.connection.forked:
            subscription.close()
            self.connection.collect()
            left = [message for name, message in self._waiting if name == queue]
            self._waiting = deque(one for one in self._waiting if one[0] != queue)
            if queue is not None and left:
                self._released(queue, [message.id for message in left])
        super().basic_cancel(consumer_tag)
        if queue in self._transient and not self.connection.forked:
            self._transient.discard(queue)
            self.queue_delete(queue)

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> Any:
        batch = self.fila.lease_batch(queue, self._next_delivery_tag(), 1)
        if not batch.messages:
            return None
        received = batch.messages[0]
        message = self.Message(self._raw(queue, received), channel=self)
        if no_ack:
            self.settle_ack(message.delivery_tag)
        else:
            self.qos.append(message, message.delivery_tag)
        return message

    def accept(self, queue: str, what: SyncMessage | FilaError) -> None:
        """Take in what a subscription has brought."""
        if isinstance(what, FilaError):
            raise what
        self._waiting.append((queue, what))

    def deliver_waiting(self) -> int:
        """Hand out as much as there is credit for; returns how much that was."""
        count = 0
        while self._waiting and self.qos.can_consume():
            queue, received = self._waiting.popleft()
            raw = self._raw(queue, received)
            if queue in self.connection.unacknowledged:
                self.settle_ack(received.id)
            self.connection._deliver(raw, queue)
            count += 1
        return count

    def drain_events(self, timeout: float | None = None, callback: Any = None) -> None:
        raise Empty  # the transport drains for all of its channels

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        if self._waiting:
            self.connection.inbox.wake()

    def _raw(self, queue: str, received: SyncMessage) -> dict[str, Any]:
        self._queue_of[received.id] = queue
        return envelope.unpacked(
            received.id, received.headers, received.payload, received.attempt_count
        )

    # Settling

    def settle_ack(self, tag: str) -> None:
        queue = self._queue_of.pop(tag, None)
        if queue is not None:
            self.fila.ack_soon(queue, tag)
            self._credit()

    def settle_reject(self, tag: str, requeue: bool) -> None:
        queue = self._queue_of.pop(tag, None)
        if queue is None:
            return
        if requeue:
            self.fila.nack(queue, tag, "rejected, to be delivered again")
        else:
            self._bury(queue, tag)
        self._credit()

    def give_back(self, tags: list[str]) -> None:
        if self.connection is None or self.connection.forked:
            return
        by_queue: dict[str, list[str]] = {}
        for tag in tags:
            queue = self._queue_of.pop(tag, None)
            if queue is not None:
                by_queue.setdefault(queue, []).append(tag)
        for queue, ids in by_queue.items():
            self._released(queue, ids)

    def _bury(self, queue: str, tag: str) -> None:
        """Into the dead letter queue, where a queue has one; once, however often it is tried."""
        delivered = self.qos.get(tag)
        if not queue.endswith(_DLQ):
            headers, payload = envelope.packed(delivered._raw)
            self.fila.enqueue(queue + _DLQ, headers, payload, idempotency_key=f"rejected/{tag}")
        self.fila.ack(queue, tag)

    def _released(self, queue: str, ids: list[str]) -> None:
        try:
            self.fila.release_many(queue, ids)
        except FilaError:
            pass  # they go back by themselves when their leases run out

    def _credit(self) -> None:
        if self._waiting:
            self.connection.inbox.wake()
