"""Reclassifying: the messages that wait in a queue go where its hook would put them now.

Owns how far it has come, which is a row of the queue, written with each step's batch: a broker that
is killed goes on from there. Messages are looked at lane by lane, in the order of lane numbers and
within a lane in the order they would be delivered, each once; those that came after the beginning
are the present hook's already. What is leased does not wait, and keeps its place. If the queue's
settings change meanwhile it begins again: what is done holds for one version.

A message that moves keeps its id, attempts and times, and its stamp: it stands among the messages
of its new lane by age. Only where that lane has delivered beyond its stamp it stands first in it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from fila.core import effect, events, rows
from fila.core.command import BeginReclassify, EndReclassify, Reclassify
from fila.core.effect import Event
from fila.core.entry import (
    BODY,
    ENQUEUED_NS,
    HELD_NS,
    KEY,
    SINCE_NS,
    STAMP,
    THROTTLED_NS,
    WEIGHT,
    Entry,
    entry_of,
    had_delay,
    id_of,
    key_in_queue,
    message_id,
    moved_to,
    row_of,
    stamp_of,
    waiting_anew,
    with_weight,
    without_body,
)
from fila.core.lane import Lane
from fila.core.later import Later
from fila.core.pending import add_pending, complete, take_out
from fila.core.queue import Queue
from fila.core.reclassify_rows import START, Course, course_row, read_course, row_key
from fila.core.rejection import Rejection, invalid_value
from fila.core.row_batch import DELETE_MESSAGE, DELETE_STATE, PUT_MESSAGE, PUT_STATE
from fila.core.state import State
from fila.core.verdict import Assignment


def load_course(state: State, queue: Queue) -> None:
    value = state.reader.get(rows.STATE, row_key(queue.number))
    if value is not None:
        queue.course = read_course(value)


def begin(state: State, queue: Queue, command: BeginReclassify) -> int | Rejection:
    """1: it goes on from here step by step."""
    if queue.course is not None:
        return invalid_value("queue", f'"{queue.name}" is being reclassified already')
    if len(command.who.encode()) > state.settings.note_bytes_max:
        return invalid_value("name of who asks", "it is too long")
    course = Course(
        state.now, queue.next_lane, queue.version, command.rate, 0, 0, 0, 0, queue.pending,
        command.who, START,
    )  # fmt: skip
    _keep(state, queue, course)
    _tell(state, queue, command.who, f"begun,messages={queue.pending}")
    return 1


def end(state: State, queue: Queue, command: EndReclassify) -> int:
    """1 if it was under way. What is done stays done."""
    course = queue.course
    if course is None:
        return 0
    queue.course = None
    state.ops(queue.group).append((DELETE_STATE, row_key(queue.number), b""))
    why = "done" if command.done else "cancelled"
    _tell(state, queue, command.who, f"{why},judged={course.judged},moved={course.moved}")
    return 1


class Found(NamedTuple):
    entries: list[Entry]
    after: bytes  # the message key up to which was looked
    last: bool  # there are no further ones


def waiting_after(
    state: State, lane: Lane, course: Course, after: bytes, count: int, bytes_max: int
) -> Found:
    """The lane's next messages behind this message key."""
    found: list[Entry] = []
    size = 0
    for entry in lane.window:
        if entry[KEY] > after:
            if len(found) >= count or size >= bytes_max:
                return Found(found, after, False)
            after = entry[KEY]
            entry = complete(state, entry)
            size += len(entry[BODY])
            found.append(entry)
    if not lane.horizon or lane in state.purged:
        return Found(found, after, True)
    if len(found) >= count or size >= bytes_max:
        return Found(found, after, False)
    start = max(after, lane.horizon) + b"\0"
    wanted = count - len(found)
    stored = state.reader.scan(
        rows.MESSAGES, start, rows.after(lane.prefix), wanted, bytes_max - size
    )
    last = len(stored) < wanted and sum([len(key) + len(row) for key, row in stored]) < (
        bytes_max - size
    )
    if stored:
        after = stored[-1][0]
    if last and lane.unflushed:
        # Of this turn, not in the store yet: one that came back has to be looked at.
        last = all(came_later(entry, course) for entry in lane.unflushed)
    leased, gone = lane.queue.leased, state.taken
    found += [
        entry_of(key, row) for key, row in stored if id_of(key) not in leased and key not in gone
    ]
    return Found(found, after, last)


def step(state: State, queue: Queue, command: Reclassify) -> list[int] | Rejection:
    """Let messages that `waiting_after` found stand where the hook wants them. For each the stamp
    of its new place, or 0 if it stays in its lane."""
    course = queue.course
    if course is None:
        return invalid_value("queue", f'"{queue.name}" is not being reclassified')
    if course.version != queue.version:
        # It began again with another hook.
        course = course._replace(
            began_ns=state.now, next_lane=queue.next_lane, version=queue.version
        )
    stamps: list[int] = []
    moved = reweighed = undecided = 0
    for lane_name, entries, assignments in command.parts:
        key = queue.keys.get(lane_name[0])
        lane = key.lanes.get(lane_name[1]) if key is not None else None
        assert lane is not None, "it has messages"
        leaving: list[tuple[Entry, Assignment]] = []
        heavier: dict[bytes, Entry] = {}
        for entry, wanted in zip(entries, assignments, strict=True):
            if wanted is None:
                undecided += 1
                stamps.append(0)
                continue
            weight = min(max(wanted.weight, 1), state.settings.weight_max)
            if (wanted.fairness_key, wanted.throttle_keys) != lane_name:
                leaving.append((entry, wanted))
                stamps.append(1)  # told below
            else:
                stamps.append(0)
                if weight != entry[WEIGHT]:
                    heavier[entry[KEY]] = again = with_weight(entry, weight)
                    state.ops(queue.group).append((PUT_MESSAGE, entry[KEY], row_of(again)))
                state.set_weight(queue, lane.key, weight)
        if heavier:
            reweighed += len(heavier)
            _reweigh(state, lane, heavier)
        if leaving:
            told = iter(_move(state, lane, leaving))
            at = len(stamps) - len(entries)
            stamps[at:] = [next(told) if one else 0 for one in stamps[at:]]
            moved += len(leaving)
    _keep(
        state,
        queue,
        course._replace(
            judged=course.judged + len(stamps),
            moved=course.moved + moved,
            reweighed=course.reweighed + reweighed,
            undecided=course.undecided + undecided,
            after=command.after,
        ),
    )
    return stamps


