"""Queues that may hold only so much: who sets that, and what goes in, is refused or makes room."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core.applies import Reply
from fila.core.command import Enqueue, EnqueueKeyed, UpdateQueue
from fila.core.effect import EVENT_PURGED
from fila.core.rejection import QUEUE_FULL
from fila.core.room import Crowded

from . import events
from .model import BURST_NS, Key, Message, Queue
from .turn import Violation, same

if TYPE_CHECKING:
    from .books import Books
    from .world import World

PROMISE = "room"
LIMITS = ("max_messages", "max_bytes", "key_max_messages", "key_max_bytes")
_VALUES = {
    "max_messages": ("0", "1", "7", "30", "many"),
    "max_bytes": ("", "0", "100", "900", "9000"),
    "key_max_messages": ("0", "1", "4", "12"),
    "key_max_bytes": ("0", "50", "700", "-1"),
    "overflow": ("", "reject", "drop-oldest", "drop-oldest", "burn"),
}


class Rooms:
    """Who sets limits. They have a dice of their own: what others do stays the same."""

    def __init__(self, often: float, seed: int) -> None:
        self._rng = Random(f"rooms {seed}")
        self._often = often

    def wanted(self) -> bool:
        return self._often > 0 and self._rng.random() < self._often

    def ask(self, world: World, queues: list[str]) -> None:
        rng = self._rng
        name = rng.choice(queues)
        named = rng.sample(sorted(_VALUES), rng.randint(1, 3))
        world.apply(UpdateQueue(name, {one: rng.choice(_VALUES[one]) for one in named}, who="ops"))


def limits_of(queue: Queue) -> list[int]:
    return [int(queue.settings[one]) for one in LIMITS]


def sort_out(
    books: Books, queue: Queue, command: Enqueue | EnqueueKeyed, reply: Reply
) -> tuple[list[int], Reply]:
    """The places of messages that are let in, and the reply that is left to be checked."""
    count = len(command.ids)
    if not isinstance(reply, Crowded):
        refused: list[int] = []
        gone: list[bytes] = []
        let_go: list[bytes] = []
    else:
        refused, gone, let_go = list(reply.refused), list(reply.dropped), reply.dropped
        if not refused and not gone:
            raise Violation(PROMISE, "it is crowded, and nothing happened")
        if bool(refused) != (reply.why is not None and reply.why.code == QUEUE_FULL):
            raise Violation(PROMISE, f"{len(refused)} are refused: {reply.why}")
        if reply.why is not None:
            same("what a refusal tells", [one[0] for one in reply.why.metadata], _METADATA)
        books.met["refused, no room"] += len(refused)
        books.met["dropped for newer ones"] += len(gone)
        left = reply.results if isinstance(command, EnqueueKeyed) else None
        reply = left
    limits = limits_of(queue)
    kept: list[int] = []
    drops = queue.settings["overflow"] == "drop-oldest"
    sizes = [0, 0]
    of_key: dict[bytes, list[int]] = {}
    for at in range(count):
        name = command.assignments[at].fairness_key
        own = of_key.setdefault(name, [0, 0])
        more = (1, len(command.bodies[at]))
        alone = any(limit and more[i % 2] > limit for i, limit in enumerate(limits))
        may_drop = drops and not alone
        while (
            may_drop and gone and not _fits(queue, queue.keys.get(name), sizes, own, more, limits)
        ):
            key = queue.keys.get(name)
            message = books.messages.get(gone[0])
            if key is None or message is None or message.lane.key is not key:
                break
            _drop(books, queue, key, message)
            del gone[0]
        fits = _fits(queue, queue.keys.get(name), sizes, own, more, limits)
        if fits == (at in refused) and queue.name not in books.turns_apart:
            raise Violation(PROMISE, f"message {at} of {count} is refused: {at in refused}")
        if at in refused:
            key = queue.keys.get(name)
            may = (
                may_drop and key is not None and key.pending and queue.name not in books.turns_apart
            )
            if may and books.settings.overflow_messages > len(let_go):
                raise Violation(PROMISE, f"message {at} is refused, and older ones stay")
            continue
        kept.append(at)
        for which in (0, 1):
            sizes[which] += more[which]
            own[which] += more[which]
    if gone:
        raise Violation(PROMISE, f"{len(gone)} messages went though there was room")
    return kept, reply


_METADATA = ["retry_after_ms", "depth", "limit"]


def _fits(
    queue: Queue,
    key: Key | None,
    sizes: list[int],
    own: list[int],
    more: tuple[int, int],
    limits: list[int],
) -> bool:
    waiting = (
        queue.pending,
        _weight(queue, None) if limits[1] else 0,
        key.pending if key is not None else 0,
        _weight(queue, key) if limits[3] and key is not None else 0,
    )
    for which, limit in enumerate(limits):
        coming = (sizes, own)[which // 2][which % 2] + more[which % 2]
        if limit and waiting[which] + coming > limit:
            return False
    return True


def _weight(queue: Queue, key: Key | None) -> int:
    """Bytes that wait, of what came since they are counted."""
    keys = [key] if key is not None else list(queue.keys.values())
    return sum(
        len(one.body)
        for each in keys
        for lane in each.lanes.values()
        for one in lane.line + lane.timed
        if one.since_ns > queue.weighed_since
    )


def weights(queue: Queue) -> tuple[int, dict[bytes, int]]:
    """What the machine should have counted."""
    if not queue.weighed_since:
        return 0, {}
    found = {key.name: _weight(queue, key) for key in queue.keys.values()}
    return _weight(queue, None), {name: size for name, size in found.items() if size}


def _drop(books: Books, queue: Queue, key: Key, message: Message) -> None:
    if message.lease is not None:
        raise Violation(PROMISE, "what is leased makes no room")
    # One that was classified anew stands where its lane has room, which may be behind younger ones.
    placed = not any("classif" in what for what in books.met)
    for lane in key.lanes.values() if placed else ():
        for first in (*lane.line[:1], *lane.timed[:1]):
            if first.ready_ns + BURST_NS < message.ready_ns:
                raise Violation(PROMISE, f"{message.id.hex()[-6:]} goes before an older one")
    books.left_late |= 0 < message.expires_ns <= books.now
    lane = message.lane
    books.remove(message)
    books.refresh(lane)
    del books.messages[message.id]
    books.gone[message.id] = "dropped for newer ones"
    queue.counted["overflowed"] += 1
    if books.journal:
        event = events.expect_plain(books.events, EVENT_PURGED, queue.name)
        seen = (event.fairness_key, event.key_pending, event.reason)
        same("dropped event", seen, (key.name, key.pending, "messages=1"))
