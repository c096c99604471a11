"""The machine: `apply` commands, `deliver` what may go, `take` the effects, ask when to wake.

turn.py orders these steps. Time comes in by `advance` only and never runs backwards.
"""

from __future__ import annotations

from fila.core import (
    catalogue,
    delivery,
    effect,
    idempotency,
    leasing,
    pausing,
    purging,
    redrive,
    rejection,
    settlement,
)
from fila.core.batch import Reader
from fila.core.bucket import Bucket
from fila.core.command import (
    Ack,
    AckBatch,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueKeyed,
    Expire,
    ExpireBatch,
    ExtendBatch,
    HandBack,
    Hold,
    Lease,
    Leave,
    Nack,
    PauseKey,
    PauseQueue,
    Purge,
    Redrive,
    Release,
    ReleaseBatch,
    ResumeKey,
    ResumeQueue,
    SetConfig,
    StoreAuth,
    Withdraw,
)
from fila.core.consumer import Consumer
from fila.core.effect import Event
from fila.core.effects import Effects
from fila.core.events import eligible
from fila.core.lane import STALL, STAMP, Entry, Lane
from fila.core.purging import Purgeable
from fila.core.queue import Queue
from fila.core.rejection import Rejection, invalid_value
from fila.core.settings import Settings
from fila.core.state import State
from fila.core.trail import ENQUEUED, Trail

Reply = Rejection | list[int] | list[tuple[bytes, bool]] | tuple[int, int] | int | None
_OnBatches = Lease | Withdraw | AckBatch | ExtendBatch | ReleaseBatch | ExpireBatch
_ON_BATCHES = (Lease, Withdraw, AckBatch, ExtendBatch, ReleaseBatch, ExpireBatch)


class Machine:
    def __init__(self, reader: Reader, settings: Settings) -> None:
        self.state = State(reader, settings)

    def advance(self, now: int) -> None:
        """Let time pass: what falls due happens at its own moment, in order."""
        state = self.state
        deadlines = state.deadlines
        while True:
            at_ns = deadlines.next_ns()
            if at_ns == 0 or at_ns > now:
                break
            if at_ns > state.now:
                state.now = at_ns
            owner = deadlines.pop()
            if isinstance(owner, Lane):
                state.make_ready(owner)
            elif isinstance(owner, Bucket):
                state.wake_waiters(owner)
            elif isinstance(owner, Queue):
                state.due[owner] = None
            else:
                state.due_batches[owner] = None
        if now > state.now:
            state.now = now

    def apply(self, command: Command) -> Reply:
        """Change the state as the command says, at the time of the last advance."""
        state = self.state
        if isinstance(command, Enqueue):
            queue = state.queues.get(command.queue)
            if queue is None:
                return _unknown(command.queue)
            _enqueue(state, queue, command)
            return None
        if isinstance(command, Ack):
            queue = state.queues.get(command.queue)
            return settlement.ack(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Nack):
            queue = state.queues.get(command.queue)
            return settlement.nack(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Expire):
            queue = state.queues.get(command.queue)
            return settlement.expire(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, EnqueueKeyed):
            queue = state.queues.get(command.queue)
            return _enqueue_keyed(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, _ON_BATCHES):
            queue = state.queues.get(command.queue)
            return _on_batches(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Release):
            queue = state.queues.get(command.queue)
            return (
                settlement.release_messages(state, queue, command)
                if queue
                else _unknown(command.queue)
            )
        if isinstance(command, Consume):
            queue = state.queues.get(command.queue)
            return _consume(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Leave):
            queue = state.queues.get(command.queue)
            return _leave(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Hold):
            queue = state.queues.get(command.queue)
            return _hold(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, HandBack):
            queue = state.queues.get(command.queue)
            if queue is None:
                return _unknown(command.queue)
            return settlement.hand_back(state, queue, command.connection)
        if isinstance(command, Redrive):
            return redrive.redrive(state, command)
        if isinstance(command, SetConfig):
            return catalogue.set_config(state, command)
        if isinstance(command, CreateQueue):
            return catalogue.create_queue(state, command)
        if isinstance(command, PauseQueue | ResumeQueue | PauseKey | ResumeKey):
            queue = state.queues.get(command.queue)
            return pausing.follow(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, Purge):
            queue = state.queues.get(command.queue)
            return purging.purge(state, queue, command) if queue else _unknown(command.queue)
        if isinstance(command, StoreAuth):
            catalogue.store_auth(state, command)
            return None
        assert isinstance(command, DeleteQueue)
        return catalogue.delete_queue(state, command.queue)

    def deliver(self) -> bool:
        """Hand out what may go now; True when there is more for another turn."""
        more = delivery.deliver(self.state)
        if self.state.filling:
            leasing.collect(self.state, more)
        return more

    def take(self) -> Effects:
        """The turn's effects. The caller stores the batches as one before it lets anything go."""
        state = self.state
        state.write_buckets()
        mentions_max = state.settings.ledger_mentions
        batches = [group.close_batch(state.now, mentions_max) for group in state.dirty_groups]
        effects = Effects(
            batches, state.deliveries, state.ended, state.events, state.batches_leased
        )
        state.dirty_groups = []
        state.deliveries = []
        state.ended = []
        if state.events.spans:
            state.events = Trail()
        state.batches_leased = []
        return effects

    def stored(self) -> None:
        """The batches of the last `take` are in the store and visible to its readers."""
        state = self.state
        for lane in state.unflushed:
            lane.unflushed = []
        state.unflushed.clear()
        state.fresh.clear()
        state.fresh_keys.clear()
        state.purged.clear()

    def next_deadline(self) -> int:
        """When the machine next wants to be advanced, in ns; 0: not by itself."""
        state = self.state
        if state.due or state.due_batches or state.touched:
            return state.now
        return state.deadlines.next_ns()

    # --- what the turn asks before it can make a command

    def due_lease(self) -> tuple[str, int, list[bytes]] | None:
        """Queue, lease and message ids of the first lease that has run out, if any."""
        found = settlement.due_lease(self.state)
        if found is None:
            return None
        queue, lease = found
        return queue.name, lease.number, settlement.ids_of(queue, lease)

    def due_batch(self) -> tuple[str, str, list[bytes]] | None:
        """Queue and name of the first lease batch that has run out, if any, and the ids whose
        failure hook has a say."""
        found = leasing.due_batch(self.state)
        if found is None:
            return None
        batch, ids = found
        return batch.queue.name, batch.name, ids

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
        return purging.purgeable(found, fairness_key) if found else _unknown(queue)


