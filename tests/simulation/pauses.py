"""Pause, resume and purge in the books: nothing paused goes, nothing purged comes back."""

from __future__ import annotations

from fila.core import effect, rejection
from fila.core.applies import Reply
from fila.core.command import PauseKey, PauseQueue, Purge, ResumeKey, ResumeQueue
from fila.core.rejection import Rejection

from . import events, moves
from .books import Books
from .model import Key, Queue
from .turn import Violation, same


def find(books: Books, name: str, reply: Reply) -> Queue | None:
    queue = books.queues.get(name)
    if queue is not None and moves.refused(books, name, reply):
        return None
    if queue is None and not (
        isinstance(reply, Rejection) and reply.code == rejection.QUEUE_NOT_FOUND
    ):
        raise Violation(f"a command for the unknown queue {name}", f"{reply!r}")
    return queue


def pause_queue(books: Books, command: PauseQueue, reply: Reply, asked: object) -> None:
    queue = find(books, command.queue, reply)
    if queue is None:
        return
    same("reply to PauseQueue", reply, 0 if queue.paused else 1)
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_QUEUE_PAUSED, queue.name)
    if queue.paused:
        return
    queue.paused = True
    queue.paused_since = books.now
    if queue.credit:
        queue.benched, queue.credit = queue.credit, {}
        queue.stalled_since = books.now
        queue.shared = {}


def resume_queue(books: Books, command: ResumeQueue, reply: Reply, asked: object) -> None:
    queue = find(books, command.queue, reply)
    if queue is None:
        return
    same("reply to ResumeQueue", reply, 1 if queue.paused else 0)
    if not queue.paused:
        return
    queue.paused_ns = queue.paused_at(books.now)
    queue.paused = False
    for consumer in queue.benched:
        queue.gain_credit(consumer, books.now)
    queue.benched = {}
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_QUEUE_RESUMED, queue.name)


def pause_key(books: Books, command: PauseKey, reply: Reply, asked: object) -> None:
    queue = find(books, command.queue, reply)
    if queue is None:
        return
    key = _key(queue, command.fairness_key)
    same("reply to PauseKey", reply, 0 if key.paused else 1)
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_KEY_PAUSED, queue.name)
    if key.paused:
        return
    key.paused = True
    key.paused_since = books.now - queue.stall_at(books.now)
    key.changes += 1
    for lane in key.lanes.values():
        books.refresh(lane)


def resume_key(books: Books, command: ResumeKey, reply: Reply, asked: object) -> None:
    queue = find(books, command.queue, reply)
    if queue is None:
        return
    key = _key(queue, command.fairness_key)
    same("reply to ResumeKey", reply, 1 if key.paused else 0)
    if not key.paused:
        return
    key.paused_ns = key.paused_at(books.now)
    key.paused = False
    key.changes += 1
    for lane in key.lanes.values():
        books.refresh(lane)
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_KEY_RESUMED, queue.name)


def purge(books: Books, command: Purge, reply: Reply, asked: object) -> None:
    queue = find(books, command.queue, reply)
    if queue is None:
        return
    purged = 0
    for fairness_key, throttle_keys in command.lanes:
        key = queue.keys.get(fairness_key)
        lane = key.lanes.get(throttle_keys) if key is not None else None
        if key is None or lane is None or not lane.pending:
            continue
        count = lane.pending
        for message in lane.line + lane.timed:
            books.remove(message)
            del books.messages[message.id]
            books.gone[message.id] = "purged"
            # Its time wakes the broker once more.
            books.left_late |= 0 < message.expires_ns <= books.now
        books.refresh(lane)
        purged += count
        if books.journal:
            event = events.expect_plain(books.events, effect.EVENT_PURGED, queue.name)
            same(
                "purged event",
                (event.fairness_key, event.throttle_keys, event.key_pending, event.reason),
                (key.name, lane.throttle_keys, key.pending, f"messages={count}"),
            )
    same("reply to Purge", reply, purged)
    queue.counted["purged"] += purged
    if command.whole and queue.pending and asked == "all":
        raise Violation("purge", f"{queue.pending} messages of {queue.name} are left")


def _key(queue: Queue, name: bytes) -> Key:
    key = queue.keys.get(name)
    if key is None:
        key = queue.keys[name] = Key(queue, name)
    return key
