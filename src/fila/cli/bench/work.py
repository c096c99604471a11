"""What a process of the load does: enqueue, consume, or send one message after the other.

Owns the loops. Each opens a client of its own; what it measures counts from the end of the warm-up
on, and a message counts when the broker has answered for it.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from fila.cli.bench.crew import Seat, Span, Work
from fila.cli.bench.histogram import Histogram

if TYPE_CHECKING:
    from fila.client.sync import FilaClient, Receipt

TENANT: Final = "tenant"
NOISY: Final = "noisy"
_STAMP: Final = Struct(">Q")
STAMP_BYTES: Final = _STAMP.size
_UNDER_WAY_MAX: Final = 1_000  # messages a producer has sent and not heard of
_GLANCE_S: Final = 0.0005
_LINGER_S: Final = 0.1

Open = Callable[[], "FilaClient"]
Triple = tuple[str, dict[str, str] | None, bytes]


class Measured(NamedTuple):
    """What one process did in the time that counts."""

    messages: int
    seconds: float
    latencies: Histogram
    full: bool = False  # ended because no more may be stored


class Kind(NamedTuple):
    """What the messages of a producer are like."""

    queue: str
    keys: int
    size: int
    batch: int
    rate: float  # messages a second; 0: as many as go


def produce(open_client: Open, kind: Kind, messages_max: int, waiting_max: int) -> Work:
    """Batch after batch, some under way; at most so many messages in all, and as long as no more
    than so many wait for consumers."""

    def begin(seat: Seat) -> Callable[[Span], Measured]:
        client = open_client()
        return lambda span: _produce(client, seat, span, kind, messages_max, waiting_max)

    return begin


def fill(open_client: Open, batches: Callable[[], Iterator[list[Triple]]]) -> Work:
    """Enqueue what is given, as fast as it goes."""

    def begin(seat: Seat) -> Callable[[Span], None]:
        client = open_client()

        def go(span: Span) -> None:
            for batch in batches():
                client.enqueue_many_soon(batch)
                seat.add_enqueued(len(batch))
            client.flush()

        return go

    return begin


def consume(open_client: Open, queue: str, batch: int, prefetch: int, until: int = 0) -> Work:
    """Receive and acknowledge; to the end of the span, or until all have acknowledged so many."""

    def begin(seat: Seat) -> Callable[[Span], Measured]:
        client = open_client()
        return lambda span: _consume(client, seat, span, queue, batch, prefetch, until)

    return begin


def watch(open_client: Open, queue: str, batch: int, prefetch: int, until: int) -> Work:
    """Receive so many in order and tell of each which key it had."""

    def begin(seat: Seat) -> Callable[[Span], list[str]]:
        client = open_client()

        def go(span: Span) -> list[str]:
            order: list[str] = []
            with client.consume(queue, prefetch=prefetch) as consumer:
                while len(order) < until and time.monotonic() < span.end:
                    messages = consumer.receive_many(batch, timeout=_LINGER_S)
                    if messages:
                        order += [message.headers[TENANT] for message in messages]
                        client.ack_many(queue, [message.id for message in messages])
                        seat.add_acked(len(messages))
            return order

        return go

    return begin


def pace(open_client: Open, kind: Kind) -> Work:
    """One message after the other; the time until each is stored. With a rate, counted from when it
    was to be sent, so that a broker that stalls is not excused for what could not be sent."""

    def begin(seat: Seat) -> Callable[[Span], Measured]:
        client = open_client()
        return lambda span: _pace(client, seat, span, kind)

    return begin


def _produce(
    client: FilaClient, seat: Seat, span: Span, kind: Kind, messages_max: int, waiting_max: int
) -> Measured:
    batches = _stamped_batches(kind)
    under_way: deque[Receipt[list[str]]] = deque()
    sent = counted = 0
    started = 0.0
    batch_s = kind.batch / kind.rate if kind.rate else 0.0
    _wait_until(span.begin)
    due = span.begin
    full = False
    while (now := time.monotonic()) < span.end:
        if not started and now >= span.measured:
            started = now
        if sent + kind.batch > messages_max:
            full = True
            break
        if seat.waiting() + kind.batch > waiting_max or now < due:
            time.sleep(min(max(due - now, _GLANCE_S), 0.05))
            continue
        under_way.append(client.enqueue_many_soon(next(batches)))
        sent += kind.batch
        due = due + batch_s if kind.rate else now
        while len(under_way) * kind.batch > _UNDER_WAY_MAX or (under_way and under_way[0].done):
            stored = len(under_way.popleft().result())
            seat.add_enqueued(stored)
            counted += stored if started else 0
    end = time.monotonic()
    for receipt in under_way:
        stored = len(receipt.result())
        seat.add_enqueued(stored)
        if full:  # all of it counts, and so does the time it took
            counted += stored if started else 0
            end = time.monotonic()
    if full and not started:  # it was all stored before the warm-up was over
        counted, started = sent, span.begin
    return Measured(counted, end - started, Histogram(), full)


def _consume(
    client: FilaClient, seat: Seat, span: Span, queue: str, batch: int, prefetch: int, until: int
) -> Measured:
    latencies = Histogram()
    counted = 0
    last = span.measured
    _wait_until(span.begin)
    with client.consume(queue, prefetch=prefetch) as consumer:
        while time.monotonic() < span.end:
            messages = consumer.receive_many(batch, timeout=_LINGER_S)
            if messages:
                received_ns = time.monotonic_ns()
                client.ack_many(queue, [message.id for message in messages])
                now = time.monotonic()
                seat.add_acked(len(messages))
                if now >= span.measured:
                    last = now
                    counted += len(messages)
                    for message in messages:
                        sent_ns = _STAMP.unpack_from(message.payload)[0]
                        latencies.add(max(received_ns - sent_ns, 0) // 1_000)
            elif until and seat.acked() >= until:
                break
    return Measured(counted, max(last - span.measured, 1e-9), latencies)


def _pace(client: FilaClient, seat: Seat, span: Span, kind: Kind) -> Measured:
    latencies = Histogram()
    messages = cycle(_messages(kind))
    pause_s = 1 / kind.rate if kind.rate else 0.0
    _wait_until(span.begin)
    due = span.begin
    counted = 0
    while (now := time.monotonic()) < span.end:
        if pause_s and now < due:
            time.sleep(min(due - now, span.end - now))
            continue
        meant = due if pause_s else now
        client.enqueue(*next(messages))
        seat.add_enqueued(1)
        if now >= span.measured:
            counted += 1
            latencies.add(max(int((time.monotonic() - meant) * 1e6), 0))
        due += pause_s
    return Measured(counted, span.end - span.measured, latencies)


def _wait_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0))


def _messages(kind: Kind) -> list[Triple]:
    """Messages that go round the keys; payloads differ, so that compression gains nothing."""
    source = random.Random(7)
    return [
        (kind.queue, tenant(at, kind.keys), source.randbytes(kind.size))
        for at in range(max(kind.keys, min(kind.batch, 100)))
    ]


def _stamped_batches(kind: Kind) -> Iterator[list[Triple]]:
    """Batches whose payloads begin with the time they were made."""
    messages = cycle(_messages(kind))
    while True:
        stamp = _STAMP.pack(time.monotonic_ns())
        yield [
            (queue, headers, stamp + payload[STAMP_BYTES:])
            for queue, headers, payload in islice(messages, kind.batch)
        ]


def stamped(kind: Kind, count: int) -> Callable[[], Iterator[list[Triple]]]:
    """So many messages of the kind, in batches."""

    def batches() -> Iterator[list[Triple]]:
        left = count
        for batch in _stamped_batches(kind):
            yield batch[:left]
            left -= kind.batch
            if left <= 0:
                return

    return batches


def unequal(kind: Kind, noisy: int, quiet: Counter[str]) -> Callable[[], Iterator[list[Triple]]]:
    """First all of the noisy key's messages, then the quiet ones' in turn."""

    def triples() -> Iterator[Triple]:
        payload = random.Random(7).randbytes(kind.size)
        for _ in range(noisy):
            yield kind.queue, {TENANT: NOISY}, payload
        left = quiet.copy()
        while left:
            for key in list(left):
                yield kind.queue, {TENANT: key}, payload
                left[key] -= 1
                if not left[key]:
                    del left[key]

    def batches() -> Iterator[list[Triple]]:
        source = triples()
        while batch := list(islice(source, kind.batch)):
            yield batch

    return batches


def tenant(at: int, keys: int) -> dict[str, str] | None:
    return {TENANT: f"tenant-{at % keys}"} if keys else None