def _enqueue(state: State, queue: Queue, command: Enqueue) -> None:
    now = state.now
    keys = queue.keys
    delays = command.delays_ms
    at = 0
    trail = state.events if state.journal else None
    if trail is not None:
        trail.begin(ENQUEUED, now)
        trail.enqueued_ids += command.ids
        lanes = trail.enqueued_lanes
        numbers = trail.enqueued_numbers
    for id, body, assignment in zip(command.ids, command.bodies, command.assignments, strict=True):
        fairness_key, weight, throttle_keys = assignment
        if weight < 1:
            weight = 1
        key = keys.get(fairness_key)
        lane = key.lanes.get(throttle_keys) if key is not None else None
        if lane is None:
            lane = state.lane(queue, fairness_key, throttle_keys)
        if weight != lane.key.weight:
            state.set_weight(queue, lane.key, weight)
        entry = state.store(lane, id, 0, weight, now, body, delays[at] if delays else 0)
        at += 1
        if trail is not None:
            own = lane.key
            first = own.lane
            ready = first.pending if first is not None else 0
            if own.others:
                ready = eligible(own)
            if delays and entry[STALL] < 0:
                trail.enqueued_delayed.append((len(lanes), entry[STAMP]))
            lanes.append(lane)
            numbers += (weight, len(body), own.pending, ready, queue.ring.keys)
    if trail is not None:
        trail.end()
    queue.counters.enqueued += at


def _enqueue_keyed(state: State, queue: Queue, command: EnqueueKeyed) -> list[tuple[bytes, bool]]:
    results = idempotency.sort_out(state, queue, command)
    kept = [place for place, (_, duplicate) in enumerate(results) if not duplicate]
    _enqueue(
        state,
        queue,
        Enqueue(
            queue.name,
            [command.ids[place] for place in kept],
            [command.bodies[place] for place in kept],
            [command.assignments[place] for place in kept],
            [command.delays_ms[place] for place in kept],
        ),
    )
    return results


def _on_batches(state: State, queue: Queue, command: _OnBatches) -> Reply:
    if isinstance(command, Lease):
        return leasing.lease(state, queue, command)
    if isinstance(command, Withdraw):
        return leasing.withdraw(state, queue, command)
    if isinstance(command, AckBatch):
        return leasing.ack(state, queue, command)
    if isinstance(command, ExtendBatch):
        return leasing.extend(state, queue, command)
    if isinstance(command, ReleaseBatch):
        return leasing.release(state, queue, command)
    return leasing.expire(state, queue, command)


def _consume(state: State, queue: Queue, command: Consume) -> Rejection | None:
    settings = state.settings
    prefetch = command.prefetch or settings.prefetch_default
    if not 1 <= prefetch <= settings.prefetch_max:
        return invalid_value("prefetch", f"{prefetch} is not within 1 to {settings.prefetch_max}")
    assert command.consumer not in queue.consumers, "consumer ids are unique"
    prefetch_bytes = command.prefetch_bytes or settings.prefetch_bytes
    consumer = Consumer(command.consumer, queue, command.connection, prefetch, prefetch_bytes)
    queue.consumers[consumer.id] = consumer
    queue.connections[consumer.connection] = queue.connections.get(consumer.connection, 0) + 1
    state.add_ready(queue, consumer)
    if state.journal:
        joined = Event(
            state.now,
            effect.CONSUMER_JOINED,
            queue.name,
            consumer=consumer.id,
            credit_delta=prefetch,
        )
        state.events.append(joined)
    return None


def _leave(state: State, queue: Queue, command: Leave) -> int:
    consumer = queue.consumers.pop(command.consumer, None)
    if consumer is None:
        return 0
    if consumer.ready:
        queue.drop_ready(consumer, state.now)
    consumer.gone = True
    left = queue.connections[consumer.connection] - 1
    if left:
        queue.connections[consumer.connection] = left
    else:
        del queue.connections[consumer.connection]
    released = settlement.release(state, queue, consumer) if command.release else 0
    if state.journal:
        gone = Event(
            state.now,
            effect.CONSUMER_LEFT,
            queue.name,
            consumer=consumer.id,
            credit_delta=-consumer.credit_messages,
        )
        state.events.append(gone)
    return released


def _hold(state: State, queue: Queue, command: Hold) -> int:
    consumer = queue.consumers.get(command.consumer)
    if consumer is None or consumer.held == command.held:
        return 0
    consumer.held = command.held
    if consumer.ready:
        queue.drop_ready(consumer, state.now)
    elif consumer.may_receive():
        state.add_ready(queue, consumer)
    return 1


def _unknown(queue: str) -> Rejection:
    return rejection.queue_not_found(queue)
