"""Dramatiq on Fila: `dramatiq.set_broker(FilaBroker("localhost:5555"))`.

    @dramatiq.actor(fila_key="tenant", fila_throttle="provider:{provider}")
    def send(tenant, provider): ...

Owns what Dramatiq's verbs mean here: a delay is kept by the broker, so there are no delay queues; a
message that failed for good goes to the queue's dead letters; messages a worker did not begin go
back to their place. `FairShare` is the middleware that knows the options, for tests with a
`StubBroker` as well. See docs/dramatiq.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Final

import dramatiq
from dramatiq.errors import DecodeError, QueueJoinTimeout, QueueNotFound

from fila.client.errors import ClientClosedError, FilaError, ForbiddenError, MessageNotFoundError
from fila.client.sync import FilaClient
from fila.task_keys import KEY, OPTIONS, THROTTLE, WEIGHT, Declared, Keys, keys_of

_DLQ: Final = ".dlq"
_LOOK_S: Final = 0.05


class FairShare(dramatiq.Middleware):
    """Makes `fila_key`, `fila_weight` and `fila_throttle` options of actors. Only a `FilaBroker`
    does something with them; with any other broker they change nothing."""

    @property
    def actor_options(self) -> set[str]:
        return set(OPTIONS)


class FilaBroker(dramatiq.Broker):
    """The options of `FilaClient` (`api_key`, `tls`, …) may be given by name. `on_enqueue`,
    `on_failure` and `visibility_timeout_ms` are for queues that are not there yet."""

    def __init__(
        self,
        address: str = "localhost:5555",
        *,
        middleware: list[Any] | None = None,
        on_enqueue: str | None = None,
        on_failure: str | None = None,
        visibility_timeout_ms: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(middleware)
        if not any(isinstance(one, FairShare) for one in self.middleware):
            self.add_middleware(FairShare())
        self._address = address
        self._options = options
        self._settings: dict[str, Any] = {
            "on_enqueue": on_enqueue,
            "on_failure": on_failure,
            "visibility_timeout_ms": visibility_timeout_ms,
        }
        self._client: FilaClient | None = None
        self._pid = 0
        self._made: set[str] = set()

    @property
    def client(self) -> FilaClient:
        """Opened when it is first needed, and again in a forked process."""
        if self._client is None or self._pid != os.getpid():
            self._client = FilaClient(self._address, **self._options)
            self._pid = os.getpid()
        return self._client

    def close(self) -> None:
        if self._client is not None and self._pid == os.getpid():
            self._client.close()
        self._client = None

    def declare_queue(self, queue_name: str) -> None:
        """The queue is made on the broker when it is first used, so that importing a module with
        actors needs no broker."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = None
            self.emit_after("declare_queue", queue_name)

    def enqueue(self, message: Any, *, delay: int | None = None) -> Any:
        queue_name = message.queue_name
        self._exists(queue_name)
        if delay is not None:
            # Said for middleware that looks at it; the broker does the waiting.
            message = message.copy(options={"eta": int(time.time() * 1_000) + delay})
        self.emit_before("enqueue", message, delay)
        headers = {"actor": message.actor_name, "message_id": message.message_id}
        self.client.enqueue(
            queue_name,
            headers,
            message.encode(),
            delay=(delay or 0) / 1_000,
            **self._keys(message)._asdict(),
        )
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        self._exists(queue_name)
        return Consumer(self.client, queue_name, prefetch, timeout)

    def flush(self, queue_name: str) -> None:
        self._exists(queue_name)
        self.client.purge(queue_name)

    def flush_all(self) -> None:
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until nothing waits or is worked on, delayed messages included."""
        self._exists(queue_name)
        until = None if timeout is None else time.monotonic() + timeout / 1_000
        while True:
            stats = self.client.get_stats(queue_name)
            if stats.depth == 0 and stats.in_flight == 0:
                return
            if until is not None and time.monotonic() > until:
                raise QueueJoinTimeout(queue_name)
            time.sleep(_LOOK_S)

    def _exists(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        if queue_name not in self._made:
            try:
                self.client.create_queue(queue_name, exist_ok=True, **self._settings)
            except ForbiddenError:
                pass  # a key that may only produce or consume: somebody else has made it
            self._made.add(queue_name)

    def _keys(self, message: Any) -> Keys:
        actor = self.actors.get(message.actor_name)
        said = message.options
        if actor is None:  # of a program that does not have the actor's code
            throttle = said.get(THROTTLE) or ()
            given = (throttle,) if isinstance(throttle, str) else tuple(throttle)
            return Keys(str(said.get(KEY) or ""), int(said.get(WEIGHT) or 0), given)
        named = {name: actor.options.get(name) for name in OPTIONS}
        found = keys_of(
            Declared(named[KEY], named[WEIGHT], named[THROTTLE]),
            message.actor_name, actor.fn, message.args, message.kwargs,
        )  # fmt: skip
        return Keys(
            str(said.get(KEY) or found.fairness_key),
            int(said.get(WEIGHT) or found.weight),
            tuple(said.get(THROTTLE) or found.throttle_keys),
        )


class MessageProxy(dramatiq.MessageProxy):
    def __init__(self, message: Any, lease: str, payload: bytes) -> None:
        super().__init__(message)
        self.lease = lease  # the id of Fila's message
        self.payload = payload


class Consumer(dramatiq.Consumer):
    def __init__(self, client: FilaClient, queue: str, prefetch: int, timeout_ms: int) -> None:
        self._client = client
        self._queue = queue
        self._timeout_s = timeout_ms / 1_000
        self._consumer = client.consume(queue, prefetch=max(prefetch, 1), heartbeat=True)

    def __next__(self) -> MessageProxy | None:
        try:
            received = self._consumer.receive(timeout=self._timeout_s)
        except FilaError as error:
            raise dramatiq.ConnectionError(str(error)) from error
        if received is None:
            return None
        try:
            message = dramatiq.Message.decode(received.payload)
        except DecodeError:
            self._bury(received.id, received.payload)  # nobody can run it
            return None
        return MessageProxy(message, received.id, received.payload)

    def ack(self, message: MessageProxy) -> None:
        self._client.ack_soon(self._queue, message.lease)

    def nack(self, message: MessageProxy) -> None:
        self._bury(message.lease, message.payload)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        leases = [message.lease for message in messages]
        if leases:
            self._client.release_many(self._queue, leases)

    def close(self) -> None:
        try:
            self._consumer.close()
        except ClientClosedError:
            pass  # with everything it had

    def _bury(self, lease: str, payload: bytes) -> None:
        """Into the dead letter queue; once, however often it is tried."""
        try:
            if not self._queue.endswith(_DLQ):
                self._client.enqueue(
                    self._queue + _DLQ, None, payload, idempotency_key=f"rejected/{lease}"
                )
            self._client.ack(self._queue, lease)
        except MessageNotFoundError:
            pass  # its lease ran out, and another worker has it
