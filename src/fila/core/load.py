"""Rebuild the machine's memory from the store alone.

Reads the catalogue, counts and leases. It reads no message that is not leased: a lane's counts tell
where its head stands, and its rows are read when its turn comes. So the time a start takes does not
grow with the backlog.

A group that cannot be loaded is quarantined, and the others are served. Only the catalogue itself
has to be readable: which queues there are, the runtime config and the levels of buckets.
"""

from __future__ import annotations

from typing import Final

from fila.core import (
    aging,
    batch_rows,
    catalogue,
    grouping,
    overriding,
    pausing,
    quarantining,
    reclassify,
    rows,
    throttle,
    ttl,
)
from fila.core.bucket import Bucket, Cap
from fila.core.caps import leased_more, restored
from fila.core.entry import id_of, lane_number_of
from fila.core.extending import drop, keep
from fila.core.lane import DELAY_BIT, LANE_EMPTY, Lane
from fila.core.lease import Lease, LeaseBatch
from fila.core.lease_batch import open_batch
from fila.core.ledger import restore
from fila.core.machine import Machine
from fila.core.pending import fill_window
from fila.core.quarantining import cause_of
from fila.core.queue import Aging, Group, Queue
from fila.core.reader import UNREADABLE, Reader, StoreDamagedError
from fila.core.readiness import new_head
from fila.core.settings import Settings
from fila.core.state import State

_ALL: Final = 1 << 62

Ledger = list[tuple[int, rows.LedgerRow]]


def load(reader: Reader, settings: Settings, now: int) -> Machine:
    """A machine with everything the store holds. Its time never lies before what was stored."""
    machine = Machine(reader, settings)
    state = machine.state
    state.now = now
    try:
        own = _read_ledger(reader, 0)
        _load_catalogue(state)
        marked = quarantining.marked(reader)
        ledgers = _read_ledgers(state)
        seen = [row.now_ns for ledger in (own, *ledgers.values()) for _, row in ledger[-1:]]
        state.now = max([now, *seen])
        _load_buckets(state)
    except StoreDamagedError:
        raise
    except UNREADABLE as error:
        raise StoreDamagedError(f"the catalogue cannot be read: {cause_of(error)}") from error
    for position, _ in own:
        restore(state.groups[0], position, [])
    for number, ledger in ledgers.items():
        group = state.groups.get(number)
        if group is not None:  # else it was quarantined with another
            _try_group(state, group, ledger, number in marked)
    grouping.join(state)
    catalogue.hide_missing(state)
    return machine


def load_group(state: State, number: int) -> None:
    """Take up a group that was unloaded, in a turn. What it holds is what the store says."""
    for name in [one.name for one in state.unloaded.values() if one.group == number]:
        del state.unloaded[name]
        try:
            _add_queue(state, name, _read_queue(state.reader, name))
        except UNREADABLE as error:
            quarantining.set_name_apart(state, name, cause_of(error), error)
    for name, row in [pair for pair in state.hidden.items() if pair[1].group == number]:
        del state.hidden[name]
        _add_queue(state, name, row)
    group = state.groups.get(number)
    if group is None:
        return  # quarantined
    try:
        ledger = _read_ledger(state.reader, number)
    except UNREADABLE as error:
        quarantining.set_apart(state, group, cause_of(error), state.now, error)
        return
    for queue in group.queues:
        queue.batches_before = state.batches_opened + 1
    _try_group(state, group, ledger, number in quarantining.marked(state.reader))
    state.trim_idle()


def _read_queue(reader: Reader, name: str) -> rows.QueueRow:
    value = reader.get(rows.QUEUES, name.encode())
    if value is None:
        raise StoreDamagedError(f'queue "{name}" has no record')
    return rows.read_queue(value)


def _read_ledgers(state: State) -> dict[int, Ledger]:
    """Those of all groups but the catalogue's."""
    ledgers: dict[int, Ledger] = {}
    for number in [number for number in state.groups if number]:
        group = state.groups.get(number)
        if group is None:
            continue  # quarantined with another
        try:
            ledgers[number] = _read_ledger(state.reader, number)
        except MemoryError:
            raise
        except Exception as error:
            quarantining.set_apart(state, group, cause_of(error), state.now, error)
    return ledgers


