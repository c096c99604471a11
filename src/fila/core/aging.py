"""Messages whose time to live runs out: noticed at their time, given up a bounded number per turn.

Every pending message that expires has a row in the order of time (`aging_rows.py`); it is written
when the message begins to wait and goes with it. A lease is no waiting: whoever holds a message may
settle it after its time, and one that comes back too late is given up then. Rows that were left
behind, by a purge, name messages that are not pending, and go at their time.

However many are due at once, none is delivered: delivery passes over a key whose next message is
expired, until the steps of the following turns have taken it away.
"""

from __future__ import annotations

from typing import Final

from fila.core import aging_rows, effect, events, rows, ttl
from fila.core.catalogue import dead_letters_of
from fila.core.command import Age
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, WEIGHT, Entry, message_id
from fila.core.expiries import wake_at
from fila.core.lane import Lane
from fila.core.obituary import explained
from fila.core.pending import store
from fila.core.queue import Aging, Queue
from fila.core.row_batch import DELETE_STATE
from fila.core.state import MS, State
from fila.core.taking import take

BY_TTL: Final = "expired"  # the reason a dead letter tells
ERROR: Final = "time to live ran out"
_BYTES: Final = 1 << 20


def stamped(state: State, queue: Queue, body: bytes) -> bytes:
    """A message's body as its queue stores it: with the time it expires, if it does."""
    with_time = ttl.expiring(body, queue.ttl_ms, state.now)
    if with_time is not body and queue.aging is None:
        queue.aging = Aging(queue)
    return with_time


def load(state: State, queue: Queue) -> None:
    """After a restart: when the first of its messages expires. Of leased ones `load.py` knows."""
    prefix = aging_rows.prefix(queue.number)
    found = state.reader.scan(rows.STATE, prefix, rows.after(prefix), 1, _BYTES)
    if found:
        queue.aging = queue.aging or Aging(queue)
        wake_at(state, queue, aging_rows.at_ms(found[0][0]) * MS)


def due(state: State, queue: Queue, count: int) -> list[tuple[bytes, bytes]]:
    """Rows of up to `count` messages whose time is up. When there are no more, the queue is woken
    for the next."""
    if queue.ready:
        state.touch_queue(queue)  # delivery passed over their keys
    prefix = aging_rows.prefix(queue.number)
    later = aging_rows.from_ms(queue.number, state.now // MS + 1)
    found = state.reader.scan(rows.STATE, prefix, later, count, _BYTES)
    if len(found) == count or sum([len(key) + len(row) for key, row in found]) >= _BYTES:
        return found
    del state.due_aging[queue]
    following = state.reader.scan(rows.STATE, later, rows.after(prefix), 1, _BYTES)
    if following:
        wake_at(state, queue, aging_rows.at_ms(following[0][0]) * MS)
    return found


def age(state: State, queue: Queue, command: Age) -> int:
    """Give up what these rows name and is pending still. Returns how many messages it was."""
    ops = state.ops(queue.group)
    count = 0
    for row_key, row in command.rows:
        lane = _lane_of(queue, row_key, row)
        if lane is not None:
            was_active = lane.key.active
            entry = take(state, lane, aging_rows.message_key(row_key))
            if entry is not None:
                give_up(state, lane, entry, lane.key.active - was_active)
                count += 1
            elif queue.group in state.damaged:
                break  # it cannot be read: its row stays for whoever mends it
        ops.append((DELETE_STATE, row_key, b""))
    return count


def give_up(state: State, lane: Lane, entry: Entry, ring_delta: int) -> None:
    """One that is expired and out of its lane already: a dead letter, or nothing any more."""
    queue = lane.queue
    queue.counters.aged_out += 1
    dlq = dead_letters_of(state, queue) if not queue.drops_expired else None
    if dlq is None:
        if state.journal:
            state.events.append(_dropped(state, lane, ring_delta))
        return
    if state.journal:
        state.events.append(events.moved(lane, state.now, ring_delta))
    queue.counters.dead_lettered += 1
    target = state.lane(dlq, lane.key.name, lane.throttle_keys)
    state.set_weight(dlq, target.key, entry[WEIGHT])
    body = ttl.without_expiry(entry[BODY])
    body = explained(body, BY_TTL, ERROR, state.now, entry[ATTEMPTS], queue.name)
    body = in_dlq(state, dlq, body)
    was_active = target.key.active
    moved = store(
        state,
        target,
        message_id(entry),
        entry[ATTEMPTS],
        entry[WEIGHT],
        entry[ENQUEUED_NS],
        body,
        0,
    )
    if state.journal:
        event = events.of_message(
            effect.EVENT_DEAD_LETTERED,
            target,
            moved,
            state.now,
            ERROR,
            target.key.active - was_active,
        )
        told = event._replace(source_queue=queue.name, weight=target.key.weight)
        state.events.append(told)


def in_dlq(state: State, dlq: Queue, body: bytes) -> bytes:
    """A dead letter's body: only what its own queue says of time counts there."""
    if not dlq.ttl_ms:
        return ttl.without_expiry(body)
    if dlq.aging is None:
        dlq.aging = Aging(dlq)
    return ttl.with_expiry(body, -(-state.now // MS) + dlq.ttl_ms)


def _dropped(state: State, lane: Lane, ring_delta: int) -> Event:
    key = lane.key
    return Event(
        state.now,
        effect.EVENT_PURGED,
        lane.queue.name,
        fairness_key=key.name,
        throttle_keys=lane.throttle_keys,
        key_pending=key.pending,
        key_eligible=eligible(key, state.now),
        active_keys=lane.queue.ring.keys,
        reason="messages=1",
        error=ERROR,
        ring_delta=ring_delta,
        queue_delivered=lane.queue.ring.handed_out,
    )


def _lane_of(queue: Queue, row_key: bytes, row: bytes) -> Lane | None:
    """The lane the row speaks of; None if it was forgotten: then it held nothing."""
    fairness_key, throttle_keys = aging_rows.read(row)
    key = queue.keys.get(fairness_key)
    lane = key.lanes.get(throttle_keys) if key is not None else None
    return lane if lane is not None and lane.number == aging_rows.lane_number(row_key) else None
