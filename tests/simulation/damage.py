"""Damaged rows: a disk that cannot give some of them back, for a turn or for a start.

What is checked: a group that cannot be read is quarantined, whole, and nothing else is; nothing of
it stays in the parts that all queues share; whatever is asked of it is refused and writes none of
its rows; the others are loaded as ever. Healed, the group comes back with all it had: the world
starts again then, and the auditor goes on as after any other crash.

Has a generator of its own, so that a seed's workload is the same with and without damage.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from fila.core import rows
from fila.core.command import Consume, Enqueue, PauseQueue
from fila.core.load import load
from fila.core.machine import Machine
from fila.core.queue import Queue
from fila.core.reader import StoreDamagedError
from fila.core.rejection import STORAGE_ERROR, Rejection
from fila.core.row_batch import FAMILY_MASK, RowBatch
from fila.core.settings import Settings
from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.storage.memory import MemoryStore

from .disk import check_rebuilt_queue
from .turn import Violation

PROMISE = "quarantine"
_ALL = 1 << 62
_READ_AT_START = (rows.LANE_PREFIX, rows.OPEN_BATCH_PREFIX, rows.PAUSE_PREFIX)


class Damage:
    def __init__(self, seed: int) -> None:
        self._rng = Random(f"damage {seed}")
        self.turns = self._rng.choice((0.0, 0.0, 0.01, 0.03))  # share of turns that meet some
        self.starts = self._rng.choice((0.0, 0.3, 1.0))  # share of starts
        self.met = 0  # groups that were quarantined

    def before_turn(self, machine: Machine, store: MemoryStore) -> None:
        """Now and then a message that waits cannot be read, whoever comes to it."""
        if self._rng.random() >= self.turns:
            return
        queues = [queue for queue in machine.state.queues.values() if queue.pending]
        if queues:
            prefix = rows.queue_prefix(self._rng.choice(queues).number)
            found = store.scan(rows.MESSAGES, prefix, rows.after(prefix), _ALL, _ALL)
            if found:
                store.unreadable = {(rows.MESSAGES, self._rng.choice(found)[0])}

    def after_turn(self, machine: Machine, store: MemoryStore) -> set[str]:
        """The disk is sound again; who was quarantined."""
        store.unreadable = set()
        apart = set(machine.view.quarantined)
        if apart:
            self.met += 1
            _check_shared_parts(machine)
        return apart

    def stopped(self, machine: Machine, store: MemoryStore, error: StoreDamagedError) -> None:
        """The broker stops over it, and leaves a mark, as the server does."""
        store.unreadable = set()
        found = machine.mark_of(error)
        if found is None:
            raise Violation(PROMISE, f"it is not known whose rows these are: {error}")
        self.met += 1
        store.write([RowBatch(0, 0, [found[1]])])

    def at_start(self, store: MemoryStore, settings: Settings, now: int) -> None:
        """Load with rows of one group unreadable; the disk is sound again afterwards."""
        if self._rng.random() >= self.starts:
            return
        sound = load(store, settings, now)
        groups = sorted({queue.group.number for queue in sound.state.queues.values()})
        if not groups:
            return
        number = self._rng.choice(groups)
        wanted = _rows_read_at_start(sound, store, number)
        if not wanted:
            return
        store.unreadable = {self._rng.choice(wanted)}
        try:
            apart = load(store, settings, now)
        finally:
            damaged, store.unreadable = store.unreadable, set()
        self.met += 1
        _check_apart(sound, apart, number, damaged)
        _check_shared_parts(apart)
        _check_refusals(apart)


def _rows_read_at_start(
    machine: Machine, store: MemoryStore, group: int
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    prefix = rows.LEDGER_PREFIX + rows.queue_prefix(group)
    kinds = [(rows.STATE, prefix)]
    for queue in machine.state.groups[group].queues:
        own = rows.queue_prefix(queue.number)
        kinds += [(rows.STATE, kind + own) for kind in _READ_AT_START]
        kinds.append((rows.LEASES, own))
        found += [(rows.MESSAGES, leased[2]) for leased in queue.leased.values()]
    for family, start in kinds:
        for key, _ in store.scan(family, start, rows.after(start), _ALL, _ALL):
            found.append((family, key))
    return found


def _kin(names: set[str]) -> set[str]:
    return {name + ".dlq" for name in names} | {name.removesuffix(".dlq") for name in names}


def _check_apart(
    sound: Machine, apart: Machine, group: int, damaged: set[tuple[int, bytes]]
) -> None:
    names = {queue.name for queue in sound.state.groups[group].queues}
    groups = {group}
    while True:  # with its dead-letter queue, and that one's group, wherever it is
        kin = {sound.state.queues[name] for name in _kin(names) if name in sound.state.queues}
        more = {queue.group.number for queue in kin} - groups
        if not more:
            break
        groups |= more
        for one in more:
            names |= {queue.name for queue in sound.state.groups[one].queues}
    if set(apart.view.quarantined) != names:
        raise Violation(
            PROMISE, f"{sorted(apart.view.quarantined)}, should be {sorted(names)}: {damaged}"
        )
    if set(apart.view.queue_names()) != set(sound.view.queue_names()) - names:
        raise Violation(PROMISE, f"{apart.view.queue_names()} are served without {sorted(names)}")
    for name, queue in apart.state.queues.items():
        check_rebuilt_queue(sound.state.queues[name], queue)


def _check_shared_parts(machine: Machine) -> None:
    """Nothing of a quarantined group is left in what all queues share."""
    state = machine.state
    queues = set(state.queues.values())
    lanes = {lane for queue in queues for key in queue.keys.values() for lane in key.lanes.values()}
    throttled = {lane for sharing in state.lanes_of_throttle.values() for lane in sharing}
    waiting = {lane for bucket in state.buckets.values() for lane in bucket.waiters}
    left: list[tuple[str, Collection[object]]] = [
        ("idle lanes", set(state.idle) - lanes),
        ("lanes of throttle keys", throttled - lanes),
        ("lines of buckets", waiting - lanes),
        ("queues to deliver", set(state.touched) - queues),
        ("queues with leases due", set(state.due_queues) - queues),
        ("batches due", [one for one in state.due_lease_batches if one.queue not in queues]),
        ("batches that fill", [one for one in state.filling if one.queue not in queues]),
    ]
    for what, found in left:
        if found:
            raise Violation(PROMISE, f"{len(found)} of its {what} are still there")
    if state.windows.bytes != sum(lane.window_bytes for lane in lanes):
        raise Violation(PROMISE, "its windows still count")
    for at_ns, _, owner in state.deadlines._heap:
        queue = getattr(owner, "queue", owner)
        if owner.armed_ns == at_ns and isinstance(queue, Queue) and queue not in queues:
            raise Violation(PROMISE, "it still has a deadline")


def _check_refusals(machine: Machine) -> None:
    """Whatever is asked of it is refused, and none of its rows is written."""
    apart = machine.view.quarantined
    for name in list(apart):
        for command in (
            Enqueue(name, [b"x" * 16], [b""], [DEFAULT_ASSIGNMENT]),
            Consume(name, "c", 1, 1),
            PauseQueue(name),
        ):
            reply = machine.apply(command)
            if not isinstance(reply, Rejection) or reply.code != STORAGE_ERROR:
                raise Violation(PROMISE, f"{type(command).__name__} of {name}: {reply}")
    numbers = {one.number for one in apart.values()}
    machine.deliver()
    for batch in machine.take().batches:
        for code, key, _ in batch.ops:
            if rows.owner_of(code & FAMILY_MASK, key) in numbers:
                raise Violation(PROMISE, f"its row {key.hex()} is written")