def _try_group(state: State, group: Group, ledger: Ledger, marked: bool) -> None:
    """Load a group, or quarantine it; one that was quarantined before is read row by row."""
    try:
        _load_group(state, group, ledger)
        if marked:
            quarantining.check_rows(state, group)
            state.ops(state.groups[0]).append(quarantining.unmark(group.number))
    except MemoryError:
        raise
    except Exception as error:
        # Nothing was written: what was built of it in memory goes again.
        quarantining.set_apart(state, group, cause_of(error), state.now, error)


def _load_catalogue(state: State) -> None:
    """Which queues there are, and the runtime config."""
    reader = state.reader
    unreadable: dict[str, Exception] = {}
    for key, value in reader.scan(rows.STATE, rows.CONFIG_PREFIX, b"d", _ALL, _ALL):
        state.config[rows.config_name(key)] = value.decode()
    next_queue = reader.get(rows.STATE, rows.NEXT_QUEUE_KEY)
    if next_queue is not None:
        state.next_queue = int.from_bytes(next_queue, "big")
    for key, value in reader.scan(rows.QUEUES, b"", b"\xff" * 8, _ALL, _ALL):
        try:
            row = rows.read_queue(value)
        except UNREADABLE as error:
            unreadable[key.decode()] = error
            continue
        state.next_queue = max(state.next_queue, row.number + 1, row.group + 1)
        _add_queue(state, key.decode(), row)
    for name, fault in unreadable.items():
        quarantining.set_name_apart(state, name, cause_of(fault), fault)


def _add_queue(state: State, name: str, row: rows.QueueRow) -> None:
    if row.hidden and state.reader.get(rows.STATE, rows.shown_key(row.number)) is None:
        state.hidden[name] = row
        return
    group = state.groups.get(row.group)
    if group is None:
        group = state.groups[row.group] = Group(row.group)
    queue = state.queues[name] = Queue(name, row, group, state.now)
    group.queues.append(queue)


def _load_buckets(state: State) -> None:
    for name, limit in throttle.limits(state.config).items():
        bucket = Bucket(name.encode(), limit.rate, limit.burst, state.now)
        state.buckets[bucket.name] = bucket
        level = state.reader.get(rows.STATE, rows.BUCKET_PREFIX + bucket.name)
        if level is not None:
            tokens, at_ns = rows.read_bucket(level)
            bucket.restore(tokens, at_ns, state.now)
    for name, most in throttle.in_flight_limits(state.config).items():
        state.caps[name.encode()] = Cap(name.encode(), most)


def _read_ledger(reader: Reader, group: int) -> Ledger:
    prefix = rows.LEDGER_PREFIX + rows.queue_prefix(group)
    found = reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL)
    return [(rows.ledger_position(key), rows.read_ledger(value)) for key, value in found]


def _load_group(state: State, group: Group, ledger: Ledger) -> None:
    group.queues.sort(key=lambda queue: queue.number)
    lanes: dict[tuple[int, int], Lane] = {}
    for queue in group.queues:
        queue.stalled_since = queue.loaded_ns = state.now
        pausing.load_pauses(state, queue)
        overriding.load_overrides(state, queue)
        reclassify.load_course(state, queue)
        _load_lanes(state, queue, lanes)
    _load_ledger(group, lanes, ledger)
    for queue in group.queues:
        _load_weights(state, queue, lanes)
    for queue in group.queues:
        _load_leases(state, queue, lanes)
        _load_batches(state, queue)
        aging.load(state, queue)
    for queue in group.queues:
        queue.watch(state.now)
    for lane in lanes.values():
        _load_head(state, lane)


def _load_lanes(state: State, queue: Queue, lanes: dict[tuple[int, int], Lane]) -> None:
    prefix = rows.LANE_PREFIX + rows.queue_prefix(queue.number)
    for key, value in state.reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL):
        row = rows.read_lane(value)
        lane_number = rows.lane_number(key)
        lane = state.add_lane(queue, row.fairness_key, row.throttle_keys, lane_number)
        _restore(lane, row.weight, row.pending, row.tail, row.head, row.throttled_ns)
        lanes[queue.number, lane_number] = lane
        queue.next_lane = max(queue.next_lane, lane_number + 1)


def _load_weights(state: State, queue: Queue, lanes: dict[tuple[int, int], Lane]) -> None:
    prefix = rows.WEIGHT_PREFIX + rows.queue_prefix(queue.number)
    for key, value in state.reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL):
        lanes[queue.number, rows.lane_number(key)].weigh(int.from_bytes(value, "big"))


