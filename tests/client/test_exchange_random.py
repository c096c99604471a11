"""The exchange under random calls, answers, refusals, losses and time-outs, without sockets.

An independent peer keeps the truth: which payload got which id, which ids were acked. Whatever
happens, a call's answer is about its own messages, nothing is sent twice except after a refusal
that stored nothing, and when all is answered the exchange holds nothing back.
"""

import random
from uuid import UUID

import pytest

from fila.client.address import Address
from fila.client.errors import BY_CODE, FilaError, ForbiddenError
from fila.client.exchange import Exchange
from fila.client.options import Options
from fila.client.outgoing import outgoing, queue_field
from fila.client.request import Request
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import layouts
from fila.wire import opcodes as op
from fila.wire.frames import FrameDecoder, encode_frames

FORBIDDEN_QUEUE = "secret"


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        mode = self.random.choice(["auto", "linger", "off"])
        options = Options(
            {
                "batch": mode,  # type: ignore[typeddict-item]
                "batch_messages_max": self.random.choice([1, 3, 50]),
                "in_flight_bytes_max": self.random.choice([200, 2000, 10**6]),
                "keepalive_interval": 5.0,
                "keepalive_timeout": 5.0,
            }
        )
        self.exchange = Exchange(Address("b", 1, False), options, self.random.random)
        self.now = 0.0
        self.connected = False
        self.decoder = FrameDecoder()
        self.unanswered: list[tuple[int, int, bytes]] = []
        self.payload_of: dict[str, bytes] = {}
        self.stored: set[bytes] = set()
        self.calls: list[tuple[Ticket, list[tuple[str, bytes]]]] = []
        self.others: list[Ticket] = []
        self.streams: dict[int, str] = {}
        self.consumers: list[Stream] = []
        self.last_payload = 0

    def step(self) -> None:
        action = self.random.choices(
            [
                self.enqueue,
                self.ack,
                self.ask,
                self.subscribe,
                self.abandon,
                self.answer,
                self.lose,
                self.wait,
            ],
            [30, 10, 5, 2, 2, 40, 1, 10],
        )[0]
        if not self.connected and self.random.random() < 0.3:
            self.connect()
        action()
        self.exchange.pump(self.now)
        self.collect()

    def enqueue(self) -> None:
        ticket = Ticket()
        items = []
        for _ in range(self.random.choice([1, 1, 1, 4, 20])):
            self.last_payload += 1
            queue = self.random.choice(["a", "b", "c", FORBIDDEN_QUEUE])
            items.append((queue, b"%d" % self.last_payload))
        self.exchange.enqueue([outgoing(q, None, p) for q, p in items], ticket, self.now)
        ticket.seal()
        self.calls.append((ticket, items))

    def ack(self) -> None:
        ticket = Ticket()
        ids = [str(UUID(int=self.random.randrange(1, 100))) for _ in range(3)]
        self.exchange.ack("a", queue_field("a"), ids, ticket, self.now)
        ticket.seal()
        self.others.append(ticket)

    def ask(self) -> None:
        ticket = Ticket()
        repeatable = self.random.random() < 0.5
        self.exchange.request(Request(b.GetConfig("k"), b.GetConfigResult, repeatable, ticket))
        ticket.seal()
        self.others.append(ticket)

    def subscribe(self) -> None:
        if len(self.consumers) < 5:
            stream = Stream("a", 4, Ticket())
            self.exchange.subscribe(stream)
            self.consumers.append(stream)
        else:
            self.exchange.cancel(self.consumers.pop(self.random.randrange(5)))

    def abandon(self) -> None:
        if self.calls:
            ticket, _ = self.random.choice(self.calls)
            if not ticket.done:
                self.exchange.abandon(ticket, self.now)

    def wait(self) -> None:
        self.now += self.random.choice([0.001, 0.01, 1.0])
        self.exchange.tick(self.now, 0)
        if self.exchange.drop_reason is not None:
            self.lose()

    def connect(self) -> None:
        self.connected = True
        self.decoder = FrameDecoder()
        self.exchange.connection_made(self.now)
        self.hear(0, b.HandshakeOk(1, 0, 1 << 24))

    def lose(self) -> None:
        if self.connected:
            self.connected = False
            self.unanswered.clear()
            self.streams.clear()
            self.exchange.connection_lost("lost", self.now)

    def hear(self, request_id: int, body: tuple[object, ...]) -> None:
        raw = encode_frames(layouts.opcode_of(body), request_id, layouts.encode(body))
        cut = self.random.randrange(len(raw))
        self.exchange.receive(raw[:cut], self.now)
        self.exchange.receive(raw[cut:], self.now)
        assert self.exchange.drop_reason is None

    def collect(self) -> None:
        frames = self.decoder.feed(self.exchange.take_output())
        if self.connected:
            self.unanswered += [f for f in frames if f[0] not in (op.HANDSHAKE, op.CANCEL_CONSUME)]

    def answer(self) -> None:
        """Answer one of the waiting frames, in any order, or deliver something."""
        if self.streams and self.random.random() < 0.3:
            stream_id = self.random.choice(list(self.streams))
            item = b.DeliveryItem("id", "a", {}, b"", "default", 1, (), 0, 1, 2)
            self.hear(stream_id, b.Delivery((item,) * self.random.randrange(4)))
            return
        if not self.connected or not self.unanswered:
            return
        opcode, request_id, body = self.unanswered.pop(self.random.randrange(len(self.unanswered)))
        if opcode == op.ENQUEUE:
            self.answer_enqueue(request_id, body)
        elif opcode == op.ACK:
            count = len(layouts.decode(b.Ack, body).messages)
            items = [b.CodeItem(self.random.choice([0, codes.MESSAGE_NOT_FOUND]))] * count
            self.hear(request_id, b.AckResult(tuple(items)))
        elif opcode == op.CONSUME:
            self.streams[request_id] = "a"
            self.hear(request_id, b.ConsumeOk("c"))
        elif opcode == op.PING:
            self.hear(request_id, b.Pong())
        else:
            self.hear(request_id, b.GetConfigResult(0, "v"))

    def answer_enqueue(self, request_id: int, body: bytes) -> None:
        messages = layouts.decode(b.Enqueue, body).messages
        if any(message.queue == FORBIDDEN_QUEUE for message in messages):
            self.hear(request_id, b.Error(codes.FORBIDDEN, "no produce permission", {}))
            return
        if self.random.random() < 0.05:
            self.hear(request_id, b.Error(codes.CHANNEL_FULL, "full", {}))
            return
        results = []
        for message in messages:
            assert message.payload not in self.stored, "stored twice"
            if self.random.random() < 0.1:
                results.append(b.EnqueueResultItem(codes.QUEUE_NOT_FOUND, ""))
                continue
            self.stored.add(message.payload)
            message_id = str(UUID(int=len(self.payload_of) + 1))
            self.payload_of[message_id] = message.payload
            results.append(b.EnqueueResultItem(0, message_id))
        self.hear(request_id, b.EnqueueResult(tuple(results)))

    def settle(self) -> None:
        """Answer everything that is still open."""
        for _ in range(10_000):
            if not self.connected:
                self.connect()
            self.now += 0.01
            self.exchange.tick(self.now, 0)
            self.exchange.pump(self.now)
            self.collect()
            if not self.unanswered:
                return
            while self.unanswered:
                self.answer()
                self.exchange.pump(self.now)
                self.collect()
        raise AssertionError("the exchange never came to rest")

    def audit(self) -> None:
        known = tuple(BY_CODE.values())
        for ticket, items in self.calls:
            if ticket.abandoned:
                continue
            assert ticket.done
            for result, (queue, payload) in zip(ticket.results, items, strict=True):
                if isinstance(result, str):
                    assert self.payload_of[result] == payload
                    assert queue != FORBIDDEN_QUEUE
                else:
                    assert isinstance(result, FilaError)
                    if isinstance(result, ForbiddenError):
                        assert queue == FORBIDDEN_QUEUE, "an innocent call was refused"
        for ticket in self.others:
            assert ticket.done
            for result in ticket.results:
                assert result is None or isinstance(result, (b.GetConfigResult, FilaError, *known))
        for stream in self.consumers:
            assert len(stream.buffer) <= stream.prefetch
        sender = self.exchange._sender
        assert sender._in_flight_bytes == 0
        assert not sender._without_room
        assert all(collector.frames_in_flight == 0 for collector in sender._collectors)
        assert set(self.exchange._pending) == {stream.request_id for stream in self.consumers}


@pytest.mark.parametrize("seed", range(150))
def test_every_call_gets_its_own_answer_whatever_happens(seed: int) -> None:
    world = World(seed)
    world.connect()
    for _ in range(300):
        world.step()
    world.settle()
    world.audit()
    world.exchange.close()
    assert all(stream.closed for stream in world.consumers)
