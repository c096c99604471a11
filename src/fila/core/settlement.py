"""How a lease ends: ack, nack, running out, or being handed back. Each returns its credit."""

from __future__ import annotations

from fila.core import aging, catalogue, effect, events, rejection, reread, rows, ttl
from fila.core.caps import free_slots
from fila.core.command import Ack, Expire, Nack, Release
from fila.core.eligible import eligible
from fila.core.entry import (
    ATTEMPTS,
    BODY,
    ENQUEUED_NS,
    STAMP,
    WEIGHT,
    Entry,
    entry_of,
    id_of,
    row_of,
    waiting_anew,
)
from fila.core.extending import drop
from fila.core.lane import Lane
from fila.core.lease import Consumer, Lease
from fila.core.lease_batch import end_lease
from fila.core.obituary import explained
from fila.core.pending import add_pending, store
from fila.core.queue import Queue
from fila.core.reader import missing
from fila.core.row_batch import DELETE_LEASE, DELETE_MESSAGE, PUT_LEASE, PUT_MESSAGE
from fila.core.state import State
from fila.core.trail import SPAN_ACKED, Trail
from fila.core.verdict import FailureVerdict

VISIBILITY_EXPIRED = "visibility timeout expired"


def ack(state: State, queue: Queue, command: Ack) -> list[int]:
    """Finish messages. One code each: OK, or MESSAGE_NOT_FOUND with nothing changed."""
    leased = queue.leased
    ops = state.ops(queue.group)
    connection = command.connection
    consumes = connection in queue.connections
    codes = []
    trail = state.events if state.journal else None
    if trail is not None:
        trail.begin(SPAN_ACKED, state.now)
        told = trail.acked_leased
    for id in command.ids:
        found = leased.get(id)
        if found is None or (consumes and found[0].belongs_to_other(connection)):
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        lease, lane, key, size = found
        del leased[id]
        ops.append((DELETE_MESSAGE, key, b""))
        _settle(state, queue, lease, lane, size)
        if trail is not None:
            told.append(found)
        codes.append(rejection.OK)
    acked = codes.count(rejection.OK)
    if trail is not None:
        _tell_acked(trail, queue, acked, state.now)
    queue.counters.acked += acked
    return codes


def nack(state: State, queue: Queue, command: Nack) -> list[int]:
    """Fail messages: each is retried or dead-lettered as its verdict says."""
    consumes = command.connection in queue.connections
    codes = []
    entries = command.entries or [None] * len(command.ids)
    for id, error, verdict, entry in zip(
        command.ids, command.errors, command.verdicts, entries, strict=True
    ):
        found = queue.leased.get(id)
        if found is None or (consumes and found[0].belongs_to_other(command.connection)):
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        queue.counters.nacked += 1
        _fail(state, queue, id, verdict, effect.EVENT_NACKED, error, entry)
        codes.append(rejection.OK)
    return codes


def expire(state: State, queue: Queue, command: Expire) -> int:
    """End a lease that ran out: a failure like a nack. Returns how many messages it still held."""
    count = 0
    entries = command.entries or [None] * len(command.ids)
    for id, verdict, entry in zip(command.ids, command.verdicts, entries, strict=True):
        found = queue.leased.get(id)
        if found is not None and found[0].number == command.lease:
            queue.counters.expired += 1
            _fail(state, queue, id, verdict, effect.EVENT_EXPIRED, VISIBILITY_EXPIRED, entry)
            count += 1
    return count


def release(state: State, queue: Queue, command: Release) -> list[int]:
    """Hand back single messages. One code each: OK, or MESSAGE_NOT_FOUND with nothing changed."""
    entries = failed(state, queue, command.ids, command.connection)
    codes = []
    for id, entry in zip(command.ids, entries, strict=True):
        found = queue.leased.get(id)
        if entry is None or found is None:  # it may be named twice
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        lease, lane, key, size = found
        _hand_back(state, queue, lane, key, entry)
        _settle(state, queue, lease, lane, size)
        if lease.remaining:
            state.parted[lease] = queue
        else:
            state.parted.pop(lease, None)
        codes.append(rejection.OK)
    queue.counters.released += codes.count(rejection.OK)
    return codes


