"""Taking one pending message out of its lane, wherever it stands: at the head, in the window, or
behind the horizon.

Behind the horizon its row goes alone. Until the commit the store still shows it, so pages of this
turn leave out what `state.taken` names.
"""

from __future__ import annotations

from bisect import bisect_left

from fila.core import expiries, rows
from fila.core.entry import KEY, STAMP, Entry, entry_bytes, entry_of, had_delay, id_of
from fila.core.lane import Lane
from fila.core.pending import complete, fill_window, remove_head
from fila.core.reader import UNREADABLE
from fila.core.row_batch import DELETE_MESSAGE
from fila.core.state import State


def take(state: State, lane: Lane, key: bytes) -> Entry | None:
    """The message with this key, out of the lane and its row deleted; None where it is not pending.
    If what has to be read cannot be, its group is set apart with this turn's end."""
    if not is_pending(state, lane, key):
        return None
    try:
        entry = _take(state, lane, key)
    except UNREADABLE as error:
        state.damaged.setdefault(lane.queue.group, error)
        return None
    if entry is not None:
        state.taken[key] = None
        state.times.not_before_ns = state.now + 1  # the store shows it until the commit
        state.ops(lane.queue.group).append((DELETE_MESSAGE, key, b""))
    return entry


def is_pending(state: State, lane: Lane, key: bytes) -> bool:
    """Whether it may be, as far as memory tells."""
    gone = key in state.taken or lane in state.purged or id_of(key) in lane.queue.leased
    return lane.pending > 0 and not lane.forgotten and not gone


def _take(state: State, lane: Lane, key: bytes) -> Entry | None:
    if not lane.window:
        fill_window(state, lane, state.settings.head_messages)
    window = lane.window
    if not window:
        return None
    if key <= window[-1][KEY]:
        at = bisect_left(window, key, key=_key_of)
        if window[at][KEY] != key:
            return None
        if at == 0:
            return remove_head(state, lane)
        entry = complete(state, window[at])
        size = entry_bytes(window[at])
        del window[at]
        lane.window_bytes -= size
        state.windows.bytes -= size
    else:
        if not lane.horizon or key <= lane.horizon:
            return None
        left_out = _left_out(state, lane, key)
        if left_out is not None:
            entry = left_out
        else:
            value = state.reader.get(rows.MESSAGES, key)
            if value is None:
                return None
            entry = entry_of(key, value)
    if lane.later is not None and had_delay(entry):
        lane.later.remove(entry[STAMP])
    lane.pending -= 1
    lane.key.pending -= 1
    lane.queue.pending -= 1
    state.touch(lane)
    if lane.queue.aging is not None:
        expiries.waits_no_more(state, lane.queue, entry)
    if lane.queue.weighed_since:
        lane.lighten(entry)
    return entry


def _left_out(state: State, lane: Lane, key: bytes) -> Entry | None:
    """Of this very turn, behind the horizon; it may have been cut without its body."""
    for at, entry in enumerate(lane.unflushed or ()):
        if entry[KEY] == key:
            assert lane.unflushed is not None
            entry = complete(state, entry)
            del lane.unflushed[at]
            return entry
    return None


def _key_of(entry: Entry) -> bytes:
    return entry[KEY]
