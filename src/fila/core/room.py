"""Room in a queue: how much may wait there, of all keys and of one, and what happens to the rest.

What waits counts, in messages and in the bytes of their headers and payloads; what is leased does
not, and neither retries nor releases are ever refused. Bytes are counted from the time on at which
the queue first had a limit for them (`queue.weighed_since`): what waited before that was not
weighed, and is not when it goes. Where the oldest make room, it is those of the message's own key:
nobody's messages go for somebody else's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core import effect, rejection
from fila.core.effect import Event
from fila.core.eligible import eligible
from fila.core.entry import KEY, message_id
from fila.core.fairness import FairnessKey
from fila.core.lane import Lane
from fila.core.pending import fill_window, remove_head
from fila.core.queue import Queue
from fila.core.reader import UNREADABLE
from fila.core.rejection import Rejection
from fila.core.row_batch import DELETE_MESSAGE
from fila.core.state import State
from fila.core.verdict import Assignment

ERROR: Final = "newer messages needed the room"
RATE_SPAN_NS: Final = 10_000_000_000  # what was delivered so lately tells when there is room
RETRY_MS_MIN: Final = 10
RETRY_MS_MAX: Final = 30_000


class Crowded(NamedTuple):
    """The answer to an enqueue that did not fit: which messages, by their places, were not stored,
    and why the last of them; and which older ones made room. `results`: of keyed ones."""

    refused: list[int]
    dropped: list[bytes]
    why: Rejection | None
    results: list[tuple[bytes, bool]]


def admit(
    state: State, queue: Queue, bodies: list[bytes], assignments: list[Assignment]
) -> Crowded | None:
    """Which of these there is room for. None: all of them, and nothing had to go."""
    limits = queue.limits
    assert limits is not None
    refused: list[int] = []
    dropped: list[bytes] = []
    why: Rejection | None = None
    messages = size = 0  # of those that are let in
    of_key: dict[bytes, tuple[int, int]] = {}
    for at, (body, assignment) in enumerate(zip(bodies, assignments, strict=True)):
        name = assignment.fairness_key
        bytes_more = len(body)
        key_messages, key_bytes = of_key.get(name, (0, 0))
        while True:
            key = queue.keys.get(name)
            pending = key.pending if key is not None else 0
            weighed = key.weighed if key is not None else 0
            found = (
                (queue.pending + messages, 1, limits.messages),
                (queue.weighed + size, bytes_more, limits.bytes),
                (pending + key_messages, 1, limits.key_messages),
                (weighed + key_bytes, bytes_more, limits.key_bytes),
            )
            over = [(used, limit) for used, more, limit in found if limit and used + more > limit]
            if not over:
                break
            fits = not any(limit and more > limit for _, more, limit in found)
            fits = fits and len(dropped) < state.settings.overflow_messages
            if limits.drops_oldest and fits and key is not None and key.pending:
                gone = _drop_oldest(state, queue, key)
                if gone:
                    dropped.append(gone)
                    continue
            why = _full(state, queue, name, found)
            break
        if over:
            refused.append(at)
        else:
            messages += 1
            size += bytes_more
            of_key[name] = (key_messages + 1, key_bytes + bytes_more)
    return Crowded(refused, dropped, why, []) if refused or dropped else None


def _full(
    state: State, queue: Queue, name: bytes, found: tuple[tuple[int, int, int], ...]
) -> Rejection:
    """What to tell whose message does not fit."""
    at = next(at for at, (used, more, limit) in enumerate(found) if limit and used + more > limit)
    used, more, limit = found[at]
    setting = ("max_messages", "max_bytes", "key_max_messages", "key_max_bytes")[at]
    of_key = at > 1
    who = f'fairness key "{name.decode(errors="replace")}" of ' if of_key else ""
    unit = "bytes" if at % 2 else "messages"
    rate = queue.service.since(state.now - RATE_SPAN_NS, state.now).per_second(
        name if of_key else None
    )
    retry_ms = int(1_000 / rate) + 1 if rate else RETRY_MS_MAX // RETRY_MS_MIN
    retry_ms = min(max(retry_ms, RETRY_MS_MIN), RETRY_MS_MAX)
    what = f'{who}queue "{queue.name}" is full: {used} {unit} wait, {setting} is {limit}'
    if at % 2:
        what += f", and the message has {more}"
    return Rejection(
        rejection.QUEUE_FULL,
        f"{what}; nothing was stored; try again in {retry_ms} ms, or let consumers catch up",
        (("retry_after_ms", str(retry_ms)), ("depth", str(used)), ("limit", str(limit))),
    )


def _drop_oldest(state: State, queue: Queue, key: FairnessKey) -> bytes:
    """The key's oldest pending message goes. Its id; empty if it cannot be read: then its group is
    set apart with this turn's end."""
    lane: Lane | None = None
    for one in key.lanes.values():
        if one.pending and (lane is None or one.head_stamp() < lane.head_stamp()):
            lane = one
    assert lane is not None, "something of the key is pending"
    was_active = key.active
    try:
        if not lane.window:
            fill_window(state, lane, state.settings.head_messages)
        entry = remove_head(state, lane)
    except UNREADABLE as error:
        state.damaged.setdefault(queue.group, error)
        return b""
    state.ops(queue.group).append((DELETE_MESSAGE, entry[KEY], b""))
    queue.counters.overflowed += 1
    if state.journal:
        state.events.append(
            Event(
                state.now,
                effect.EVENT_PURGED,
                queue.name,
                fairness_key=key.name,
                throttle_keys=lane.throttle_keys,
                key_pending=key.pending,
                key_eligible=eligible(key, state.now),
                active_keys=queue.ring.keys,
                reason="messages=1",
                error=ERROR,
                ring_delta=key.active - was_active,
                queue_delivered=queue.ring.handed_out,
            )
        )
    return message_id(entry)
