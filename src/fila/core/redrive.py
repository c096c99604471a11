"""Redrive: dead letters go back to the queue they came from, oldest first."""

from __future__ import annotations

import heapq
from typing import cast

from fila.core import aging, effect, events, rejection
from fila.core.command import Redrive
from fila.core.entry import BODY, ENQUEUED_NS, KEY, STAMP, Entry, message_id
from fila.core.heads import Heads
from fila.core.lane import Lane
from fila.core.obituary import original
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


def begin(queue: Queue) -> None:
    """Dead letters of this queue will be moved: keep its lanes by the age of their heads."""
    if queue.heads is None:
        keys = list(queue.keys.values())
        queue.heads = Heads(lane for key in keys for lane in list(key.lanes.values()))


def end(queue: Queue) -> None:
    """No dead letters are moved any more."""
    queue.heads = None


def oldest(state: State, queue: Queue, count: int) -> list[Entry]:
    """Up to `count` pending messages of all lanes, the oldest first; none are taken out. What is
    not in memory is read, of so many lanes at most."""
    heads = queue.heads
    if heads is None or not heads.complete:
        heads = _heads(queue)
    found: list[Entry] = []
    taken: dict[Lane, int] = {}  # lanes that were looked at, and how many of theirs were found
    heap: list[tuple[int, int, Lane]] = []  # of these lanes: the stamp of what would come next
    pages = state.settings.redrive_pages
    following = heads.pop()
    bytes_left = state.settings.page_bytes  # large messages are moved a few at a time
    try:
        while len(found) < count and bytes_left > 0:
            if following is not None and (
                not heap or (following.head_stamp(), following.number) < heap[0][:2]
            ):
                lane = cast(Lane, following)
                if lane not in taken:
                    taken[lane] = 0
                    if not lane.window:
                        if pages == 0:
                            break  # a later step takes it
                        pages -= 1
                        fill_window(state, lane, state.settings.head_messages)
                    heapq.heappush(heap, (lane.window[0][STAMP], lane.number, lane))
                following = heads.pop()
                continue
            if not heap:
                break
            _, number, lane = heap[0]
            at = taken[lane]
            entry = complete(state, lane.window[at])
            found.append(entry)
            bytes_left -= len(entry[BODY])
            taken[lane] = at = at + 1
            if at < len(lane.window):
                heapq.heapreplace(heap, (lane.window[at][STAMP], number, lane))
            elif lane.horizon:
                break  # what comes next in this lane is not in memory: a later step takes it
            else:
                heapq.heappop(heap)
    finally:  # also if a page cannot be read: another redrive of the queue finds that out, too
        if following is not None:
            heads.add(following)
        for lane in taken:
            heads.add(lane)
    return found


def redrive(state: State, command: Redrive) -> int | Rejection:
    """Move the given messages, which `oldest` named, back. Returns how many moved."""
    pair = parent_of(state, command.queue)
    if isinstance(pair, Rejection):
        return pair
    dlq, parent = pair
    heads = dlq.heads
    if heads is None or not heads.complete:
        heads = _heads(dlq)
    moved = 0
    for id, assignment in zip(command.ids, command.assignments, strict=True):
        lane = cast(Lane | None, heads.pop())
        if lane is None:
            break
        if not lane.window:
            if moved:  # it made room for those that moved; nothing is read half-way
                heads.add(lane)
                break
            fill_window(state, lane, state.settings.head_messages)
        if message_id(lane.window[0]) != id:
            heads.add(lane)
            break
        was_active = lane.key.active
        entry = remove_head(state, lane)
        heads.add(lane)
        if state.journal:
            delta = lane.key.active - was_active
            state.events.append(events.moved(lane, state.now, delta))
        state.ops(dlq.group).append((DELETE_MESSAGE, entry[KEY], b""))
        target = state.lane(parent, assignment.fairness_key, assignment.throttle_keys)
        weight = min(max(assignment.weight, 1), state.settings.weight_max)
        state.set_weight(parent, target.key, weight)
        was_active = target.key.active
        body = aging.stamped(state, parent, original(entry[BODY]))
        again = store(state, target, id, 0, weight, entry[ENQUEUED_NS], body, delay_ms=0)
        if state.journal:
            delta = target.key.active - was_active
            event = events.of_message(
                effect.EVENT_REDRIVEN, target, again, state.now, ring_delta=delta
            )
            state.events.append(event._replace(source_queue=dlq.name, weight=target.key.weight))
        moved += 1
    dlq.counters.redriven += moved
    return moved


def _heads(queue: Queue) -> Heads:
    """For once."""
    heads = Heads(lane for key in queue.keys.values() for lane in key.lanes.values())
    heads.gather(1 << 62)
    return heads