def hand_back_leases(state: State, queue: Queue, leases: list[Lease]) -> int:
    """Hand back all that these leases hold."""
    count = 0
    for lease in leases:
        ids = ids_of(queue, lease)
        for id, entry in zip(ids, failed(state, queue, ids, 0), strict=True):
            assert entry is not None, "it is leased"
            _, lane, key, size = queue.leased[id]
            _hand_back(state, queue, lane, key, entry)
            _settle(state, queue, lease, lane, size)
        count += len(ids)
    queue.counters.released += count
    return count


def write_parted(state: State) -> None:
    """A message that was handed back keeps its key, so its lease's row must no longer name it:
    rows of leases that were parted in this turn are written anew."""
    for lease, queue in state.parted.items():
        if lease.remaining and state.queues.get(queue.name) is queue:
            _write_rest(state, queue, lease)
    state.parted.clear()


def failed(state: State, queue: Queue, ids: list[bytes], connection: int) -> list[Entry | None]:
    """Leased messages as they are stored, read together; None where a nack would find nothing."""
    consumes = connection in queue.connections
    keys: list[bytes] = []
    for id in ids:
        found = queue.leased.get(id)
        if found is None or (consumes and found[0].belongs_to_other(connection)):
            keys.append(b"")
        else:
            keys.append(found[2])
    wanted = [key for key in keys if key]
    read = dict(zip(wanted, reread.stored(state.reader, wanted), strict=True))
    return [entry_of(key, read[key]) if key else None for key in keys]


def ids_of(queue: Queue, lease: Lease) -> list[bytes]:
    """Messages the lease still holds."""
    ids = []
    for key in lease.keys:
        id = id_of(key)
        found = queue.leased.get(id)
        if found is not None and found[0] is lease:
            ids.append(id)
    return ids


def _fail(
    state: State,
    queue: Queue,
    id: bytes,
    verdict: FailureVerdict,
    kind: str,
    error: str,
    entry: Entry | None,
) -> None:
    lease, lane, key, size = queue.leased.pop(id)
    if entry is None:
        entry = _stored(state, key)
    attempts = entry[ATTEMPTS] + 1
    state.ops(queue.group).append((DELETE_MESSAGE, key, b""))
    if state.journal:
        event = events.of_message(kind, lane, entry, state.now, error)
        state.events.append(event._replace(attempt=attempts, consumer=_consumer_id(lease)))
    target = lane
    delay_ms = verdict.delay_ms
    dlq = catalogue.dead_letters_of(state, queue) if verdict.dead_letter else None
    if dlq is not None:
        target = state.lane(dlq, lane.key.name, lane.throttle_keys)
        state.set_weight(dlq, target.key, entry[WEIGHT])
        delay_ms = 0
        queue.counters.dead_lettered += 1
    else:
        queue.counters.requeued += 1
        if lane.tail < entry[STAMP]:
            # It had a delay that ended at this very moment. Under the same key again, its old
            # lease's row would claim it after a restart.
            lane.tail = entry[STAMP]
    was_active = target.key.active
    body = entry[BODY]
    if dlq is not None:
        body = ttl.without_expiry(body)
        body = explained(body, verdict.reason, error, state.now, attempts, queue.name)
        body = aging.in_dlq(state, dlq, body)
    moved = store(state, target, id, attempts, entry[WEIGHT], entry[ENQUEUED_NS], body, delay_ms)
    if state.journal:
        again = effect.EVENT_REQUEUED if target is lane else effect.EVENT_DEAD_LETTERED
        delta = target.key.active - was_active
        event = events.of_message(again, target, moved, state.now, error, delta)
        if target is not lane:
            event = event._replace(source_queue=queue.name, weight=target.key.weight)
        state.events.append(event)
    _settle(state, queue, lease, lane, size)


