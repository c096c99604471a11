"""Redrive: dead letters go back to the queue they came from, oldest first."""

from __future__ import annotations

import heapq

from fila.core import effect, events, rejection
from fila.core.command import Redrive
from fila.core.entry import BODY, ENQUEUED_NS, KEY, STAMP, Entry, message_id
from fila.core.lane import Lane
from fila.core.pending import complete, fill_window, remove_head, store
from fila.core.queue import DLQ_SUFFIX, Queue
from fila.core.rejection import Rejection
from fila.core.row_batch import DELETE_MESSAGE
from fila.core.state import State


def parent_of(state: State, name: str) -> tuple[Queue, Queue] | Rejection:
    """The dead-letter queue of that name and the queue it belongs to."""
    dlq = state.queues.get(name)
    if dlq is None:
        return state.no_queue(name)
    if not name.endswith(DLQ_SUFFIX):
        return Rejection(rejection.NOT_A_DLQ, f'"{name}" is not a dead-letter queue')
    parent = state.queues.get(name[: -len(DLQ_SUFFIX)])
    if parent is None:
        return Rejection(
            rejection.PARENT_QUEUE_NOT_FOUND,
            f'queue "{name[: -len(DLQ_SUFFIX)]}", which "{name}" belongs to, does not exist; '
            "create it first",
        )
    return dlq, parent


def oldest(state: State, queue: Queue, count: int) -> list[Entry]:
    """Up to `count` pending messages of all lanes, the oldest first; none are taken out."""
    heap = _heads(state, queue)
    found: list[Entry] = []
    taken = {lane: 0 for _, _, lane in heap}
    while heap and len(found) < count:
        _, number, lane = heap[0]
        at = taken[lane]
        found.append(complete(state, lane.window[at]))
        taken[lane] = at = at + 1
        if at < len(lane.window):
            heapq.heapreplace(heap, (lane.window[at][STAMP], number, lane))
        elif lane.horizon:
            break  # what comes next in this lane is not in memory: a later step takes it
        else:
            heapq.heappop(heap)
    return found


def redrive(state: State, command: Redrive) -> int | Rejection:
    """Move the given messages, which `oldest` named, back. Returns how many moved."""
    pair = parent_of(state, command.queue)
    if isinstance(pair, Rejection):
        return pair
    dlq, parent = pair
    heap = _heads(state, dlq)
    moved = 0
    for id, assignment in zip(command.ids, command.assignments, strict=True):
        if not heap:
            break
        _, number, lane = heap[0]
        if message_id(lane.window[0]) != id:
            break
        was_active = lane.key.active
        entry = remove_head(state, lane)
        if state.journal:
            delta = lane.key.active - was_active
            state.events.append(events.moved(lane, state.now, delta))
        if lane.window:
            heapq.heapreplace(heap, (lane.window[0][STAMP], number, lane))
        else:
            heapq.heappop(heap)
        state.ops(dlq.group).append((DELETE_MESSAGE, entry[KEY], b""))
        target = state.lane(parent, assignment.fairness_key, assignment.throttle_keys)
        weight = min(max(assignment.weight, 1), state.settings.weight_max)
        state.set_weight(parent, target.key, weight)
        was_active = target.key.active
        again = store(state, target, id, 0, weight, entry[ENQUEUED_NS], entry[BODY], delay_ms=0)
        if state.journal:
            delta = target.key.active - was_active
            event = events.of_message(
                effect.EVENT_REDRIVEN, target, again, state.now, ring_delta=delta
            )
            state.events.append(event._replace(source_queue=dlq.name))
        moved += 1
    dlq.counters.redriven += moved
    return moved


def _heads(state: State, queue: Queue) -> list[tuple[int, int, Lane]]:
    heap = []
    for key in queue.keys.values():
        for lane in key.lanes.values():
            if lane.pending and not lane.window:
                fill_window(state, lane, state.settings.head_messages)
            if lane.window:
                heap.append((lane.window[0][STAMP], lane.number, lane))
    heapq.heapify(heap)
    return heap
