"""Queues come and go, and so do runtime settings. Everything either implies happens here."""

from __future__ import annotations

from fila.core import (
    effect,
    grouping,
    key_rows,
    overriding,
    rejection,
    rows,
    throttle,
)
from fila.core.bucket import Bucket
from fila.core.byte_cost import COST_BYTES, COSTS, cost_of
from fila.core.caps import free_slots, in_flight_fault, set_cap
from fila.core.command import CreateQueue, DeleteQueue, SetConfig, StoreAuth
from fila.core.effect import Ended, Event
from fila.core.lane import LANE_EMPTY, LANE_PARKED
from fila.core.lease_batch import forget_batches
from fila.core.queue import DLQ_SUFFIX, Group, Queue
from fila.core.readiness import arm_bucket, leave_line, make_ready
from fila.core.rejection import Rejection, invalid_value
from fila.core.row_batch import (
    DELETE,
    DELETE_QUEUE,
    DELETE_RANGE,
    DELETE_STATE,
    PUT,
    PUT_QUEUE,
    PUT_STATE,
    Op,
)
from fila.core.rows import QueueRow
from fila.core.settings import Settings
from fila.core.state import State


def create_queue(state: State, command: CreateQueue) -> Rejection | None:
    """Create a queue and its dead-letter queue."""
    name = command.queue
    settings = state.settings
    why = name_fault(name, settings.name_bytes_max)
    if why is not None:
        return invalid_value("queue name", why)
    if name in state.queues or name in state.unloaded:
        return Rejection(rejection.QUEUE_ALREADY_EXISTS, f'queue "{name}" already exists')
    for taken in (name, name + DLQ_SUFFIX):
        if taken in state.quarantined:
            return state.no_queue(taken)
    group = grouping.group_for(state, name)
    if isinstance(group, Rejection):
        return group
    visibility_ms = command.visibility_ms or settings.visibility_ms_default
    fault = visibility_fault(settings, visibility_ms)
    if fault is not None:
        return fault
    known = len(state.queues) + len(state.hidden) + len(state.quarantined) + len(state.unloaded)
    if known + 2 > settings.queues_max:
        return invalid_value("queue", f"there are {settings.queues_max} queues already, the limit")
    fault = attempts_fault(settings, name, command.max_attempts)
    if fault is not None:
        return fault
    fault = in_flight_fault(settings, command.max_in_flight_per_key)
    if fault is not None:
        return fault
    if command.cost not in COSTS:
        return invalid_value("cost", f'"{command.cost}" is none; use "messages" or "bytes"')
    state.groups[group.number] = group
    _add_queue(state, name, group, visibility_ms, command)
    queue = state.queues[name]
    dlq = queue.dlq_name()
    if dlq is not None and dlq not in state.queues:
        _add_queue(state, dlq, group, visibility_ms, _wanted_for_dead_letters(queue))
    return None


def visibility_fault(settings: Settings, visibility_ms: int) -> Rejection | None:
    """Why a queue's leases cannot last so long, if so."""
    if visibility_ms < settings.visibility_ms_min:
        return invalid_value(
            "visibility timeout",
            f"{visibility_ms} ms is too short; use 0 for the default or at least "
            f"{settings.visibility_ms_min} ms",
        )
    if visibility_ms > settings.visibility_ms_max:
        return invalid_value(
            "visibility timeout",
            f"{visibility_ms} ms is too long; the longest is {settings.visibility_ms_max} ms",
        )
    return None


def attempts_fault(settings: Settings, name: str, max_attempts: int) -> Rejection | None:
    """Why that cannot be the queue's delivery limit, if so."""
    if max_attempts > settings.max_attempts_max:
        return invalid_value(
            "max_attempts",
            f"{max_attempts} is too many; the most is {settings.max_attempts_max}, and 0 "
            "is no limit",
        )
    if max_attempts and name.endswith(DLQ_SUFFIX):
        return invalid_value("max_attempts", f'"{name}" has no dead-letter queue of its own')
    return None


def dead_letters_of(state: State, queue: Queue) -> Queue | None:
    """The queue's dead-letter queue, there again if it was hidden; None for one without. Writes
    nothing outside of the queue's own group."""
    name = queue.dlq_name()
    if name is None:
        return None
    return state.queues.get(name) or _show(state, name, queue.group)


