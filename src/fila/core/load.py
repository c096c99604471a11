"""Rebuild the machine's memory from the store alone: at start, or when a group moves here.

Reads the catalogue, counts and leases. It reads no message that is not leased: a lane's counts tell
where its head stands, and its rows are read when its turn comes. So the time a start takes does not
grow with the backlog.
"""

from __future__ import annotations

from fila.core import pausing, rows, throttle
from fila.core.bucket import Bucket
from fila.core.entry import id_of, lane_number_of
from fila.core.lane import DELAY_BIT, LANE_EMPTY, Lane
from fila.core.lease import Lease, LeaseBatch
from fila.core.ledger import restore
from fila.core.machine import Machine
from fila.core.pending import fill_window
from fila.core.queue import Group, Queue
from fila.core.reader import Reader
from fila.core.readiness import leave_line, new_head
from fila.core.settings import Settings
from fila.core.state import State

_ALL = 1 << 62


def load(reader: Reader, settings: Settings, now: int) -> Machine:
    """A machine with everything the store holds. Its time never lies before what was stored."""
    machine = Machine(reader, settings)
    state = machine.state
    load_catalogue(state)
    ledgers = {number: _read_ledger(reader, number) for number in state.groups}
    seen = [row.now_ns for ledger in ledgers.values() for _, row in ledger[-1:]]
    state.now = max([now, *seen])
    for position, _ in ledgers[0]:
        restore(state.groups[0], position, [])
    _load_buckets(state)
    for number, ledger in ledgers.items():
        if number:
            _load_group(state, state.groups[number], ledger)
    return machine


def load_catalogue(state: State) -> None:
    """Which queues there are, and the runtime config."""
    reader = state.reader
    for key, value in reader.scan(rows.STATE, rows.CONFIG_PREFIX, b"d", _ALL, _ALL):
        state.config[rows.config_name(key)] = value.decode()
    next_queue = reader.get(rows.STATE, rows.NEXT_QUEUE_KEY)
    if next_queue is not None:
        state.next_queue = int.from_bytes(next_queue, "big")
    for key, value in reader.scan(rows.QUEUES, b"", b"\xff" * 8, _ALL, _ALL):
        row = rows.read_queue(value)
        group = state.groups.get(row.group)
        if group is None:
            group = state.groups[row.group] = Group(row.group)
        queue = Queue(key.decode(), row, group, state.now)
        state.queues[queue.name] = queue
        group.queues.append(queue)


def load_group(state: State, number: int) -> None:
    """The lanes and leases of one group of a running machine, whose queues are in the catalogue."""
    _load_group(state, state.groups[number], _read_ledger(state.reader, number))


def unload_group(state: State, number: int) -> None:
    """Forget a group's memory; its rows stay as they are."""
    group = state.groups.pop(number)
    assert not group.dirty, "a group is unloaded between turns"
    for queue in group.queues:
        del state.queues[queue.name]
        state.deadlines.disarm(queue)
        state.due_queues.pop(queue, None)
        for batch in queue.lease_batches.values():
            state.deadlines.disarm(batch)
            state.due_lease_batches.pop(batch, None)
            state.filling.pop(batch, None)
            state.patient.pop(batch, None)
        if queue.touched:
            state.touched.remove(queue)
            queue.touched = False
        state.windows.forget(queue)
        for key in queue.keys.values():
            for lane in key.lanes.values():
                state.windows.bytes -= lane.window_bytes
                state.deadlines.disarm(lane)
                leave_line(lane)
                state.idle.pop(lane, None)
                for name in lane.throttle_keys:
                    state.lanes_of_throttle[name].pop(lane, None)


def _load_buckets(state: State) -> None:
    for name, limit in throttle.limits(state.config).items():
        bucket = Bucket(name.encode(), limit.rate, limit.burst, state.now)
        state.buckets[bucket.name] = bucket
        level = state.reader.get(rows.STATE, rows.BUCKET_PREFIX + bucket.name)
        if level is not None:
            tokens, at_ns = rows.read_bucket(level)
            bucket.restore(tokens, at_ns, state.now)


def _read_ledger(reader: Reader, group: int) -> list[tuple[int, rows.LedgerRow]]:
    prefix = rows.LEDGER_PREFIX + rows.queue_prefix(group)
    found = reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL)
    return [(rows.ledger_position(key), rows.read_ledger(value)) for key, value in found]


def _load_group(state: State, group: Group, ledger: list[tuple[int, rows.LedgerRow]]) -> None:
    group.queues.sort(key=lambda queue: queue.number)
    lanes: dict[tuple[int, int], Lane] = {}
    for queue in group.queues:
        queue.stalled_since = state.now
        pausing.load_pauses(state, queue)
        _load_lanes(state, queue, lanes)
    _load_ledger(group, lanes, ledger)
    for queue in group.queues:
        _load_leases(state, queue, lanes)
        _load_batches(state, queue)
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


def _load_ledger(
    group: Group, lanes: dict[tuple[int, int], Lane], ledger: list[tuple[int, rows.LedgerRow]]
) -> None:
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
        lease = Lease(number, None, row.expires_ns, [prefix + tail for tail in row.messages])
        lease.remaining = 0
        for key in lease.keys:
            stored = state.reader.get(rows.MESSAGES, key)
            lane = lanes.get((queue.number, lane_number_of(key)))
            if stored is None or lane is None:
                continue  # finished already: a message row that exists is the truth
            size = len(stored) - rows.MESSAGE_HEAD_BYTES
            queue.leased[id_of(key)] = (lease, lane, key, size)
            lane.leased += 1
            lane.delivered = max(lane.delivered, key)
            lease.remaining += 1
        if lease.remaining:
            queue.leases[number] = lease
    if queue.leases:
        state.deadlines.arm(queue, next(iter(queue.leases.values())).expires_ns)


def _load_batches(state: State, queue: Queue) -> None:
    prefix = rows.OPEN_BATCH_PREFIX + rows.queue_prefix(queue.number)
    for key, value in state.reader.scan(rows.STATE, prefix, rows.after(prefix), _ALL, _ALL):
        row = rows.read_open_batch(value)
        batch = LeaseBatch(rows.open_batch_name(key), queue, row.count_attempt, row.visibility_ms)
        batch.leased_ns = row.leased_ns
        batch.expires_ns = row.expires_ns
        for number in row.leases:
            lease = queue.leases.pop(number, None)
            if lease is not None:
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
            state.deadlines.arm(batch, batch.expires_ns)


def _load_head(state: State, lane: Lane) -> None:
    queue = lane.queue
    key = lane.key
    # The same in all of its lanes, unless the limit is lower than it was.
    key.weight = min(lane.weight_seen, state.settings.weight_max)
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
