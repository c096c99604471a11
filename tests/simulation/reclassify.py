"""Reclassifications in the books: asked for, and followed step by step.

Promised: every message that waited when it began, or when the settings changed under it, and waits
without a break until it ends, is judged; it stands then in the lane its hook named, with that
weight, and keeps its attempts and times. A step judges so many messages at most. What is leased is
left alone. It goes on after a crash, and it ends.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING

from fila.core import effect, rejection
from fila.core.applies import Reply
from fila.core.command import BeginReclassify, EndReclassify, Reclassify
from fila.core.reclassify_rows import read_course
from fila.core.rejection import Rejection
from fila.core.rows import RECLASSIFY_PREFIX, STATE
from fila.core.turn import Applied
from fila.storage.memory import MemoryStore

from . import events, pauses
from .books import Books
from .model import BURST_NS, Queue
from .turn import Violation, same

if TYPE_CHECKING:
    from .world import World

PROMISE = "reclassify"
_ALL = 1 << 62


class Reclassifies:
    """Who asks for it. They have a dice of their own: what others do stays the same."""

    def __init__(self, often: float, seed: int) -> None:
        self._rng = Random(f"reclassify {seed}")
        self._often = often

    def wanted(self) -> bool:
        return self._often > 0 and self._rng.random() < self._often

    def ask(self, world: World, queues: list[str]) -> None:
        name = self._rng.choice([*queues, *[f"{queue}.dlq" for queue in queues]])
        world.reclassify(name, cancel=self._rng.random() < 0.1)


def begin(books: Books, command: BeginReclassify, reply: Reply, asked: object) -> None:
    queue = pauses.find(books, command.queue, reply)
    if queue is None:
        return
    if queue.reclassifying:
        if not isinstance(reply, Rejection) or reply.code != rejection.INVALID_CONFIG_VALUE:
            raise Violation(PROMISE, f"{reply!r}, should be refused")
        return
    same("reply to BeginReclassify", reply, 1)
    books.met["reclassification begun"] += 1
    queue.reclassifying = True
    begin_again(queue)
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_QUEUE_RECLASSIFIED, queue.name)


def begin_again(queue: Queue) -> None:
    """All that waits is to be judged."""
    for key in queue.keys.values():
        for lane in key.lanes.values():
            for message in lane.line + lane.timed:
                message.unjudged = True


def end(books: Books, command: EndReclassify, reply: Reply, asked: object) -> None:
    queue = pauses.find(books, command.queue, reply)
    if queue is None:
        return
    same("reply to EndReclassify", reply, int(queue.reclassifying))
    if not queue.reclassifying:
        return
    queue.reclassifying = False
    if books.journal:
        events.expect_plain(books.events, effect.EVENT_QUEUE_RECLASSIFIED, queue.name)
    if not command.done:
        return
    books.met["reclassification done"] += 1
    for key in queue.keys.values():
        for lane in key.lanes.values():
            for message in lane.line + lane.timed:
                if message.unjudged:
                    raise Violation(PROMISE, f"{message.id.hex()[-6:]} was not judged")


def follow(books: Books, own: deque[Applied]) -> None:
    """The one step a turn takes by itself."""
    if own and isinstance(own[0].command, Reclassify):
        command, reply = own.popleft()
        assert isinstance(command, Reclassify)
        _step(books, command, reply)
    if own and isinstance(own[0].command, EndReclassify):
        command, reply = own.popleft()
        assert isinstance(command, EndReclassify)
        end(books, command, reply, None)


def under_way(books: Books) -> bool:
    return any(
        queue.reclassifying and not (queue.apart or queue.away) for queue in books.queues.values()
    )


def check_stored(books: Books, store: MemoryStore, numbers: dict[int, str]) -> None:
    """How far each is, and nothing of those that are over."""
    stored = set()
    for key, value in store.scan(STATE, RECLASSIFY_PREFIX, b"s", _ALL, _ALL):
        read_course(value)
        stored.add(numbers.get(int.from_bytes(key[1:5], "big")))
    same(PROMISE, stored, {one.name for one in books.queues.values() if one.reclassifying})


def _step(books: Books, command: Reclassify, reply: Reply) -> None:
    queue = books.queues.get(command.queue)
    if queue is None or not queue.reclassifying:
        raise Violation(PROMISE, f"{command.queue} is not being reclassified")
    judged = sum(len(entries) for _, entries, _ in command.parts)
    if judged > books.settings.reclassify_messages:
        raise Violation("bounds", f"one step judges {judged} messages")
    if not isinstance(reply, list) or len(reply) != judged:
        raise Violation(PROMISE, f"{judged} messages, {reply!r}")
    at = 0
    for name, entries, assignments in command.parts:
        lane = books.lane(queue, *name)
        moves = []
        for entry, wanted in zip(entries, assignments, strict=True):
            stamp = reply[at]
            assert isinstance(stamp, int)
            at += 1
            id = entry[0][-16:]
            message = books.messages.get(id)
            if message is None or message.lease is not None or message.lane is not lane:
                raise Violation(PROMISE, f"{id.hex()[-6:]} does not wait in {name}")
            message.unjudged = False
            if wanted is None:
                same("place of what the hook says nothing of", stamp, 0)
                continue
            if (wanted.fairness_key, wanted.throttle_keys) == name:
                same("place of what stays", stamp, 0)
                message.weight = max(wanted.weight, 1)
                books.tell_weight(lane.key, message.weight)
                continue
            if stamp < message.ready_ns and message.timed:
                raise Violation(PROMISE, f"{id.hex()[-6:]} goes before its time")
            if stamp > max(message.ready_ns, books.now) + BURST_NS:
                raise Violation(PROMISE, f"{id.hex()[-6:]} moves behind {stamp - books.now} ns")
            moves.append((message, wanted, stamp))
        for message, _, _ in moves:
            books.remove(message)
        books.refresh(lane)
        lane.key.changes += 1
        for message, wanted, stamp in moves:
            books.met["message moved by a reclassification"] += 1
            target = books.lane(queue, wanted.fairness_key, wanted.throttle_keys)
            message.weight = max(wanted.weight, 1)
            books.tell_weight(target.key, message.weight)
            books.move(message, target, stamp)
            if books.journal:
                events.expect(books.events, effect.EVENT_RECLASSIFIED, message)
