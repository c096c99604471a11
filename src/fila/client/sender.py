"""Enqueues, acks and nacks, from call to answer.

Owns the bound on bytes under way, the queue of calls that wait for room, the three collectors, and
settling tickets when answers come. The exchange sends the frames and passes on the answers. Never
touches sockets, threads or the clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Final

from fila.client import errors
from fila.client.batching import Collector, Item, split
from fila.client.errors import FilaError, ProtocolError
from fila.client.options import BatchMode, Options
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire import errors as codes
from fila.wire import message_codec
from fila.wire import opcodes as op
from fila.wire.fields import string_field

# Whole frames refused with these have changed nothing, so their items may be tried apart.
_SEPARABLE: Final = frozenset((codes.FORBIDDEN, codes.INVALID_FRAME))

# Of what a nack says: a handler's exception may be of any length.
_REASON_BYTES_MAX: Final = 4096

# (queue, queue_field, message body)
Outgoing = tuple[str, bytes, bytes]


class InFlight:
    """A frame of items, sent and not yet answered."""

    __slots__ = ("collector", "items")

    def __init__(self, collector: Collector, items: list[Item]) -> None:
        self.collector = collector
        self.items = items


class Sender:
    def __init__(
        self,
        options: Options,
        send: Callable[[int, bytes, InFlight], None],
        streams: Collection[Stream],
    ) -> None:
        self._send = send  # (opcode, body, what to hand back with the answer)
        self._streams = streams  # may hold a second copy of what is settled
        self._in_flight_bytes_max = options.in_flight_bytes_max
        self._in_flight_bytes = 0
        self._without_room: OrderedDict[Ticket, list[Item]] = OrderedDict()
        self._enqueues = _collector(op.ENQUEUE, options.batch, options)
        # Lingering would only keep leases longer than needed.
        ack_mode: BatchMode = "off" if options.batch == "off" else "auto"
        self._acks = _collector(op.ACK, ack_mode, options)
        self._nacks = _collector(op.NACK, ack_mode, options)
        self._collectors = (self._acks, self._nacks, self._enqueues)

    def enqueue(self, messages: list[Outgoing], ticket: Ticket, now: float) -> None:
        """Without room for them the ticket is not `admitted` until there is."""
        first = ticket.expect(len(messages))
        items: list[Item] = [
            ((field, body), len(field) + len(body), ticket, index, queue, "")
            for index, (queue, field, body) in enumerate(messages, first)
        ]
        ticket.bytes += _bytes_of(items)
        if self._without_room or not self._has_room(items):
            ticket.admitted = False
            self._without_room.setdefault(ticket, []).extend(items)
        else:
            self._in_flight_bytes += _bytes_of(items)
            self._enqueues.add(items, now)

    def ack(self, queue: str, field: bytes, ids: list[str], ticket: Ticket, now: float) -> None:
        parts = [(field, string_field(message_id, "message id")) for message_id in ids]
        self._acks.add(_settling(queue, ids, parts, ticket), now)

    def nack(
        self, queue: str, field: bytes, ids: list[str], error: str, ticket: Ticket, now: float
    ) -> None:
        reason = string_field(_shortened(error), "error")
        parts = [(field, string_field(message_id, "message id"), reason) for message_id in ids]
        self._nacks.add(_settling(queue, ids, parts, ticket), now)

    def forget(self, ticket: Ticket, now: float) -> None:
        """What an abandoned call has not sent yet never will be."""
        if ticket.bytes:
            self._without_room.pop(ticket, None)
            freed = self._enqueues.forget(ticket.outstanding, ticket.bytes)
            self._in_flight_bytes -= freed
            self._let_in(now)
        else:
            self._acks.forget(ticket.outstanding, 0)
            self._nacks.forget(ticket.outstanding, 0)

    def pump(self, now: float) -> None:
        """Make frames of what has been collected, as far as it is time for them."""
        for collector in self._collectors:
            has_gone = collector.has_gone
            while (items := collector.take_due(now)) is not None:
                if has_gone:
                    items = self._wanted(collector, items)
                if items:
                    self._send_items(collector, items)
                if has_gone and collector is self._enqueues:
                    self._let_in(now)  # what was left out has made room

    def next_deadline(self) -> float | None:
        return self._enqueues.next_deadline()

    def answered(self, batch: InFlight, body: bytes, now: float) -> None:
        """Settle a frame's items. Raises when there are more or fewer answers than items."""
        items = batch.items
        if batch.collector is self._enqueues:
            results = message_codec.decode_enqueue_results(body)
            _check_count(len(results), len(items))
            for item, (code, text) in zip(items, results, strict=True):
                if code == codes.OK:
                    item[2].settle(item[3], text.decode())
                else:
                    item[2].settle(item[3], errors.refused_enqueue(code, item[4]))
        else:
            answers = message_codec.decode_codes(body)
            _check_count(len(answers), len(items))
            self._drop_copies(items, answers)
            for item, code in zip(items, answers, strict=True):
                if code == codes.OK:
                    item[2].settle(item[3], None)
                else:
                    item[2].settle(item[3], errors.refused_settlement(code, item[4], item[5]))
        self._landed(batch, now)

    def _drop_copies(self, items: list[Item], answers: Sequence[int]) -> None:
        """Before the callers hear that it is settled: then their reader does not meet it again."""
        streams = [stream for stream in self._streams if stream.again or stream.heartbeat]
        if not streams:
            return
        for item, code in zip(items, answers, strict=True):
            if code == codes.OK:
                for stream in streams:
                    if stream.queue == item[4]:
                        stream.settled(item[5].encode())

    @property
    def busy(self) -> bool:
        """Whether anything waits to be sent or answered."""
        return bool(self._without_room) or any(one.busy for one in self._collectors)

    def hurry(self) -> None:
        """Let nothing linger any more."""
        self._enqueues.hurry()

    def again(self, batch: InFlight) -> None:
        """The frame was for another broker: its items wait for the next connection."""
        batch.collector.frames_in_flight -= 1
        batch.collector.put_back(self._wanted(batch.collector, batch.items))

    def refused(self, batch: InFlight, error: FilaError, now: float) -> None:
        """The broker refused the frame as a whole."""
        if len(batch.items) > 1 and error.code in _SEPARABLE:
            # One caller's mistake must not cost the others who shared the frame.
            batch.collector.frames_in_flight -= 1
            for items in split(batch.items):
                self._send_items(batch.collector, items)
        else:
            self.lost(batch, error, now)

    def lost(self, batch: InFlight, error: FilaError, now: float) -> None:
        """No answer will come for this frame."""
        for item in batch.items:
            item[2].settle(item[3], error)
        self._landed(batch, now)

    def end(self, error: FilaError) -> None:
        """No frame will ever be sent again."""
        waiting = [item for collector in self._collectors for item in collector.take_all()]
        for ticket, items in self._without_room.items():
            ticket.admitted = True
            waiting += items
        self._without_room.clear()
        self._in_flight_bytes = 0
        for item in waiting:
            item[2].settle(item[3], error)

    def _send_items(self, collector: Collector, items: list[Item]) -> None:
        collector.frames_in_flight += 1
        parts = [len(items).to_bytes(4, "big")]
        for item in items:
            parts += item[0]
        self._send(collector.opcode, b"".join(parts), InFlight(collector, items))

    def _landed(self, batch: InFlight, now: float) -> None:
        batch.collector.frames_in_flight -= 1
        if batch.collector is self._enqueues:
            self._in_flight_bytes -= _bytes_of(batch.items)
            self._let_in(now)

    def _let_in(self, now: float) -> None:
        """Those who have waited longest, as long as there is room."""
        while self._without_room and self._has_room(next(iter(self._without_room.values()))):
            ticket, items = self._without_room.popitem(last=False)
            self._in_flight_bytes += _bytes_of(items)
            self._enqueues.add(items, now)
            ticket.admit()

    def _wanted(self, collector: Collector, items: list[Item]) -> list[Item]:
        """Without what belongs to callers who have gone."""
        wanted = [item for item in items if not item[2].abandoned]
        if collector is self._enqueues:
            self._in_flight_bytes -= _bytes_of(items) - _bytes_of(wanted)
        return wanted

    def _has_room(self, items: list[Item]) -> bool:
        if not self._in_flight_bytes:
            return True  # a call larger than the bound goes alone
        return self._in_flight_bytes + _bytes_of(items) <= self._in_flight_bytes_max


def _collector(opcode: int, mode: BatchMode, options: Options) -> Collector:
    return Collector(
        opcode,
        mode,
        options.batch_messages_max,
        options.batch_bytes_max,
        options.linger_ms / 1000,
    )


def _settling(
    queue: str,
    ids: list[str],
    parts: list[tuple[bytes, bytes]] | list[tuple[bytes, bytes, bytes]],
    ticket: Ticket,
) -> list[Item]:
    first = ticket.expect(len(ids))
    return [
        (pieces, sum(map(len, pieces)), ticket, first + index, queue, ids[index])
        for index, pieces in enumerate(parts)
    ]


def _bytes_of(items: list[Item]) -> int:
    return sum([item[1] for item in items])


def _check_count(answers: int, items: int) -> None:
    if answers != items:
        raise ProtocolError(f"the broker sent {answers} results for {items} items")


def _shortened(reason: str) -> bytes:
    """A reason of a length that is pleasant to read and that can be sent, in whole characters."""
    raw = reason.encode(errors="replace")
    if len(raw) <= _REASON_BYTES_MAX:
        return raw
    return raw[:_REASON_BYTES_MAX].decode(errors="ignore").encode()
