"""Every command with its reply, followed in the books: what Fila promises about each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import (
    Ack,
    BeginReclassify,
    Consume,
    CreateQueue,
    DeleteQueue,
    EndReclassify,
    Enqueue,
    EnqueueKeyed,
    Expire,
    Extend,
    HandBack,
    Hold,
    Leave,
    Nack,
    PauseKey,
    PauseQueue,
    Purge,
    Redrive,
    Release,
    ResumeKey,
    ResumeQueue,
    SetConfig,
    SetOverride,
    UpdateQueue,
)
from fila.core.rejection import Rejection
from fila.core.turn import Applied
from fila.core.verdict import DEAD, RETRY_NOW, FailureVerdict

from . import (
    ages,
    batches,
    events,
    extensions,
    moves,
    overrides,
    pauses,
    reclassify,
    rooms,
    updates,
)
from .books import Books
from .model import BURST_NS, Consumer, Lease, Message, Queue
from .turn import Step, Violation, same


def follow(books: Books, step: Step) -> None:
    """A command of a client, or of whoever stands for the machine alone."""
    if isinstance(step.command, batches.FOLLOWED):
        queue = _find(books, step.command.queue, step.reply)
        if queue is not None:
            batches.follow(books, queue, step.command, step.reply)
        return
    if isinstance(step.command, Extend):
        queue = _find(books, step.command.queue, step.reply)
        if queue is not None:
            extensions.extend(books, queue, step.command, step.reply)
        return
    _FOLLOW[type(step.command)](books, step.command, step.reply, step.asked)


def _enqueue(books: Books, command: Enqueue, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    kept, reply = rooms.sort_out(books, queue, command, reply)
    same("reply to Enqueue", reply, None)
    _store(books, queue, _some(command, kept))


def _enqueue_keyed(books: Books, command: EnqueueKeyed, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    settings = books.settings
    results = []
    kept = []
    let_in, reply = rooms.sort_out(books, queue, command, reply)
    for place in let_in:
        id, key = command.ids[place], command.keys[place]
        known = queue.keys_known.get(key) if key else None
        if (
            known is not None
            and queue.keys_seen - known[0] <= settings.idempotency_keys_max
            and books.now - known[1] < settings.idempotency_ms * 1_000_000
        ):
            results.append((known[2], True))
            continue
        if key:
            queue.keys_known[key] = (queue.keys_seen, books.now, id)
            queue.keys_seen += 1
        results.append((id, False))
        kept.append(place)
    same("reply to EnqueueKeyed", reply, results)
    _store(books, queue, _some(command, kept))


def _some(command: Enqueue | EnqueueKeyed, places: list[int]) -> Enqueue:
    delays = command.delays_ms
    return Enqueue(
        command.queue,
        [command.ids[place] for place in places],
        [command.bodies[place] for place in places],
        [command.assignments[place] for place in places],
        [delays[place] for place in places] if delays else None,
    )


def _store(books: Books, queue: Queue, command: Enqueue) -> None:
    queue.counted["enqueued"] += len(command.ids)
    delays = command.delays_ms or [0] * len(command.ids)
    for id, body, assignment, delay_ms in zip(
        command.ids, command.bodies, command.assignments, delays, strict=True
    ):
        weight = max(assignment.weight, 1)
        message = Message(id, weight, books.now, body)
        if id in books.messages or id in books.gone:
            raise Violation("ids", f"{id.hex()} is used twice")
        books.messages[id] = message
        ages.stamp(books, queue, message, body)
        lane = books.lane(queue, assignment.fairness_key, assignment.throttle_keys)
        books.tell_weight(lane.key, weight)
        books.store(message, lane, delay_ms)
        if books.journal:
            events.expect(books.events, events.EVENT_ENQUEUED, message)


def _ack(books: Books, command: Ack, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    codes = []
    due = _due(books, queue, command.ids)
    for id in command.ids:
        message = _leased(books, queue, id, command.connection)
        if message is None:
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        lane = message.lane
        books.settle(queue, message)
        del books.messages[id]
        books.gone[id] = "acked"
        if books.journal:
            events.expect(books.events, events.EVENT_ACKED, message, lane)
        codes.append(rejection.OK)
    queue.counted["acked"] += codes.count(rejection.OK)
    _same_codes(books, "Ack", reply, codes, due)


def _nack(books: Books, command: Nack, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    due = _due(books, queue, command.ids)
    found = [_leased(books, queue, id, command.connection) for id in command.ids]
    check_hook(books, queue, found, command.errors, command.verdicts, asked)
    codes = []
    for id, error, verdict in zip(command.ids, command.errors, command.verdicts, strict=True):
        message = _leased(books, queue, id, command.connection)
        if message is None:
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        queue.counted["nacked"] += 1
        books.fail(queue, message, verdict, events.EVENT_NACKED, error)
        codes.append(rejection.OK)
    _same_codes(books, "Nack", reply, codes, due)


def check_hook(
    books: Books,
    queue: Queue,
    found: list[Message | None],
    errors: list[str],
    verdicts: list[FailureVerdict],
    call: object,
) -> None:
    """The failure hook saw every message that is there to fail, with this failure counted; without
    a hook each is tried again at once."""
    if queue.name not in books.hooked:
        same("verdicts without a hook", verdicts, [_limited(queue, one) for one in found])
        return
    for message, verdict in zip(found, verdicts, strict=True):
        if _limited(queue, message) == DEAD and not verdict.dead_letter:
            raise Violation("delivery limit", f"{queue.name} tries again: {verdict}")
    shown = [
        (message.id, message.attempts + 1, error.encode(), message.body)
        for message, error in zip(found, errors, strict=True)
        if message is not None
    ]
    same("what the failure hook sees", call, (queue.name, shown))


def _limited(queue: Queue, message: Message | None) -> FailureVerdict:
    """What becomes of one that failed once more, as far as the delivery limit tells."""
    if message is None or not queue.max_attempts:
        return RETRY_NOW
    return DEAD if message.attempts + 1 >= queue.max_attempts else RETRY_NOW


def returning(books: Books) -> tuple[Queue, Lease] | None:
    """The lease that goes back next: of consumers that left and let go of what they held."""
    found = [
        (lease.number, lease.consumer.id, queue, lease)
        for queue in books.queues.values()
        for lease in queue.leases.values()
        if lease.consumer is not None and lease.consumer.returning and not queue.leaving
    ]
    if not found:
        return None
    _, _, queue, lease = min(found, key=lambda one: one[:2])
    return queue, lease


def hand_back(books: Books, queue: Queue, lease: Lease, applied: Applied) -> int:
    """A whole lease, as the turn does it; how many messages."""
    command, reply = applied
    if not isinstance(command, Release):
        raise Violation("handed back", f"{lease.number} of {queue.name} is not: {command}")
    same("a lease handed back", (command.queue, command.ids), (queue.name, list(lease.messages)))
    _release(books, command, reply, None)
    return len(command.ids)


def expire(books: Books, command: Expire, reply: Reply) -> None:
    queue = books.queues[command.queue]
    lease = queue.leases.get(command.lease)
    if lease is None or lease.expires_ns > books.now:
        raise Violation("lease", f"{command.lease} of {queue.name} is not due")
    if lease.consumer is not None and lease.consumer.returning:
        raise Violation("handed back", f"{command.lease} of {queue.name} counts as failed")
    if lease.expires_ns != extensions.first_of(queue).expires_ns:
        raise Violation("lease", f"{command.lease} of {queue.name} is not the first to run out")
    same("messages of the lease that ran out", command.ids, list(lease.messages))
    same("reply to Expire", reply, len(command.ids))
    for id, verdict in zip(command.ids, command.verdicts, strict=True):
        message = queue.leased[id]
        queue.counted["expired"] += 1
        books.fail(queue, message, verdict, events.EVENT_EXPIRED, "visibility timeout expired")


def _release(books: Books, command: Release, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    codes = []
    due = _due(books, queue, command.ids)
    for id in command.ids:
        message = _leased(books, queue, id, command.connection)
        if message is None:
            codes.append(rejection.MESSAGE_NOT_FOUND)
            continue
        books.release_one(queue, message)
        codes.append(rejection.OK)
    _same_codes(books, "Release", reply, codes, due)


def _consume(books: Books, command: Consume, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    prefetch = command.prefetch or books.settings.prefetch_default
    if prefetch > books.settings.prefetch_max:
        rejected("Consume", reply, rejection.INVALID_CONFIG_VALUE)
        return
    same("reply to Consume", reply, None)
    bytes_max = command.prefetch_bytes or books.settings.prefetch_bytes
    consumer = Consumer(command.consumer, command.connection, prefetch, bytes_max)
    queue.consumers[consumer.id] = consumer
    queue.connections[consumer.connection] = queue.connections.get(consumer.connection, 0) + 1
    queue.gain_credit(consumer, books.now)
    if books.journal:
        events.expect_consumer(
            books.events, events.EVENT_CONSUMER_JOINED, queue, consumer, prefetch
        )


def _leave(books: Books, command: Leave, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    consumer = queue.consumers.pop(command.consumer, None)
    if consumer is None:
        same("reply to Leave", reply, 0)
        return
    consumer.gone = True
    credit = consumer.prefetch - consumer.held
    if queue.stands(consumer):
        queue.lose_credit(consumer, books.now)
    left = queue.connections.pop(consumer.connection) - 1
    if left:
        queue.connections[consumer.connection] = left
    consumer.returning = command.release
    same("reply to Leave", reply, 1)
    if books.journal:
        events.expect_consumer(books.events, events.EVENT_CONSUMER_LEFT, queue, consumer, -credit)


def _hold(books: Books, command: Hold, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    consumer = queue.consumers.get(command.consumer)
    if consumer is None or consumer.paused == command.held:
        same("reply to Hold", reply, 0)
        return
    same("reply to Hold", reply, 1)
    consumer.paused = command.held
    if queue.stands(consumer):
        queue.lose_credit(consumer, books.now)
    elif consumer.has_credit:
        queue.gain_credit(consumer, books.now)


def _hand_back(books: Books, command: HandBack, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    departed = {
        lease.consumer
        for lease in queue.leases.values()
        if lease.consumer is not None
        and lease.consumer.connection == command.connection
        and lease.consumer.gone
        and not lease.consumer.returning
    }
    for consumer in departed:
        consumer.returning = True
    same("reply to HandBack", reply, len(departed))


def _redrive(books: Books, command: Redrive, reply: Reply, asked: object) -> None:
    dlq = books.queues.get(command.queue)
    assert isinstance(asked, int), "how many the workload asked for"
    if not command.ids and asked and dlq is not None and dlq.pending and not dlq.away:
        is_dlq = dlq.name.endswith(".dlq") and dlq.name.removesuffix(".dlq") in books.queues
        if is_dlq:
            raise Violation("redrive", f"nothing of {dlq.pending} pending moves")
    redrive(books, command, reply)


def redrive(books: Books, command: Redrive, reply: Reply) -> None:
    dlq = _find(books, command.queue, reply)
    if dlq is None:
        return
    if not dlq.name.endswith(".dlq"):
        rejected("Redrive", reply, rejection.NOT_A_DLQ)
        return
    parent = books.queues.get(dlq.name.removesuffix(".dlq"))
    if parent is None:
        rejected("Redrive", reply, rejection.PARENT_QUEUE_NOT_FOUND)
        return
    same("reply to Redrive", reply, len(command.ids))
    dlq.counted["redriven"] += len(command.ids)
    for id, assignment in zip(command.ids, command.assignments, strict=True):
        message = books.messages.get(id)
        if message is None or message.lane.key.queue is not dlq or message.lease is not None:
            raise Violation("redrive", f"{id.hex()[-6:]} is not pending in {dlq.name}")
        _check_oldest(books, dlq, message)
        old = message.lane
        books.remove(message)
        books.refresh(old)
        lane = books.lane(parent, assignment.fairness_key, assignment.throttle_keys)
        message.weight = max(assignment.weight, 1)
        message.attempts = 0
        books.left_late |= 0 < message.expires_ns <= books.now  # its time wakes the broker once
        ages.stamp(books, parent, message, message.sent)
        books.tell_weight(lane.key, message.weight)
        books.store(message, lane, 0)
        if books.journal:
            events.expect(books.events, events.EVENT_REDRIVEN, message, source=dlq.name)


def _set_config(books: Books, command: SetConfig, reply: Reply, asked: object) -> None:
    changed = books.tokens.set_config(command.key, command.value, books.now)
    if changed is False:
        rejected("SetConfig", reply, rejection.INVALID_CONFIG_VALUE)
        return
    same("reply to SetConfig", reply, None)
    if changed is None:
        books.config[command.key] = command.value
        if not command.value:
            del books.config[command.key]
    elif isinstance(changed, bytes):
        books.doubt(changed)
        for queue in books.queues.values():
            queue.shared = {}
    if books.journal:
        events.expect_plain(books.events, events.EVENT_CONFIG_CHANGED, "")


def _create_queue(books: Books, command: CreateQueue, reply: Reply, asked: object) -> None:
    name = command.queue
    settings = books.settings
    visibility_ms = command.visibility_ms or settings.visibility_ms_default
    if not name or len(name.encode()) > 255 or not name.isprintable():
        rejected("CreateQueue", reply, rejection.INVALID_CONFIG_VALUE)
        return
    if name in books.queues:
        rejected("CreateQueue", reply, rejection.QUEUE_ALREADY_EXISTS)
        return
    for kin in (name + ".dlq", name.removesuffix(".dlq")):
        if moves.refused(books, kin, reply):
            return
    if not settings.visibility_ms_min <= visibility_ms <= settings.visibility_ms_max:
        rejected("CreateQueue", reply, rejection.INVALID_CONFIG_VALUE)
        return
    limit = command.max_attempts
    if limit > settings.max_attempts_max or (limit and name.endswith(".dlq")):
        rejected("CreateQueue", reply, rejection.INVALID_CONFIG_VALUE)
        return
    if command.max_in_flight_per_key > settings.in_flight_max:
        rejected("CreateQueue", reply, rejection.INVALID_CONFIG_VALUE)
        return
    if command.cost not in ("", "messages", "bytes"):
        rejected("CreateQueue", reply, rejection.INVALID_CONFIG_VALUE)
        return
    same("reply to CreateQueue", reply, None)
    parent = books.queues.get(name.removesuffix(".dlq")) if name.endswith(".dlq") else None
    owner = parent.name if parent is not None else ""
    books.add_queue(name, visibility_ms, owner, command.cost == "bytes")
    books.queues[name].max_attempts = limit
    books.queues[name].settings["max_attempts"] = str(limit)
    most = command.max_in_flight_per_key
    books.queues[name].max_in_flight = most
    books.queues[name].settings["max_in_flight_per_key"] = str(most)
    if not name.endswith(".dlq") and name + ".dlq" not in books.queues:
        books.hide_dlq(books.queues[name])
        books.dlq_of(books.queues[name])


def _delete_queue(books: Books, command: DeleteQueue, reply: Reply, asked: object) -> None:
    queue = _find(books, command.queue, reply)
    if queue is None:
        return
    same("reply to DeleteQueue", reply, None)
    books.drop_queue(queue)
    dlq = books.queues.get(queue.name + ".dlq")
    if dlq is not None and dlq.owner == queue.name:
        books.drop_queue(dlq)
    books.hidden.pop(queue.name + ".dlq", None)
    parent = books.queues.get(queue.name.removesuffix(".dlq"))
    if parent is not None:
        books.hide_dlq(parent)


def _find(books: Books, name: str, reply: Reply) -> Queue | None:
    return pauses.find(books, name, reply)


def _leased(books: Books, queue: Queue, id: bytes, connection: int) -> Message | None:
    """The leased message, if this connection may finish it."""
    message = queue.leased.get(id)
    if message is None or message.lease is None:
        return None
    holder = message.lease.consumer
    if connection not in queue.connections or holder is None or holder.gone:
        return message
    return message if holder.connection == connection else None


def _due(books: Books, queue: Queue, ids: list[bytes]) -> bool:
    """Whether one of them is under a lease that ends with this turn unless it is settled now."""
    for id in ids:
        message = queue.leased.get(id)
        lease = message.lease if message is not None else None
        if lease is not None:
            ends_ns = lease.batch.expires_ns if lease.batch is not None else lease.expires_ns
            if ends_ns <= books.now:
                return True
    return False


def _same_codes(books: Books, what: str, reply: Reply, codes: list[int], due: bool) -> None:
    """A lease is its holder's until the broker has ended it, and commands come before that."""
    if due:
        books.met["settled in the moment of expiry"] += 1
        if reply != codes:
            raise Violation("commands before expiries", f"{what}: {reply!r}, should be {codes!r}")
    same(f"reply to {what}", reply, codes)


