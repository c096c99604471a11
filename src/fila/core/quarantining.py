"""How a log group gets into quarantine: out of memory, with its rows left as they are.

At a start, a group that cannot be loaded. While the broker runs, a group of which a page of
messages cannot be read, or does not hold what was counted: the turn goes on without that lane and
is committed with a mark, and with the turn's end the group is gone from memory. The next start
reads every row of a marked group; if all are there, the mark goes and the group is served again.

Only between turns, or where a step has changed nothing yet: a command that breaks off half-applied
stops the broker (`turn.py`), and the mark is all that is written then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fila.core import key_rows, rows
from fila.core.catalogue import forget_queue
from fila.core.entry import lane_prefix_of
from fila.core.lane import Lane
from fila.core.quarantine import Quarantined, refused
from fila.core.queue import DLQ_SUFFIX, Group, Queue
from fila.core.reader import Reader, StoreDamagedError
from fila.core.rejection import Rejection
from fila.core.row_batch import DELETE_STATE, PUT_STATE, Op
from fila.core.state import State

_PAGE_ROWS: Final = 1_024
_PAGE_BYTES: Final = 4 << 20
_ALL: Final = 1 << 62


def set_apart(
    state: State, group: Group, cause: str, since_ns: int, error: Exception | None = None
) -> None:
    """Forget the group's memory and serve it no more. None of its rows is touched."""
    assert not group.dirty, "a group is set apart between turns"
    queues = list(group.queues)
    del state.groups[group.number]
    for queue in queues:
        one = Quarantined(queue.name, cause, since_ns, queue.number, group.number, error)
        state.quarantined[queue.name] = one
        forget_queue(state, queue, refused(one))
    for queue in queues:
        _set_kin_apart(state, queue.name, since_ns)


def set_name_apart(state: State, name: str, cause: str, error: Exception) -> None:
    """A queue of which not even its own record can be read."""
    state.quarantined[name] = Quarantined(name, cause, state.now, 0, 0, error)
    _set_kin_apart(state, name, state.now)


def lacks(state: State, lane: Lane) -> None:
    """The lane counts messages that the store does not have: its group is set apart with this
    turn's end."""
    state.damaged.setdefault(lane.queue.group, lacking(lane))


def lacking(lane: Lane) -> StoreDamagedError:
    return StoreDamagedError(
        f'lane {lane.number} of queue "{lane.queue.name}" counts messages that the store lacks',
        rows.MESSAGES,
        lane.prefix,
    )


def cause_of(error: Exception) -> str:
    if isinstance(error, StoreDamagedError):
        return error.cause
    if isinstance(error, rows.CorruptRowError):
        return str(error)
    return f"its rows do not fit together ({error!r})"


def note(state: State, error: StoreDamagedError) -> Rejection | None:
    """Set the group whose rows these are apart with this turn's end. What to tell who met the
    damage; None if it is no single group's."""
    queue = owner_of(state, error)
    if queue is None:
        return None
    state.damaged.setdefault(queue.group, error)
    return refused(
        Quarantined(queue.name, error.cause, state.now, queue.number, queue.group.number)
    )


def owner_of(state: State, error: StoreDamagedError) -> Queue | None:
    """Whose rows it was that could not be read."""
    number = rows.owner_of(error.family, error.key)
    for queue in state.queues.values():
        if queue.number == number:
            return queue
    return None


def mark_damaged(state: State) -> None:
    """Write down, with this turn, which groups the next start has to look at closely."""
    ops = state.ops(state.groups[0])
    for group, error in state.damaged.items():
        if state.groups.get(group.number) is group:  # else it was deleted in this very turn
            ops.append(mark(group.number, state.now, cause_of(error)))


def set_damaged_apart(state: State) -> None:
    """After the turn's batches were made."""
    damaged, state.damaged = state.damaged, {}
    for group, error in damaged.items():
        if state.groups.get(group.number) is group:
            set_apart(state, group, cause_of(error), state.now, error)


# --- marks


def mark(group: int, at_ns: int, cause: str) -> Op:
    return (
        PUT_STATE,
        rows.quarantine_key(group),
        rows.quarantine_row(at_ns, cause),
    )


def unmark(group: int) -> Op:
    return (DELETE_STATE, rows.quarantine_key(group), b"")


def marked(reader: Reader) -> set[int]:
    """The groups that were damaged when a broker last looked."""
    start = rows.QUARANTINE_PREFIX
    found = reader.scan(rows.STATE, start, rows.after(start), _ALL, _ALL)
    return {rows.owner_of_state(key) for key, _ in found}


def check_rows(state: State, group: Group) -> None:
    """Read every row of a loaded group; raises at the first that is not as it should be."""
    reader = state.reader
    for queue in group.queues:
        prefix = rows.queue_prefix(queue.number)
        stored: dict[bytes, int] = {}
        for page in _pages(reader, rows.MESSAGES, prefix):
            for key, value in page:
                rows.check_message(value)
                lane_prefix = lane_prefix_of(key)
                stored[lane_prefix] = stored.get(lane_prefix, 0) + 1
        for fairness_key in queue.keys.values():
            for lane in fairness_key.lanes.values():
                if stored.pop(lane.prefix, 0) != lane.pending + lane.leased:
                    raise lacking(lane)
        if stored:
            raise rows.CorruptRowError(f"{sum(stored.values())} messages have no lane")
        for kind in key_rows.KEY_PREFIXES:
            for page in _pages(reader, rows.IDEMPOTENCY, kind + prefix):
                for _, value in page:
                    key_rows.check_idempotency(kind, value)


def _pages(reader: Reader, family: int, prefix: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
    """All rows whose keys begin so, by scan and by key: the two do not read the same blocks."""
    start, end = prefix, rows.after(prefix)
    while True:
        page = reader.scan(family, start, end, _PAGE_ROWS, _PAGE_BYTES)
        if not page:
            return
        reader.get_many(family, [key for key, _ in page])
        yield page
        start = page[-1][0] + b"\0"


def _set_kin_apart(state: State, name: str, since_ns: int) -> None:
    """A queue without its dead-letter queue could lose messages, and the other way round."""
    for other in (name + DLQ_SUFFIX, name.removesuffix(DLQ_SUFFIX)):
        kin = state.queues.get(other)
        if kin is not None:
            set_apart(state, kin.group, f'queue "{name}" is quarantined', since_ns)
