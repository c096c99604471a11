"""redis-py with hiredis: a stream and a consumer group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import redis

from bench.rivals.clients.contract import Message

_GROUP = "workers"
# Entries stay in a stream after they are acknowledged; trimming is how it is kept from growing.
_LENGTH_MAX = 100_000


def connect(address: str, queue: str) -> Redis:
    return Redis(address, queue)


class Redis:
    def __init__(self, address: str, queue: str) -> None:
        host, port = address.rsplit(":", 1)
        self._client: Any = redis.Redis(host=host, port=int(port))
        self._queue = queue
        self._name = str(uuid4())
        self._held: list[bytes] = []

    def declare(self) -> None:
        try:
            self._client.xgroup_create(self._queue, _GROUP, "0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def publish(self, messages: Sequence[Message]) -> None:
        if len(messages) == 1:
            tenant, payload = messages[0]
            self._client.xadd(self._queue, {"t": tenant, "p": payload}, maxlen=_LENGTH_MAX)
            return
        pipeline = self._client.pipeline(transaction=False)
        for tenant, payload in messages:
            pipeline.xadd(self._queue, {"t": tenant, "p": payload}, maxlen=_LENGTH_MAX)
        pipeline.execute()

    def flush(self) -> None:
        pass

    def subscribe(self, prefetch: int) -> None:
        pass

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        pipeline = self._client.pipeline(transaction=False)
        if self._held:
            pipeline.xack(self._queue, _GROUP, *self._held)  # left over by `settle`
            self._held.clear()
        pipeline.xreadgroup(
            _GROUP, self._name, {self._queue: ">"}, count=limit, block=int(timeout_s * 1000)
        )
        found = pipeline.execute()[-1]
        if not found:
            return []
        entries = found[0][1] if isinstance(found, list) else next(iter(found.values()))[0]
        self._held += [entry[0] for entry in entries]
        return [(fields[b"t"].decode(), fields[b"p"]) for _, fields in entries]

    def settle(self, wait: bool = True) -> None:
        """Without waiting: in one round trip with the next read."""
        if self._held and wait:
            self._client.xack(self._queue, _GROUP, *self._held)
            self._held.clear()

    def close(self) -> None:
        self._client.close()