def _check_oldest(books: Books, queue: Queue, message: Message) -> None:
    for key in queue.keys.values():
        for lane in key.lanes.values():
            if lane.mixed or message.moved:
                continue  # which of them is its first is not known
            for first in (*lane.line[:1], *lane.timed[:1]):
                if first.ready_ns + BURST_NS < message.ready_ns:
                    raise Violation("redrive", f"{_short(message)} before {_short(first)}")


def rejected(what: str, reply: Reply, code: int) -> None:
    if not isinstance(reply, Rejection) or reply.code != code:
        raise Violation(what, f"{reply!r}, should be refused with {code:#04x}")


def _short(message: Message) -> str:
    return message.id.hex()[-6:]


_FOLLOW: dict[type, Callable[[Books, Any, Reply, object], None]] = {
    Ack: _ack,
    Consume: _consume,
    CreateQueue: _create_queue,
    DeleteQueue: _delete_queue,
    Enqueue: _enqueue,
    EnqueueKeyed: _enqueue_keyed,
    HandBack: _hand_back,
    Hold: _hold,
    Leave: _leave,
    Nack: _nack,
    PauseKey: pauses.pause_key,
    PauseQueue: pauses.pause_queue,
    Purge: pauses.purge,
    Redrive: _redrive,
    ResumeKey: pauses.resume_key,
    ResumeQueue: pauses.resume_queue,
    Release: _release,
    SetConfig: _set_config,
    SetOverride: overrides.set_override,
    BeginReclassify: reclassify.begin,
    EndReclassify: reclassify.end,
    UpdateQueue: updates.update_queue,
}
