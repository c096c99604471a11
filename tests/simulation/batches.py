"""Lease batches in the books: who has which messages under which name, and until when.

Promised: one name, the same messages, until they are finished, handed back or their time is up; and
an end by time counts an attempt only where that was asked for.
"""

from __future__ import annotations

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import AckBatch, ExpireBatch, ExtendBatch, Lease, ReleaseBatch, Withdraw
from fila.core.entry import message_id
from fila.core.rejection import Rejection

from . import events
from .books import Books
from .model import Batch, Consumer, Queue
from .model import Lease as Leased
from .turn import Record, Violation, same

MS = 1_000_000
FOLLOWED = (AckBatch, ExpireBatch, ExtendBatch, Lease, ReleaseBatch, Withdraw)


def follow(books: Books, queue: Queue, command: object, reply: Reply) -> None:
    if isinstance(command, Lease):
        _lease(books, queue, command, reply)
    elif isinstance(command, Withdraw):
        _withdraw(books, queue, command, reply)
    elif isinstance(command, ExpireBatch):
        _expire(books, queue, command, reply)
    elif isinstance(command, AckBatch):
        _ack(books, queue, _step(books, queue, command, reply))
    elif isinstance(command, ReleaseBatch):
        books.release(queue, _step(books, queue, command, reply))
    elif isinstance(command, ExtendBatch):
        if _bad_visibility(books, command.visibility_ms):
            _refused(reply, rejection.INVALID_CONFIG_VALUE)
            return
        chosen = _chosen(queue, command.name, command.below, reply)
        _counted(chosen, reply)
        for batch in chosen:
            batch.visibility_ns = command.visibility_ms * MS or queue.visibility_ns
            batch.expires_ns = books.now + batch.visibility_ns


def collect(books: Books, turn: Record) -> None:
    """After the deliveries of a turn: batches take over what they got, and are answered."""
    for queue in books.queues.values():
        for batch in list(queue.batches.values()):
            consumer = batch.consumer
            batch.whole = not batch.leases
            if batch.whole:
                batch.order = []  # what it got before was settled meanwhile
            if consumer is not None and consumer.leases:
                _take_over(books, queue, batch, consumer)
    filling = [
        batch
        for queue in books.queues.values()
        for batch in queue.batches.values()
        if batch.consumer is not None
    ]
    filling.sort(key=lambda batch: batch.first_request)
    for batch in filling:
        consumer = batch.consumer
        assert consumer is not None
        waits = not batch.leases and books.now < batch.wait_until_ns
        if batch.queue.stands(consumer) and (turn.more or waits):
            if batch.queue.apart or batch.queue.leaving:
                books.told += [(request, False, 0, [], 0, True) for request in batch.requests]
                batch.requests = []
            continue
        again = False
        if batch.leases:
            batch.expires_ns = books.now + batch.visibility_ns
        expires_ns = batch.expires_ns
        # Bodies are told once, and only when all of them came with this turn.
        unread = not batch.whole
        for request in batch.requests:
            count = len(batch.ids())
            ids = [] if unread else batch.order
            books.told.append((request, again, count, ids, expires_ns, False))
            again = unread = True
        _stop_filling(books, batch)
        batch.requests = []
    seen = [
        (
            one.request,
            one.again,
            one.messages,
            [message_id(entry) for entry in one.entries],
            one.expires_ns,
            one.gone is not None,
        )
        for one in turn.batches_leased
    ]
    for one in turn.batches_leased:
        if one.request in books.told_open:
            batch, rest = books.told_open[one.request]
            same("where the next part of a batch begins", one.rest, rest)
            batch.opened = batch.opened or one.opened
            same("which batch is told in parts", one.opened, batch.opened)
        else:
            same("a batch that is told later", one.unread, len(one.entries) < one.messages)
    same("answers to requests for batches", sorted(seen), sorted(books.told))


