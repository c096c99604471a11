"""Which queues are bound to which exchange, known to every process.

Fila has queues and no exchanges. Kombu's direct, topic and fanout exchanges are tables that every
publisher needs: a worker answers `celery inspect` through an exchange to which another process has
bound its queue. A binding is kept on the broker as the name of an empty queue,

    kombu.binding/EXCHANGE/ROUTING KEY/QUEUE.dlq

(names that end in .dlq get no dead letter queue). The table of an exchange is read from the list of
queues, at most every two seconds. The binding every task queue has, of a queue under its own name,
is not kept: it is what a publisher tries anyway.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

from fila.client.errors import QueueNotFoundError

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

_PREFIX: Final = "kombu.binding/"
_SUFFIX: Final = ".dlq"
_FRESH_S: Final = 2.0
# Nobody reads a queue that holds this much and has no consumer: its worker is gone.
_FORSAKEN_MESSAGES: Final = 100


class Binding(NamedTuple):
    exchange: str
    routing_key: str
    queue: str

    def name(self) -> str:
        parts = (quote(one, safe="") for one in self)
        return f"{_PREFIX}{'/'.join(parts)}{_SUFFIX}"


class Bindings:
    def __init__(self, client: FilaClient) -> None:
        self._client = client
        self._read_at = float("-inf")
        self._found: list[Binding] = []

    def add(self, binding: Binding) -> None:
        self._client.create_queue(binding.name(), exist_ok=True)
        self._read_at = float("-inf")

    def of(self, exchange: str) -> list[Binding]:
        now = time.monotonic()
        if now - self._read_at > _FRESH_S:
            self._found = self._read()
            self._read_at = now
        return [one for one in self._found if one.exchange == exchange]

    def forget_queue(self, queue: str) -> None:
        """Remove its bindings, after the queue was deleted."""
        self._read_at = float("-inf")
        for binding in self._read():
            if binding.queue == queue:
                self._remove(binding.name())

    def _read(self) -> list[Binding]:
        """All bindings; those of queues that are gone, or that nobody reads, are removed."""
        listed = {one.name: one for one in self._client.list_queues()}
        found = []
        for name in listed:
            binding = _binding(name)
            if binding is None:
                continue
            queue = listed.get(binding.queue)
            if queue is None:
                self._remove(name)
            elif queue.active_consumers == 0 and queue.depth >= _FORSAKEN_MESSAGES:
                self._remove(binding.queue)
                self._remove(name)
            else:
                found.append(binding)
        return found

    def _remove(self, name: str) -> None:
        try:
            self._client.delete_queue(name)
        except QueueNotFoundError:
            pass  # another process was faster


def _binding(name: str) -> Binding | None:
    if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
        return None
    parts = name[len(_PREFIX) : -len(_SUFFIX)].split("/")
    return Binding(*map(unquote, parts)) if len(parts) == 3 else None
