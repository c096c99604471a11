"""How a log group leaves this machine's memory while the broker runs. `load.py` takes it up again.

Its rows stay, and so does what the catalogue knows of its queues: they exist, and are not served
for the time being. It leaves with a turn's end, after what the turn did to it is written down. Its
consumers and those who wait for a lease batch are told why, its redrives and purges end with the
same reason, and whatever is asked of it is refused with it. Leases stay: they are rows.
"""

from __future__ import annotations

from fila.core.catalogue import forget_queue
from fila.core.queue import Group
from fila.core.state import State
from fila.core.unloaded import Unloaded, refused


def unload(state: State) -> None:
    """The groups that are to go with this turn, after its batches were made."""
    unloading, state.unloading = state.unloading, {}
    for group, why in unloading.items():
        if state.groups.get(group.number) is group:  # else it was deleted, or set apart
            _unload_group(state, group, why)


def _unload_group(state: State, group: Group, why: str) -> None:
    assert not group.dirty, "a group is unloaded between turns"
    del state.groups[group.number]
    for queue in list(group.queues):
        one = state.unloaded[queue.name] = Unloaded(queue.name, group.number, why)
        forget_queue(state, queue, refused(one))