def restart(queue: Queue) -> None:
    """Who was waiting is gone; what was leased under a name still is."""
    for batch in list(queue.batches.values()):
        batch.consumer = None
        batch.requests = []
        batch.order = []
        batch.opened = 0
        if not batch.leases:
            del queue.batches[batch.name]


def _part(batch: Batch, after: int, messages: int) -> tuple[list[bytes], int]:
    """What is told of an open batch, and the lease after which the next part begins; 0: none."""
    ids: list[bytes] = []
    last = after
    for lease in batch.leases.values():
        if lease.number > after:
            if len(ids) >= messages:
                return ids, last
            ids += lease.messages
            last = lease.number
    return ids, 0


def _lease(books: Books, queue: Queue, command: Lease, reply: Reply) -> None:
    batch = queue.batches.get(command.name)
    if command.opened and (batch is None or batch.opened != command.opened):
        _refused(reply, rejection.BATCH_NOT_FOUND)
        books.met["part of a batch that is gone"] += 1
        return
    if batch is not None:
        same("reply to Lease", reply, None)
        if batch.consumer is not None:
            batch.requests.append(command.request)
        else:
            ids, rest = _part(batch, command.after, books.settings.tell_messages)
            count = len(batch.ids())
            books.told.append((command.request, True, count, ids, batch.expires_ns, False))
            books.told_open[command.request] = (batch, rest)
            books.met["further part of a batch"] += bool(command.after)
        return
    if command.max_messages == 0:
        _refused(reply, rejection.BATCH_NOT_FOUND)
        return
    settings = books.settings
    if (
        not command.name
        or len(command.name) > 255
        or not command.name.isprintable()
        or command.max_messages > settings.batch_messages_max
        or _bad_visibility(books, command.visibility_ms)
        or len(queue.batches) >= settings.batches_max
    ):
        _refused(reply, rejection.INVALID_CONFIG_VALUE)
        return
    same("reply to Lease", reply, None)
    visibility_ns = command.visibility_ms * MS or queue.visibility_ns
    batch = Batch(command.name, queue, visibility_ns, command.count_attempt)
    batch.requests.append(command.request)
    batch.first_request = command.request
    batch.wait_until_ns = books.now + command.wait_ms * MS
    bytes_max = command.max_bytes or settings.batch_bytes
    consumer = Consumer(f"batch:{command.name}", 0, command.max_messages, bytes_max)
    batch.consumer = consumer
    queue.batches[batch.name] = batch
    queue.gain_credit(consumer, books.now)
    if books.journal:
        events.expect_consumer(
            books.events, events.EVENT_CONSUMER_JOINED, queue, consumer, command.max_messages
        )


def _withdraw(books: Books, queue: Queue, command: Withdraw, reply: Reply) -> None:
    batch = queue.batches.get(command.name)
    if batch is None or command.request not in batch.requests:
        same("reply to Withdraw", reply, 0)
        return
    same("reply to Withdraw", reply, 1)
    batch.requests.remove(command.request)
    if not batch.requests and not batch.leases:
        _stop_filling(books, batch)


def _expire(books: Books, queue: Queue, command: ExpireBatch, reply: Reply) -> None:
    batch = queue.batches.get(command.name)
    if batch is None or batch.consumer is not None or batch.expires_ns > books.now:
        raise Violation("batch", f"{command.name} of {queue.name} is not due")
    leases: list[Leased] = []
    ids: list[bytes] = []
    for lease in batch.leases.values():
        if len(ids) < books.settings.batch_step_messages:
            leases.append(lease)
            ids += lease.messages
    same("messages of the batch that ran out", command.ids, ids if batch.counts else [])
    same("reply to ExpireBatch", reply, len(ids))
    if not batch.counts:
        books.release(queue, leases)
        return
    for id, verdict in zip(command.ids, command.verdicts, strict=True):
        queue.counted["expired"] += 1
        message = queue.leased[id]
        books.fail(queue, message, verdict, events.EVENT_EXPIRED, "visibility timeout expired")


