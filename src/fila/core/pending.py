"""Pending messages: how one comes to stand in its lane, and how it leaves; paging windows in.

A pending message enters by `store` or `add_pending` and leaves by `remove_head` or by delivery.
"""

from __future__ import annotations

from collections import deque

from fila.core import expiries, rows
from fila.core.busy import FRACTION
from fila.core.entry import (
    BODY,
    ENTRY_BYTES,
    KEY,
    STAMP,
    Entry,
    entry_bytes,
    had_delay,
    stamp_of,
    with_body,
)
from fila.core.lane import LANE_EMPTY, LANE_PARKED, NO_WINDOW, Lane
from fila.core.later import Later
from fila.core.reader import UNREADABLE, missing
from fila.core.readiness import make_unready, new_head
from fila.core.row_batch import PUT_MESSAGE
from fila.core.state import MS, State


def store(
    state: State,
    lane: Lane,
    id: bytes,
    attempts: int,
    weight: int,
    enqueued_ns: int,
    body: bytes,
    delay_ms: int,
) -> Entry:
    """Put a message at the end of its lane, or at the time its delay runs out."""
    now = state.now
    queue = lane.queue
    if delay_ms > 0:
        stamp = now + delay_ms * MS
        stall_ns = -1
        throttled_ns = busy_ns = held_ns = 0
        if state.journal:
            if lane.later is None:
                lane.later = Later(state.times)
            lane.later.add(stamp)
    else:
        # Stamps rise strictly within a lane, so that equal times keep the order of arrival.
        stamp = lane.tail + 1 if lane.tail >= now else now
        lane.tail = stamp
        stall_ns = queue.stall_at(now)
        throttled_ns = lane.throttled_ns if lane.state != LANE_PARKED else lane.throttled_at(now)
        busy = queue.busy
        fairness_key = lane.key
        if busy.held and busy.since_ns != now:
            busy.count(busy.held, now)  # once a turn
        if fairness_key.held_then != busy.integral:
            fairness_key.count_held(busy.integral)
        busy_ns = busy.busy_ns
        held_ns = fairness_key.held_clock >> FRACTION
    # Row and entry are made here, laid out as `rows.py` and `entry.py` say: it is done for every
    # message.
    key = rows.MESSAGE_KEY.pack(queue.number, lane.number, stamp, id)
    head = rows.MESSAGE_HEAD.pack(
        2, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns, busy_ns, held_ns
    )
    group = queue.group
    ops = group.ops if group.dirty else state.ops(group)
    ops.append((PUT_MESSAGE, key, head + body))
    entry = (
        key, stamp, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns, body, busy_ns,
        held_ns,
    )  # fmt: skip
    add_pending(state, lane, entry)
    return entry


def add_pending(state: State, lane: Lane, entry: Entry) -> None:
    """A stored message is pending: count it, and let the lane take part if it may."""
    settings = state.settings
    key = lane.key
    queue = lane.queue
    window = lane.window
    windows = state.windows
    grown = ENTRY_BYTES + len(entry[BODY])
    if (
        not lane.horizon
        and windows.bytes + grown <= windows.mark
        and len(window) < settings.window_messages
        and (not window or entry[KEY] > window[-1][KEY])
    ):
        # The usual case, without a call: at the end, all in memory.
        if window is NO_WINDOW:
            window = lane.window = deque()
        window.append(entry)
        lane.window_bytes += grown
        windows.bytes += grown
        is_head = len(window) == 1
    else:
        is_head = _insert(state, lane, entry, grown)
    if lane.pending == 0:
        state.idle.pop(lane, None)
        if not lane.windowed:
            windows.enter(lane)
        if key.pending == 0:
            queue.keys_pending += 1
    if queue.aging is not None:
        expiries.waits(state, lane, entry)
    if queue.weighed_since:
        lane.burden(entry)
    lane.pending += 1
    key.pending += 1
    queue.pending += 1
    if not lane.touched:
        state.touch(lane)
    if is_head:
        new_head(state, lane)


def _insert(state: State, lane: Lane, entry: Entry, size: int) -> bool:
    """Let the lane take the message up, in its window or behind it. Tells whether it is the head
    now."""
    windows = state.windows
    queue = lane.queue
    horizon = lane.horizon
    room = windows.bytes + size <= windows.mark
    if not room and not (horizon and entry[KEY] > horizon) and (queue.ready or queue.notes_ns):
        room = windows.room(lane, size, state.now) >= size
    window_messages = state.settings.window_messages
    windows.bytes += lane.insert(entry, window_messages, room, windows.fresh_ns, windows.fresh)
    if lane.unflushed:
        windows.unflushed[lane] = None
    if lane.window_bytes and not lane.windowed:
        windows.enter(lane)
    window = lane.window
    if window:
        return window[0][KEY] == entry[KEY]
    # Of two of the same stamp that are both left to the store either may be the first.
    return lane.horizon is not horizon or entry[STAMP] == stamp_of(horizon)