def _reweigh(state: State, lane: Lane, changed: dict[bytes, Entry]) -> None:
    """They stay where they are; until the commit the store shows them with their old weights."""
    windows = state.windows
    for place, one in changed.items():
        state.taken[place] = None
        windows.fresh[place] = one[BODY]
    if lane.window:
        kept: deque[Entry] = deque()
        for one in lane.window:
            again = changed.pop(one[KEY], None)
            if again is None:
                kept.append(one)
                continue
            kept.append(again if one[BODY] else without_body(again))
        lane.window = kept
    if changed:
        gone = changed.keys()
        left = [one for one in lane.unflushed or () if one[KEY] not in gone]
        lane.unflushed = [*left, *changed.values()]
        windows.unflushed[lane] = None


def _move(state: State, lane: Lane, leaving: list[tuple[Entry, Assignment]]) -> list[int]:
    """Out of the lane, and into those they are assigned to. Returns their stamps there."""
    queue = lane.queue
    ops = state.ops(queue.group)
    passed_ns = lane.throttled_at(state.now)
    old_key = lane.key
    integral = queue.busy.integral_at(state.now)
    was_active = lane.key.active
    take_out(state, lane, [entry for entry, _ in leaving])
    if state.journal:
        delta = lane.key.active - was_active
        state.events.append(events.moved(lane, state.now, delta))
    stamps = []
    for entry, wanted in leaving:
        ops.append((DELETE_MESSAGE, entry[KEY], b""))
        if queue.weighed_since:
            lane.lighten(entry)
        target = state.lane(queue, wanted.fairness_key, wanted.throttle_keys)
        weight = min(max(wanted.weight, 1), state.settings.weight_max)
        state.set_weight(queue, target.key, weight)
        place = target.prefix + entry[STAMP].to_bytes(8, "big") + message_id(entry)
        stamp = entry[STAMP]
        if place <= target.delivered:
            # A lane's messages are in memory up to what it delivered last: it stands behind that.
            stamp = stamp_of(target.delivered) + 1
            place = target.prefix + stamp.to_bytes(8, "big") + message_id(entry)
            if had_delay(entry) and entry[STAMP] <= state.now < stamp:
                entry = _after_its_delay(state, lane, entry)
        throttled_ns = held_ns = 0
        if not had_delay(entry):
            # How long it was throttled so far counts on, by the clock of its new lane; so does how
            # long its key held consumers, by that of its new key.
            throttled_ns = target.throttled_at(state.now) - (passed_ns - entry[THROTTLED_NS])
            held_ns = target.key.held_ns(integral) - (old_key.held_ns(integral) - entry[HELD_NS])
        again = moved_to(entry, place, stamp, weight, throttled_ns, held_ns)
        ops.append((PUT_MESSAGE, place, row_of(again)))
        state.windows.fresh[place] = entry[BODY]  # the store does not show it yet
        if state.journal and had_delay(again) and stamp > state.now:
            if target.later is None:
                target.later = Later(state.times)
            target.later.add(stamp)
        was_active = target.key.active
        add_pending(state, target, again)
        stamps.append(stamp)
        if state.journal:
            delta = target.key.active - was_active
            told = events.of_message(
                effect.EVENT_RECLASSIFIED, target, again, state.now, ring_delta=delta
            )
            state.events.append(told._replace(weight=target.key.weight))
    return stamps


def _after_its_delay(state: State, lane: Lane, entry: Entry) -> Entry:
    """Its delay is over, and its new place is ahead of the clock: from now on it waits as one that
    had none, or it would wait for its place's time. What it has waited counts as own backlog."""
    queue = lane.queue
    now = state.now
    busy_ns = queue.busy.busy_at(now)
    stall_ns = queue.stall_at(now)
    if entry[SINCE_NS] <= queue.loaded_ns:
        stall_ns -= busy_ns  # of its wait all busy time since the start counts (`busy.py`)
    held_ns = lane.key.held_ns(queue.busy.integral_at(now))
    throttled_ns = lane.throttled_at(now)
    return waiting_anew(entry, entry[SINCE_NS], stall_ns, throttled_ns, busy_ns, held_ns)


def _keep(state: State, queue: Queue, course: Course) -> None:
    queue.course = course
    state.ops(queue.group).append((PUT_STATE, row_key(queue.number), course_row(course)))


def _tell(state: State, queue: Queue, who: str, reason: str) -> None:
    if state.journal:
        state.events.append(
            Event(
                state.now,
                effect.EVENT_QUEUE_RECLASSIFIED,
                queue.name,
                active_keys=queue.ring.keys,
                reason=reason,
                consumer=who,
                queue_delivered=queue.ring.handed_out,
            )
        )


def place_of(key: bytes) -> bytes:
    """Where a message stands, as a course tells of it."""
    return key_in_queue(key)


def came_later(entry: Entry, course: Course) -> bool:
    """Since it began: the hook that holds has judged it."""
    return entry[ENQUEUED_NS] > course.began_ns
