"""What may go now: how many messages of a key, exactly.

A lane may go when its head is due and no bucket is short; what is delayed behind the head may not
yet, and is counted by `later.py`.
"""

from __future__ import annotations

from typing import Final

from fila.core import rows
from fila.core.entry import ID_AT, KEY, STALL_NS, STAMP, entry_of
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.later import UNKNOWN, Later
from fila.core.reader import StoreDamagedError

__all__ = ["UNKNOWN", "eligible", "eligible_in", "with_others"]

_ROWS: Final = 512  # read at once
_LANES: Final = 64  # for a key with more lanes the answer is UNKNOWN
_BYTES: Final = 1 << 20


def eligible(key: FairnessKey, now: int) -> int:
    """Messages of the key that may go now. UNKNOWN: at least one, and it cannot be said how many.
    0 means that the key is not in the ring."""
    first = key.lane
    if first is None:
        return 0
    count = first.pending if first.later is None else eligible_in(first, now)
    return with_others(count, key, now) if key.others else count


def with_others(count: int, key: FairnessKey, now: int) -> int:
    """So many, and what the lanes behind the key's next one have."""
    if len(key.others) - key.stale > _LANES:
        return UNKNOWN  # this is asked for every message
    for lane in key.standing():
        more = lane.pending if lane.later is None else eligible_in(lane, now)
        count = UNKNOWN if more == UNKNOWN or count == UNKNOWN else count + more
    return count


def eligible_in(lane: Lane, now: int) -> int:
    """Messages of a lane that may go, now that its head may."""
    later = lane.later
    if later is None:
        return lane.pending
    if later is later.times.unread:
        lane.later = later = Later(later.times, UNKNOWN)
    later.pass_to(now)
    if later.wants_more(now):
        _look(lane, later, now)
    waiting = later.count()
    if waiting == 0:
        lane.later = None
    return UNKNOWN if waiting == UNKNOWN else lane.pending - waiting


def _look(lane: Lane, later: Later, now: int) -> None:
    """Find the next messages that wait for their time: in the window, and behind its horizon."""
    start = later.read_from(now)
    found = [one[STAMP] for one in lane.window if one[STALL_NS] < 0 and one[STAMP] >= start]
    complete = True
    if lane.horizon:
        shared = later.times
        if now < shared.not_before_ns:
            return
        first = max(lane.horizon + b"\0", lane.prefix + start.to_bytes(8, "big"))
        try:
            stored = shared.reader.scan(
                rows.MESSAGES, first, rows.after(lane.prefix), _ROWS, _BYTES
            )
        except StoreDamagedError:
            later.lose()  # it is only a number; delivery meets the damage itself
            return
        shared.read_rows(len(stored), now)
        complete = (
            len(stored) < _ROWS and sum([len(key) + len(row) for key, row in stored]) < _BYTES
        )
        # Messages of this turn, which the store does not show yet.
        fresh = {
            one[KEY]: one
            for one in lane.unflushed or ()
            if one[STAMP] >= start and (complete or one[KEY] <= stored[-1][0])
        }
        leased = lane.queue.leased
        fresh |= {key: entry_of(key, row) for key, row in stored if key[ID_AT:] not in leased}
        found += sorted([one[STAMP] for one in fresh.values() if one[STALL_NS] < 0])
    later.found(found, complete)
