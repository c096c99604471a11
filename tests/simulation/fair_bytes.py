"""The fair order where messages cost their bytes: what two keys got, per unit of weight.

A key is followed while it has a message without throttle keys that may go, with the same weight all
the time: then it stands in the ring. Of the first keys of a queue, two by two:

  - while both stand in the ring, bytes per weight differ by at most a quantum and the largest
    message of each, over any span. One that has messages behind a bucket, too, may stand there
    first with the rest of a visit that the bucket had cut off: then it is a quantum more;
  - a key that comes and goes with the same weight while another stands in the ring gets no more
    than that one and what the ring's clock may be wrong by: two such differences more. The visit
    that is under way when its weight changes has a quantum of the weight before.

A message that is behind a bucket costs its bytes, too; when it goes, its bucket has a say in.
"""

from __future__ import annotations

from .model import Key, Lane, Queue
from .turn import Violation

MEASURED = 6  # keys of a queue between which spans are measured
ROUNDED = 1.0  # what is owed is kept in whole bytes


def lane_changes(lane: Lane) -> None:
    """It came to have something that may go, or has nothing any more."""
    key = lane.key
    if lane.may_park or key.queue.max_in_flight:
        key.cut_off = True
    else:
        key.stands = lane.ready
        key.stood += 1


def may_be_parked(key: Key) -> None:
    """A cap came, or went: whether it stands in the ring is known when it comes to it anew."""
    key.cut_off = True
    key.stands = False
    key.stood += 1


def weight_changes(key: Key, weight: int) -> None:
    """Spans begin anew when the key stands in the ring again: its visit began with the old one."""
    key.lightest = min(key.lightest or weight, weight)
    key.weighed += 1
    key.stands = False
    key.stood += 1


def delivered(lane: Lane, size: int, quantum: int) -> None:
    key = lane.key
    queue = key.queue
    key.lightest = key.lightest or key.weight
    key.largest = max(key.largest, size)
    queue.overshoot = max(queue.overshoot, key.largest / key.lightest)
    if key.index >= MEASURED:
        return
    step = size / key.weight
    for other in queue.keys.values():
        if other is key or other.index >= MEASURED:
            continue
        if key.stands and other.stands:
            _measure(queue, key, other, step, quantum)
        if other.stands:
            _lead(queue, key, other, step, quantum)
        if key.stands:
            _lead(queue, other, key, -step, quantum)


def _measure(queue: Queue, key: Key, other: Key, step: float, quantum: int) -> None:
    first, second = (key, other) if key.index < other.index else (other, key)
    span = queue.pairs.get((first, second))
    if span is None or (span[3], span[4]) != (first.stood, second.stood):
        queue.pairs[first, second] = span = [0.0, 0.0, 0.0, first.stood, second.stood]
    span[0] += step if first is key else -step
    span[1] = min(span[1], span[0])
    span[2] = max(span[2], span[0])
    visits = 1 + (key.cut_off or other.cut_off)
    beyond = sum((one.largest + ROUNDED) / _lightest(one) for one in (key, other))
    owed = quantum * visits + beyond
    if span[2] - span[1] > owed + 1e-6:
        _broken(
            queue,
            f"bytes/weight of {_name(key)} and {_name(other)} differs by "
            f"{span[2] - span[1]:.3f}, more than is owed ({owed:.3f})",
        )


def _lead(queue: Queue, key: Key, steady: Key, step: float, quantum: int) -> None:
    """What a key got ahead of one that stood in the ring all the time."""
    span = queue.leads.get((key, steady))
    if span is None or (span[2], span[3]) != (steady.stood, key.weighed):
        queue.leads[key, steady] = span = [0.0, 0.0, steady.stood, key.weighed]
    span[0] += step
    span[1] = min(span[1], span[0])
    begun = quantum * max(key.heaviest, key.weight) / _lightest(key)
    owed = 2 * quantum + begun + 6 * (queue.overshoot + ROUNDED)
    if span[0] - span[1] > owed:
        _broken(
            queue,
            f"{_name(key)} comes and goes and gets {span[0] - span[1]:.3f} bytes/weight more than "
            f"{_name(steady)}, more than {owed:.3f}",
        )


def _lightest(key: Key) -> int:
    return key.lightest or key.weight


def _broken(queue: Queue, how: str) -> None:
    if not queue.apart:
        raise Violation("fair share", how)


def _name(key: Key) -> str:
    return f"{key.queue.name}/{key.name.decode()}"
