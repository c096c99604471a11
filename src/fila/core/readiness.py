"""Whether a lane's head may go: the states of a lane, and the line of lanes a gate wakes.

Lane states change only here: EMPTY → READY | DELAYED, READY ⇄ PARKED, DELAYED → READY, any → EMPTY;
while a key is paused, PAUSED takes the place of READY and PARKED.
"""

from __future__ import annotations

from fila.core import events
from fila.core.bucket import TOKEN, Bucket, Cap, Gate
from fila.core.fairness import FairnessKey
from fila.core.lane import LANE_DELAYED, LANE_PARKED, LANE_PAUSED, LANE_READY, Lane
from fila.core.queue import Queue
from fila.core.state import State


def make_ready(state: State, lane: Lane) -> None:
    """The lane's head may go: its key takes part in the ring."""
    queue = lane.queue
    key = lane.key
    active_ns = state.now - queue.stall_at(state.now)
    if lane.state == LANE_PARKED:
        lane.unpark(active_ns)
    elif lane.state == LANE_DELAYED:
        # Its head is ready from this moment on.
        lane.head_stall_ns = state.now - active_ns
        lane.head_throttled_ns = lane.throttled_ns
        lane.head_busy_ns = queue.busy.busy_at(state.now)
        lane.head_held_ns = key.held_ns(queue.busy.integral_at(state.now))
        lane.head_active_ns = lane.lost_since = active_ns
    was_parked = lane.state == LANE_PARKED
    if key.pause is not None:
        lane.state = LANE_PAUSED
        return
    lane.state = LANE_READY
    key.add_lane(lane, active_ns)
    was_active = key.active
    if not was_active:
        queue.ring.join(key)
    if was_parked and state.journal:
        state.events.append(events.throttled(lane, state.now, key.active - was_active))
    if queue.ready:
        state.touch_queue(queue)


def fall_due(state: State, lane: Lane) -> None:
    """The time of the lane's head has come."""
    key = lane.key
    was_active = key.active
    make_ready(state, lane)
    if state.journal and lane.state == LANE_READY:
        state.events.append(events.due(lane, state.now, key.active - was_active))


def make_unready(state: State, lane: Lane, to: int) -> None:
    """The lane's head may not go (any more): it is empty, delayed, parked or paused."""
    queue = lane.queue
    key = lane.key
    active_ns = state.now - queue.stall_at(state.now)
    if lane.state == LANE_READY:
        key.drop_lane(lane, active_ns)
        if key.lane is None:
            # A visit that a short bucket cuts off is taken up where it stopped, so that
            # weights hold among keys behind one bucket; otherwise a key leaves with nothing.
            if to == LANE_PARKED:
                if key.deficit == key.granted:
                    key.deficit = key.carried  # a visit begins with its first message
            elif key.deficit:
                queue.ring.let_go(key)
            queue.ring.leave(key)
    elif lane.state == LANE_PARKED:
        lane.unpark(active_ns)
        if state.journal:
            state.events.append(events.throttled(lane, state.now))
    elif lane.state == LANE_DELAYED:
        state.deadlines.disarm(lane)
    if to != LANE_PARKED:
        leave_line(lane)
    lane.state = to
    if key.deficit and key.pending == 0:
        queue.ring.let_go(key)
    if to == LANE_DELAYED:
        state.deadlines.arm(lane, lane.head_stamp())


def pause_lanes(state: State, queue: Queue, key: FairnessKey) -> None:
    """The key takes no turns: its lanes that may go, or wait for a token, are paused."""
    # Those in the ring last: that the key left it is told with its pause.
    for lane in key.lanes.values():
        if lane.state == LANE_PARKED:
            make_unready(state, lane, LANE_PAUSED)
    if key.lane is not None:
        key.drop_lanes(state.now - queue.stall_at(state.now))
        queue.ring.leave(key)
        for lane in key.lanes.values():
            if lane.state == LANE_READY:
                leave_line(lane)
                lane.state = LANE_PAUSED
    queue.ring.let_go(key)  # also of a visit that a short bucket had cut off


def resume_lanes(state: State, key: FairnessKey) -> None:
    """The key takes turns again. What became ready while it was paused is paused, too."""
    lanes = [lane for lane in key.lanes.values() if lane.state == LANE_PAUSED]
    if not lanes:
        return
    queue = lanes[0].queue
    for lane in lanes:
        lane.state = LANE_READY
    key.add_lanes(lanes, state.now - queue.stall_at(state.now))
    queue.ring.join(key)
    if queue.ready:
        state.touch_queue(queue)


