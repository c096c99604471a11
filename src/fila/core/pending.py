"""Pending messages: how one comes to stand in its lane, and how it leaves; paging windows in.

A pending message enters by `store` or `add_pending` and leaves by `remove_head` or by delivery.
"""

from __future__ import annotations

from fila.core import rows
from fila.core.entry import BODY, ENTRY_BYTES, KEY, STAMP, Entry, had_delay, with_body
from fila.core.lane import LANE_EMPTY, LANE_PARKED, Lane
from fila.core.later import Later
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
        throttled_ns = 0
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
    # Row and entry are made here, laid out as `rows.py` and `entry.py` say: it is done for every
    # message.
    key = rows.MESSAGE_KEY.pack(queue.number, lane.number, stamp, id)
    head = rows.MESSAGE_HEAD.pack(1, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns)
    group = queue.group
    ops = group.ops if group.dirty else state.ops(group)
    ops.append((PUT_MESSAGE, key, head + body))
    entry = (key, stamp, attempts, weight, enqueued_ns, now, stall_ns, throttled_ns, body)
    add_pending(state, lane, entry)
    return entry


def add_pending(state: State, lane: Lane, entry: Entry) -> None:
    """A stored message is pending: count it, and let the lane take part if it may."""
    settings = state.settings
    key = lane.key
    queue = lane.queue
    window = lane.window
    room = state.window_bytes < settings.window_bytes_total
    if room and not lane.horizon and (not window or entry[KEY] > window[-1][KEY]):
        # The usual case of Lane.insert, without the call: at the end, all in memory.
        if len(window) < settings.window_messages:
            window.append(entry)
            grown = ENTRY_BYTES + len(entry[BODY])
            lane.window_bytes += grown
            state.window_bytes += grown
        else:
            state.window_bytes += lane.insert(entry, settings.window_messages, room)
            state.unflushed[lane] = None
    else:
        state.window_bytes += lane.insert(entry, settings.window_messages, room)
        if not room:
            state.fresh[entry[KEY]] = entry[BODY]
        if lane.unflushed:
            state.unflushed[lane] = None
    if lane.pending == 0:
        state.idle.pop(lane, None)
        if key.pending == 0:
            queue.keys_pending += 1
    lane.pending += 1
    key.pending += 1
    queue.pending += 1
    if not lane.touched:
        state.touch(lane)
    if window and (window[0] is entry or window[0][KEY] == entry[KEY]):
        new_head(state, lane)


def remove_head(state: State, lane: Lane) -> Entry:
    """Take the oldest pending message out of its lane, outside of delivery."""
    entry = lane.window.popleft()
    size = ENTRY_BYTES + len(entry[BODY])
    lane.window_bytes -= size
    state.window_bytes -= size
    if lane.later is not None and had_delay(entry):
        lane.later.remove(entry[STAMP])
    lane.pending -= 1
    lane.key.pending -= 1
    lane.queue.pending -= 1
    if lane.key.pending == 0:
        lane.queue.keys_pending -= 1
    state.touch(lane)
    fill_window(state, lane)
    if entry[KEY] > lane.delivered:
        lane.delivered = entry[KEY]
        if entry[STAMP] > state.now:
            state.removed_early[lane] = None
    if lane.window:
        new_head(state, lane)
    else:
        make_unready(state, lane, LANE_EMPTY)
        if lane.leased == 0:
            state.rest(lane)
    return complete(state, entry)


def complete(state: State, entry: Entry) -> Entry:
    """The entry with its body, which the store has where the window does not."""
    if entry[BODY]:
        return entry
    key = entry[KEY]
    body = state.fresh.get(key)
    if body is None:
        value = state.reader.get(rows.MESSAGES, key)
        assert value is not None, f"message row {key.hex()} is missing"
        body = value[rows.MESSAGE_HEAD_BYTES :]
    return with_body(entry, body)


def fill_window(state: State, lane: Lane, rows_max: int = 0) -> None:
    """Page in what lies behind the horizon once the window has run dry.

    A page is at most a lane's share of the windows' bytes, so that many deep lanes all find
    room; a restart asks for a few rows only.
    """
    settings = state.settings
    rows_max = min(rows_max or settings.page_messages, settings.page_messages)
    share = settings.window_bytes_total // (2 * lane.queue.ring.keys + 2)
    while lane.horizon and (not lane.window or lane.horizon < lane.delivered):
        room = settings.window_bytes_total - state.window_bytes
        bytes_max = max(1, min(settings.page_bytes, share, room))
        start = lane.horizon + b"\0"
        found: list[tuple[bytes, bytes]] = []
        if lane not in state.purged:
            end = rows.after(lane.prefix)
            found = state.reader.scan(rows.MESSAGES, start, end, rows_max, bytes_max)
        size = 0
        for key, value in found:
            size += len(key) + len(value)
        complete = len(found) < rows_max and size < bytes_max
        # A restart reads on to the last leased key, for what was handed back before it.
        without_bodies = room <= 0 and bool(lane.window)
        state.window_bytes += lane.page(found, complete, without_bodies)
