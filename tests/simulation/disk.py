"""The rows on the disk, and a machine rebuilt from them, against the model and the live machine."""

from __future__ import annotations

from fila.core import key_rows, rows
from fila.core.bucket import NS, Bucket
from fila.core.lane import Lane
from fila.core.lease import LeaseBatch
from fila.core.machine import Machine
from fila.core.queue import Queue
from fila.core.state import State
from fila.storage.memory import MemoryStore

from . import ages, groups, overrides, reclassify, updates
from .auditor import Auditor
from .tokens import TOLERANCE
from .turn import Violation

_ALL = 1 << 62


def check_store(auditor: Auditor, machine: Machine, store: MemoryStore) -> None:
    """Every row: messages and leases as the model has them, nothing left behind."""
    stored = {
        raw.decode(): rows.read_queue(value)
        for raw, value in store.scan(rows.QUEUES, b"", b"\xff", _ALL, _ALL)
    }
    numbers = {row.number: name for name, row in stored.items()}
    _same("stored queues", stored.keys(), auditor.queues.keys() | auditor.hidden.keys())
    groups.check_rows({name: row.group for name, row in stored.items()})
    seen = set()
    for key, value in store.scan(rows.MESSAGES, b"", b"\xff", _ALL, _ALL):
        number, _, stamp, id = rows.MESSAGE_KEY.unpack(key)
        head = rows.MESSAGE_HEAD.unpack_from(value)
        message = auditor.messages.get(id)
        if message is None or id in seen:
            why = "is stored twice" if id in seen else f"is {auditor.gone.get(id, 'unknown')}"
            raise Violation("stored messages", f"{id.hex()[-6:]} {why}")
        seen.add(id)
        _same(
            "stored message",
            (numbers.get(number), head[1:4], value[rows.MESSAGE_HEAD_BYTES :]),
            (
                message.lane.key.queue.name,
                (message.attempts, message.weight, message.enqueued_ns),
                message.body,
            ),
        )
        if message.timed:
            _same("stored time", stamp, message.ready_ns)
    if len(seen) != len(auditor.messages):
        lost = next(id for id in auditor.messages if id not in seen)
        raise Violation("nothing is lost", f"{lost.hex()[-6:]} is not on the disk")
    updates.check_stored(auditor, store, numbers)
    ages.check_stored(auditor, store)
    overrides.check_stored(auditor, store, numbers)
    reclassify.check_stored(auditor, store, numbers)
    leases = set()
    for key, value in store.scan(rows.LEASES, b"", b"\xff", _ALL, _ALL):
        row = rows.read_lease(value)
        name = numbers[int.from_bytes(key[:4], "big")]
        number = int.from_bytes(key[4:12], "big")
        lease = auditor.queues[name].all_leases().get(number)
        if lease is None:
            raise Violation("stored leases", f"{number} of {name} is over")
        _same("stored expiry", row.expires_ns, lease.expires_ns)
        if not lease.messages.keys() <= {one[16:] for one in row.messages}:
            raise Violation("stored leases", f"{number} of {name} lacks messages")
        leases.add((name, number))
    live = {
        (name, number) for name, queue in auditor.queues.items() for number in queue.all_leases()
    }
    _same("stored leases", leases, live)
    open_batches = {
        (numbers[int.from_bytes(key[1:5], "big")], key[5:].decode())
        for key, _ in store.scan(rows.STATE, rows.OPEN_BATCH_PREFIX, b"p", _ALL, _ALL)
    }
    named = {
        (name, batch.name)
        for name, queue in auditor.queues.items()
        for batch in queue.batches.values()
        if batch.leases
    }
    _same("stored batches", open_batches, named)
    _check_keys(auditor, store, numbers)
    away = {stored[name].number for name in machine.state.unloaded}
    _check_ledger_rows(machine.state, store, away)


def check_rebuilt(live: Machine, rebuilt: Machine) -> None:
    """A machine loaded from the disk is the machine that wrote it, field by field."""
    old, new = live.state, rebuilt.state
    away = {one.group for one in old.unloaded.values()}  # not to be compared
    _same("rebuilt config", new.config, old.config)
    _same("rebuilt next queue", new.next_queue, old.next_queue)
    _same(
        "rebuilt positions",
        {number: group.position for number, group in new.groups.items() if number not in away},
        {number: group.position for number, group in old.groups.items()},
    )
    _same("rebuilt queues", new.queues.keys() - old.unloaded.keys(), old.queues.keys())
    _same("rebuilt hidden queues", new.hidden, old.hidden)
    for name, queue in old.queues.items():
        check_rebuilt_queue(queue, new.queues[name])
    buckets = [(name, one, new.buckets[name]) for name, one in old.buckets.items()]
    for name, queue in old.queues.items():
        again = new.queues[name].key_buckets
        buckets += [(key, one, again[key]) for key, one in queue.key_buckets.items()]
    for throttle_key, bucket, twin in buckets:
        levels = level_of(bucket, max(old.now, new.now)), level_of(twin, new.now)
        if new.now >= old.now and abs(levels[0] - levels[1]) > TOLERANCE:
            raise Violation("rebuilt", f"{throttle_key!r}: {levels[0]} tokens became {levels[1]}")