def park(state: State, lane: Lane, gate: Gate) -> None:
    """The bucket is short of a token for the lane's head, or the cap is full: wait for it there."""
    queue = lane.queue
    resumes = 0 < lane.key.deficit < lane.key.granted
    was_active = lane.key.active
    make_unready(state, lane, LANE_PARKED)
    gate.limited += 1
    lane.parked_since = state.now - queue.stall_at(state.now)
    lane.at_cap = not isinstance(gate, Bucket)
    if state.journal:
        ring_delta = lane.key.active - was_active
        state.events.append(events.parked(lane, state.now, ring_delta))
    if lane.line_of is not gate:
        leave_line(lane)
        lane.line_of = gate
        gate.waiters[lane] = None
        if resumes and not lane.key.active:
            gate.waiters.move_to_end(lane, last=False)
    if isinstance(gate, Bucket):
        arm_bucket(state, gate)
    elif isinstance(gate, Cap) and gate.queue is not None:
        gate.queue.full_caps[gate] = None


def leave_line(lane: Lane) -> None:
    """The lane waits at no gate any more, and no gate remembers it."""
    gate = lane.line_of
    if gate is not None:
        del gate.waiters[lane]
        lane.line_of = None
        if isinstance(gate, Cap) and gate.queue is not None and not gate.waiters:
            gate.queue.full_caps.pop(gate, None)


def pass_over(state: State, key: FairnessKey) -> None:
    """The key has the turn and takes nothing now: where its lanes are in line and were woken, those
    behind them are looked at instead."""
    assert key.lane is not None, "it stands in the ring"
    _give_way(state, key.lane)
    for _, _, serial, lane in key.others:
        if lane.stands == serial:
            _give_way(state, lane)


def _give_way(state: State, lane: Lane) -> None:
    gate = lane.line_of
    if gate is None:
        return
    leave_line(lane)
    if not gate.waiters:
        return
    if isinstance(gate, Bucket):
        arm_bucket(state, gate)
    elif isinstance(gate, Cap):
        state.freed[gate] = None


def arm_bucket(state: State, bucket: Bucket) -> None:
    """See to it that the waiters are looked at when the bucket has a token."""
    bucket.refill(state.now)
    if bucket.tokens >= TOKEN:
        state.waiting[bucket] = None
        return
    at_ns = bucket.next_token_ns()
    if at_ns:
        state.deadlines.arm(bucket, at_ns)
    else:
        state.deadlines.disarm(bucket)


def wake_waiters(state: State, bucket: Bucket) -> int:
    """Let as many lanes go as there are tokens. Each keeps its place in the line until its
    visit is over: if the tokens do not reach it, it is still among the first. Returns how many
    are ready now that were not, or paid for what they had.

    Lanes of stalled queues take none: they leave the line, or a queue without consumers could
    keep tokens from the others. Of a long line only so many are looked at, the others when these
    have had their turn."""
    bucket.refill(state.now)
    tokens = bucket.tokens
    stalled = []
    paying = []
    woken = 0
    left = state.settings.bucket_lanes
    for lane in bucket.waiters:
        if tokens < TOKEN or left == 0:
            break
        left -= 1
        if lane.queue.ready:
            if lane.queue.ring.by_bytes and len(bucket.waiters) > 1 and _pays(state, lane):
                paying.append(lane)
                continue
            tokens -= 1.0
        else:
            stalled.append(lane)
        if lane.state == LANE_PARKED:
            make_ready(state, lane)
            woken += 1
    for lane in stalled:
        leave_line(lane)
    for lane in paying:
        bucket.waiters.move_to_end(lane)
    if bucket.waiters and (woken or paying or state.touched or bucket.tokens < TOKEN or left == 0):
        arm_bucket(state, bucket)  # a pass is to come, or a token, or there are more to look at
    return woken + len(paying)


def _pays(state: State, lane: Lane) -> bool:
    """Where messages cost their bytes: whether a lane that is next in line lets the others go
    first, since its key owes more than a visit adds. Those in the ring have a part in what it owes:
    while there are any, it pays there."""
    key = lane.key
    if lane.state != LANE_PARKED or lane.queue.ring.keys:
        return False
    granted = key.deficit + key.weight * state.settings.quantum_bytes
    if granted > 0:
        return False
    key.deficit = granted
    return True


def new_head(state: State, lane: Lane) -> None:
    """Another message heads the lane: take the clocks, and see whether it may go."""
    now = state.now
    queue = lane.queue
    if queue.heads is not None:
        queue.heads.add(lane)
    stall_ns = queue.stall_at(now)
    lane.head_stall_ns = stall_ns
    lane.head_throttled_ns = lane.throttled_at(now)
    lane.head_busy_ns = queue.busy.busy_at(now)
    lane.head_held_ns = lane.key.held_ns(queue.busy.integral_at(now))
    lane.head_active_ns = lane.lost_since = now - stall_ns
    future = lane.head_has_delay() and lane.head_stamp() > now
    if lane.state == LANE_READY:
        if future:
            make_unready(state, lane, LANE_DELAYED)
        else:
            active_ns = now - stall_ns
            lane.key.drop_lane(lane, active_ns)
            lane.key.add_lane(lane, active_ns)
    elif lane.state == LANE_PARKED:
        if future:
            make_unready(state, lane, LANE_DELAYED)
    else:
        if future:
            make_unready(state, lane, LANE_DELAYED)
        else:
            if lane.state == LANE_DELAYED:
                state.deadlines.disarm(lane)
            make_ready(state, lane)