def delete_queue(state: State, command: DeleteQueue) -> Rejection | None:
    """Remove a queue, its messages, leases and automatic dead-letter queue. A dead-letter queue
    whose queue stays is emptied and hidden."""
    name = command.queue
    queue = state.queues.get(name)
    if queue is None:
        return _delete_quarantined(state, name)
    group = queue.group
    _remove_queue(state, queue)
    dlq = queue.dlq_name()
    if dlq is not None:
        own = state.queues.get(dlq)
        if own is not None and own.number > queue.number:  # else it was made by hand, before it
            _remove_queue(state, own)
        _forget_hidden(state, dlq)
    parent = grouping.parent_of(state, queue)
    if parent is not None:
        _hide(state, name, parent)
    if not group.queues:
        del state.groups[group.number]
        _end_group(state, group)
    return None


def _delete_quarantined(state: State, name: str) -> Rejection | None:
    """Drop the rows of a queue that is not in memory, and those of its dead-letter queue."""
    one = state.quarantined.get(name)
    if one is None:
        return state.no_queue(name)
    if not one.number:
        return Rejection(
            rejection.STORAGE_ERROR,
            f'queue "{name}" cannot be deleted: its own record cannot be read ({one.cause}), so it '
            "is not known which messages are its; `fila-server --salvage DIR` keeps them",
        )
    group = _group_apart(state, one.group)
    kin = [other for other in state.quarantined.values() if other.group == one.group]
    gone = [other for other in kin if other.name in (name, name + DLQ_SUFFIX)]
    for other in gone:
        del state.quarantined[other.name]
        _delete_rows(state.ops(group), other.number)
        state.ops(state.groups[0]).append((DELETE_QUEUE, other.name.encode(), b""))
        if state.journal:
            state.events.append(Event(state.now, effect.EVENT_QUEUE_DELETED, other.name))
    if not name.endswith(DLQ_SUFFIX):
        _forget_hidden(state, name + DLQ_SUFFIX)
    if len(gone) == len(kin):
        _end_group(state, group)
    return None


def _group_apart(state: State, number: int) -> Group:
    """A group that is not in memory: what is written of it has no ledger record."""
    for group in state.dirty_groups:
        if group.number == number:
            return group
    group = Group(number)
    group.over = True
    return group


def _end_group(state: State, group: Group) -> None:
    """With its last queue: its own batch takes its ledger along."""
    group.over = True
    ledger = rows.LEDGER_PREFIX + rows.queue_prefix(group.number)
    state.ops(group).append((DELETE_RANGE | rows.STATE, ledger, rows.after(ledger)))
    state.ops(state.groups[0]).append((DELETE_STATE, rows.quarantine_key(group.number), b""))


def set_config(state: State, command: SetConfig) -> Rejection | None:
    """Write, or with an empty value remove, a runtime setting."""
    key, value = command.key, command.value
    if not key or len(key.encode()) > state.settings.config_key_bytes_max:
        return invalid_value("config key", "use 1 to 1,024 bytes of UTF-8")
    value_bytes_max = state.settings.config_value_bytes_max
    if len(value.encode()) > value_bytes_max:
        return invalid_value("config value", f"it is longer than {value_bytes_max} bytes")
    capped = throttle.in_flight(key, value)
    change = throttle.change(key, value, state.config) if capped is None else None
    if isinstance(capped, Rejection):
        return capped
    if isinstance(change, Rejection):
        return change
    ops = state.ops(state.groups[0])
    puts = change.puts if change is not None else [(key, value)] if value else []
    removes = change.removes if change is not None else [] if value else [key]
    for gone in removes:
        if state.config.pop(gone, None) is not None:
            ops.append((DELETE_STATE, rows.CONFIG_PREFIX + gone.encode(), b""))
    for name, text in puts:
        state.config[name] = text
        ops.append((PUT_STATE, rows.CONFIG_PREFIX + name.encode(), text.encode()))
    if change is not None:
        set_limit(state, change.name.encode(), change.limit)
    if capped is not None:
        set_cap(state, capped[0].encode(), capped[1])
    if state.journal:
        state.events.append(
            Event(state.now, effect.EVENT_CONFIG_CHANGED, "", reason=f"{key}={value}")
        )
    return None


