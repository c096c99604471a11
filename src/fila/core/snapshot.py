"""Snapshot events: what every key of every queue holds at one moment.

They let a reader of the journal begin anywhere: after a restart, or where older days are gone.
"""

from __future__ import annotations

from fila.core import effect
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.state import State


def snapshot(state: State, keys_max: int) -> list[Event]:
    """One event per queue and key with pending or leased messages; the fullest keys first."""
    found = []
    for queue in state.queues.values():
        rows = []
        for key in queue.keys.values():
            leased = sum(lane.leased for lane in key.lanes.values())
            if key.pending or leased:
                rows.append((key.pending + leased, key, leased))
        rows.sort(key=lambda row: (-row[0], row[1].name))
        for _, key, leased in rows[:keys_max]:
            found.append(
                Event(
                    state.now,
                    effect.EVENT_SNAPSHOT,
                    queue.name,
                    fairness_key=key.name,
                    weight=key.weight,
                    key_pending=key.pending,
                    key_eligible=eligible(key, state.now),
                    key_leased=leased,
                    active_keys=queue.ring.keys,
                    queue_delivered=queue.ring.handed_out,
                )
            )
    return found
