"""Where a message's wait went: the parts are not negative, add up, and match what can be known.

Known for sure, unless a restart lies in between:
  retry        always
  paused       the time its queue was paused, and its key while somebody had credit
  no consumer  the time without credit since the message was ready, less what was busy; for one that
               had a delay only while it headed its lane (before that its time counts as its own
               backlog)
  busy         the part of it in which somebody was there to work, and messages were leased: its
               own key's part is that of its leased messages, the others' the rest (busy.py)
  capped       nothing while no cap of its lane was ever full
  throttled    nothing without throttle keys; at least until the token came, for a message that
               found its only bucket empty and was the first to get one
  own backlog  nothing for a message that was its key's first all the time

A message that was handed back waits from that moment on, by the same rules as one that is stored
then: it has no retry part, whatever delay it once had, and its clocks are read anew.
"""

from __future__ import annotations

from fila.core.waits import Waits

from . import busy
from .model import Message
from .tokens import NEVER_NS, TOLERANCE, Tokens
from .turn import Violation

PROMISE = "wait split"


def stored(message: Message, now: int, tokens: Tokens) -> bool:
    """It waits from now on. Tells whether a token is what it waits for."""
    lane = message.lane
    key = lane.key
    message.known = True
    message.moved = False
    message.token_ns = 0
    message.headed = False
    if message.timed and message.ready_ns > message.since_ns:
        message.stall_then = -1
        return False
    message.stall_then = key.queue.stall_at(now)
    message.paused_then = (key.queue.paused_at(now), key.paused_at(now))
    message.busy_then = busy.reading(key, now)
    if key.pending != 1:
        return False
    message.headed = True
    message.changes_then = key.changes
    buckets = tokens.buckets_of(lane)
    if len(buckets) != 1 or buckets[0].level_at(now) >= 1.0 - TOLERANCE:
        return False
    message.token_ns = buckets[0].token_ns()
    message.token_then = (buckets[0], buckets[0].changes)
    return True


def not_looked_at(message: Message) -> None:
    """No pass saw in this turn that its bucket is short."""
    message.token_ns = 0


def becomes_ready(message: Message) -> None:
    """Its delay is over; it may head its lane from that moment on."""
    lane = message.lane
    message.stall_then = lane.key.queue.stall_at(message.ready_ns)
    key = lane.key
    message.paused_then = (key.queue.paused_at(message.ready_ns), key.paused_at(message.ready_ns))
    message.busy_then = busy.reading(key, message.ready_ns)
    if not lane.line and lane.timed[0] is message:
        message.headed = True
        message.removals_then = lane.removals


def check(message: Message, waits: Waits, now: int, tokens: Tokens) -> None:
    lane = message.lane
    retry, throttled, no_consumer, own, _, paused, busy_own, busy_others, capped = waits
    if min(waits) < 0:
        _fail(message, waits, now, "a part is negative")
    if sum(waits) != now - message.since_ns:
        _fail(message, waits, now, f"the parts do not add up to {now - message.since_ns}")
    delayed = message.timed and message.ready_ns > message.since_ns
    if message.retry_known and retry != (message.ready_ns - message.since_ns if delayed else 0):
        _fail(message, waits, now, f"its delay was {message.ready_ns - message.since_ns}")
    if throttled and not (lane.may_park or message.moved):
        _fail(message, waits, now, "it has no throttle keys")
    # (After a restart time behind an override that is over may count as capped.)
    if capped and not (lane.met_cap or lane.key.limited or message.moved):
        _fail(message, waits, now, "no cap of its was ever full")
    if not message.known or message.stall_then < 0:
        return
    key = lane.key
    of_queue = key.queue.paused_at(now) - message.paused_then[0]
    of_key = key.paused_at(now) - message.paused_then[1]
    spent, own_part = busy.reading(key, now)
    spent -= message.busy_then[0]
    own_part -= message.busy_then[1]
    stalled = key.queue.stall_at(now) - message.stall_then - of_queue - spent
    if paused > of_queue + of_key or (not delayed and paused != of_queue + of_key):
        _fail(message, waits, now, f"it was paused for {of_queue} + {of_key}")
    if delayed:
        exact = message.headed and lane.removals == message.removals_then
        if no_consumer > stalled or (exact and no_consumer != stalled):
            _fail(message, waits, now, f"nobody was there for {stalled}")
        if busy_own + busy_others > spent or (exact and busy_own + busy_others != spent):
            _fail(message, waits, now, f"consumers were busy for {spent}")
        if exact:
            _check_part(message, waits, now, own_part)
        return
    if no_consumer != stalled:
        _fail(message, waits, now, f"nobody was there for {stalled}")
    if busy_own + busy_others != spent:
        _fail(message, waits, now, f"consumers were busy for {spent}")
    _check_part(message, waits, now, own_part)
    if message.headed and lane.key.changes == message.changes_then:
        if own:
            _fail(message, waits, now, "it was its key's first all the time")
        # A pass saw that its bucket was short; one that was lifted and set again is another bucket.
        looked_at = stalled == 0 and spent == 0 and of_queue == 0
        buckets = [(one, one.changes) for one in tokens.buckets_of(lane)]
        if 0 < message.token_ns < NEVER_NS and looked_at and buckets == [message.token_then]:
            parked = message.token_ns - message.since_ns
            if throttled < parked * (1 - TOLERANCE) - 2:
                _fail(message, waits, now, f"its token took {parked}")


def _check_part(message: Message, waits: Waits, now: int, own_part: int) -> None:
    if abs(waits.busy_own - own_part) > busy.TOLERANCE_NS:
        _fail(message, waits, now, f"messages of its own key were leased for {own_part} of it")


def _fail(message: Message, waits: Waits, now: int, why: str) -> None:
    raise Violation(PROMISE, f"{message.id.hex()[-6:]} at {now}: {waits}: {why}")
