"""Which log group a queue is in: a queue and its dead-letter queue always share one.

So one command writes one group, whichever of the two was made first, and a dead letter moves within
its group. A store of a time when that was not so is put right when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator

from fila.core import rows
from fila.core.ledger import put_lane
from fila.core.queue import DLQ_SUFFIX, Group, Queue
from fila.core.rejection import Rejection
from fila.core.row_batch import DELETE_RANGE, PUT_QUEUE
from fila.core.state import State


def group_for(state: State, name: str) -> Group | Rejection:
    """The group of a new queue of this name: that of its kin, or one of its own. Where the kin is
    not in memory, nothing can be made here."""
    for other in _kin(name, state.settings.name_bytes_max):
        queue = state.queues.get(other)
        if queue is not None:
            return queue.group
        if other in state.unloaded:
            return state.no_queue(other)
    return Group(state.next_queue)


def parent_of(state: State, queue: Queue) -> Queue | None:
    """The queue whose dead letters this one takes."""
    if not queue.name.endswith(DLQ_SUFFIX):
        return None
    parent = state.queues.get(queue.name.removesuffix(DLQ_SUFFIX))
    return parent if parent is not None and parent.dlq_name() == queue.name else None


def join(state: State) -> None:
    """After a start: what an older Fila kept in two groups moves into one, with the first turn."""
    for queue in list(state.queues.values()):
        first = min(
            (state.queues[name].group for name in _kin(queue.name, state.settings.name_bytes_max)
             if name in state.queues),
            key=lambda group: group.number,
        )  # fmt: skip
        if queue.group is not first:
            _move(state, queue, first)


def _kin(name: str, bytes_max: int) -> Iterator[str]:
    """All names of the same family: the queue, its dead-letter queue, and so on."""
    while name.endswith(DLQ_SUFFIX):
        name = name.removesuffix(DLQ_SUFFIX)
    while len(name.encode()) <= bytes_max:
        yield name
        name += DLQ_SUFFIX


def _move(state: State, queue: Queue, group: Group) -> None:
    """To another group. Its counts become rows of their own: its old ledger is left behind."""
    old = queue.group
    old.queues.remove(queue)
    queue.group = group
    for bucket in queue.key_buckets.values():
        bucket.group = group.number
    group.queues.append(queue)
    group.queues.sort(key=lambda one: one.number)
    ops = state.ops(group)
    for key in queue.keys.values():
        for lane in key.lanes.values():
            lane.ledger_position = 0
            ops.append(put_lane(lane, state.now))
    catalogue = state.ops(state.groups[0])
    row = rows.read_queue(_stored(state, queue.name))._replace(group=group.number)
    catalogue.append((PUT_QUEUE, queue.name.encode(), rows.queue_row(row)))
    if not old.queues:
        del state.groups[old.number]
        old.over = True
        ledger = rows.LEDGER_PREFIX + rows.queue_prefix(old.number)
        state.ops(old).append((DELETE_RANGE | rows.STATE, ledger, rows.after(ledger)))


def _stored(state: State, name: str) -> bytes:
    value = state.reader.get(rows.QUEUES, name.encode())
    assert value is not None, "it was just loaded"
    return value
