"""The fair order, checked visit by visit against Deficit Round Robin as it is promised.

A key is followed exactly while it *surely* takes part: it has a lane with a ready message whose
buckets were never short since that lane became ready (or last delivered). Such a key stands in
`ring`, in the order of turns, once its place is known: it joined while it had nothing else ready,
or its visit was seen to end. A key that takes part at an unknown place is `floating`. Of a key that
may be parked on a bucket nothing is known but that its visits are not too long.

Checked:
  - of the keys in `ring` the first has the next visit (so a newcomer waits for everybody's visit);
  - a visit is exactly weight × quantum messages, with the weight at its beginning, unless its key
    runs out of ready messages;
  - nobody has two visits while a key that takes part has none;
  - for any two keys in `ring`, served/weight differs by at most one visit over any span.
"""

from __future__ import annotations

from . import fair_bytes
from .model import Key, Lane, Queue
from .turn import Violation

MEASURED = 6  # keys of a queue between which spans are measured
PROMISE = "fair order"


def becomes_ready(lane: Lane, sure: bool, placed: bool) -> None:
    """`sure`: its buckets have tokens. `placed`: its moment is known well enough for an order."""
    key = lane.key
    queue = key.queue
    first = key.ready_lanes == 0
    lane.ready = True
    fair_bytes.lane_changes(lane)
    key.ready_lanes += 1
    if not first:
        _end_span_behind(key)
    queue.ready_lanes[lane] = None
    if not sure:
        if first:
            key.met_tokens = False
            queue.newcomers.append(key)
        return
    lane.sure = True
    key.sure_lanes += 1
    if key.sure_lanes > 1:
        return
    if first:
        key.met_tokens = True
    if first and placed:
        _enter(queue, key)
    else:
        key.residual = key.residual or not first
        _float(queue, key)


def becomes_unready(lane: Lane) -> None:
    """It has nothing more that may go."""
    key = lane.key
    queue = key.queue
    lane.ready = False
    fair_bytes.lane_changes(lane)
    key.ready_lanes -= 1
    del queue.ready_lanes[lane]
    if lane.sure:
        becomes_unsure(lane)
    _end_span_behind(key)
    if key.ready_lanes == 0:
        key.residual = False
        key.steady_since = abs(key.steady_since)
        if queue.visit_key is key:
            queue.visit_key = None
    elif queue.visit_key is key and (queue.visit_left or not queue.visit_exact):
        # What is left of the visit falls to another lane, which may have to wait for its bucket:
        # then a span there begins with less than a visit.
        key.steady_since = -abs(key.steady_since) - 1


def becomes_unsure(lane: Lane) -> None:
    """A bucket of it is short: it may be parked."""
    key = lane.key
    queue = key.queue
    lane.sure = False
    key.sure_lanes -= 1
    if key.sure_lanes:
        return
    queue.ring.pop(key, None)
    queue.floating.pop(key, None)
    key.epoch += 1
    if not _waited_for(queue):
        queue.visit_run = 0
    if key.ready_lanes:
        key.residual = True
        if queue.visit_key is key:
            # It may have left the ring, and then its next message begins another visit.
            queue.visit_exact = False
            queue.visit_run = 0


def becomes_sure(lane: Lane) -> None:
    """It delivered and still has tokens: it takes part from now on."""
    key = lane.key
    lane.sure = True
    key.sure_lanes += 1
    if key.sure_lanes == 1:
        _float(key.queue, key)


def weight_changes(key: Key, weight: int) -> None:
    """The weight of the newest message counts from the key's next visit."""
    if weight != key.weight:
        fair_bytes.weight_changes(key, weight)
        key.weight = weight
        key.heaviest = max(key.heaviest, weight)
        key.epoch += 1
        if key.ready_lanes:
            # The visit under way keeps the old weight, and it is not known where it stands.
            key.steady_since = -abs(key.steady_since) - 1