def remove_head(state: State, lane: Lane) -> Entry:
    """Take the oldest pending message out of its lane, outside of delivery. Raises if it cannot be
    read, and has changed nothing then."""
    entry = complete(state, lane.window[0])
    size = entry_bytes(lane.window.popleft())
    lane.window_bytes -= size
    state.windows.bytes -= size
    if lane.later is not None and had_delay(entry):
        lane.later.remove(entry[STAMP])
    lane.pending -= 1
    lane.key.pending -= 1
    lane.queue.pending -= 1
    if lane.key.pending == 0:
        lane.queue.keys_pending -= 1
    state.touch(lane)
    page(state, lane, state.settings.head_messages)
    if entry[KEY] > lane.delivered:
        lane.delivered = entry[KEY]
        if entry[STAMP] > state.now:
            state.removed_early[lane] = None
    if lane.window:
        new_head(state, lane)
    else:
        make_unready(state, lane, LANE_EMPTY)
        if lane.pending == lane.leased == 0:
            state.rest(lane)
    if lane.queue.aging is not None:
        expiries.waits_no_more(state, lane.queue, entry)
    if lane.queue.weighed_since:
        lane.lighten(entry)
    return entry


def take_out(state: State, lane: Lane, entries: list[Entry]) -> None:
    """Take pending messages, wherever they stand in their lane, out of it. Their rows are to be
    deleted with this turn: until then no page may bring them back."""
    gone = {entry[KEY] for entry in entries}
    state.taken.update(dict.fromkeys(gone))
    state.times.not_before_ns = state.now + 1  # the store shows them until the commit
    window = lane.window
    head = window[0][KEY] if window else lane.horizon
    if window:
        kept = deque([entry for entry in window if entry[KEY] not in gone])
        if len(kept) < len(window):
            size = sum([entry_bytes(entry) for entry in kept])
            state.windows.bytes -= lane.window_bytes - size
            lane.window_bytes = size
            lane.window = kept or NO_WINDOW
    if lane.unflushed:
        lane.unflushed = [entry for entry in lane.unflushed if entry[KEY] not in gone] or None
    key = lane.key
    queue = lane.queue
    for entry in entries:
        if lane.later is not None and had_delay(entry):
            lane.later.remove(entry[STAMP])
        if queue.aging is not None:
            expiries.waits_no_more(state, queue, entry)
    lane.pending -= len(entries)
    key.pending -= len(entries)
    queue.pending -= len(entries)
    if key.pending == 0:
        queue.keys_pending -= 1
    state.touch(lane)
    if lane.pending == 0:
        lane.horizon = b""  # nothing is behind it
    page(state, lane, state.settings.head_messages)
    if not lane.window:
        make_unready(state, lane, LANE_EMPTY)
        if lane.pending == lane.leased == 0:
            state.rest(lane)
    elif lane.window[0][KEY] != head:
        new_head(state, lane)


def complete(state: State, entry: Entry) -> Entry:
    """The entry with its body, which the store has where the window does not."""
    if entry[BODY]:
        return entry
    key = entry[KEY]
    body = state.windows.fresh.get(key)
    if body is None:
        value = state.reader.get(rows.MESSAGES, key)
        if value is None:
            raise missing("a message", rows.MESSAGES, key)
        body = rows.message_row(value)[rows.MESSAGE_HEAD_BYTES :]
    return with_body(entry, body)


def page(state: State, lane: Lane, rows_max: int = 0) -> None:
    """`fill_window` for whoever cannot turn back: if it cannot be read, the lane is left without a
    window, nothing of it is half done, and its group is set apart with this turn's end."""
    try:
        fill_window(state, lane, rows_max)
    except UNREADABLE as error:
        state.damaged.setdefault(lane.queue.group, error)


def fill_window(state: State, lane: Lane, rows_max: int = 0) -> None:
    """Page in what lies behind the horizon once the window has run dry.

    How large a page may be says `windows.py`. A restart, and whoever only looks at heads, asks for
    a few rows, and takes no room from lanes that are being delivered.
    """
    settings = state.settings
    windows = state.windows
    now = state.now
    few = rows_max > 0
    rows_max = min(rows_max, settings.page_messages) if few else settings.page_messages
    while lane.horizon and (not lane.window or lane.horizon < lane.delivered):
        count = rows_max
        bytes_max = settings.page_bytes
        if lane.horizon >= lane.delivered:
            # Half for what a message costs beside its body, half for the bodies.
            wanted = 2 * max(bytes_max, count * ENTRY_BYTES)
            half = windows.page_bytes(lane, wanted, few, now) // 2
            count = max(min(count, half // ENTRY_BYTES), 1)
            bytes_max = max(min(bytes_max, half), 1)
        start = lane.horizon + b"\0"
        found: list[tuple[bytes, bytes]] = []
        if lane not in state.purged:
            end = rows.after(lane.prefix)
            found = state.reader.scan(rows.MESSAGES, start, end, count, bytes_max)
        size = 0
        for key, value in found:
            size += len(key) + len(value)
        complete = len(found) < count and size < bytes_max
        room = windows.limit - windows.bytes
        if size + ENTRY_BYTES * len(found) > room:
            room = windows.room(lane, size + ENTRY_BYTES * len(found), now, few)
        windows.bytes += lane.page(
            found, complete, room, windows.fresh_ns, windows.fresh, state.taken
        )
        if lane.unflushed:
            windows.unflushed[lane] = None
        if lane.window_bytes and not lane.windowed:
            windows.enter(lane)
