"""What both shells ask of a connection: handing work to the exchange.

Owns the verbs that never wait, written once for both links. A link of its own kind (`aio_link`,
`sync_link`) adds the five that depend on how it moves bytes and sleeps:

    now()                              its clock
    push(now)                          send what is due; called with the lock held
    sleep(watched, ready, until)       wait until `ready()`; False when `until` came first
    orphan(stream)                     cancel from inside a garbage collection
    close()                            send Disconnect and end

Every verb here takes the lock; nothing blocks while it holds it. `ready` is a predicate over one
`Watched`, cheap and without side effects: `sleep` may ask it with the lock or without.
"""

from contextlib import AbstractContextManager
from typing import Any

from fila.client.calls import Call
from fila.client.exchange import Exchange
from fila.client.outgoing import queue_field
from fila.client.request import Request
from fila.client.sender import Outgoing
from fila.client.stream import Stream
from fila.client.ticket import Ticket


class Link:
    exchange: Exchange
    lock: AbstractContextManager[Any]

    def now(self) -> float:
        raise NotImplementedError

    def push(self, now: float) -> None:
        raise NotImplementedError

    # Calls. With `counted` no caller waits for the ticket; `flush` waits for all of those.

    def enqueue(self, message: Outgoing, counted: bool = False) -> Ticket:
        ticket = Ticket()
        with self.lock:
            now = self.now()
            self.exchange.enqueue([message], ticket, now)
            self._send(ticket, counted, now)
        return ticket

    def enqueue_some(self, messages: list[Outgoing], ticket: Ticket) -> None:
        """Part of a longer list: `seal` tells that it was the last."""
        with self.lock:
            now = self.now()
            self.exchange.enqueue(messages, ticket, now)
            self.push(now)

    def ack(self, queue: str, ids: list[str], counted: bool = False) -> Ticket:
        ticket = Ticket()
        field = queue_field(queue)
        with self.lock:
            now = self.now()
            self.exchange.ack(queue, field, ids, ticket, now)
            self._send(ticket, counted, now)
        return ticket

    def nack(self, queue: str, ids: list[str], error: str) -> Ticket:
        ticket = Ticket()
        field = queue_field(queue)
        with self.lock:
            now = self.now()
            self.exchange.nack(queue, field, ids, error, ticket, now)
            self._send(ticket, False, now)
        return ticket

    def ask(self, call: Call[Any]) -> Ticket:
        ticket = Ticket()
        request = Request(call.body, call.reply_type, call.repeatable, ticket)
        with self.lock:
            self.exchange.request(request)
            self._send(ticket, False, self.now())
        return ticket

    def seal(self, ticket: Ticket) -> None:
        with self.lock:
            ticket.seal()

    def abandon(self, ticket: Ticket) -> None:
        """The caller no longer waits for this call."""
        with self.lock:
            now = self.now()
            self.exchange.abandon(ticket, now)
            self.push(now)  # whoever waited for room may have it now

    def drain(self) -> Ticket:
        """Settled when everything under way is answered."""
        with self.lock:
            ticket = self.exchange.drain()
            self.push(self.now())
        return ticket

    def counted_ticket(self) -> Ticket:
        with self.lock:
            return self.exchange.tally.open()

    # Consumers.

    def subscribe(self, stream: Stream) -> None:
        with self.lock:
            self.exchange.subscribe(stream)
            self.push(self.now())

    def cancel(self, stream: Stream) -> None:
        with self.lock:
            self.exchange.cancel(stream)
            self.push(self.now())

    def _send(self, ticket: Ticket, counted: bool, now: float) -> None:
        if counted:
            self.exchange.tally.count(ticket)
        ticket.seal()
        self.push(now)