def delivered(key: Key, quantum: int) -> None:
    """A message of this key is delivered; its lane still counts it."""
    queue = key.queue
    visited = queue.visit_key
    if visited is not key:
        if visited is not None:
            _leave_visit(queue, visited)
        _begin_visit(queue, key, quantum)
    elif queue.visit_exact:
        if queue.visit_left == 0:
            _begin_visit(queue, key, quantum)
        else:
            queue.visit_left -= 1
    else:
        key.residual = False
        # Without a sure lane it may leave and come back between two messages.
        apart = key.sure_lanes == 0 or _alone(queue, key)
        queue.visit_run = 0 if apart else queue.visit_run + 1
        if queue.visit_run > max(key.heaviest, queue.visit_weight) * quantum:
            _broken(queue, f"{_name(key)} has a visit of more than {queue.visit_run - 1}")
    queue.visit_joins = queue.joins
    if key.index < MEASURED and key in queue.ring:
        _measure(queue, key, quantum)
    if queue.visit_exact and queue.visit_left == 0 and key.sure_lanes:
        # The visit is over, so its place is known: at the end.
        queue.ring.pop(key, None)
        if key in queue.floating:
            del queue.floating[key]
            key.epoch += 1
        queue.ring[key] = None
        if key.weight != queue.visit_weight:
            key.epoch += 1  # the span under the new weight begins with the next visit


def delivered_behind(lane: Lane, quantum: int) -> None:
    """A message went from a lane that waits for one bucket: others that wait there keep up.

    Keys that wait for tokens of the same bucket share them by weight, too: a visit that an empty
    bucket cuts off is taken up where it stopped. A key that comes when tokens are there again, or
    while nobody has credit, may have a whole visit before that.
    """
    key = lane.key
    queue = key.queue
    if key.index >= MEASURED or key.ready_lanes != 1 or key.steady_since < 0:
        return
    step = 1.0 / key.weight
    for other_lane in queue.ready_lanes:
        other = other_lane.key
        if other is key or other.index >= MEASURED or other.ready_lanes != 1:
            continue
        if other_lane.throttle_keys != lane.throttle_keys or other.steady_since < 0:
            continue
        if other.limited:
            continue
        first, second = (key, other) if key.index < other.index else (other, key)
        span = queue.shared.get((first, second))
        steady = (first.steady_since, second.steady_since)
        if span is None or (span[3], span[4]) != steady:
            queue.shared[first, second] = span = [0.0, 0.0, 0.0, *steady]
        # Who comes while there are tokens, or nobody has credit, may have its visit before one
        # that was cut off.
        visits = 2 if key.met_tokens or other.met_tokens else 1
        _widen(span, step if first is key else -step, visits * quantum, key, other)


def turn_ends(queue: Queue, complete: bool) -> None:
    """`complete`: its pass came to everybody.

    A key that came while its bucket was short waits there now, behind the others. Without a pass
    it stands in the ring still, before those that wait, and may be served before them when there
    are tokens and credit: as if it had met tokens."""
    if not complete:
        for key in queue.newcomers:
            key.met_tokens = True
    queue.newcomers = []


def forget_order(queue: Queue) -> None:
    """After a restart the ring stands in another order, and no visit is under way."""
    queue.ring = {}
    queue.floating = {}
    queue.visit_key = None
    queue.pairs = {}
    queue.shared = {}
    queue.leads = {}
    queue.ready_lanes = {}
    queue.newcomers = []
    for key in queue.keys.values():
        key.ready_lanes = key.sure_lanes = 0
        key.residual = False
        key.epoch += 1
        for lane in key.lanes.values():
            lane.ready = lane.sure = False
            fair_bytes.lane_changes(lane)


def _end_span_behind(key: Key) -> None:
    key.steady_since += 1 if key.steady_since >= 0 else -1