def store_auth(state: State, command: StoreAuth) -> None:
    """Write a row of the auth family, which neither config nor hooks can reach."""
    kind = PUT if command.value is not None else DELETE
    ops = state.ops(state.groups[0])
    ops.append((kind | rows.AUTH, command.key, command.value or b""))


def set_limit(state: State, name: bytes, limit: throttle.Limit | None) -> None:
    """Give a throttle key a bucket, change it, or lift the limit."""
    bucket = state.buckets.get(name)
    lanes = list(state.lanes_of_throttle.get(name, ()))
    if limit is None:
        if bucket is None:
            return
        del state.buckets[name]
        state.drop_bucket(bucket)
        for lane in lanes:
            lane.buckets.remove(bucket)
            if lane.line_of is bucket:
                leave_line(lane)
                if lane.state == LANE_PARKED:
                    make_ready(state, lane)
        ops = state.ops(state.groups[0])
        ops.append((DELETE_STATE, rows.BUCKET_PREFIX + name, b""))
        return
    if bucket is None:
        bucket = state.buckets[name] = Bucket(name, limit.rate, limit.burst, state.now)
        for lane in lanes:
            lane.buckets.append(bucket)
    else:
        bucket.change(limit.rate, limit.burst, state.now)
        if bucket.waiters:
            arm_bucket(state, bucket)
    state.use_bucket(bucket)


def name_fault(name: str, bytes_max: int) -> str | None:
    """What is wrong with a queue name, if anything."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not valid UTF-8"
    if size == 0:
        return "it is empty"
    if size > bytes_max:
        return f"it has {size} bytes; the longest has {bytes_max}"
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in name):
        return "it holds a control character"
    return None


def _add_queue(
    state: State,
    name: str,
    group: Group,
    visibility_ms: int,
    wanted: CreateQueue,
) -> None:
    row = _new_row(state, group, visibility_ms, wanted)
    state.hidden.pop(name, None)
    _serve(state, name, row, group)
    ops = state.ops(state.groups[0])
    ops.append((PUT_QUEUE, name.encode(), rows.queue_row(row)))


def _new_row(state: State, group: Group, visibility_ms: int, wanted: CreateQueue) -> QueueRow:
    """A queue's record, with a number nothing had before."""
    number = state.next_queue
    state.next_queue = number + 1
    ops = state.ops(state.groups[0])
    ops.append((PUT_STATE, rows.NEXT_QUEUE_KEY, state.next_queue.to_bytes(4, "big")))
    return QueueRow(
        number,
        group.number,
        visibility_ms,
        state.now,
        wanted.on_enqueue,
        wanted.on_failure,
        wanted.max_attempts,
        by_bytes=wanted.cost == COST_BYTES,
        max_in_flight_per_key=wanted.max_in_flight_per_key,
    )


def _serve(state: State, name: str, row: QueueRow, group: Group) -> Queue:
    queue = state.queues[name] = Queue(name, row, group, state.now)
    group.queues.append(queue)
    state.ops(group)  # a position from the start
    if state.journal:
        settings = f"visibility_ms={row.visibility_ms}"
        if row.by_bytes:
            settings += ",cost=bytes"
        state.events.append(Event(state.now, effect.EVENT_QUEUE_CREATED, name, reason=settings))
    return queue


def _wanted_for_dead_letters(queue: Queue) -> CreateQueue:
    return CreateQueue(queue.name + DLQ_SUFFIX, cost=cost_of(queue.ring))


def _hide(state: State, name: str, parent: Queue) -> None:
    """The dead-letter queue is deleted, its queue is not: the catalogue keeps a record of what it
    will be, so that the next dead letter finds it without the catalogue."""
    row = _new_row(state, parent.group, parent.visibility_ms, _wanted_for_dead_letters(parent))
    row = row._replace(hidden=True)
    state.hidden[name] = row
    state.ops(state.groups[0]).append((PUT_QUEUE, name.encode(), rows.queue_row(row)))


