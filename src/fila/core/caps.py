"""In-flight caps: at most so many messages of a key leased at once.

    fairness key   `max_in_flight_per_key` of its queue
    throttle key   `throttle:<key>:max_in_flight` in the runtime config, in all queues together

A lane has the caps it must pass in `Lane.caps`; each counts what is leased of its lanes, from the
leases themselves: what was delivered and did not end. Nothing of it is stored, for a restart counts
the leases again.

A lane whose cap is full is parked there as at an empty bucket. A slot that becomes free
(`free_slots`) is noted for the next delivery pass, which wakes as many lanes in line as there are
slots. Nothing polls.
"""

from __future__ import annotations

from typing import Final

from fila.core.bucket import Cap
from fila.core.cap_clock import CapClock
from fila.core.fairness import FairnessKey
from fila.core.lane import LANE_PARKED, NO_CAPS, Lane
from fila.core.queue import Queue
from fila.core.readiness import leave_line, make_ready, park
from fila.core.rejection import Rejection, invalid_value
from fila.core.settings import Settings
from fila.core.state import State
from fila.core.waits import Waits

MAX_IN_FLIGHT: Final = "max_in_flight_per_key"


def in_flight_fault(settings: Settings, max_in_flight: int) -> Rejection | None:
    """Why that cannot be the limit of a queue's keys, if so."""
    if max_in_flight > settings.in_flight_max:
        return invalid_value(
            MAX_IN_FLIGHT,
            f"{max_in_flight} is too many; the most is {settings.in_flight_max}, and 0 is no limit",
        )
    return None


def room(state: State, lane: Lane, want: int) -> int:
    """How many of `want` messages its caps let go now; with 0 the lane is parked at the first that
    is full."""
    key = lane.key
    if key.cap is None and lane.queue.max_in_flight_per_key:
        cap_key(lane.queue, key)
    for cap in lane.caps:
        slots = cap.slots()
        if slots < want:
            if slots == 0:
                park(state, lane, cap)
                return 0
            want = slots
    return want


def cap_key(queue: Queue, key: FairnessKey) -> Cap:
    """From now on it counts how much of the key is in flight."""
    cap = key.cap = Cap(key.name, 0, queue)
    for lane in key.lanes.values():
        own(lane, cap)
    return cap


def own(lane: Lane, cap: Cap) -> None:
    """The lane has this cap, too."""
    if lane.caps is NO_CAPS:
        lane.caps = []
    lane.caps.append(cap)
    cap.in_flight += lane.leased


def set_cap(state: State, name: bytes, limit: int) -> None:
    """Cap a throttle key, change its cap, or with 0 lift it."""
    cap = state.caps.get(name)
    lanes = list(state.lanes_of_throttle.get(name, ()))
    if limit and cap is None:
        cap = state.caps[name] = Cap(name, limit)
        for lane in lanes:
            own(lane, cap)
    elif limit and cap is not None:
        cap.limit = limit
        look_again(state, cap)
    elif cap is not None:
        del state.caps[name]
        state.freed.pop(cap, None)
        for lane in lanes:
            lane.caps.remove(cap)
            if lane.line_of is cap:
                leave_line(lane)
                if lane.state == LANE_PARKED:
                    make_ready(state, lane)


def set_cap_of_keys(state: State, queue: Queue, limit: int) -> None:
    """How much of each key of the queue may be in flight; 0: no limit."""
    if limit != queue.max_in_flight_per_key:
        queue.max_in_flight_per_key = limit
        state.freed.update(queue.full_caps)


def look_again(state: State, cap: Cap) -> None:
    """It may have slots for those in line."""
    if cap.waiters:
        state.freed[cap] = None


def leased_more(lane: Lane, count: int) -> None:
    """So many of the lane's messages are leased that were not."""
    for cap in lane.caps:
        cap.in_flight += count


def free_slots(state: State, lane: Lane, count: int) -> None:
    """So many of the lane's leases ended."""
    for cap in lane.caps:
        cap.in_flight -= count
        if cap.waiters:
            state.freed[cap] = None


def wake_capped(state: State, cap: Cap) -> int:
    """Let as many lanes go as there are slots. Each keeps its place in the line until its visit is
    over. Lanes of queues without credit leave the line. Returns how many were looked at."""
    slots = cap.slots()
    looked = 0
    woken = False
    stalled = []
    for lane in cap.waiters:
        if slots == 0 or looked == state.settings.bucket_lanes:
            break
        looked += 1
        if lane.queue.ready:
            slots -= 1
        else:
            stalled.append(lane)
        if lane.state == LANE_PARKED:
            make_ready(state, lane)
            woken = True
    for lane in stalled:
        leave_line(lane)
    more = woken or bool(state.touched) or looked == state.settings.bucket_lanes
    if cap.waiters and more and cap.slots():
        state.freed[cap] = None  # a pass is to come, and may leave some; or there are more
    return looked


def restored(lane: Lane) -> None:
    """After a restart: parked time of a lane that no bucket holds up was at caps."""
    if lane.throttled_ns and not lane.throttle_keys and not lane.buckets:
        lane.cap_clock = CapClock(lane.throttled_ns, lane.throttled_ns)


def account(lane: Lane, waits: list[Waits], taken: int) -> None:
    """Take the time at caps out of the waits of the last `taken` messages, all of this lane."""
    parked_ns = lane.throttled_ns
    for at in range(len(waits) - taken, len(waits)):
        if waits[at].throttled:
            waits[at] = without_caps(lane, waits[at], parked_ns)


def without_caps(lane: Lane, waits: Waits, parked_ns: int) -> Waits:
    """The split with what the lane stood at caps as a part of its own; its clock of parked time
    tells `parked_ns` now."""
    capped = lane.capped_at(parked_ns) - lane.capped_at(parked_ns - waits.throttled)
    return waits._replace(throttled=waits.throttled - capped, capped=capped)


def full_cap(lane: Lane) -> Cap | None:
    """The cap of the lane that is full, if one is."""
    for cap in lane.caps:
        if cap.slots() == 0:
            return cap
    return None


def limit_of(cap: Cap) -> int:
    """How many may be in flight; 0: there is no limit any more."""
    if cap.limit or cap.queue is None:
        return cap.limit
    return cap.queue.max_in_flight_per_key