def _hand_back(state: State, queue: Queue, lane: Lane, key: bytes, entry: Entry) -> None:
    """The message is pending again where it was; only its wait starts again."""
    del queue.leased[id_of(key)]
    now = state.now
    busy = queue.busy
    held_ns = lane.key.held_ns(busy.integral_at(now))
    entry = waiting_anew(
        entry, now, queue.stall_at(now), lane.throttled_at(now), busy.busy_at(now), held_ns
    )
    state.ops(queue.group).append((PUT_MESSAGE, key, row_of(entry)))
    was_active = lane.key.active
    add_pending(state, lane, entry)
    if state.journal:
        delta = lane.key.active - was_active
        state.events.append(
            events.of_message(effect.EVENT_RELEASED, lane, entry, now, ring_delta=delta)
        )


def _settle(state: State, queue: Queue, lease: Lease, lane: Lane, size: int) -> None:
    """One message of a lease is finished: its credit returns, and an emptied lease goes."""
    busy = queue.busy
    if busy.held:
        queue.watch(state.now)
    fairness_key = lane.key
    if fairness_key.held_then != busy.integral:
        fairness_key.count_held(busy.integral)
    fairness_key.leased -= 1
    lane.leased -= 1
    if lane.caps:
        free_slots(state, lane, 1)
    if lane.leased == 0 and lane.pending == 0:
        state.rest(lane)
    lease.remaining -= 1
    if lease.remaining == 0:
        if lease.batch is None:
            drop(state, queue, lease)
        else:
            end_lease(state, lease.batch, lease)
        if lease.consumer is not None:
            del lease.consumer.leases[lease.number]
            if lease.consumer.gone:
                _forget_departed(queue, lease.consumer)
        key = rows.lease_key(queue.number, lease.number)
        state.ops(queue.group).append((DELETE_LEASE, key, b""))
    consumer = lease.consumer
    if consumer is None or consumer.gone:
        return
    consumer.credit_messages += 1
    consumer.credit_bytes += size
    if not consumer.ready and consumer.may_receive():
        state.add_ready(queue, consumer)


def _forget_departed(queue: Queue, consumer: Consumer) -> None:
    """One that left holds nothing any more."""
    departed = queue.departed.get(consumer.connection)
    if departed is not None and not consumer.leases:
        departed.pop(consumer, None)
        if not departed:
            del queue.departed[consumer.connection]


def _tell_acked(trail: Trail, queue: Queue, count: int, now: int) -> None:
    """The last `count` of the acked messages are one run. An ack changes nothing of what a key has
    pending or ready, so that is looked up once for all messages of a lane."""
    if count == 0:
        trail.end()
        return
    run = trail.acked_leased[len(trail.acked_leased) - count :]
    leases, lanes, _, _ = zip(*run, strict=True)
    standings: dict[Lane, int] = {}
    ring = queue.ring
    for lane in dict.fromkeys(lanes):
        standings[lane] = len(standings)
        own = lane.key
        ready = eligible(own, now)
        trail.standing_numbers += (own.pending, ready, ring.keys, ring.handed_out)
    names = {_consumer_id(lease) for lease in dict.fromkeys(leases)}
    if len(names) == 1:
        consumers = [(count, names.pop())]
    else:
        consumers = [(1, _consumer_id(lease)) for lease in leases]
    trail.acked(lanes, standings, consumers)


def _write_rest(state: State, queue: Queue, lease: Lease) -> None:
    """The lease's row with what it still holds."""
    lease.keys = [
        key
        for key in lease.keys
        if (found := queue.leased.get(id_of(key))) is not None and found[0] is lease
    ]
    row = rows.lease_row(lease.expires_ns, state.now, _consumer_id(lease), lease.keys)
    key = rows.lease_key(queue.number, lease.number)
    state.ops(queue.group).append((PUT_LEASE, key, row))


def _stored(state: State, key: bytes) -> Entry:
    value = state.reader.get(rows.MESSAGES, key)
    if value is None:
        raise missing("a leased message", rows.MESSAGES, key)
    return entry_of(key, value)


def _consumer_id(lease: Lease) -> str:
    return lease.consumer.id if lease.consumer is not None else ""