def check_rebuilt_queue(queue: Queue, again: Queue) -> None:
    name = queue.name
    _same(f"rebuilt {name}", _numbers(again), _numbers(queue))
    for key in queue.keys.values():
        for lane in key.lanes.values():
            twin = again.keys[key.name].lanes.get(lane.throttle_keys)
            if twin is None:
                raise Violation("rebuilt", f"lane {lane.number} of {name} is forgotten")
            if lane.pending or lane.leased:
                weights = (twin.key.weight, twin.key.told_weight)
                _same(
                    f"rebuilt weight of {name}/{key.name!r}", weights, (key.weight, key.told_weight)
                )
            _same(f"rebuilt lane of {name}/{key.name!r}", _lane(twin), _lane(lane))


def _check_keys(auditor: Auditor, store: MemoryStore, numbers: dict[int, str]) -> None:
    """Every idempotency key that counts is stored, and not many more."""
    found: dict[str, dict[bytes, tuple[int, int, bytes]]] = {}
    prefix = key_rows.KNOWN_KEY_PREFIX
    for key, value in store.scan(rows.IDEMPOTENCY, prefix, b"l", _ALL, _ALL):
        name = numbers[int.from_bytes(key[1:5], "big")]
        found.setdefault(name, {})[key[5:]] = key_rows.read_known_key(value)
    settings = auditor.settings
    for name, queue in auditor.queues.items():
        stored = found.get(name, {})
        for key, known in queue.keys_known.items():
            counts = queue.keys_seen - known[0] <= settings.idempotency_keys_max
            if counts and auditor.now - known[1] < settings.idempotency_ms * 1_000_000:
                _same(f"idempotency key {key!r} of {name}", stored.get(key), known)
        if len(stored) > 2 * settings.idempotency_keys_max + 100:
            raise Violation("bounded memory", f"{name} has {len(stored)} idempotency keys stored")


def batch_numbers(batch: LeaseBatch) -> tuple[object, ...]:
    leases = {number: lease.remaining for number, lease in batch.leases.items()}
    return batch.consumer is not None, batch.expires_ns, batch.count_attempt, leases


def lease_numbers(queue: Queue) -> dict[int, tuple[int, int]]:
    """Of consumers: when each runs out, and how many messages it holds."""
    leases = {**queue.leases, **queue.extended}
    return {number: (lease.expires_ns, lease.remaining) for number, lease in leases.items()}


def _check_ledger_rows(state: State, store: MemoryStore, away: set[int]) -> None:
    """`away`: numbers of queues that are not in memory."""
    stored: dict[int, int] = {}
    for key, _ in store.scan(rows.STATE, rows.LEDGER_PREFIX, b"h", _ALL, _ALL):
        group = int.from_bytes(key[1:5], "big")
        if group not in {one.group for one in state.unloaded.values()}:
            stored[group] = stored.get(group, 0) + 1
    kept = {number: len(group.records) for number, group in state.groups.items() if group.records}
    _same("ledger rows on the disk", stored, kept)
    lanes = sum(len(key.lanes) for queue in state.queues.values() for key in queue.keys.values())
    found = store.scan(rows.STATE, rows.LANE_PREFIX, b"m", _ALL, _ALL)
    stored_lanes = [key for key, _ in found if rows.owner_of_state(key) not in away]
    _same("lane rows on the disk", len(stored_lanes), lanes)
    buckets = store.scan(rows.STATE, rows.BUCKET_PREFIX, b"c", _ALL, _ALL)
    _same("bucket rows", {key[1:] for key, _ in buckets}, set(state.buckets))


def level_of(bucket: Bucket, now: int) -> float:
    """What a bucket holds, without changing it."""
    return min(bucket.burst, bucket.tokens + max(now - bucket.at_ns, 0) * bucket.rate / NS)


def _numbers(queue: Queue) -> tuple[object, ...]:
    return (
        queue.number,
        queue.group.number,
        queue.visibility_ms,
        queue.max_attempts,
        queue.version,
        queue.on_enqueue,
        queue.on_failure,
        queue.ring.by_bytes,
        queue.ttl_ms,
        queue.drops_expired,
        queue.limits,
        queue.weighed_since,
        queue.weighed,
        {key.name: key.weighed for key in queue.keys.values() if key.weighed},
        queue.created_ns,
        queue.pending,
        queue.keys_pending,
        {id: (lease.number, key, size) for id, (lease, _, key, size) in queue.leased.items()},
        lease_numbers(queue),
        queue.pause,
        queue.key_pauses,
        queue.course,
        {name: one.terms for name, one in queue.overrides.items()},
        {name: (one.rate, one.burst) for name, one in queue.key_buckets.items()},
        {one.name: batch_numbers(one)[1:] for one in queue.lease_batches.values() if one.leases},
    )


def _lane(lane: Lane) -> tuple[object, ...]:
    return lane.number, lane.pending, lane.leased, lane.tail


def _same(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise Violation("counts", f"{what}: {seen!r}, should be {expected!r}")
