"""Snapshot events: what every key of every queue holds.

They let a reader of the journal begin anywhere: after a restart, or where older days are gone. Each
says what its key holds at its own place among the events; those of one snapshot are told some at a
time, in turns that follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fila.core import effect
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.queue import Queue
from fila.core.state import State

STEP_KEYS: Final = 512  # looked at, or told of, at a time
QUEUE_KEYS: Final = 4  # a queue costs as much as so many keys


def snapshot(state: State, keys_max: int) -> list[Event]:
    """One event per queue and key with pending or leased messages; the fullest keys first."""
    return [event for events in snapshot_in_steps(state, keys_max) for event in events]


def snapshot_in_steps(state: State, keys_max: int) -> Iterator[list[Event]]:
    """The same, the events of some keys at a time, and as many keys looked at. Queues and keys may
    come and go between two steps."""
    events: list[Event] = []
    left = STEP_KEYS
    for queue in list(state.queues.values()):
        left -= QUEUE_KEYS
        fullest: list[tuple[int, bytes]] = []
        if len(queue.keys) <= left:
            _look(queue, list(queue.keys), fullest, keys_max)
            left -= len(queue.keys)
        else:
            names = list(queue.keys)
            for start in range(0, len(names), STEP_KEYS):
                yield events
                events = []
                _look(queue, names[start : start + STEP_KEYS], fullest, keys_max)
            left = STEP_KEYS
        for start in range(0, len(fullest), STEP_KEYS):
            if left <= 0 or start:
                yield events
                events = []
                left = STEP_KEYS
            part = fullest[start : start + STEP_KEYS]
            events += _told(state, queue, [name for _, name in part])
            left -= len(part)
    yield events


def _look(
    queue: Queue, names: list[bytes], fullest: list[tuple[int, bytes]], keys_max: int
) -> None:
    """Add those that hold anything to the fullest, which stay sorted and few."""
    for name in names:
        key = queue.keys.get(name)
        if key is not None:
            held = key.pending + sum(lane.leased for lane in key.lanes.values())
            if held:
                fullest.append((-held, name))
    fullest.sort()  # mostly sorted already
    del fullest[keys_max:]


def _told(state: State, queue: Queue, names: list[bytes]) -> Iterator[Event]:
    if state.queues.get(queue.name) is not queue:
        return
    for name in names:
        key = queue.keys.get(name)
        if key is None:
            continue
        yield Event(
            state.now,
            effect.EVENT_SNAPSHOT,
            queue.name,
            fairness_key=name,
            weight=key.weight,
            key_pending=key.pending,
            key_eligible=eligible(key, state.now),
            key_leased=sum(lane.leased for lane in key.lanes.values()),
            active_keys=queue.ring.keys,
            queue_delivered=queue.ring.handed_out,
        )
