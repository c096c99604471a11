"""Enqueuing: messages are put into the lanes their verdicts name."""

from __future__ import annotations

from typing import Final

from fila.core import aging, idempotency, room
from fila.core.command import Enqueue, EnqueueKeyed
from fila.core.eligible import eligible
from fila.core.entry import STALL_NS, STAMP
from fila.core.pending import store
from fila.core.queue import Queue
from fila.core.room import Crowded
from fila.core.state import State
from fila.core.trail import SPAN_ENQUEUED

NO_HEADERS: Final = b"\0\0"


def enqueue(state: State, queue: Queue, command: Enqueue) -> Crowded | None:
    """Store messages, as far as there is room."""
    crowded = None
    if queue.limits is not None:
        crowded = room.admit(state, queue, command.bodies, command.assignments)
        if crowded is not None and crowded.refused:
            command = _kept(command, crowded.refused)
    _store(state, queue, command)
    return crowded


def _store(state: State, queue: Queue, command: Enqueue) -> None:
    now = state.now
    keys = queue.keys
    ring = queue.ring
    delays = command.delays_ms
    at = 0
    trail = state.events if state.journal else None
    if trail is not None:
        trail.begin(SPAN_ENQUEUED, now)
        trail.enqueued_ids += command.ids
        lanes = trail.enqueued_lanes
        numbers = trail.enqueued_numbers
    weight_max = state.settings.weight_max
    ttl_ms = queue.ttl_ms
    for id, body, assignment in zip(command.ids, command.bodies, command.assignments, strict=True):
        fairness_key, weight, throttle_keys = assignment
        key = keys.get(fairness_key)
        if key is not None:
            lane = key.lanes.get(throttle_keys)
            if lane is None:
                lane = state.lane(queue, fairness_key, throttle_keys)
        else:
            lane = state.lane(queue, fairness_key, throttle_keys)
            key = lane.key
        if weight != key.told_weight:  # a key's own weight is never out of bounds
            weight = min(max(weight, 1), weight_max)
            state.set_weight(queue, key, weight)
        was_active = key.active
        if ttl_ms or body[:2] != NO_HEADERS:
            body = aging.stamped(state, queue, body)
        entry = store(state, lane, id, 0, weight, now, body, delays[at] if delays else 0)
        at += 1
        if trail is not None:
            first = key.lane
            ready = first.pending if first is not None else 0
            if key.others or (first is not None and first.later is not None):
                ready = eligible(key, now)
            if delays and entry[STALL_NS] < 0:
                trail.enqueued_delayed.append((len(lanes), entry[STAMP]))
            lanes.append(lane)
            joins = key.active - was_active
            numbers += (
                key.weight, len(body), key.pending, ready, ring.keys, joins, ring.handed_out,
            )  # fmt: skip
    if trail is not None:
        trail.end()
    queue.counters.enqueued += at


def enqueue_keyed(
    state: State, queue: Queue, command: EnqueueKeyed
) -> list[tuple[bytes, bool]] | Crowded:
    crowded = None
    refused: list[int] = []
    if queue.limits is not None:
        crowded = room.admit(state, queue, command.bodies, command.assignments)
        refused = crowded.refused if crowded is not None else []
    count = len(command.ids)
    if refused:
        # Nothing of these is remembered: they may come again under the same key.
        places = _others(count, refused)
        command = EnqueueKeyed(
            queue.name,
            [command.ids[at] for at in places],
            [command.bodies[at] for at in places],
            [command.assignments[at] for at in places],
            [command.delays_ms[at] for at in places],
            [command.keys[at] for at in places],
        )
    results = idempotency.sort_out(state, queue, command)
    kept = [at for at, (_, duplicate) in enumerate(results) if not duplicate]
    _store(
        state,
        queue,
        Enqueue(
            queue.name,
            [command.ids[at] for at in kept],
            [command.bodies[at] for at in kept],
            [command.assignments[at] for at in kept],
            [command.delays_ms[at] for at in kept],
        ),
    )
    return results if crowded is None else crowded._replace(results=results)


def _kept(command: Enqueue, refused: list[int]) -> Enqueue:
    places = _others(len(command.ids), refused)
    delays = command.delays_ms
    return Enqueue(
        command.queue,
        [command.ids[at] for at in places],
        [command.bodies[at] for at in places],
        [command.assignments[at] for at in places],
        [delays[at] for at in places] if delays else None,
    )


def _others(count: int, refused: list[int]) -> list[int]:
    return sorted({*range(count)}.difference(refused))
