"""One waiting message: where it stands, what its wait is made of so far, and what it waits for.

Pure looks at the state; the same clocks as in `delivery.py`, read before the delivery. Never says
anything to people: `explain.py` does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from fila.core import rows
from fila.core.bucket import Bucket
from fila.core.caps import full_cap, without_caps
from fila.core.entry import (
    BUSY_NS,
    HELD_NS,
    SINCE_NS,
    STALL_NS,
    STAMP,
    THROTTLED_NS,
    Entry,
    entry_of,
    had_delay,
    id_of,
    message_id,
)
from fila.core.fairness import FairnessKey
from fila.core.lane import LANE_DELAYED, Lane
from fila.core.pause import without_pauses
from fila.core.pending import fill_window
from fila.core.queue import Queue
from fila.core.state import State
from fila.core.waits import Waits

SEARCHED_MAX: Final = 20_000  # stored messages looked at for one id
SEARCHED_STEP: Final = 2_048  # lanes and messages in memory, in one step
_PAGE_BYTES: Final = 1 << 20

# What it waits for now. The first that applies is named.
CAUSE_PAUSED: Final = "paused"
CAUSE_RETRY: Final = "retry"
CAUSE_NO_CONSUMER: Final = "no_consumer"
CAUSE_BUSY: Final = "busy"  # of the parts: busy_own and busy_others
CAUSE_THROTTLED: Final = "throttled"
CAUSE_CAPPED: Final = "capped"
CAUSE_OWN: Final = "own"
CAUSE_TURN: Final = "turn"


class Waiting(NamedTuple):
    lane: Lane
    entry: Entry
    ahead: int  # messages of its lane before it


def head_of(state: State, key: FairnessKey) -> Waiting | None:
    """The message of the key that goes next, or would if its lane could go."""
    best: Lane | None = key.lane
    if best is None:
        for lane in key.lanes.values():
            if lane.pending and (best is None or lane.head_stamp() < best.head_stamp()):
                best = lane
    if best is None or not best.pending:
        return None
    if not best.window:
        fill_window(state, best, state.settings.head_messages)
    return Waiting(best, best.window[0], 0)


def find(
    state: State, queue: Queue, key: FairnessKey | None, id: bytes
) -> Generator[int, None, Waiting | None]:
    """A pending message by its id: in the windows, then among the stored rows within a bound. In
    steps, after each of which it says how much it looked at."""
    keys = [key] if key is not None else list(queue.keys.values())
    seen = 0
    deep: list[Lane] = []  # lanes that go on in the store
    for one in keys:
        for lane in list(one.lanes.values()):
            for at, entry in enumerate(lane.window):
                if message_id(entry) == id:
                    return Waiting(lane, entry, at)
            seen += 1 + len(lane.window)
            if lane.horizon and lane.pending and len(deep) < SEARCHED_MAX:
                deep.append(lane)
            if seen >= SEARCHED_STEP:
                yield SEARCHED_STEP // 4
                seen = 0
    left = SEARCHED_MAX
    for lane in deep:
        start = lane.horizon
        ahead = len(lane.window)
        while start and left > 0 and not lane.forgotten:
            found = state.reader.scan(
                rows.MESSAGES, start + b"\0", rows.after(lane.prefix), min(left, 512), _PAGE_BYTES
            )
            for stored, value in found:
                if id_of(stored) == id:
                    return Waiting(lane, entry_of(stored, value), ahead)
                ahead += 1
            left -= len(found) + 1
            start = found[-1][0] if found else b""
            yield len(found) + 8
    return None


def parts_of(waiting: Waiting, now: int) -> Waits:
    """The split of its wait up to now; the parts add up to now - since, to the nanosecond."""
    lane, entry, ahead = waiting
    queue = lane.queue
    stall_ns = queue.stall_at(now)
    stamp = entry[STAMP]
    since_ns = entry[SINCE_NS]
    stall_then = entry[STALL_NS]
    if stall_then < 0 and stamp > now:
        return Waits(now - since_ns, 0, 0, 0, 0)
    busy_ns = queue.busy.busy_at(now)
    held_ns = lane.key.held_ns(queue.busy.integral_at(now))
    retry = throttled = no_consumer = turn = busy = held = 0
    if stall_then >= 0:
        no_consumer = stall_ns - stall_then
        throttled = lane.throttled_at(now) - entry[THROTTLED_NS]
        busy, held = busy_ns, held_ns
        if since_ns > queue.loaded_ns:
            busy -= entry[BUSY_NS]
            held -= entry[HELD_NS]
    else:
        retry = stamp - since_ns
        if ahead == 0:
            no_consumer = stall_ns - lane.head_stall_ns
            throttled = lane.throttled_at(now) - lane.head_throttled_ns
            busy = busy_ns - lane.head_busy_ns
            held = held_ns - lane.head_held_ns
    if ahead == 0:
        until = now - stall_ns if lane.key.lane is lane else lane.lost_since
        turn = until - lane.head_active_ns
    own = now - since_ns - retry - no_consumer - throttled - turn
    held = min(held, busy)  # fractions of a nanosecond
    waits = Waits(retry, throttled, no_consumer - busy, own, turn, 0, held, busy - held)
    if throttled:
        waits = without_caps(lane, waits, lane.throttled_at(now))
    return _without_pauses(waiting, waits, now, now - stall_ns)


def cause_of(waiting: Waiting, now: int) -> str:
    """What it waits for now."""
    lane, entry, ahead = waiting
    queue = lane.queue
    if queue.pause is not None or lane.key.pause is not None:
        return CAUSE_PAUSED
    if lane.state == LANE_DELAYED or (had_delay(entry) and entry[STAMP] > now):
        return CAUSE_RETRY
    if not queue.ready:
        return CAUSE_BUSY if queue.busy.held else CAUSE_NO_CONSUMER
    if short_bucket(lane, now) is not None:
        return CAUSE_THROTTLED
    if full_cap(lane) is not None:
        return CAUSE_CAPPED
    return CAUSE_OWN if ahead else CAUSE_TURN


def short_bucket(lane: Lane, now: int) -> Bucket | None:
    """The bucket of the lane that will have a token last, if one has none now."""
    slowest: Bucket | None = None
    for bucket in lane.buckets:
        bucket.refill(now)
        if bucket.tokens >= 1.0 - 1e-9:
            continue
        if slowest is None or _token_ns(bucket) > _token_ns(slowest):
            slowest = bucket
    return slowest


def _token_ns(bucket: Bucket) -> int:
    return bucket.next_token_ns() or 1 << 62


def _without_pauses(waiting: Waiting, waits: Waits, now: int, active_ns: int) -> Waits:
    lane = waiting.lane
    queue = lane.queue
    spans = list(queue.pauses.spans) if queue.pauses is not None else []
    key_spans = list(queue.pauses.keys.get(lane.key.name, ())) if queue.pauses is not None else []
    if queue.pause is not None:
        spans.append((queue.pause.since_ns, now))
    if lane.key.pause is not None:
        pause = lane.key.pause
        key_spans.append((pause.active_ns, active_ns, pause.since_ns))
    if not spans and not key_spans:
        return waits
    return without_pauses(waits, waiting.entry, spans, key_spans, now, active_ns)