def _enter(queue: Queue, key: Key) -> None:
    key.residual = False
    key.passed = set()
    key.epoch += 1
    queue.ring[key] = None
    queue.joins += 1
    key.joined = queue.joins


def _float(queue: Queue, key: Key) -> None:
    key.passed = set()
    queue.floating[key] = None
    queue.joins += 1
    key.joined = queue.joins


def _leave_visit(queue: Queue, visited: Key) -> None:
    if queue.visit_exact:
        if queue.visit_left > 0 and visited.sure_lanes:
            _broken(
                queue,
                f"the visit of {_name(visited)} (weight {queue.visit_weight}) ends "
                f"{queue.visit_left} messages early",
            )
    elif visited.sure_lanes:
        # Its visit ended at some point. If nobody joined meanwhile, it stands at the end.
        visited.epoch += 1
        queue.ring.pop(visited, None)
        queue.floating.pop(visited, None)
        if queue.joins == queue.visit_joins:
            queue.ring[visited] = None
        else:
            _float(queue, visited)


def _begin_visit(queue: Queue, key: Key, quantum: int) -> None:
    ring = queue.ring
    if ring:
        first = next(iter(ring))
        if key in ring:
            if first is not key:
                _broken(queue, f"{_name(key)} is served before {_name(first)}")
        elif key in first.passed:
            _broken(queue, f"{_name(key)} has two visits and {_name(first)} none")
        else:
            first.passed.add(key)
    for waiting in queue.floating:
        if waiting is not key:
            if key in waiting.passed:
                _broken(queue, f"{_name(key)} has two visits and {_name(waiting)} none")
            waiting.passed.add(key)
    key.passed = set()
    queue.visit_key = key
    queue.visit_weight = key.weight
    queue.visit_exact = key.sure_lanes > 0 and not key.residual
    queue.visit_left = key.weight * quantum - 1
    queue.visit_run = 0 if key.sure_lanes == 0 or _alone(queue, key) else 1
    key.residual = False


def _measure(queue: Queue, key: Key, quantum: int) -> None:
    """Keep the widest swing of served/weight between this key and the measured others."""
    step = 1.0 / queue.visit_weight
    pairs = queue.pairs
    for other in queue.ring:
        if other is key or other.index >= MEASURED:
            continue
        first, second = (key, other) if key.index < other.index else (other, key)
        span = pairs.get((first, second))
        if span is None or span[3] != first.epoch or span[4] != second.epoch:
            pairs[first, second] = span = [0.0, 0.0, 0.0, first.epoch, second.epoch]
        _widen(span, step if first is key else -step, quantum, key, other)


def _widen(span: list[float], step: float, bound: int, key: Key, other: Key) -> None:
    span[0] += step
    span[1] = min(span[1], span[0])
    span[2] = max(span[2], span[0])
    if span[2] - span[1] > bound + 1e-9:
        _broken(
            key.queue,
            f"served/weight of {_name(key)} and {_name(other)} differs by "
            f"{span[2] - span[1]:.3f}, more than is owed ({bound})",
            "fair share",
        )


def _waited_for(queue: Queue) -> bool:
    """Whether a key took part when the last message went and still does: it is before the one
    whose visit that was, if the visit is over. Who joined later stands behind it."""
    visited = queue.visit_key
    joined_max = queue.visit_joins
    return any(
        key is not visited and key.joined <= joined_max for key in (*queue.ring, *queue.floating)
    )


def _alone(queue: Queue, key: Key | None) -> bool:
    """Whether no other key surely takes part: then one visit of this one follows the other."""
    others = len(queue.ring) + len(queue.floating)
    return others == (key in queue.ring or key in queue.floating)


def _broken(queue: Queue, how: str, promise: str = PROMISE) -> None:
    """Of a queue that is being quarantined nothing of the order is promised."""
    if not queue.apart:
        raise Violation(promise, how)


def _name(key: Key) -> str:
    return f"{key.queue.name}/{key.name.decode()}"