def _load_ledger(group: Group, lanes: dict[tuple[int, int], Lane], ledger: Ledger) -> None:
    queues = {queue.number: queue for queue in group.queues}
    for position, row in ledger:
        for number, stall_ns in row.clocks:
            queue = queues.get(number)
            if queue is not None:
                # No consumer could take anything since the last batch we know of.
                queue.stall_ns = stall_ns
                queue.stalled_since = row.now_ns
        mentioned = []
        for number, lane_number, weight, pending, tail, head, throttled_ns in row.lanes:
            queue = queues.get(number)
            if queue is not None:
                queue.next_lane = max(queue.next_lane, lane_number + 1)
            lane = lanes.get((number, lane_number))
            if lane is not None:
                _restore(lane, weight, pending, tail, head, throttled_ns)
                mentioned.append(lane)
        restore(group, position, mentioned)


def _restore(
    lane: Lane, weight: int, pending: int, tail: int, head: int, throttled_ns: int
) -> None:
    lane.weight_seen = weight
    lane.pending = pending
    lane.tail = tail
    lane.throttled_ns = throttled_ns
    # Everything from the head's stamp on lies behind this horizon.
    lane.unread_delay = head >= DELAY_BIT
    lane.horizon = lane.place_of(head & ~DELAY_BIT)


def _load_leases(state: State, queue: Queue, lanes: dict[tuple[int, int], Lane]) -> None:
    prefix = rows.queue_prefix(queue.number)
    found = []
    for key, value in state.reader.scan(rows.LEASES, prefix, rows.after(prefix), _ALL, _ALL):
        number = rows.lease_number(key)
        queue.next_lease = max(queue.next_lease, number + 1)
        found.append((number, rows.read_lease(value)))
    found.sort(key=lambda pair: (pair[1].expires_ns, pair[0]))
    for number, row in found:
        lease = Lease(number, queue, None, row.expires_ns, [prefix + tail for tail in row.messages])
        lease.remaining = 0
        for key in lease.keys:
            stored = state.reader.get(rows.MESSAGES, key)
            lane = lanes.get((queue.number, lane_number_of(key)))
            if stored is None or lane is None:
                continue  # finished already: a message row that exists is the truth
            stored = rows.message_row(stored)
            size = len(stored) - rows.MESSAGE_HEAD_BYTES
            queue.leased[id_of(key)] = (lease, lane, key, size)
            lane.leased += 1
            lane.key.leased += 1
            if queue.aging is None and ttl.is_told(stored, rows.MESSAGE_HEAD_BYTES):
                queue.aging = Aging(queue)
            leased_more(lane, 1)
            lane.delivered = max(lane.delivered, key)
            lease.remaining += 1
        if lease.remaining:
            keep(state, queue, lease)


def _load_batches(state: State, queue: Queue) -> None:
    prefix = rows.OPEN_BATCH_PREFIX + rows.queue_prefix(queue.number)
    for key, value in state.reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL):
        row = batch_rows.read_open_batch(value)
        name = batch_rows.open_batch_name(key)
        batch = LeaseBatch(name, queue, row.count_attempt, row.visibility_ms)
        batch.leased_ns = row.leased_ns
        batch.expires_ns = row.expires_ns
        for number in row.leases:
            lease = queue.leases.get(number) or queue.extended.get(number)
            if lease is not None:
                drop(state, queue, lease)
                lease.batch = batch
                batch.leases[number] = lease
                batch.bytes += sum(
                    [
                        queue.leased[id_of(key)][3]
                        for key in lease.keys
                        if id_of(key) in queue.leased
                    ]
                )
        if batch.leases:
            queue.lease_batches[batch.name] = batch
            open_batch(state, batch)
            state.deadlines.arm(batch, batch.expires_ns)


def _load_head(state: State, lane: Lane) -> None:
    queue = lane.queue
    key = lane.key
    # The same in all of its lanes, unless the limit is lower than it was.
    key.told_weight = min(lane.weight_seen, state.settings.weight_max)
    state.weigh(queue, key)
    restored(lane)
    if lane.pending or lane.leased:
        state.idle.pop(lane, None)
    if lane.pending == 0:
        lane.horizon = b""
        return
    if key.pending == 0:
        queue.keys_pending += 1
    key.pending += lane.pending
    queue.pending += lane.pending
    if state.journal:
        lane.later = state.times.unread
    if lane.horizon < lane.delivered:
        # Messages were handed back before ones that are still leased: those in between are read
        # now, so that the horizon lies above everything that was ever delivered.
        fill_window(state, lane, state.settings.head_messages)
    assert lane.state == LANE_EMPTY
    new_head(state, lane)