def hide_missing(state: State) -> None:
    """After a start: a queue whose dead-letter queue an older Fila deleted gets a hidden one."""
    for queue in list(state.queues.values()):
        name = queue.dlq_name()
        known = (state.queues, state.hidden, state.quarantined, state.unloaded)
        if name is not None and not any(name in one for one in known):
            _hide(state, name, queue)


def _show(state: State, name: str, group: Group) -> Queue:
    row = state.hidden.pop(name)
    state.ops(group).append((PUT_STATE, rows.shown_key(row.number), b"\x01"))
    return _serve(state, name, row, group)


def _forget_hidden(state: State, name: str) -> None:
    if state.hidden.pop(name, None) is not None:
        state.ops(state.groups[0]).append((DELETE_QUEUE, name.encode(), b""))


def _remove_queue(state: State, queue: Queue) -> None:
    """Its memory and its rows. Operations of this turn come before the deletes and go, too."""
    forget_queue(state, queue, rejection.queue_not_found(queue.name))
    _delete_rows(state.ops(queue.group), queue.number)
    state.ops(state.groups[0]).append((DELETE_QUEUE, queue.name.encode(), b""))
    if state.journal:
        state.events.append(Event(state.now, effect.EVENT_QUEUE_DELETED, queue.name))


def forget_queue(state: State, queue: Queue, why: Rejection) -> None:
    """The queue is in memory no more; who consumes it or waits for a batch is told why."""
    group = queue.group
    queue.gone = why
    del state.queues[queue.name]
    group.queues.remove(queue)
    group.touched = [lane for lane in group.touched if lane.queue is not queue]
    state.windows.forget(queue)
    _forget_lanes(state, queue)
    state.deadlines.disarm(queue)
    if queue.aging is not None:
        state.deadlines.disarm(queue.aging)
        queue.aging = None  # they refer to each other
    state.due_aging.pop(queue, None)
    overriding.forget(state, queue)
    for lease in queue.extended.values():
        state.deadlines.disarm(lease)
    state.due_queues.pop(queue, None)
    if queue.touched:
        state.touched.remove(queue)
        queue.touched = False
    forget_batches(state, queue, why)
    state.returning.forget(queue)
    for consumer in queue.consumers.values():
        consumer.gone = True
        state.ended.append(Ended(consumer, why))
    state.remains.append(queue)


def _forget_lanes(state: State, queue: Queue) -> None:
    """Nothing of the machine refers to the queue's lanes any more. Lanes may be many, so little is
    done for each; what they hold is freed later (`remains.py`)."""
    windows, idle = state.windows, state.idle
    window_bytes = 0
    for key in queue.keys.values():
        for lane in key.lanes.values():
            if lane.caps and lane.leased:
                free_slots(state, lane, lane.leased)
            lane.forgotten = True
            lane.state = LANE_EMPTY
            window_bytes += lane.window_bytes
            if lane.armed_ns:
                state.deadlines.disarm(lane)
            if lane.unflushed:
                windows.unflushed.pop(lane, None)
            idle.pop(lane, None)
            if lane.later is not None:
                lane.later.forget()
            if lane.line_of is not None:
                leave_line(lane)
            for name in lane.throttle_keys:
                lanes = state.lanes_of_throttle[name]
                lanes.pop(lane, None)
                if not lanes:
                    del state.lanes_of_throttle[name]
        queue.group.forgotten += len(key.lanes)
    windows.bytes -= window_bytes
    for cap in [cap for cap in state.freed if not cap.waiters]:
        del state.freed[cap]


def _delete_rows(ops: list[Op], queue: int) -> None:
    """Everything that is stored under the queue's number."""
    prefix = rows.queue_prefix(queue)
    for family, kinds in (
        (rows.MESSAGES, (b"",)),
        (rows.LEASES, (b"",)),
        (rows.STATE, rows.QUEUE_PREFIXES),
        (rows.IDEMPOTENCY, key_rows.KEY_PREFIXES),
    ):
        for kind in kinds:
            ops.append((DELETE_RANGE | family, kind + prefix, rows.after(kind + prefix)))
