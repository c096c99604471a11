"""Leases that get more time, followed in the books; and whose time is up first."""

from __future__ import annotations

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import Extend

from .books import Books
from .model import MS, Lease, Message, Queue
from .turn import Violation, same


def extend(books: Books, queue: Queue, command: Extend, reply: Reply) -> None:
    """Each message named ends at its new time, alone or with others named; nothing else moves."""
    settings = books.settings
    low, high = settings.visibility_ms_min, settings.visibility_ms_max
    if command.visibility_ms and not low <= command.visibility_ms <= high:
        if not isinstance(reply, rejection.Rejection):
            raise Violation("extension", f"{command.visibility_ms} ms are allowed: {reply!r}")
        return
    codes = []
    chosen: dict[Lease, dict[bytes, Message]] = {}
    for id in command.ids:
        message = _extendable(queue, id, command.connection)
        if message is None or message.lease is None:
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        chosen.setdefault(message.lease, {})[id] = message
        codes.append(rejection.OK)
    visibility_ns = command.visibility_ms * MS or queue.visibility_ns
    for lease, messages in chosen.items():
        books.met["leases extended"] += 1
        if len(messages) == len(lease.messages):
            lease.expires_ns = books.now + visibility_ns
            continue
        books.met["leases parted by an extension"] += 1
        queue.last_lease += 1
        own = Lease(queue.last_lease, lease.consumer, books.now + visibility_ns)
        queue.leases[own.number] = own
        if own.consumer is not None:
            own.consumer.leases[own.number] = own
        for id in [id for id in lease.messages if id in messages]:
            own.messages[id] = lease.messages.pop(id)
            own.messages[id].lease = own
    same("reply to Extend", reply, codes)


def first_of(queue: Queue) -> Lease:
    """The lease whose time is up first."""
    return min(queue.leases.values(), key=lambda lease: lease.expires_ns)


def _extendable(queue: Queue, id: bytes, connection: int) -> Message | None:
    message = queue.leased.get(id)
    lease = message.lease if message is not None else None
    if lease is None or lease.batch is not None:
        return None
    holder = lease.consumer
    if holder is not None and holder.returning:
        return None
    if connection in queue.connections and holder is not None and not holder.gone:
        return message if holder.connection == connection else None
    return message
