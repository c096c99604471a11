"""Pause and resume: a queue, or one fairness key of it, takes no turns for a while.

A paused queue's consumers count as without credit, so a delivery pass finds nothing to do
and no bucket keeps tokens for it. The lanes of a paused key leave the ring and their bucket's line.
Either costs nothing per delivery. Messages are still taken in, and what is leased may be finished.
"""

from __future__ import annotations

from collections import OrderedDict

from fila.core import effect, events, pause_rows, rows
from fila.core.command import PauseKey, PauseQueue, ResumeKey, ResumeQueue
from fila.core.pause import Pause, Pauses
from fila.core.queue import Queue
from fila.core.readiness import pause_lanes, resume_lanes
from fila.core.rejection import Rejection, invalid_value
from fila.core.row_batch import DELETE_STATE, PUT_STATE
from fila.core.state import State


def load_pauses(state: State, queue: Queue) -> None:
    """What was paused when the broker went down still is."""
    prefix = rows.PAUSE_PREFIX + rows.queue_prefix(queue.number)
    found = state.reader.scan(rows.STATE, prefix, rows.after(prefix), 1 << 62, 1 << 62)
    for key, value in found:
        pause = Pause(*pause_rows.read_pause(value))
        fairness_key = pause_rows.paused_key(key)
        if fairness_key is None:
            queue.pause = pause
        else:
            queue.key_pauses[fairness_key] = pause


def pause_queue(state: State, queue: Queue, command: PauseQueue) -> int | Rejection:
    """1 when it was paused, 0 when it was so already (the reason is renewed)."""
    fault = _fault(state, command)
    if fault is not None:
        return fault
    before = queue.pause
    queue.pause = _begun(state, queue, command, before)
    _store(state, queue, None, queue.pause)
    _tell(state, effect.EVENT_QUEUE_PAUSED, queue, b"", command.who, command.reason)
    if before is not None:
        return 0
    if queue.ready:
        queue.benched = queue.ready
        queue.ready = OrderedDict()
        queue.stalled_since = state.now
    queue.watch(state.now)
    return 1


def resume_queue(state: State, queue: Queue, command: ResumeQueue) -> int:
    """1 when it was resumed, 0 when it was not paused."""
    pause = queue.pause
    if pause is None:
        return 0
    queue.pause = None
    _over(state, queue, None).add((pause.since_ns, state.now), state.now)
    queue.ready = queue.benched
    queue.benched = OrderedDict()
    if queue.ready:
        queue.stall_ns += state.now - queue.stalled_since
        state.touch_queue(queue)
    queue.watch(state.now)
    _tell(state, effect.EVENT_QUEUE_RESUMED, queue, b"", command.who, "")
    return 1


def pause_key(state: State, queue: Queue, command: PauseKey) -> int | Rejection:
    """1 when it was paused, 0 when it was so already (the reason is renewed)."""
    name = command.fairness_key
    fault = _fault(state, command) or _too_many(state, queue, name)
    if fault is not None:
        return fault
    before = queue.key_pauses.get(name)
    pause = queue.key_pauses[name] = _begun(state, queue, command, before)
    _store(state, queue, name, pause)
    key = queue.keys.get(name)
    ring_delta = 0
    if key is not None:
        key.pause = pause
        was_active = key.active
        pause_lanes(state, queue, key)
        ring_delta = key.active - was_active
    _tell(state, effect.EVENT_KEY_PAUSED, queue, name, command.who, command.reason, ring_delta)
    return 1 if before is None else 0


def resume_key(state: State, queue: Queue, command: ResumeKey) -> int:
    """1 when it was resumed, 0 when it was not paused."""
    name = command.fairness_key
    pause = queue.key_pauses.pop(name, None)
    if pause is None:
        return 0
    active_ns = state.now - queue.stall_at(state.now)
    span = (pause.active_ns, active_ns, pause.since_ns)
    _over(state, queue, name).add_key(name, span, state.now)
    key = queue.keys.get(name)
    ring_delta = 0
    if key is not None:
        key.pause = None
        was_active = key.active
        resume_lanes(state, key)
        ring_delta = key.active - was_active
    _tell(state, effect.EVENT_KEY_RESUMED, queue, name, command.who, "", ring_delta)
    return 1


def _begun(
    state: State, queue: Queue, command: PauseQueue | PauseKey, before: Pause | None
) -> Pause:
    """A new pause, or one that goes on with another reason."""
    if before is not None:
        return Pause(before.since_ns, before.active_ns, command.who, command.reason)
    active_ns = state.now - queue.stall_at(state.now)
    return Pause(state.now, active_ns, command.who, command.reason)


def _over(state: State, queue: Queue, name: bytes | None) -> Pauses:
    state.ops(queue.group).append((DELETE_STATE, pause_rows.pause_key(queue.number, name), b""))
    if queue.pauses is None or queue.pending == 0:
        queue.pauses = Pauses()  # no message waits that is older than these
    return queue.pauses


def _store(state: State, queue: Queue, name: bytes | None, pause: Pause) -> None:
    value = pause_rows.pause_row(pause.since_ns, pause.active_ns, pause.who, pause.reason)
    state.ops(queue.group).append((PUT_STATE, pause_rows.pause_key(queue.number, name), value))


def _fault(state: State, command: PauseQueue | PauseKey) -> Rejection | None:
    bytes_max = state.settings.pause_text_bytes_max
    for what, text in (("reason", command.reason), ("name of who pauses", command.who)):
        if len(text.encode()) > bytes_max:
            return invalid_value(what, f"it is longer than {bytes_max} bytes")
    return None


def _too_many(state: State, queue: Queue, name: bytes) -> Rejection | None:
    keys_max = state.settings.paused_keys_max
    if name in queue.key_pauses or len(queue.key_pauses) < keys_max:
        return None
    return invalid_value(
        "fairness key", f'{keys_max} keys of "{queue.name}" are paused already; pause the queue'
    )


def _tell(
    state: State,
    kind: str,
    queue: Queue,
    name: bytes,
    who: str,
    reason: str,
    ring_delta: int = 0,
) -> None:
    if state.journal:
        state.events.append(events.of_key(kind, queue, name, state.now, who, reason, ring_delta))