def _step(
    books: Books, queue: Queue, command: AckBatch | ReleaseBatch, reply: Reply
) -> list[Leased]:
    """The leases that end with a step: of batches that were open at the first, until so many
    messages have ended."""
    ending = books.ending
    place = (queue, type(command), command.name, command.below)
    if command.before in queue.stale:
        if not isinstance(reply, Rejection) or reply.code != rejection.NODE_NOT_READY:
            raise Violation("a step after the queue moved", f"{command} -> {reply}")
        books.met["batches ended while their queue moved"] += 1
        return []
    if command.before:
        chosen = [one for one in ending.get((*place, command.before), []) if one.leases]
    else:
        chosen = _chosen(queue, command.name, command.below, reply)
        if isinstance(reply, Rejection):
            return []
    bound = books.settings.batch_step_messages
    found: list[Leased] = []
    rest: list[Batch] = []
    batches = messages = 0
    for batch in chosen:
        for lease in batch.leases.values():
            if messages >= bound:
                rest.append(batch)
                break
            found.append(lease)
            messages += len(lease.messages)
        else:
            batches += 1
    assert isinstance(reply, tuple) and len(reply) == 3
    same("batches and messages that ended", reply[:2], (batches, messages))
    same("a rest of batches", bool(reply[2]), bool(rest))
    if rest:
        ending[(*place, reply[2])] = rest
        books.met["batches ended in steps"] += 1
    return found


def _ack(books: Books, queue: Queue, leases: list[Leased]) -> None:
    for id in [id for lease in leases for id in lease.messages]:
        message = queue.leased[id]
        lane = message.lane
        books.settle(queue, message)
        del books.messages[id]
        books.gone[id] = "acked"
        queue.counted["acked"] += 1
        if books.journal:
            events.expect(books.events, events.EVENT_ACKED, message, lane)


def _take_over(books: Books, queue: Queue, batch: Batch, consumer: Consumer) -> None:
    for number, lease in consumer.leases.items():
        del queue.leases[number]
        lease.consumer = None
        lease.batch = batch
        batch.leases[number] = lease
        batch.order += lease.messages
    consumer.leases = {}
    batch.expires_ns = books.now + batch.visibility_ns


def _stop_filling(books: Books, batch: Batch) -> None:
    consumer = batch.consumer
    assert consumer is not None
    queue = batch.queue
    batch.consumer = None
    batch.order = []
    consumer.gone = True
    if queue.stands(consumer):
        queue.lose_credit(consumer, books.now)
    if not batch.leases:
        del queue.batches[batch.name]
    if books.journal:
        credit = consumer.held - consumer.prefetch
        events.expect_consumer(books.events, events.EVENT_CONSUMER_LEFT, queue, consumer, credit)


def _chosen(queue: Queue, name: str, below: int | None, reply: Reply) -> list[Batch]:
    opened = [batch for batch in queue.batches.values() if batch.consumer is None]
    if below is not None:
        found = []
        for batch in opened:
            stream, _, rest = batch.name.partition("/")
            if stream == name and int(rest.split("/")[0]) < below:
                found.append(batch)
        return sorted(found, key=lambda batch: batch.name)
    found = [batch for batch in opened if batch.name == name]
    if not found:
        _refused(reply, rejection.BATCH_NOT_FOUND)
    return found


def _counted(chosen: list[Batch], reply: Reply) -> None:
    if chosen or not isinstance(reply, Rejection):
        expected = (len(chosen), sum(len(batch.ids()) for batch in chosen))
        same("batches and messages acted on", reply, expected)


def _bad_visibility(books: Books, visibility_ms: int) -> bool:
    settings = books.settings
    low, high = settings.visibility_ms_min, settings.visibility_ms_max
    return bool(visibility_ms) and not low <= visibility_ms <= high


def _refused(reply: Reply, code: int) -> None:
    if not isinstance(reply, Rejection) or reply.code != code:
        raise Violation("batch", f"{reply!r}, should be refused with {code:#04x}")
