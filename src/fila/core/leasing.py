"""How lease batches are filled, and how they end: ack, release, or running out.

To lease a batch is to consume: a consumer with so much credit stands among the queue's others and
takes its turns in the ordinary delivery pass. After every pass `collect` takes over what it got, so
membership is stored in the same batch of rows as the leases; a crash finds both or neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fila.core import effect, lease_batch, rejection, reread, settlement
from fila.core.command import (
    TOLD_COUNTED,
    TOLD_ENTRIES,
    Ack,
    AckBatch,
    Expire,
    ExpireBatch,
    ExtendBatch,
    ReleaseBatch,
    Withdraw,
)
from fila.core.command import Lease as LeaseCommand
from fila.core.effect import BatchLeased, Delivery, Event
from fila.core.entry import Entry, entry_of, id_of
from fila.core.extending import drop, visibility_fault
from fila.core.lane import Lane
from fila.core.lease import Consumer, Lease, LeaseBatch
from fila.core.queue import Queue
from fila.core.rejection import Rejection, invalid_value
from fila.core.state import MS, State

CONSUMER_PREFIX: Final = "batch:"


def lease(state: State, queue: Queue, command: LeaseCommand) -> Rejection | None:
    """Ask for a batch: what is open under this name, or a new one. The answer is an effect."""
    batch = queue.lease_batches.get(command.name)
    if command.opened and (batch is None or batch.opened != command.opened):
        return _not_open(command.name, queue.name)
    if batch is not None:
        if batch.consumer is not None:
            batch.requests[command.request] = None
        else:
            _tell_again(state, batch, command)
        return None
    if command.max_messages == 0:
        return _not_open(command.name, queue.name)
    fault = _fault(state, queue, command)
    if fault is not None:
        return fault
    settings = state.settings
    now = state.now
    visibility_ms = command.visibility_ms or queue.visibility_ms
    batch = LeaseBatch(command.name, queue, command.count_attempt, visibility_ms)
    batch.requests[command.request] = None
    batch.wait_until_ns = now + command.wait_ms * MS
    bytes_max = min(command.max_bytes or settings.batch_bytes, settings.batch_bytes_max)
    batch.serial = command.request
    batch.bytes_max = bytes_max
    batch.consumer = consumer = Consumer(
        CONSUMER_PREFIX + command.name, queue, 0, command.max_messages, bytes_max
    )
    queue.lease_batches[batch.name] = batch
    state.filling[batch] = None
    queue.add_ready(consumer, now)
    state.touch_queue(queue)
    if state.journal:
        _consumer_event(state, batch, effect.EVENT_CONSUMER_JOINED, command.max_messages)
    return None


def collect(state: State, more: bool) -> None:
    """After a delivery pass: batches take over what they got, and those that are done are told.

    `more` says that the pass was cut short, so that a batch which still has credit may get more.
    """
    found: dict[Consumer, list[Delivery]] = {}
    for delivery in state.deliveries:
        if delivery.consumer.connection == 0:
            found.setdefault(delivery.consumer, []).append(delivery)
    for consumer in found:
        name = consumer.id.removeprefix(CONSUMER_PREFIX)
        _look_at(state, consumer.queue.lease_batches[name])
    for batch in sorted(state.filling, key=_serial):
        filler = batch.consumer
        assert filler is not None
        before = len(batch.leases)
        if filler.leases:
            _take_over(state, batch, filler)
        if filler.ready:
            if more:
                continue
            if not batch.leases and state.now < batch.wait_until_ns:
                # It is looked at again when it gets something, or its patience is at an end.
                state.deadlines.arm(batch, batch.wait_until_ns)
                del state.filling[batch]
                state.patient[batch] = None
                continue
        _stop_filling(state, batch)
        _tell(state, batch, found.get(filler, []), whole=before == 0)


def _look_at(state: State, batch: LeaseBatch) -> None:
    state.patient.pop(batch, None)
    state.filling[batch] = None


def _serial(batch: LeaseBatch) -> int:
    return batch.serial


def _tell(state: State, batch: LeaseBatch, deliveries: list[Delivery], whole: bool) -> None:
    """Answer who waits for a batch that is complete. Bodies are told once, and only if all of them
    came with this turn: what a turn holds is bounded, what a batch holds is not."""
    entries: list[Entry] = []
    lanes: list[Lane] = []
    if whole:
        for delivery in deliveries:
            entries += delivery.entries
            lanes += delivery.lanes
    count = batch.messages()
    unread = count > 0 and not whole
    again = False
    for request in batch.requests:
        told = BatchLeased(
            request, batch.queue.name, batch.leased_ns, batch.expires_ns, again,
            count, entries, lanes, [], unread=unread,
        )  # fmt: skip
        state.batches_leased.append(told)
        again = True
        unread = count > 0
        entries, lanes = [], []
    batch.requests = {}


def withdraw(state: State, queue: Queue, command: Withdraw) -> int:
    """This answer is no longer waited for; an empty batch without waiters is dropped."""
    batch = queue.lease_batches.get(command.name)
    if batch is None or command.request not in batch.requests:
        return 0
    del batch.requests[command.request]
    if not batch.requests and not batch.leases:
        _stop_filling(state, batch)
    return 1


def ack(state: State, queue: Queue, command: AckBatch) -> tuple[int, int, int] | Rejection:
    """Finish batches, or a step of it."""
    return _end(state, queue, command, _ack_leases)


def release(state: State, queue: Queue, command: ReleaseBatch) -> tuple[int, int, int] | Rejection:
    """Hand batches back, or a step of it: to their old places, without counting an attempt."""
    return _end(state, queue, command, settlement.hand_back_leases)


def _end(
    state: State,
    queue: Queue,
    command: AckBatch | ReleaseBatch,
    end: Callable[[State, Queue, list[Lease]], int],
) -> tuple[int, int, int] | Rejection:
    """End batches until so many messages have. Returns how many of both, and the rest: what the
    next step needs to know, or 0."""
    before = command.before
    if 0 < before <= queue.batches_before:
        return Rejection(
            rejection.NODE_NOT_READY,
            f'queue "{queue.name}" moved while batches of it were ended, some are; ask again',
        )
    chosen = lease_batch.chosen(queue, command.name, command.below, before)
    if not chosen and command.below is None and before == 0:
        return _not_open(command.name, queue.name)
    left = state.settings.batch_step_messages
    batches = messages = 0
    for batch in chosen:
        if left <= 0:
            break
        leases = batch.first_leases(left)
        whole = len(leases) == len(batch.leases)
        count = end(state, queue, leases)
        messages += count
        left -= max(count, 1)
        batches += whole
    if batches == len(chosen):
        return batches, messages, 0
    return batches, messages, before or state.batches_opened + 1


def _ack_leases(state: State, queue: Queue, leases: list[Lease]) -> int:
    messages = 0
    for one in leases:
        ids = settlement.ids_of(queue, one)
        settlement.ack(state, queue, Ack(queue.name, ids))
        messages += len(ids)
    return messages


def extend(state: State, queue: Queue, command: ExtendBatch) -> tuple[int, int] | Rejection:
    """Let batches end later, or sooner: `visibility_ms` from now."""
    fault = visibility_fault(state, command.visibility_ms)
    if fault is not None:
        return fault
    chosen = lease_batch.chosen(queue, command.name, command.below, 0)
    if not chosen and command.below is None:
        return _not_open(command.name, queue.name)
    messages = 0
    for batch in chosen:
        batch.visibility_ms = command.visibility_ms or queue.visibility_ms
        batch.expires_ns = state.now + batch.visibility_ms * MS
        state.due_lease_batches.pop(batch, None)
        state.deadlines.arm(batch, batch.expires_ns)
        lease_batch.put_row(state, batch)
        messages += batch.messages()
    return len(chosen), messages


def fall_due(state: State, batch: LeaseBatch) -> None:
    """Its time has run out, or its patience with an empty queue."""
    if batch.consumer is None:
        state.due_lease_batches[batch] = None
    else:
        _look_at(state, batch)


def due_batch(state: State) -> tuple[LeaseBatch, list[bytes]] | None:
    """The first batch whose time has run out, if any; with the ids whose failure hook is asked.

    A big one ends in steps: it is the first again until its last lease has ended."""
    step = state.settings.batch_step_messages
    while state.due_lease_batches:
        batch = next(iter(state.due_lease_batches))
        if batch.consumer is None and batch.leases:
            if batch.expires_ns <= state.now:
                ids: list[bytes] = []
                if batch.count_attempt:
                    for one in batch.first_leases(step):
                        ids += settlement.ids_of(batch.queue, one)
                return batch, ids
            state.deadlines.arm(batch, batch.expires_ns)
        del state.due_lease_batches[batch]
    return None


def expire(state: State, queue: Queue, command: ExpireBatch) -> int:
    """End a batch whose time ran out, or a step of it. Returns how many messages that were."""
    batch = queue.lease_batches.get(command.name)
    if batch is None or batch.consumer is not None or batch.expires_ns > state.now:
        return 0
    leases = batch.first_leases(state.settings.batch_step_messages)
    if not batch.count_attempt:
        return settlement.hand_back_leases(state, queue, leases)
    count = 0
    at = 0  # the ids are those of these leases, in their order
    for one in leases:
        ids = settlement.ids_of(queue, one)
        end = at + len(ids)
        entries = command.entries[at:end] if command.entries is not None else None
        ended = Expire(queue.name, one.number, ids, command.verdicts[at:end], entries)
        assert ids == command.ids[at:end], f"{command.name} ends with other messages than asked"
        count += settlement.expire(state, queue, ended)
        at = end
    return count


def _fault(state: State, queue: Queue, command: LeaseCommand) -> Rejection | None:
    settings = state.settings
    why = lease_batch.name_fault(command.name)
    if why is not None:
        return invalid_value("batch name", why)
    if not 1 <= command.max_messages <= settings.batch_messages_max:
        limit = settings.batch_messages_max
        return invalid_value("max_messages", f"{command.max_messages} is not within 1 to {limit}")
    if command.max_bytes > settings.batch_bytes_asked_max:
        limit = settings.batch_bytes_asked_max
        return invalid_value("max_bytes", f"{command.max_bytes} is more than {limit}")
    if command.wait_ms > settings.batch_wait_ms_max:
        limit = settings.batch_wait_ms_max
        return invalid_value("wait_ms", f"{command.wait_ms} is more than {limit}")
    if len(queue.lease_batches) >= settings.batches_max:
        return invalid_value(
            "batch",
            f'queue "{queue.name}" has {len(queue.lease_batches)} open; ack or release some',
        )
    return visibility_fault(state, command.visibility_ms)


def _not_open(name: str, queue: str) -> Rejection:
    return Rejection(
        rejection.BATCH_NOT_FOUND,
        f'batch "{name}" of queue "{queue}" is not open: it was acked or released, it ran out, '
        "or it was never leased",
    )


def _tell_again(state: State, batch: LeaseBatch, command: LeaseCommand) -> None:
    keys: list[bytes] = []
    lanes: list[Lane] = []
    stored: list[tuple[bytes, bytes]] = []
    entries: list[Entry] = []
    count = batch.messages()
    rest = 0
    if command.told != TOLD_COUNTED:
        keys, lanes, rest = _leased_by(state, batch, command.after)
        stored = list(zip(keys, reread.stored(state.reader, keys), strict=True))
    if command.told == TOLD_ENTRIES:
        entries = [entry_of(key, value) for key, value in stored]
        stored = []
    told = BatchLeased(
        command.request, batch.queue.name, batch.leased_ns, batch.expires_ns, True,
        count, entries, lanes, stored, opened=batch.opened, rest=rest,
    )  # fmt: skip
    state.batches_leased.append(told)


def _leased_by(state: State, batch: LeaseBatch, after: int) -> tuple[list[bytes], list[Lane], int]:
    """Messages and lanes of its leases with a number above `after`, as many as are told at once;
    and the last of these leases' numbers, 0 when that was the batch's last lease."""
    keys: list[bytes] = []
    lanes: list[Lane] = []
    leased = batch.queue.leased
    messages_left = state.settings.tell_messages
    bytes_left = state.settings.tell_bytes
    last = after
    for number, one in batch.leases.items():
        if number <= after:
            continue
        if messages_left <= 0 or bytes_left <= 0:
            return keys, lanes, last
        for key in one.keys:
            found = leased.get(id_of(key))
            if found is not None and found[0] is one:
                keys.append(key)
                lanes.append(found[1])
                messages_left -= 1
                bytes_left -= found[3]
        last = number
    return keys, lanes, 0


def _take_over(state: State, batch: LeaseBatch, consumer: Consumer) -> None:
    queue = batch.queue
    for number, one in consumer.leases.items():
        drop(state, queue, one)
        one.consumer = None
        one.batch = batch
        batch.leases[number] = one
    consumer.leases.clear()
    batch.bytes = batch.bytes_max - consumer.credit_bytes
    batch.leased_ns = state.now
    batch.expires_ns = state.now + batch.visibility_ms * MS
    lease_batch.put_row(state, batch)


def _stop_filling(state: State, batch: LeaseBatch) -> None:
    queue = batch.queue
    consumer = batch.consumer
    assert consumer is not None
    state.filling.pop(batch, None)
    state.patient.pop(batch, None)
    batch.consumer = None
    consumer.gone = True
    if consumer.ready:
        queue.drop_ready(consumer, state.now)
    state.due_lease_batches.pop(batch, None)
    if batch.leases:
        lease_batch.open_batch(state, batch)
        if batch.leased_ns != state.now:
            # It took several turns: its time begins when it is complete.
            batch.leased_ns = state.now
            batch.expires_ns = state.now + batch.visibility_ms * MS
            lease_batch.put_row(state, batch)
        state.deadlines.arm(batch, batch.expires_ns)
    else:
        state.deadlines.disarm(batch)
        lease_batch.forget(state, batch)
    if state.journal:
        _consumer_event(state, batch, effect.EVENT_CONSUMER_LEFT, -consumer.credit_messages)


def _consumer_event(state: State, batch: LeaseBatch, kind: str, credit: int) -> None:
    event = Event(
        state.now,
        kind,
        batch.queue.name,
        consumer=CONSUMER_PREFIX + batch.name,
        credit_delta=credit,
    )
    state.events.append(event)
