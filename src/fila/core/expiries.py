"""When pending messages expire: the row of each in the order of time, and who wakes for the first.

Called where a message begins to wait and where it ends, in queues that have messages with such a
time. `aging.py` is woken by it.
"""

from __future__ import annotations

from fila.core import aging_rows, ttl
from fila.core.entry import BODY, KEY, Entry
from fila.core.lane import Lane
from fila.core.queue import Queue
from fila.core.row_batch import DELETE_STATE
from fila.core.state import MS, State


def waits(state: State, lane: Lane, entry: Entry) -> None:
    """The message is pending from now on."""
    at_ms = ttl.expires_ms(entry[BODY])
    if at_ms:
        queue = lane.queue
        state.ops(queue.group).append(aging_rows.put(entry[KEY], at_ms, lane))
        wake_at(state, queue, at_ms * MS)


def waits_no_more(state: State, queue: Queue, entry: Entry) -> None:
    at_ms = ttl.expires_ms(entry[BODY])
    if at_ms:
        row = aging_rows.key_of(entry[KEY], at_ms)
        state.ops(queue.group).append((DELETE_STATE, row, b""))


def wake_at(state: State, queue: Queue, at_ns: int) -> None:
    """A message of the queue expires then."""
    aging = queue.aging
    assert aging is not None, "the queue has messages that expire"
    if aging.armed_ns == 0 or at_ns < aging.armed_ns:
        state.deadlines.arm(aging, at_ns)
