"""Why does it wait? One message, one key or one queue, as a document for people and programs.

Owns the document's shape, which spec/explain.md describes; everything in it is plain JSON. The
sentences are made by `wording.py`. Pure: looks at the state and changes nothing that counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator
from typing import Any, Final

from fila.core import override, rejection, wording
from fila.core.byte_cost import cost_of, quantum_of
from fila.core.caps import full_cap, limit_of
from fila.core.due import due
from fila.core.entry import ATTEMPTS, ENQUEUED_NS, SINCE_NS, STAMP, WEIGHT, message_id, ready_ns
from fila.core.fairness import FairnessKey
from fila.core.forecast import RECENT_NS, forecast
from fila.core.outlook import outlook
from fila.core.pause import Pause
from fila.core.quarantine import Quarantined, refused
from fila.core.queue import Queue
from fila.core.rejection import Rejection
from fila.core.service import Served
from fila.core.state import State
from fila.core.stats import key_stats
from fila.core.waiting import (
    CAUSE_BUSY,
    CAUSE_OWN,
    CAUSE_THROTTLED,
    CAUSE_TURN,
    Waiting,
    cause_of,
    find,
    head_of,
    parts_of,
    short_bucket,
)
from fila.core.waits import Waits

Document = dict[str, Any]
Explaining = Generator[int, None, Document | Rejection]

MS: Final = 1_000_000
BLAMED_MAX: Final = 5
KEYS_MAX: Final = 1_000
STEP_KEYS: Final = 512  # looked at in one step
TOLD_KEYS: Final = 32  # told of in one step
KEY_ITEMS: Final = 8  # to tell of a key costs as much as to look at so many
_CONTENDED: Final = (CAUSE_BUSY, CAUSE_OWN, CAUSE_TURN)


def explain(
    state: State,
    name: str,
    fairness_key: bytes | None,
    message_id: bytes | None,
    keys_max: int,
) -> Document | Rejection:
    """A message, or without one the head of a key, or without either the keys that wait longest."""
    steps = explain_in_steps(state, name, fairness_key, message_id, keys_max)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Document | Rejection = end.value
            return found


def explain_in_steps(
    state: State,
    name: str,
    fairness_key: bytes | None,
    message_id: bytes | None,
    keys_max: int,
) -> Explaining:
    """The same in steps, after each of which it says how much it looked at. Between two of them
    messages and keys may come and go."""
    queue = state.queues.get(name)
    if queue is None:
        one = state.quarantined.get(name)
        return state.no_queue(name) if one is None else _quarantined(state, one)
    if message_id is not None:
        return (yield from _message(state, queue, fairness_key, message_id))
    document = about_queue(state, queue)
    if fairness_key is not None:
        key = queue.keys.get(fairness_key)
        waiting = head_of(state, key) if key is not None else None
        document["key"] = about_key(state, queue, fairness_key)
        known = key if key is not None else FairnessKey(fairness_key)
        document["outlook"] = _outlook(state, queue, known)
        if waiting is None:
            document["sentence"] = wording.idle_key(document)
            return document
        return _explained(state, waiting, document)
    keys = yield from _longest(state, queue, min(keys_max, KEYS_MAX))
    if keys is None:
        return state.no_queue(name)  # it was deleted meanwhile
    document["keys"] = keys
    document["sentence"] = wording.of_queue(document)
    return document


def overview(state: State, names: list[str]) -> list[Document]:
    """These queues in short."""
    found = []
    for name in names:
        if name in state.queues:
            found.append(about_queue(state, state.queues[name]))
        elif name in state.quarantined:
            found.append(about_quarantined(state, state.quarantined[name]))
    return found


def about_queue(state: State, queue: Queue) -> Document:
    now = state.now
    standing = [*queue.ready, *queue.benched]
    counters = queue.counters
    return {
        "queue": queue.name,
        "version": queue.version,
        "now_ms": now // MS,
        "depth": queue.pending,
        "in_flight": len(queue.leased),
        "active_keys": queue.keys_pending,
        "consumers": len(queue.consumers),
        "ready_consumers": len(standing),
        "credit": sum(consumer.credit_messages for consumer in standing),
        "delivered": counters.delivered,
        "enqueued": counters.enqueued,
        "acked": counters.acked,
        "purged": counters.purged,
        "aged_out": counters.aged_out,
        "overflowed": counters.overflowed,
        "rate_per_second": round(queue.service.since(now - RECENT_NS, now).per_second(), 3),
        "paused": _pause(queue.pause),
        "paused_keys": len(queue.key_pauses),
        "overridden_keys": len(queue.overrides),
        "quarantined": None,
    }


def about_quarantined(state: State, one: Quarantined) -> Document:
    """Like any queue, and nothing is known of it but why it is not served."""
    counts = "depth in_flight active_keys consumers ready_consumers credit"
    counters = "delivered enqueued acked purged"
    return {
        "queue": one.name,
        "version": 0,
        "now_ms": state.now // MS,
        **dict.fromkeys([*counts.split(), *counters.split()], 0),
        "rate_per_second": 0.0,
        "paused": None,
        "paused_keys": 0,
        "overridden_keys": 0,
        "quarantined": {"since_ms": one.since_ns // MS, "cause": one.cause},
    }


def _quarantined(state: State, one: Quarantined) -> Document:
    document = about_quarantined(state, one)
    document["keys"] = []
    document["sentence"] = refused(one).message + "."
    return document


def about_key(state: State, queue: Queue, name: bytes, recent: Served | None = None) -> Document:
    """One key in numbers, whether the queue knows it now or not."""
    key = queue.keys.get(name) or FairnessKey(name)
    now = state.now
    found = key_stats(key, queue, now)
    if recent is None:
        recent = queue.service.since(now - RECENT_NS, now)
    waiting = head_of(state, key)
    meter = key.meter
    return {
        "key": name.decode(),
        "pending": found.pending,
        "weight": found.weight,
        "deficit": found.deficit,
        "delivered": found.delivered,
        "rate_per_second": round(recent.per_second(name), 3),
        "waiting_for": cause_of(waiting, now) if waiting is not None else None,
        "oldest_ms": (now - waiting.entry[SINCE_NS]) // MS if waiting is not None else 0,
        "throttled_ms": found.throttled_ns // MS,
        "waits_ms": None
        if meter is None
        else {
            name: waited // MS
            for name, waited in zip(
                Waits._fields,
                meter.reading()[1:],
                strict=True,
            )
        },
        "paused": _pause(queue.key_pauses.get(name)),
        "override": _override(queue, key),
    }


def _longest(
    state: State, queue: Queue, keys_max: int
) -> Generator[int, None, list[Document] | None]:
    """The keys whose oldest message has waited longest; paused ones without messages too. None: the
    queue is gone."""
    waits: list[tuple[int, bytes]] = []
    keys = list(queue.keys.values())
    for start in range(0, len(keys), STEP_KEYS):
        part = keys[start : start + STEP_KEYS]
        for key in part:
            if key.pending:
                oldest = [lane.head_since() for lane in key.lanes.values() if lane.pending]
                waits.append((min(oldest), key.name))
        waits = heapq.nsmallest(keys_max, waits)
        if start:
            yield len(part)
    names = [name for _, name in waits]
    for name in queue.key_pauses:
        if len(names) >= keys_max:
            break
        if name not in queue.keys or not queue.keys[name].pending:
            names.append(name)
    found: list[Document] = []
    for start in range(0, len(names), TOLD_KEYS):
        if start:
            yield TOLD_KEYS * KEY_ITEMS
        if state.queues.get(queue.name) is not queue:
            return None
        recent = queue.service.since(state.now - RECENT_NS, state.now)
        for name in names[start : start + TOLD_KEYS]:
            found.append(about_key(state, queue, name, recent))
    return found


def _message(state: State, queue: Queue, fairness_key: bytes | None, id: bytes) -> Explaining:
    key = queue.keys.get(fairness_key) if fairness_key is not None else None
    waiting = None
    if id not in queue.leased and (key is not None or fairness_key is None):
        waiting = yield from find(state, queue, key, id)
        if state.queues.get(queue.name) is not queue:
            return state.no_queue(queue.name)  # it was deleted meanwhile
    document = about_queue(state, queue)
    found = queue.leased.get(id)
    if found is not None:
        lease, lane, _, _ = found
        document["key"] = about_key(state, queue, lane.key.name)
        document["message"] = {
            "id": wording.id_text(id),
            "state": "leased",
            "consumer": lease.consumer.id if lease.consumer is not None else None,
            "expires_in_ms": max(lease.expires_ns - state.now, 0) // MS,
        }
        document["sentence"] = wording.leased(document)
        return document
    if waiting is None:
        return Rejection(
            rejection.MESSAGE_NOT_FOUND,
            f'message {wording.id_text(id)} is not in queue "{queue.name}", or too deep in it to '
            "be found by its id; give its key to look there alone",
        )
    document["key"] = about_key(state, queue, waiting.lane.key.name)
    document["outlook"] = _outlook(state, queue, waiting.lane.key)
    return _explained(state, waiting, document)


def _explained(state: State, waiting: Waiting, document: Document) -> Document:
    now = state.now
    lane, entry, ahead = waiting
    queue = lane.queue
    waits = parts_of(waiting, now)
    cause = cause_of(waiting, now)
    found = forecast(waiting, now)
    earlier = entry[SINCE_NS] - entry[ENQUEUED_NS]
    parts = {"earlier": earlier, **waits._asdict()}
    since_ns = ready_ns(entry)
    document["message"] = {
        "id": wording.id_text(message_id(entry)),
        "state": "delayed" if cause == "retry" and entry[STAMP] > now else "pending",
        "attempts": entry[ATTEMPTS],
        "weight": entry[WEIGHT],
        "enqueued_ms": entry[ENQUEUED_NS] // MS,
        "throttle_keys": [name.decode() for name in lane.throttle_keys],
        "ahead": ahead,
        "ready_in_ms": max(since_ns - now, 0) / MS,
    }
    document["waiting_for"] = cause
    document["age_ns"] = now - entry[ENQUEUED_NS]
    document["parts_ns"] = parts
    document["mostly"] = max(parts, key=lambda name: parts[name])
    bucket = short_bucket(lane, now)
    document["bucket"] = None
    if bucket is not None:
        token_ns = bucket.next_token_ns()
        document["bucket"] = {
            "key": bucket.name.decode(),
            "of_override": bucket.group != 0,
            "tokens": round(bucket.tokens, 6),
            "rate": bucket.rate,
            "burst": bucket.burst,
            "next_token_ms": max(token_ns - now, 0) / MS if token_ns else None,
            "waiting_lanes": len(bucket.waiters),
        }
    cap = full_cap(lane)
    document["cap"] = None
    if cap is not None:
        document["cap"] = {
            "of": "throttle_key" if cap.queue is None else "fairness_key",
            "key": cap.name.decode(),
            "in_flight": cap.in_flight,
            "limit": limit_of(cap),
            "waiting_lanes": len(cap.waiters),
        }
    shares = bucket is not None and bucket.group == 0 and cause == CAUSE_THROTTLED
    shared = bucket.name if bucket is not None and shares else None
    document["served_meanwhile"] = _served(state, queue, lane.key.name, since_ns, shared)
    document["due"] = _due(state, waiting, waits) if cause in _CONTENDED else None
    document["eta_ms"] = None if found.eta_ns is None else round(found.eta_ns / MS, 3)
    document["eta_because"] = found.because
    document["ring"] = {
        "keys": queue.ring.keys,
        "weight": queue.ring.weight,
        "quantum": quantum_of(state, queue.ring),
        "cost": cost_of(queue.ring),
    }
    document["changes"] = wording.changes(document, lane, found)
    document["sentence"] = wording.of_message(document)
    return document


def _due(state: State, waiting: Waiting, waits: Waits) -> Document:
    """What its key is due, and what it held while the message waited for busy consumers."""
    queue = waiting.lane.queue
    found = due(state, queue, waiting.lane.key)
    busy_ns = waits.busy_own + waits.busy_others
    return {
        "share": round(found.share, 6),
        "held": round(waits.busy_own / busy_ns, 6) if busy_ns else None,
        "sends_per_second": _rate(found.sends),
        "all_send_per_second": _rate(found.all_send),
        "reason": found.reason,
    }


def _outlook(state: State, queue: Queue, key: FairnessKey) -> Document:
    """When a message of the key that is sent now will be delivered."""
    found = outlook(state, queue, key)
    document: Document = {
        "eta_ms": _ms(found.eta_ns),
        "because": found.because,
        "capacity_per_second": _rate(found.capacity),
        "share_per_second": _rate(found.share),
        "sends_per_second": _rate(found.sends),
        "pending": found.pending,
        "trend": found.trend,
        "throttled": found.more_rate is not None,
        "changes": [
            {"do": do, "eta_ms": _ms(eta_ns)}
            for do, eta_ns in (
                ("add_consumer", found.more_consumers),
                ("raise_weight", found.more_weight),
                ("raise_rate", found.more_rate),
            )
            if eta_ns is not None
        ],
    }
    document["sentence"] = wording.of_outlook(document)
    return document


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / MS, 3)


def _rate(per_second: float | None) -> float | None:
    return None if per_second is None else round(per_second, 3)


def _served(
    state: State, queue: Queue, own: bytes, since_ns: int, bucket: bytes | None
) -> Document:
    """Who was served since the message was ready; with a bucket, only keys that draw on it."""
    found = queue.service.since(min(since_ns, state.now), state.now)
    counts = found.keys
    if bucket is not None:
        sharing = {
            lane.key.name for lane in state.lanes_of_throttle.get(bucket, ()) if lane.queue is queue
        }
        counts = {name: count for name, count in counts.items() if name in sharing}
    others = [(count, name) for name, count in counts.items() if name != own and count >= 0.5]
    others.sort(key=lambda pair: (-pair[0], pair[1]))
    return {
        "messages": round(found.served),
        "own": round(counts.get(own, 0.0)),
        "others": [
            {
                "key": name.decode(),
                "messages": round(count),
                "weight": queue.keys[name].weight if name in queue.keys else 1,
                "pending": queue.keys[name].pending if name in queue.keys else 0,
            }
            for count, name in others[:BLAMED_MAX]
        ],
    }


def _override(queue: Queue, key: FairnessKey) -> Document | None:
    one = queue.overrides.get(key.name)
    if one is None:
        return None
    return {**override.document(one.terms), "told_weight": key.told_weight}


def _pause(pause: Pause | None) -> Document | None:
    if pause is None:
        return None
    return {"since_ms": pause.since_ns // MS, "by": pause.who, "reason": pause.reason}
