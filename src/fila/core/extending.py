"""How single leased messages get more time, and which lease runs out first.

A lease is of one delivery and ends as a whole. Messages of it that get more time part with it: they
go to a new lease of the same consumer, unless they are all it still holds. So no message's time
changes but those that were named.

Leases whose time is the queue's run out in the order they were made, and stand in `queue.leases`
in that order. Every other one stands in `queue.extended` and wakes by itself.
"""

from __future__ import annotations

from fila.core import rejection
from fila.core.command import Extend
from fila.core.entry import id_of
from fila.core.lease import Lease
from fila.core.queue import Queue
from fila.core.rejection import Rejection, invalid_value
from fila.core.state import MS, State


def extend(state: State, queue: Queue, command: Extend) -> list[int] | Rejection:
    """Let leases of messages end `visibility_ms` from now. One code each: OK, or MESSAGE_NOT_FOUND
    with nothing changed; those that are leased with a batch have the batch's time."""
    fault = visibility_fault(state, command.visibility_ms)
    if fault is not None:
        return fault
    connection = command.connection
    consumes = connection in queue.connections
    codes = []
    chosen: dict[Lease, dict[bytes, None]] = {}
    for id in command.ids:
        found = queue.leased.get(id)
        if found is None or not _may_extend(found[0], connection if consumes else None):
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        chosen.setdefault(found[0], {})[id] = None
        codes.append(rejection.OK)
    expires_ns = state.now + (command.visibility_ms or queue.visibility_ms) * MS
    for lease, ids in chosen.items():
        if len(ids) == lease.remaining:
            drop(state, queue, lease)
        else:
            lease = _part(state, queue, lease, ids)
        lease.expires_ns = expires_ns
        keep(state, queue, lease)
        state.parted[lease] = queue  # its row is written when the turn ends
    state.ops(queue.group)
    return codes


def keep(state: State, queue: Queue, lease: Lease) -> None:
    """Remember when a consumer's lease runs out."""
    leases = queue.leases
    in_order = lease.expires_ns <= state.now + queue.visibility_ms * MS
    if in_order and leases:
        in_order = leases[next(reversed(leases))].expires_ns <= lease.expires_ns
    if not in_order:
        queue.extended[lease.number] = lease
        state.deadlines.arm(lease, lease.expires_ns)
        return
    leases[lease.number] = lease
    armed_ns = queue.armed_ns
    if armed_ns > lease.expires_ns or (armed_ns == 0 and queue not in state.due_queues):
        state.deadlines.arm(queue, lease.expires_ns)


def drop(state: State, queue: Queue, lease: Lease) -> None:
    """A consumer's lease has ended, or its time is another from now on."""
    if queue.leases.pop(lease.number, None) is None:
        del queue.extended[lease.number]
        queue.due_extended.pop(lease.number, None)
        state.deadlines.disarm(lease)


def fall_due(state: State, lease: Lease) -> None:
    """A lease with a deadline of its own has run out."""
    queue = lease.queue
    queue.due_extended[lease.number] = lease
    state.due_queues[queue] = None


def due_lease(state: State) -> tuple[Queue, Lease] | None:
    """The first lease that has run out by now, if any; it stays until an Expire ends it."""
    while state.due_queues:
        queue = next(iter(state.due_queues))
        lease = _first(queue)
        if lease is not None and lease.expires_ns <= state.now:
            return queue, lease
        if queue.leases:
            state.deadlines.arm(queue, next(iter(queue.leases.values())).expires_ns)
        del state.due_queues[queue]
    return None


def visibility_fault(state: State, visibility_ms: int) -> Rejection | None:
    """Why a lease cannot last so long, if so; 0 is the queue's time."""
    low, high = state.settings.visibility_ms_min, state.settings.visibility_ms_max
    if visibility_ms and not low <= visibility_ms <= high:
        return invalid_value("visibility_ms", f"{visibility_ms} is not within {low} to {high}")
    return None


def _may_extend(lease: Lease, connection: int | None) -> bool:
    if lease.batch is not None:
        return False
    consumer = lease.consumer
    if consumer is not None and consumer.returning:
        return False  # it is on its way back
    return connection is None or not lease.belongs_to_other(connection)


def _part(state: State, queue: Queue, lease: Lease, ids: dict[bytes, None]) -> Lease:
    """These messages leave their lease for one of their own."""
    keys = [key for key in lease.keys if id_of(key) in ids and _holds(queue, lease, key)]
    number = queue.next_lease
    queue.next_lease = number + 1
    own = Lease(number, queue, lease.consumer, 0, keys)
    for key in keys:
        _, lane, _, size = queue.leased[id_of(key)]
        queue.leased[id_of(key)] = (own, lane, key, size)
    lease.remaining -= len(keys)
    state.parted[lease] = queue
    if own.consumer is not None:
        own.consumer.leases[number] = own
    return own


def _holds(queue: Queue, lease: Lease, key: bytes) -> bool:
    found = queue.leased.get(id_of(key))
    return found is not None and found[0] is lease


def _first(queue: Queue) -> Lease | None:
    """The lease that runs out first, of those in order and those that are due by themselves."""
    first = next(iter(queue.leases.values())) if queue.leases else None
    if queue.due_extended:
        other = next(iter(queue.due_extended.values()))
        if first is None or other.expires_ns <= first.expires_ns:
            return other
    return first
