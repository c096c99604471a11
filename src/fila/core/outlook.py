"""When will a message sent now be delivered? And what would change that, computed.

Of a key: how many of its messages go before one that comes now, and how many of them go a second.
The rate is what the key got lately while it had a backlog, else its share by weight of what the
consumers take. Under saturation that is what they can take: their capacity.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.bucket import NS
from fila.core.due import sent_per_second
from fila.core.fairness import FairnessKey
from fila.core.forecast import RECENT_NS, bucket_share, key_rate
from fila.core.lane import LANE_DELAYED, Lane
from fila.core.queue import Queue
from fila.core.service import Served
from fila.core.state import State
from fila.core.waiting import short_bucket

WINDOWS_NS: Final = (RECENT_NS, 6 * RECENT_NS, 60 * RECENT_NS)  # the first that tells enough
_KEY_MIN: Final = 20  # deliveries that tell a rate
_QUEUE_MIN: Final = 50
_STEADY: Final = 0.1  # a backlog grows or shrinks if rates differ by more than this part

GROWING: Final = "growing"
SHRINKING: Final = "shrinking"
STEADY: Final = "steady"


class Outlook(NamedTuple):
    eta_ns: int | None  # None: it will not go as things are
    because: str  # what the estimate stands on, or why there is none
    capacity: float  # messages of the queue that consumers take in a second
    share: float  # and of the key; 0: not known
    sends: float | None  # messages of the key that come in a second
    pending: int
    trend: str | None
    more_consumers: int | None  # the estimate with one consumer more
    more_weight: int | None  # with twice the weight
    more_rate: int | None  # with twice the rate of the bucket that holds it up


def outlook(state: State, queue: Queue, key: FairnessKey) -> Outlook:
    now = state.now
    lane = _deepest(key)
    served = _served(queue, key, now)
    capacity = served.per_second()
    sends = sent_per_second(key, now)
    ahead = sum([one.pending for one in key.lanes.values() if one.state != LANE_DELAYED])
    short = short_bucket(lane, now) if lane is not None else None

    def without(because: str) -> Outlook:
        return Outlook(None, because, capacity, 0.0, sends, ahead, None, None, None, None)

    if queue.pause is not None or key.name in queue.key_pauses:
        return without("it is paused")
    if not queue.consumers and not queue.lease_batches:
        return without("nobody consumes the queue")
    if short is not None and short.next_token_ns() == 0:
        return without("its bucket never gets a token")
    if queue.ready and ahead == 0 and short is None:
        because = "consumers have credit and nothing of the key waits"
        return Outlook(0, because, capacity, 0.0, sends, 0, None, None, None, None)
    if lane is not None:
        rate = key_rate(lane, served, now)
    else:
        rate = capacity * key.weight / (queue.ring.weight + key.weight)
    if rate <= 0.0:
        return without("nothing of the queue was delivered lately")
    # A newcomer waits for a visit of every other key; the rate tells that already.
    eta_ns = _eta(ahead, rate)
    consumers = queue.attending
    more_consumers = more_weight = more_rate = None
    if short is not None:
        eta_ns = max(eta_ns, short.next_token_ns() - now)
        assert lane is not None
        others = [bucket_share(lane, one) for one in lane.buckets if one is not short]
        more = min([2 * rate, *others])
        more_rate = _eta(ahead, more) if more > 0.0 else None  # another one lets nothing go
    elif not queue.ready:
        if consumers:
            more_consumers = _eta(ahead, rate * (consumers + 1) / consumers)
        if queue.ring.keys > 1 or not key.active:
            weights = queue.ring.weight + (0 if key.active else key.weight)
            more_weight = _eta(ahead, rate * 2 * weights / (weights + key.weight))
    return Outlook(
        eta_ns, f"its key gets {rate:.3g} messages a second", capacity, rate, sends, ahead,
        _trend(sends, rate, ahead), more_consumers, more_weight, more_rate,
    )  # fmt: skip


def _eta(ahead: int, rate: float) -> int:
    return int((ahead + 1) * NS / rate)


def _trend(sends: float | None, rate: float, ahead: int) -> str | None:
    if sends is None:
        return None
    if sends > rate * (1 + _STEADY):
        return GROWING
    return SHRINKING if ahead and sends < rate * (1 - _STEADY) else STEADY


def _deepest(key: FairnessKey) -> Lane | None:
    """The lane that tells how the key fares: where most of its messages wait."""
    best: Lane | None = None
    for lane in key.lanes.values():
        if best is None or lane.pending > best.pending:
            best = lane
    return best


def _served(queue: Queue, key: FairnessKey, now: int) -> Served:
    """What was delivered lately: of the shortest time that saw enough of it."""
    found = queue.service.since(now - WINDOWS_NS[0], now)
    for window_ns in WINDOWS_NS[1:]:
        if found.keys.get(key.name, 0.0) >= _KEY_MIN or found.served >= _QUEUE_MIN:
            break
        found = queue.service.since(now - window_ns, now)
    return found
