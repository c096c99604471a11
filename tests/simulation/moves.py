"""Log groups leave the machine's memory and come back, at random, while everything else goes on.

Promised: what a turn did to a group that leaves with it is stored; its consumers and those who wait
for a batch are told; its redrives and purges end with a reason instead of a count; whatever is
asked of it meanwhile is refused, and none of its rows change; nothing of it stays in what all
queues share. When it is back it is as after a restart: every message, lease, batch, setting.

Has a generator of its own, as damage.py has.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import TYPE_CHECKING

from fila.core.rejection import NODE_NOT_READY, Rejection

from . import batches, events, fair
from .books import Books
from .model import COUNTED, Queue
from .turn import AskLoad, AskUnload, Record, Violation, same

if TYPE_CHECKING:
    from .world import World

PROMISE = "unload and load"


def family_of(name: str) -> str:
    while name.endswith(".dlq"):
        name = name.removesuffix(".dlq")
    return name


class Moves:
    """Says when a group leaves, and when it comes back."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(f"moves {seed}")
        self.often = self._rng.choice((0.0, 0.0, 0.01, 0.05))  # share of turns

    def ask(self, world: World) -> None:
        rng = self._rng
        state = world.machine.state
        away = sorted({family_of(name) for name in state.unloaded})
        if away and rng.random() < 0.15:
            world.load_group(rng.choice(away))
        if rng.random() < self.often:
            here = sorted({family_of(name) for name in state.queues})
            if here:
                world.unload_group(rng.choice(here))


def refused(books: Books, name: str, reply: object) -> bool:
    """Whether the command is for a queue that is away; then it must have been refused."""
    queue = books.queues.get(name)
    if queue is None or not queue.away:
        return False
    if not isinstance(reply, Rejection) or reply.code != NODE_NOT_READY:
        raise Violation(PROMISE, f"{name} is away and answers {reply!r}")
    books.met["asked of a queue that is away"] += 1
    return True


def leaving(books: Books, turn: Record) -> list[Queue]:
    """The queues that go with this turn; those asked for that were not deleted meanwhile."""
    wanted = {step.command.family for step in turn.steps if isinstance(step.command, AskUnload)}
    found = [
        queue
        for queue in books.queues.values()
        if not queue.away and not queue.apart and family_of(queue.name) in wanted
    ]
    for queue in found:
        queue.leaving = True
    return found


def left(books: Books, turn: Record, gone: list[Queue]) -> None:
    """At the turn's end."""
    for queue in books.queues.values():
        queue.loading = False
    for queue in gone:
        books.met["unloaded"] += 1
        books.met["unloaded with a consumer"] += bool(queue.consumers)
        queue.leaving = False
        queue.away = True
        queue.loads += 1
        queue.stale |= {place[-1] for place in books.ending if place[0] is queue}  # type: ignore[misc]
        reset(books, queue)
        books.tokens.forget_queue(queue)
    if gone:
        books.timers = [one for one in books.timers if not one[2].key.queue.away]
        heapq.heapify(books.timers)
    expected = {queue.name for queue in books.queues.values() if queue.away}
    if not turn.apart:
        same("queues that are away", turn.away, expected)


def load(books: Books, asked: AskLoad, rings: events.Rings) -> None:
    for queue in books.queues.values():
        if queue.away and family_of(queue.name) == asked.family:
            queue.away = False
            queue.loading = True
            rings.forget(queue.name)
            back(books, queue)


def reset(books: Books, queue: Queue) -> None:
    """What a queue knew of its clients is gone; leases stay."""
    queue.consumers = {}
    queue.connections = {}
    queue.credit = {}
    queue.benched = {}
    queue.counted = dict.fromkeys(COUNTED, 0)
    queue.stalled_since = queue.busy_since = books.now
    fair.forget_order(queue)
    for lease in queue.leases.values():
        lease.consumer = None
    batches.restart(queue)


def back(books: Books, queue: Queue) -> None:
    """It is in memory again: what waited for its time still does."""
    queue.counted = dict.fromkeys(COUNTED, 0)
    queue.stalled_since = queue.busy_since = books.now
    queue.last_lease = max(queue.all_leases(), default=0)
    for key in queue.keys.values():
        for lane in key.lanes.values():
            for message in lane.line + lane.timed:
                message.known = False
                if message.ready_ns > books.now and message.timed:
                    books.wait_till(message.ready_ns, message.serial, lane)
            books.refresh(lane, placed=False)
    for name in books.tokens.caps:
        books.doubt(name)  # what it has in flight counts again
