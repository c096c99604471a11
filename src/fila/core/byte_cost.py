"""Turns in a queue where a message costs its key the bytes of its body, and not 1.

Owns where a visit begins that may have to pay for the one before. Messages go while the deficit is
above 0, so the last one of a visit may cost more than is left of it, and the deficit is below 0
then: what later visits add pays for it first, and a visit that only pays hands out nothing. So for
two keys that stay in the ring, bytes per weight differ by at most a quantum and each one's largest
message, whatever the sizes are; and no message is looked at before it goes.

A visit that only pays is a step of the ring, and each quantum of bytes handed out makes at most one
of them: the cost of a message stays in proportion to its size. A pass counts it as a message, so
that many of them in a row hold nobody up.

A key that leaves while it owes something owes it until the others have had as much, by the ring's
clock (`Ring.let_go`). Alone it owes nobody.
"""

from __future__ import annotations

from typing import Final

from fila.core.bucket import Bucket, first_short, whole_tokens
from fila.core.caps import room
from fila.core.fairness import FairnessKey, Ring
from fila.core.lane import Lane
from fila.core.readiness import leave_line, park
from fila.core.state import State

COST_MESSAGES: Final = "messages"
COST_BYTES: Final = "bytes"
COSTS: Final = ("", COST_MESSAGES, COST_BYTES)


def cost_of(ring: Ring) -> str:
    return COST_BYTES if ring.by_bytes else COST_MESSAGES


def quantum_of(state: State, ring: Ring) -> int:
    """What a visit adds for a key of weight 1, in messages or bytes."""
    return state.settings.quantum_bytes if ring.by_bytes else state.settings.quantum


def begin_visit(state: State, lane: Lane) -> bool:
    """Begin the visit of the lane's key, which heads the ring. False: nothing goes with it, for the
    key still owes something, or a bucket is short."""
    key = lane.key
    ring = lane.queue.ring
    buckets = lane.buckets
    if buckets and whole_tokens(buckets, 1, state.now) == 0:
        short = first_short(buckets)
        assert short is not None
        state.pass_left -= 1
        park(state, lane, short)
        return False
    if (lane.caps or lane.queue.max_in_flight_per_key) and room(state, lane, 1) == 0:
        state.pass_left -= 1
        return False
    carried = key.deficit
    granted = carried + key.weight * state.settings.quantum_bytes
    if granted <= 0:
        wanted = next((bucket for bucket in buckets if _wanted(bucket, lane)), None)
        if ring.keys > 1 or wanted is not None:
            state.pass_left -= 1
            key.deficit = granted
            if wanted is not None:
                _line_up(state, lane, wanted)
            if key.active and ring.head is key:
                ring.head = key.after
            return False
        carried = 0
        granted = key.weight * state.settings.quantum_bytes
    key.carried = carried
    key.deficit = key.granted = granted
    return True


def charge(ring: Ring, key: FairnessKey, cost: int) -> int:
    """Messages of so many bytes went with the visit under way. Returns what they cost."""
    key.bytes += cost
    ring.bytes += cost
    ring.clock += cost / ring.weight
    return cost


def _wanted(bucket: Bucket, lane: Lane) -> bool:
    """Whether others are in line for its tokens."""
    return len(bucket.waiters) > (lane.line_of is bucket)


def _line_up(state: State, lane: Lane, bucket: Bucket) -> None:
    """Others in line take the token meanwhile."""
    leave_line(lane)
    park(state, lane, bucket)
