"""Overrides come, change and end: an operator's weight and rate for one fairness key of a queue.

They hold for what waits already and for what comes, at the next visit and the next token: the
weight is the key's in place of its messages' own, which is remembered (`told_weight`) and holds
again when the override ends; the rate is one more bucket of all of the key's lanes. A queue without
overrides pays nothing for them, and a message of one with overrides no more than before.
"""

from __future__ import annotations

from fila.core import effect, events, override, rows
from fila.core.bucket import Bucket
from fila.core.command import SetOverride
from fila.core.lane import LANE_PARKED, NO_BUCKETS, Lane
from fila.core.override import Override, Terms
from fila.core.queue import Queue
from fila.core.readiness import arm_bucket, leave_line, make_ready
from fila.core.rejection import Rejection, invalid_value
from fila.core.row_batch import DELETE_STATE, PUT_STATE
from fila.core.state import State
from fila.core.throttle import Limit

CLEARED = "cleared"
EXPIRED = "expired"


def load_overrides(state: State, queue: Queue) -> None:
    """What held when the broker went down, before its lanes are made. What expired meanwhile ends
    with the first turn."""
    prefix = override.prefix(queue.number)
    found = state.reader.scan(rows.STATE, prefix, rows.after(prefix), 1 << 62, 1 << 62)
    for row, value in found:
        name = override.key_of(row)
        terms = override.read_override(value)
        one = queue.overrides[name] = Override(queue.name, name, terms)
        if terms.expires_ns:
            state.deadlines.arm(one, terms.expires_ns)
        limit = terms.limit()
        if limit is not None:
            bucket = queue.key_buckets[name] = _bucket(state, queue, name, limit)
            level = state.reader.get(rows.STATE, bucket.row)
            if level is not None:
                tokens, at_ns = rows.read_bucket(level)
                bucket.restore(tokens, at_ns, state.now)


def set_override(state: State, queue: Queue, command: SetOverride) -> int | Rejection:
    """1 when something changed, 0 when it was so already."""
    name = command.fairness_key
    settings = state.settings
    for what, text in (("note", command.note), ("name of who asks", command.who)):
        if len(text.encode()) > settings.note_bytes_max:
            return invalid_value(what, f"it is longer than {settings.note_bytes_max} bytes")
    if len(name) > settings.override_key_bytes_max:
        return invalid_value(
            "fairness key", f"it is longer than {settings.override_key_bytes_max} bytes"
        )
    one = queue.overrides.get(name)
    before = one.terms if one is not None else Terms()
    if command.clear:
        if command.settings:
            return invalid_value("settings", "an override that is cleared has none")
        terms: Terms | Rejection = Terms()
    else:
        terms = override.changed(before, command.settings, state.now, settings)
    if isinstance(terms, Rejection):
        return terms
    if terms.says_nothing():
        if not command.clear and one is None:
            return invalid_value("settings", "say what holds for the key: a weight or a rate")
        if one is None:
            return 0
        _end(state, queue, one, CLEARED, command.who)
        return 1
    if terms == before and not command.note:
        return 0
    if one is None:
        if len(queue.overrides) >= settings.overrides_max:
            return invalid_value(
                "fairness key",
                f'{settings.overrides_max} keys of "{queue.name}" have an override already; '
                "clear one, or let a hook say it",
            )
        one = queue.overrides[name] = Override(queue.name, name, terms)
    one.terms = terms = terms._replace(
        since_ns=state.now, who=command.who, note=command.note or before.note
    )
    if terms.expires_ns:
        state.deadlines.arm(one, terms.expires_ns)
    else:
        state.deadlines.disarm(one)
    ops = state.ops(queue.group)
    ops.append((PUT_STATE, override.row_key(queue.number, name), override.override_row(terms)))
    _tell(state, effect.EVENT_KEY_OVERRIDDEN, queue, name, command.who, terms.told())
    _apply(state, queue, name, terms)
    return 1


def fall_due(state: State, one: Override) -> None:
    """Its time is over."""
    queue = state.queues.get(one.queue)
    if queue is not None and queue.overrides.get(one.key) is one:
        _end(state, queue, one, EXPIRED, "")


def forget(state: State, queue: Queue) -> None:
    """The queue goes: nothing of its overrides is due or to be stored any more."""
    for one in queue.overrides.values():
        state.deadlines.disarm(one)
    for bucket in queue.key_buckets.values():
        state.drop_bucket(bucket)
    queue.overrides = {}
    queue.key_buckets = {}


def _end(state: State, queue: Queue, one: Override, why: str, who: str) -> None:
    name = one.key
    del queue.overrides[name]
    state.deadlines.disarm(one)
    state.ops(queue.group).append((DELETE_STATE, override.row_key(queue.number, name), b""))
    _tell(state, effect.EVENT_KEY_OVERRIDE_ENDED, queue, name, who, why)
    _apply(state, queue, name, Terms())


def _apply(state: State, queue: Queue, name: bytes, terms: Terms) -> None:
    """Let the terms hold, of what waits already too."""
    key = queue.keys.get(name)
    if key is not None:
        state.weigh(queue, key)
    limit = terms.limit()
    bucket = queue.key_buckets.get(name)
    if limit is not None and bucket is not None:
        if (bucket.rate, bucket.burst) != limit:
            bucket.change(limit.rate, limit.burst, state.now)
            if bucket.waiters:
                arm_bucket(state, bucket)
            state.use_bucket(bucket)
        return
    lanes = list(key.lanes.values()) if key is not None else []
    if limit is not None:
        bucket = queue.key_buckets[name] = _bucket(state, queue, name, limit)
        for lane in lanes:
            add_bucket(lane, bucket)
        state.use_bucket(bucket)
    elif bucket is not None:
        del queue.key_buckets[name]
        state.drop_bucket(bucket)
        for lane in lanes:
            _lift(state, lane, bucket)
        state.ops(queue.group).append((DELETE_STATE, bucket.row, b""))


def _lift(state: State, lane: Lane, bucket: Bucket) -> None:
    lane.buckets.remove(bucket)
    if not lane.throttle_keys:
        lane.buckets = NO_BUCKETS
    if lane.line_of is bucket:
        leave_line(lane)
        if lane.state == LANE_PARKED:
            make_ready(state, lane)


def add_bucket(lane: Lane, bucket: Bucket) -> None:
    if lane.buckets is NO_BUCKETS:
        lane.buckets = [bucket]
    else:
        lane.buckets.append(bucket)


def _bucket(state: State, queue: Queue, name: bytes, limit: Limit) -> Bucket:
    row = override.level_key(queue.number, name)
    return Bucket(name, limit.rate, limit.burst, state.now, row, queue.group.number)


def _tell(state: State, kind: str, queue: Queue, name: bytes, who: str, reason: str) -> None:
    if state.journal:
        state.events.append(events.of_key(kind, queue, name, state.now, who, reason))
