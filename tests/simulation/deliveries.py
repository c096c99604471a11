"""Every delivery, checked message by message: whose turn, which message, whose credit, how long."""

from __future__ import annotations

from fila.core.effect import Delivery
from fila.core.entry import BODY, message_id
from fila.core.settings import Settings

from . import ages, caps, events, fair, fair_bytes, waits
from .books import Books
from .model import BURST_NS, Lease, Message, Queue
from .turn import Record, Violation, same


def check_size(settings: Settings, turn: Record, leaving_bytes: int) -> None:
    """A turn hands out so much and one delivery more; none while too much waits for its commit."""
    delivered = sum([len(one.entries) for one in turn.deliveries])
    if delivered > settings.pass_messages:
        raise Violation("bounds", f"{delivered} messages are handed out in one turn")
    if turn.deliveries:
        last = turn.deliveries[-1]
        before_last = turn.delivered_bytes() - sum([len(entry[BODY]) for entry in last.entries])
        if before_last >= settings.pass_bytes:
            raise Violation("bounds", f"{turn.delivered_bytes()} bytes in one pass")
        if leaving_bytes >= settings.leaving_bytes:
            raise Violation("bounds", f"more is handed out while {leaving_bytes} bytes wait")
    if turn.waits and leaving_bytes < settings.leaving_bytes:
        raise Violation("bounds", f"nothing is handed out though only {leaving_bytes} bytes wait")


def follow(books: Books, delivery: Delivery) -> None:
    """Messages to one consumer under one lease, in order."""
    now = books.now
    settings = books.settings
    queue = books.queues.get(delivery.consumer.queue.name)
    consumer = queue.receiver(delivery.consumer.id) if queue is not None else None
    if queue is None or consumer is None:
        raise Violation("credit", f"delivered to {delivery.consumer.id}, which is not there")
    if consumer not in queue.credit:
        raise Violation("credit", f"{consumer.id} has none and gets messages")
    first = next(iter(queue.credit))
    if first is not consumer:
        raise Violation("round robin", f"{consumer.id} gets messages before {first.id}")
    if delivery.lease in queue.all_leases() or delivery.leased_ns != now:
        raise Violation("lease", f"{delivery.lease} of {queue.name} is no new lease of now")
    if not 1 <= len(delivery.entries) <= settings.delivery_messages:
        raise Violation("bounds", f"a delivery of {len(delivery.entries)} messages")
    if delivery.lease <= queue.last_lease:
        raise Violation("lease", f"{delivery.lease} of {queue.name} was given before")
    queue.last_lease = delivery.lease
    lease = Lease(delivery.lease, consumer, now + queue.visibility_ns)
    queue.leases[lease.number] = lease
    consumer.leases[lease.number] = lease
    queue.counted["delivered"] += len(delivery.entries)
    size = 0
    for entry, lane_seen, wait in zip(
        delivery.entries, delivery.lanes, delivery.waits, strict=True
    ):
        message = _delivered_message(books, queue, message_id(entry))
        lane = message.lane
        key = lane.key
        if not consumer.has_credit or size >= settings.delivery_bytes:
            raise Violation("credit", f"{consumer.id} gets more than its credit")
        same(
            "delivered message",
            (entry[8], *entry[2:5], lane_seen.key.name, lane_seen.throttle_keys),
            (
                message.body,
                message.attempts,
                message.weight,
                message.enqueued_ns,
                key.name,
                lane.throttle_keys,
            ),
        )
        if message.timed and message.ready_ns > now:
            raise Violation("delay", f"{_short(message)} goes {message.ready_ns - now} ns early")
        if 0 < message.expires_ns <= now:
            late = now - message.expires_ns
            raise Violation(ages.PROMISE, f"{_short(message)} is delivered {late} ns late")
        earlier = lane.before(message, now)
        if earlier is not None and not lane.mixed:
            raise Violation("lane order", f"{_short(message)} goes before {_short(earlier)}")
        if len(key.lanes) > 1 and not queue.apart:
            _check_oldest_lane(books, message)
        waits.check(message, wait, now, books.tokens)
        if books.journal:
            events.expect_delivered(books.events, message, consumer.id, wait)
        if queue.by_bytes:
            fair_bytes.delivered(lane, len(message.body), settings.quantum_bytes)
        else:
            fair.delivered(key, settings.quantum)
            if caps.applies(books.tokens, lane):
                queue.shared = {}
            alike = len(lane.throttle_keys) == 1 and not key.limited
            alike = alike and not caps.applies(books.tokens, lane)
            if alike and books.tokens.is_of_one_queue(lane.throttle_keys[0]):
                fair.delivered_behind(lane, settings.quantum)
        caps.check_delivery(books.tokens, lane)
        for name in books.tokens.take(lane, now) if lane.may_park else ():
            books.doubt(name)
        books.remove(message)
        lane.leased += 1
        books.doubt_caps(lane)
        queue.leased[message.id] = message
        message.lease = lease
        lease.messages[message.id] = message
        consumer.held += 1
        consumer.bytes_held += len(message.body)
        size += len(message.body)
        books.refresh(lane)
        if lane.ready and not lane.sure and books.is_sure(lane):
            fair.becomes_sure(lane)
    if consumer.has_credit:
        del queue.credit[consumer]
        queue.credit[consumer] = None
    else:
        queue.lose_credit(consumer, now)


def _delivered_message(books: Books, queue: Queue, id: bytes) -> Message:
    message = books.messages.get(id)
    if message is None:
        raise Violation("delivered once", f"{id.hex()[-6:]} is {books.gone.get(id, 'unknown')}")
    if message.lane.key.queue is not queue:
        raise Violation("delivered once", f"{_short(message)} is not in {queue.name}")
    if message.lease is not None:
        raise Violation("one lease", f"{_short(message)} is under lease {message.lease.number}")
    return message


def _check_oldest_lane(books: Books, message: Message) -> None:
    """Among the lanes of a key that surely may go, the oldest message goes first."""
    lanes = message.lane.key.lanes.values()
    if any(lane.mixed for lane in lanes):
        return
    for lane in lanes:
        # Where messages cost their bytes, a key that pays may wait at a bucket that has tokens.
        waits = lane.key.queue.by_bytes and lane.may_park
        if lane.sure and lane is not message.lane and not waits:
            head_ns = lane.head_ns(books.now)
            if head_ns >= 0 and head_ns + BURST_NS < message.ready_ns:
                raise Violation(
                    "oldest lane first",
                    f"{_short(message)} goes before the head of {lane.throttle_keys}",
                )


def _short(message: Message) -> str:
    return message.id.hex()[-6:]
