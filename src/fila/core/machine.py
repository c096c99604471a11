"""The machine: `apply` commands, `deliver` what may go, `take` the effects, ask when to wake.

turn.py orders these steps. Time comes in by `advance` only and never runs backwards.

Which function follows a command is in the two tables below; with what kind of reply, in
`applies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from fila.core import (
    aging,
    catalogue,
    consuming,
    delivery,
    enqueuing,
    extending,
    lease_batch,
    leasing,
    overriding,
    pausing,
    purging,
    quarantining,
    reclassify,
    redrive,
    settlement,
    unloading,
    versions,
)
from fila.core import command as c
from fila.core.applies import Applies, Reply
from fila.core.bucket import Bucket
from fila.core.command import Command
from fila.core.effects import Effects
from fila.core.entry import Entry
from fila.core.lane import Lane
from fila.core.lease import Lease, LeaseBatch
from fila.core.ledger import close_batch
from fila.core.override import Override
from fila.core.purging import Purgeable
from fila.core.queue import Aging, Queue
from fila.core.reader import Reader, StoreDamagedError
from fila.core.readiness import fall_due, wake_waiters
from fila.core.rejection import Rejection
from fila.core.row_batch import Op
from fila.core.settings import Settings
from fila.core.snapshot import snapshot_in_steps
from fila.core.state import State
from fila.core.trail import Trail
from fila.core.view import View

# Commands whose queue must exist: what follows each of them.
_ON_QUEUE: Final[dict[type[Command], Callable[[State, Queue, Any], Reply]]] = {
    c.Enqueue: enqueuing.enqueue,
    c.EnqueueKeyed: enqueuing.enqueue_keyed,
    c.Ack: settlement.ack,
    c.Age: aging.age,
    c.Nack: settlement.nack,
    c.Release: settlement.release,
    c.Extend: extending.extend,
    c.HandBack: consuming.hand_back,
    c.Expire: settlement.expire,
    c.Consume: consuming.consume,
    c.Leave: consuming.leave,
    c.Hold: consuming.hold,
    c.Lease: leasing.lease,
    c.Withdraw: leasing.withdraw,
    c.AckBatch: leasing.ack,
    c.ExtendBatch: leasing.extend,
    c.ReleaseBatch: leasing.release,
    c.ExpireBatch: leasing.expire,
    c.PauseQueue: pausing.pause_queue,
    c.ResumeQueue: pausing.resume_queue,
    c.PauseKey: pausing.pause_key,
    c.ResumeKey: pausing.resume_key,
    c.Purge: purging.purge,
    c.SetOverride: overriding.set_override,
    c.BeginReclassify: reclassify.begin,
    c.Reclassify: reclassify.step,
    c.EndReclassify: reclassify.end,
    c.UpdateQueue: versions.update_queue,
}
# Those about the catalogue, which look queues up themselves or need none.
_ON_CATALOGUE: Final[dict[type[Command], Callable[[State, Any], Reply]]] = {
    c.CreateQueue: catalogue.create_queue,
    c.DeleteQueue: catalogue.delete_queue,
    c.SetConfig: catalogue.set_config,
    c.StoreAuth: catalogue.store_auth,
    c.Redrive: redrive.redrive,
}


class Machine(Applies):
    def __init__(self, reader: Reader, settings: Settings) -> None:
        self.state = State(reader, settings)
        self.view = View(self.state)  # all that anybody outside of the core may look at

    def advance(self, now: int) -> None:
        """Let time pass: what falls due happens at its own moment, in order. When very much does,
        time passes no further than a turn has room for, and goes on with the next."""
        state = self.state
        deadlines = state.deadlines
        left = state.settings.wakings
        while left > 0:
            left -= 1
            at_ns = deadlines.next_ns()
            if at_ns == 0 or at_ns > now:
                break
            if at_ns > state.now:
                state.now = at_ns
            owner = deadlines.pop()
            if isinstance(owner, Lane):
                fall_due(state, owner)
            elif isinstance(owner, Bucket):
                left -= wake_waiters(state, owner)
            elif isinstance(owner, Queue):
                state.due_queues[owner] = None
            elif isinstance(owner, Lease):
                extending.fall_due(state, owner)
            elif isinstance(owner, LeaseBatch):
                leasing.fall_due(state, owner)
            elif isinstance(owner, Aging):
                state.due_aging[owner.queue] = None
            elif isinstance(owner, Override):
                overriding.fall_due(state, owner)
        else:
            now = state.now
        if now > state.now:
            state.now = now
        state.windows.fresh_ns = state.now

    def follow(self, command: Command) -> Reply:
        """Change the state as the command says, at the time of the last advance."""
        state = self.state
        on_queue = _ON_QUEUE.get(type(command))
        if on_queue is None:
            return _ON_CATALOGUE[type(command)](state, command)
        name: str = command.queue  # type: ignore[union-attr]  # every command of that table has one
        queue = state.queues.get(name)
        if queue is None:
            return state.no_queue(name)
        return on_queue(state, queue, command)

    def deliver(self) -> bool:
        """Hand out what may go now; True when there is more for another turn."""
        more = delivery.deliver(self.state)
        if self.state.filling or self.state.patient:
            leasing.collect(self.state, more)
        return more

    def take(self) -> Effects:
        """The turn's effects. The caller stores the batches as one before it lets anything go."""
        state = self.state
        if state.parted:
            settlement.write_parted(state)
        if state.parted_batches:
            lease_batch.put_parted(state)
        state.write_buckets()
        if state.damaged:
            quarantining.mark_damaged(state)
        mentions_max = state.settings.ledger_mentions
        batches = [close_batch(group, state.now, mentions_max) for group in state.dirty_groups]
        state.dirty_groups = []
        if state.damaged:
            quarantining.set_damaged_apart(state)
        if state.unloading:
            unloading.unload(state)
        effects = Effects(
            batches, state.deliveries, state.ended, state.events, state.batches_leased
        )
        state.deliveries = []
        state.ended = []
        if state.events.spans:
            state.events = Trail()
        state.batches_leased = []
        return effects

    def stored(self) -> None:
        """The batches of the last `take` are in the store and visible to its readers."""
        state = self.state
        state.windows.stored(state.now)
        for lane in state.removed_early:
            lane.lower_delivered(state.now)
        state.removed_early.clear()
        state.fresh_keys.clear()
        state.fresh_versions.clear()
        state.purged.clear()
        state.taken.clear()

    def next_deadline(self, delivers: bool = True) -> int:
        """When the machine next wants to be advanced, in ns; 0: not by itself. What only waits to
        be handed out does not count where nothing is."""
        state = self.state
        if state.due_queues or state.due_lease_batches or state.due_aging:
            return state.now
        if state.returning.heap and state.returning:
            return state.now
        waits = state.touched or state.waiting or state.filling or state.freed
        if delivers and waits:
            return state.now
        return state.deadlines.next_ns()

    # --- events

    def record_events(self, wanted: bool) -> None:
        """Whether the effects contain the journal's events."""
        self.state.record(wanted)

    def record_snapshot(self, keys_max: int) -> Iterator[int]:
        """Tell what every key holds, some keys with each step, among the events of its turn; how
        many were told."""
        for events in snapshot_in_steps(self.state, keys_max):
            self.state.events.extend(events)
            yield len(events)

    # --- what the turn asks before it can make a command

    def returning(self) -> tuple[str, list[bytes]] | None:
        """Queue and message ids of the lease that is to be handed back next, if any."""
        lease = self.state.returning.first()
        if lease is None:
            return None
        assert lease.consumer is not None, "it was a consumer's"
        queue = lease.consumer.queue
        return queue.name, settlement.ids_of(queue, lease)

    def due_lease(self) -> tuple[str, int, list[bytes], bool] | None:
        """Queue, lease and message ids of the first lease that has run out, if any; and whether
        it is being handed back, and so no failure."""
        found = extending.due_lease(self.state)
        if found is None:
            return None
        queue, lease = found
        returning = lease.consumer is not None and lease.consumer.returning
        return queue.name, lease.number, settlement.ids_of(queue, lease), returning

    def due_batch(self) -> tuple[str, str, list[bytes]] | None:
        """Queue and name of the first lease batch that has run out, if any, and the ids whose
        failure hook has a say."""
        found = leasing.due_batch(self.state)
        if found is None:
            return None
        batch, ids = found
        return batch.queue.name, batch.name, ids

    def aging_queues(self) -> list[str]:
        """Queues that have expired messages."""
        return [queue.name for queue in self.state.due_aging]

    def due_messages(self, queue: str, count: int) -> list[tuple[bytes, bytes]]:
        """Up to so many of a queue's expired messages, as an Age names them; once a turn."""
        return aging.due(self.state, self.state.queues[queue], count)

    def failed(self, queue: str, ids: list[bytes], connection: int) -> list[Entry | None]:
        """Leased messages, read for their failure hook; None where a nack finds nothing."""
        found = self.state.queues.get(queue)
        if found is None:
            return [None] * len(ids)
        return settlement.failed(self.state, found, ids, connection)

    def oldest(self, queue: str, count: int) -> list[Entry]:
        """The oldest pending messages of a queue: what the next Redrive may move."""
        found = self.state.queues.get(queue)
        return redrive.oldest(self.state, found, count) if found else []

    def redrivable(self, queue: str) -> int | Rejection:
        """How many messages a Redrive of this queue could move now."""
        pair = redrive.parent_of(self.state, queue)
        return pair if isinstance(pair, Rejection) else pair[0].pending

    def purgeable(self, queue: str, fairness_key: bytes | None) -> Purgeable | Rejection:
        """What a purge of this queue, or of one of its keys, would empty now."""
        found = self.state.queues.get(queue)
        return purging.purgeable(found, fairness_key) if found else self.state.no_queue(queue)

    # --- groups

    def unload_group(self, number: int, why: str) -> None:
        """Let a log group go with this turn's end; see `unloading.py`."""
        group = self.state.groups[number]
        assert number, "the catalogue stays"
        self.state.unloading[group] = why

    # --- damage

    def set_apart(self, error: StoreDamagedError) -> Rejection | None:
        """Rows of one group cannot be read, and nothing is half done: it is quarantined with this
        turn's end. What to tell who asked; None if it is no single group's."""
        return quarantining.note(self.state, error)

    def mark_of(self, error: StoreDamagedError) -> tuple[str, Op] | None:
        """Which queue's rows these are, and the row that has the next start look closely at it."""
        queue = quarantining.owner_of(self.state, error)
        if queue is None:
            return None
        return queue.name, quarantining.mark(queue.group.number, self.state.now, error.cause)
