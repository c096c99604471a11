"""The exchange without sockets: bytes in, bytes out, time as an argument."""

from time import process_time
from typing import Any
from uuid import UUID

import pytest

from fila.client.address import Address
from fila.client.deadline import Deadline
from fila.client.errors import (
    ClientClosedError,
    ConnectFailedError,
    ConnectionLostError,
    FilaError,
    ForbiddenError,
    InternalError,
    MessageNotFoundError,
    OverloadedError,
    ProtocolError,
    QueueNotFoundError,
    UnauthorizedError,
)
from fila.client.exchange import Exchange
from fila.client.options import ClientOptions, Options
from fila.client.outgoing import outgoing, queue_field
from fila.client.request import Request
from fila.client.stream import Stream
from fila.client.ticket import Ticket
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import layouts
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, FrameDecoder, encode_frames, frame_header
from tests.client.peer import ids_of, items_in


class Bench:
    """An exchange on the table: what it sends is decoded, what it should hear is encoded."""

    def __init__(self, connect: bool = True, **options: Any) -> None:
        given: ClientOptions = options  # type: ignore[assignment]
        self.exchange = Exchange(Address("broker", 5555, False), Options(given), lambda: 0.0)
        self.now = 100.0
        self._decoder = FrameDecoder()
        if connect:
            self.connect()

    def connect(self) -> None:
        self.exchange.connection_made(self.now)
        self._decoder = FrameDecoder()
        [(opcode, _, _)] = self.sent()
        assert opcode == op.HANDSHAKE
        self.hear(0, b.HandshakeOk(1, 0, 1 << 24))

    def hear(self, request_id: int, body: tuple[Any, ...]) -> None:
        raw = encode_frames(layouts.opcode_of(body), request_id, layouts.encode(body))
        self.exchange.receive(raw, self.now)

    def sent(self) -> list[tuple[int, int, bytes]]:
        return self._decoder.feed(self.exchange.take_output())

    def enqueue(self, *payloads: bytes, queue: str = "q") -> Ticket:
        ticket = Ticket()
        self.exchange.enqueue([outgoing(queue, None, p) for p in payloads], ticket, self.now)
        ticket.seal()
        self.exchange.pump(self.now)
        return ticket

    def ack(self, *ids: str) -> Ticket:
        ticket = Ticket()
        self.exchange.ack("q", queue_field("q"), list(ids), ticket, self.now)
        ticket.seal()
        self.exchange.pump(self.now)
        return ticket

    def ask(self, body: tuple[Any, ...], reply_type: Any, repeatable: bool = False) -> Ticket:
        ticket = Ticket()
        self.exchange.request(Request(body, reply_type, repeatable, ticket))
        ticket.seal()
        return ticket

    def consume(self, prefetch: int = 10) -> Stream:
        stream = Stream("q", prefetch, Ticket())
        self.exchange.subscribe(stream)
        return stream


def delivered(*numbers: int, attempts: int = 0) -> b.Delivery:
    return b.Delivery(
        tuple(
            b.DeliveryItem(str(UUID(int=n)), "q", {}, b"%d" % n, "default", 1, (), attempts, 1, 2)
            for n in numbers
        )
    )


def enqueued(frames: list[tuple[int, int, bytes]]) -> list[int]:
    assert all(opcode == op.ENQUEUE for opcode, _, _ in frames)
    return [items_in(body) for _, _, body in frames]


# The handshake.


def test_the_handshake_carries_version_and_key() -> None:
    bench = Bench(connect=False, api_key="secret")
    bench.exchange.connection_made(0)
    [(opcode, request_id, body)] = bench.sent()
    assert (opcode, request_id) == (op.HANDSHAKE, 0)
    assert layouts.decode(b.Handshake, body) == b.Handshake(1, "secret")
    assert not bench.exchange.opened.done
    bench.hear(0, b.HandshakeOk(1, 0, 1 << 24))
    assert bench.exchange.opened.one() is None


def test_a_refused_handshake_ends_the_client_with_the_brokers_words() -> None:
    bench = Bench(connect=False)
    bench.exchange.connection_made(0)
    bench.hear(0, b.Error(codes.UNAUTHORIZED, "API key is missing", {}))
    assert isinstance(bench.exchange.drop_reason, UnauthorizedError)
    bench.exchange.connection_lost("", 0)
    with pytest.raises(UnauthorizedError, match="API key is missing"):
        bench.exchange.opened.one()
    assert bench.exchange.connect_at is None


def test_a_first_connection_that_fails_is_not_tried_again() -> None:
    bench = Bench(connect=False)
    bench.exchange.connection_lost("connection refused", 0)
    with pytest.raises(ConnectFailedError, match="cannot connect to broker:5555: connection ref"):
        bench.exchange.opened.one()
    assert bench.exchange.connect_at is None


def test_silence_after_connecting_is_given_up_after_the_connect_timeout() -> None:
    bench = Bench(connect=False, connect_timeout=3.0)
    bench.exchange.connection_made(10)
    assert bench.exchange.next_deadline() == 13
    bench.exchange.tick(13, 0)
    bench.exchange.connection_lost("", 13)
    with pytest.raises(ConnectFailedError, match="did not answer the handshake within 3 s"):
        bench.exchange.opened.one()


def test_a_peer_that_is_no_broker_is_a_protocol_error() -> None:
    bench = Bench(connect=False)
    bench.exchange.connection_made(0)
    bench.exchange.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n", 0)
    assert isinstance(bench.exchange.drop_reason, ProtocolError)


def test_calls_made_before_the_handshake_wait_for_it() -> None:
    bench = Bench(connect=False)
    ticket = bench.enqueue(b"early")
    asked = bench.ask(b.ListQueues(), b.ListQueuesResult)
    bench.connect()
    assert sorted(opcode for opcode, _, _ in bench.sent()) == [op.ENQUEUE, op.LIST_QUEUES]
    assert not ticket.done
    assert not asked.done


# Batching.


def test_a_lone_enqueue_is_sent_at_once() -> None:
    bench = Bench()
    ticket = bench.enqueue(b"one")
    [(_, request_id, _)] = frames = bench.sent()
    assert enqueued(frames) == [1]
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert ticket.one() == str(UUID(int=1))


def test_what_arrives_while_one_is_under_way_shares_the_next_frame() -> None:
    bench = Bench()
    first = bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    others = [bench.enqueue(b"%d" % n) for n in range(1, 6)]
    assert bench.sent() == []
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert first.done
    [(_, request_id, _)] = frames = bench.sent()
    assert enqueued(frames) == [5]
    bench.hear(request_id, b.EnqueueResult(ids_of(5, first=10)))
    assert [ticket.one() for ticket in others] == [str(UUID(int=n)) for n in range(10, 15)]


def test_a_full_batch_does_not_wait_for_an_answer() -> None:
    bench = Bench(batch_messages_max=3)
    for n in range(8):
        bench.enqueue(b"%d" % n)
    assert enqueued(bench.sent()) == [1, 3, 3]
    bench = Bench(batch_bytes_max=1000)
    for _ in range(8):
        bench.enqueue(b"x" * 400)
    assert enqueued(bench.sent()) == [1, 2, 2, 2]


def test_a_message_larger_than_a_batch_goes_alone() -> None:
    bench = Bench(batch_bytes_max=1000)
    bench.enqueue(b"x" * 5000, b"y", b"z" * 5000)
    assert enqueued(bench.sent()) == [1, 1, 1]


def test_off_sends_every_call_in_its_own_frame() -> None:
    bench = Bench(batch="off")
    for n in range(3):
        bench.enqueue(b"%d" % n)
    bench.enqueue(b"a", b"b")
    assert enqueued(bench.sent()) == [1, 1, 1, 2]


def test_linger_waits_its_time_and_no_longer() -> None:
    bench = Bench(batch="linger", linger_ms=5)
    bench.enqueue(b"1")
    bench.now += 0.003
    bench.enqueue(b"2")
    assert bench.sent() == []
    assert bench.exchange.next_deadline() == pytest.approx(100.005)
    bench.exchange.tick(100.0051, 0)
    assert enqueued(bench.sent()) == [2]


def test_one_refused_item_fails_only_its_own_call() -> None:
    bench = Bench()
    bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    good, bad = bench.enqueue(b"a"), bench.enqueue(b"b", queue="nowhere")
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    [(_, request_id, _)] = bench.sent()
    refused = b.EnqueueResultItem(codes.QUEUE_NOT_FOUND, "")
    bench.hear(request_id, b.EnqueueResult((*ids_of(1), refused)))
    assert good.one() == str(UUID(int=1))
    with pytest.raises(QueueNotFoundError, match='queue "nowhere" does not exist'):
        bad.one()


def test_a_forbidden_frame_is_tried_again_queue_by_queue() -> None:
    bench = Bench()
    bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    good, bad = bench.enqueue(b"a"), bench.enqueue(b"b", queue="secret")
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    [(_, request_id, _)] = bench.sent()
    text = 'no produce permission on queue "secret"'
    bench.hear(request_id, b.Error(codes.FORBIDDEN, text, {}))
    [(_, first, _), (_, second, _)] = frames = bench.sent()
    assert enqueued(frames) == [1, 1]
    bench.hear(first, b.EnqueueResult(ids_of(1)))
    bench.hear(second, b.Error(codes.FORBIDDEN, text, {}))
    assert good.one() == str(UUID(int=1))
    with pytest.raises(ForbiddenError, match='no produce permission on queue "secret"'):
        bad.one()


def test_an_overloaded_broker_is_not_asked_again_at_once() -> None:
    bench = Bench()
    ticket = bench.enqueue(b"a", b"b")
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.Error(codes.CHANNEL_FULL, "overloaded", {"retry_after_ms": "250"}))
    assert bench.sent() == []
    assert all(isinstance(r, OverloadedError) and r.retry_after_ms == 250 for r in ticket.results)


def test_acks_made_at_the_same_time_share_a_frame() -> None:
    bench = Bench()
    first = bench.ack("a")
    [(opcode, request_id, _)] = bench.sent()
    assert opcode == op.ACK
    late = [bench.ack("b"), bench.ack("c")]
    assert bench.sent() == []
    bench.hear(request_id, b.AckResult((b.CodeItem(0),)))
    assert first.one() is None
    [(_, request_id, body)] = bench.sent()
    assert [item.id for item in layouts.decode(b.Ack, body).messages] == ["b", "c"]
    bench.hear(request_id, b.AckResult((b.CodeItem(0), b.CodeItem(codes.MESSAGE_NOT_FOUND))))
    assert late[0].one() is None
    with pytest.raises(MessageNotFoundError, match='message "c" is not leased from queue "q"'):
        late[1].one()


def test_a_wrong_number_of_results_drops_the_connection() -> None:
    bench = Bench()
    ticket = bench.enqueue(b"a", b"b")
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert isinstance(bench.exchange.drop_reason, ProtocolError)
    bench.exchange.connection_lost("", bench.now)
    assert all(isinstance(result, ConnectionLostError) for result in ticket.results)


# Room.


def test_enqueues_beyond_the_bound_wait_until_there_is_room() -> None:
    bench = Bench(in_flight_bytes_max=1000, batch="off")
    first = bench.enqueue(b"x" * 600)
    second = bench.enqueue(b"y" * 600)
    third = bench.enqueue(b"z")
    assert (first.admitted, second.admitted, third.admitted) == (True, False, False)
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert second.admitted
    assert third.admitted
    assert sum(enqueued(bench.sent())) == 2


def test_a_message_larger_than_the_bound_goes_alone() -> None:
    bench = Bench(in_flight_bytes_max=1000)
    assert bench.enqueue(b"x" * 5000).admitted
    assert not bench.enqueue(b"y").admitted


def test_an_abandoned_call_that_was_not_sent_never_is_and_frees_its_room() -> None:
    bench = Bench(in_flight_bytes_max=1000)
    sent = bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    waiting = bench.enqueue(b"x" * 900)
    parked = bench.enqueue(b"y" * 900)
    bench.exchange.abandon(parked, bench.now)
    bench.exchange.abandon(waiting, bench.now)
    assert bench.enqueue(b"z" * 900).admitted
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert sent.done
    assert enqueued(bench.sent()) == [1]


def test_who_gives_up_makes_room_for_those_who_wait() -> None:
    bench = Bench(in_flight_bytes_max=1000)
    bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    waiting = bench.enqueue(b"x" * 900)
    parked = bench.enqueue(b"y" * 900)
    bench.exchange.abandon(waiting, bench.now)
    assert parked.admitted
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert enqueued(bench.sent()) == [1]


def test_after_a_long_outage_those_who_wait_are_let_in() -> None:
    # All that had room has given up: nothing of theirs lands any more.
    bench = Bench(in_flight_bytes_max=1000)
    bench.exchange.connection_lost("reset", bench.now)
    waiting = bench.enqueue(b"x" * 900)
    parked = bench.enqueue(b"y" * 900)
    bench.exchange.abandon(waiting, bench.now)
    bench.connect()
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert parked.done


def test_what_is_left_of_those_who_gave_up_is_not_sent_and_its_room_is_free() -> None:
    bench = Bench(in_flight_bytes_max=5000)
    bench.enqueue(b"0")
    [(_, request_id, _)] = bench.sent()
    stays = [bench.enqueue(b"x" * 40) for _ in range(60)]
    gone = bench.enqueue(b"y" * 40)
    parked = bench.enqueue(b"z" * 4000)
    bench.exchange.abandon(gone, bench.now)  # one of many: not looked for
    assert not parked.admitted
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    [(_, request_id, body)] = bench.sent()
    assert items_in(body) == 60
    bench.hear(request_id, b.EnqueueResult(ids_of(60)))
    assert all(ticket.done for ticket in stays)
    assert parked.admitted
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert bench.exchange._sender._in_flight_bytes == 0


def test_thousands_who_give_up_together_take_no_time() -> None:
    # Callers can reach their deadlines together, with a broker away and everything waiting.
    bench = Bench(in_flight_bytes_max=5_000_000)
    bench.exchange.connection_lost("reset", bench.now)
    tickets = [bench.enqueue(b"x" * 400) for _ in range(20_000)]
    for _ in range(20_000):
        ticket = Ticket()
        bench.exchange.request(Request(b.GetConfig("k"), b.GetConfigResult, True, ticket))
        tickets.append(ticket)
    began = process_time()
    for ticket in tickets:
        bench.exchange.abandon(ticket, bench.now)
    assert process_time() - began < 10  # it was the square of them: minutes
    assert not bench.exchange._sender.busy
    bench.connect()
    assert bench.sent() == []


def test_leases_are_extended_while_the_client_drains() -> None:
    bench = Bench()
    bench.enqueue(b"under way")
    bench.exchange.drain()
    bench.sent()
    extended, refused = Ticket(), Ticket()
    bench.exchange.request(Request(b.Extend("q", ("id",)), b.ExtendResult, True, extended))
    bench.exchange.request(Request(b.GetConfig("k"), b.GetConfigResult, True, refused))
    assert [opcode for opcode, _, _ in bench.sent()] == [op.EXTEND]
    with pytest.raises(ClientClosedError):
        refused.one()


# Lost connections.


def test_what_was_sent_fails_and_what_was_not_goes_out_after_the_reconnect() -> None:
    bench = Bench()
    sent = bench.enqueue(b"sent")
    waiting = bench.enqueue(b"waiting")
    bench.sent()
    bench.exchange.connection_lost("connection reset", bench.now)
    with pytest.raises(ConnectionLostError, match="lost before the broker answered: connection r"):
        sent.one()
    assert not waiting.done
    bench.connect()
    [(_, request_id, body)] = bench.sent()
    assert items_in(body) == 1
    bench.hear(request_id, b.EnqueueResult(ids_of(1)))
    assert waiting.one() == str(UUID(int=1))


def test_reads_are_asked_again_and_changes_are_not() -> None:
    bench = Bench()
    read = bench.ask(b.GetStats("q"), b.GetStatsResult, repeatable=True)
    change = bench.ask(b.DeleteQueue("q"), b.DeleteQueueResult)
    bench.sent()
    bench.exchange.connection_lost("reset", bench.now)
    assert isinstance(change.results[0], ConnectionLostError)
    bench.connect()
    [(opcode, request_id, _)] = bench.sent()
    assert opcode == op.GET_STATS
    bench.hear(request_id, b.GetStatsResult(0, 5))
    assert read.one().depth == 5


def test_pauses_between_attempts_grow_and_reset_after_a_stable_connection() -> None:
    bench = Bench(reconnect_pause_min_ms=100, reconnect_pause_max_ms=1000)
    pauses = []
    for _ in range(6):
        bench.exchange.connection_lost("refused", bench.now)
        assert bench.exchange.connect_at is not None
        pauses.append(round(bench.exchange.connect_at - bench.now, 3))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    bench.connect()
    bench.exchange.connection_lost("gone at once", bench.now)
    assert bench.exchange.connect_at == bench.now + 1.0
    bench.connect()
    bench.now += 5
    bench.exchange.connection_lost("gone later", bench.now)
    assert bench.exchange.connect_at == bench.now + 0.1


def test_without_reconnect_a_lost_connection_is_the_end() -> None:
    bench = Bench(reconnect=False)
    stream = bench.consume()
    bench.exchange.connection_lost("reset", bench.now)
    assert bench.exchange.connect_at is None
    assert isinstance(stream.error, ConnectionLostError)
    with pytest.raises(ConnectionLostError):
        bench.enqueue(b"late").one()


def test_a_key_revoked_while_away_ends_the_client() -> None:
    bench = Bench()
    bench.exchange.connection_lost("reset", bench.now)
    waiting = bench.enqueue(b"waiting")
    bench.exchange.connection_made(bench.now)
    bench.hear(0, b.Error(codes.UNAUTHORIZED, "API key was revoked", {}))
    bench.exchange.connection_lost("", bench.now)
    with pytest.raises(UnauthorizedError, match="revoked"):
        waiting.one()
    assert bench.exchange.connect_at is None


def test_an_error_that_belongs_to_no_request_explains_the_loss() -> None:
    bench = Bench()
    ticket = bench.enqueue(b"a")
    bench.hear(0, b.Error(codes.INVALID_FRAME, "frame of 99 bytes exceeds the limit of 50", {}))
    bench.exchange.connection_lost("the broker closed the connection", bench.now)
    with pytest.raises(ConnectionLostError, match="exceeds the limit of 50"):
        ticket.one()


def test_a_timeout_says_whether_there_was_a_connection() -> None:
    bench = Bench()
    assert str(bench.exchange.too_late("enqueue", Deadline(2, 0))) == (
        "enqueue: no answer from broker:5555 within 2 s"
    )
    bench.exchange.connection_lost("connection refused", bench.now)
    assert str(bench.exchange.too_late("enqueue", Deadline(2, 0))).endswith(
        "; not connected (connection refused)"
    )


# Streams.


def test_a_stream_opens_receives_and_is_cancelled() -> None:
    bench = Bench()
    stream = bench.consume(prefetch=7)
    [(opcode, request_id, body)] = bench.sent()
    assert opcode == op.CONSUME
    assert layouts.decode(b.Consume, body) == b.Consume("q", 7)
    bench.hear(request_id, b.ConsumeOk("c-1"))
    assert stream.opened.one() == "c-1"
    bench.hear(request_id, delivered(1, 2))
    assert len(stream.buffer) == 2
    bench.exchange.cancel(stream)
    cancel, (opcode, release_id, body) = bench.sent()
    assert cancel == (op.CANCEL_CONSUME, request_id, b"")
    assert opcode == op.RELEASE
    unread = [item.id for item in layouts.decode(b.Release, body).messages]
    assert unread == [item.id for item in delivered(1, 2).messages]
    assert not stream.buffer
    assert bench.exchange.drop_reason is None
    # One that was on its way goes back as well, and after the answer nothing is remembered.
    bench.hear(request_id, delivered(3))
    [(opcode, _, body)] = bench.sent()
    assert opcode == op.RELEASE
    assert [item.id for item in layouts.decode(b.Release, body).messages] == [
        item.id for item in delivered(3).messages
    ]
    bench.hear(release_id, b.ReleaseResult((b.ReleaseCode(0), b.ReleaseCode(0))))
    bench.hear(request_id, delivered(4))
    assert bench.sent() == []


def test_an_unknown_queue_fails_the_stream_with_the_brokers_words() -> None:
    bench = Bench()
    stream = bench.consume()
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.Error(codes.QUEUE_NOT_FOUND, 'queue "q" does not exist', {}))
    with pytest.raises(QueueNotFoundError, match='queue "q" does not exist'):
        stream.opened.one()
    assert isinstance(stream.error, QueueNotFoundError)


def test_a_reconnect_subscribes_again_and_forgets_what_was_not_read() -> None:
    bench = Bench()
    stream = bench.consume()
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.ConsumeOk("c-1"))
    bench.hear(request_id, delivered(1, 2))
    bench.exchange.connection_lost("reset", bench.now)
    assert not stream.buffer
    bench.connect()
    [(opcode, request_id, _)] = bench.sent()
    assert opcode == op.CONSUME
    bench.hear(request_id, b.ConsumeOk("c-2"))
    bench.hear(request_id, delivered(1))
    assert len(stream.buffer) == 1


def test_a_stream_refused_for_the_moment_is_tried_again_later() -> None:
    bench = Bench()
    stream = bench.consume()
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.ConsumeOk("c-1"))
    bench.hear(request_id, b.Error(codes.NODE_NOT_READY, "starting", {}))
    assert stream.error is None
    deadline = bench.exchange.next_deadline()
    assert deadline is not None
    assert bench.sent() == []
    bench.exchange.tick(deadline, 0)
    assert [opcode for opcode, _, _ in bench.sent()] == [op.CONSUME]


def test_messages_nobody_reads_do_not_pile_up_beyond_the_prefetch() -> None:
    bench = Bench()
    stream = bench.consume(prefetch=3)
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.ConsumeOk("c-1"))
    bench.hear(request_id, delivered(1, 2, 3))
    bench.hear(request_id, delivered(4, 5))
    assert [item[0][-1:] for item in stream.buffer] == [b"3", b"4", b"5"]


def test_what_is_settled_is_not_read_again_from_a_second_delivery() -> None:
    bench = Bench()
    stream = bench.consume(prefetch=2)
    [(_, consume_id, _)] = bench.sent()
    bench.hear(consume_id, b.ConsumeOk("c-1"))
    bench.hear(consume_id, delivered(1))
    read = stream.buffer.popleft()
    bench.hear(consume_id, delivered(1, 2, attempts=1))  # the leases had run out
    ticket = bench.ack(read[0].decode())
    [(_, ack_id, _)] = bench.sent()
    assert len(stream.buffer) == 2  # until the broker has said that it counts
    bench.hear(ack_id, b.AckResult((b.CodeItem(codes.OK),)))
    assert ticket.done
    assert [item[0] for item in stream.buffer] == [str(UUID(int=2)).encode()]
    # One that did not count leaves the message, which is leased to this stream.
    bench.ack(str(UUID(int=2)))
    [(_, ack_id, _)] = bench.sent()
    bench.hear(ack_id, b.AckResult((b.CodeItem(codes.MESSAGE_NOT_FOUND),)))
    assert len(stream.buffer) == 1


def test_redelivered_messages_that_were_read_are_not_remembered_for_ever() -> None:
    bench = Bench()
    stream = bench.consume(prefetch=3)
    [(_, consume_id, _)] = bench.sent()
    bench.hear(consume_id, b.ConsumeOk("c-1"))
    for number in range(1, 50):
        bench.hear(consume_id, delivered(number, attempts=1))
        stream.buffer.popleft()
    assert len(stream.again) <= 3


# Keep-alive.


def test_a_ping_is_answered_at_once() -> None:
    bench = Bench()
    bench.hear(77, b.Ping())
    assert bench.sent() == [(op.PONG, 77, b"")]


def test_silence_is_broken_by_a_ping_and_then_by_hanging_up() -> None:
    bench = Bench(keepalive_interval=15, keepalive_timeout=10)
    assert bench.exchange.next_deadline() == 115
    bench.exchange.tick(115, 0)
    [(opcode, request_id, _)] = bench.sent()
    assert opcode == op.PING
    assert bench.exchange.next_deadline() == 125
    bench.now = 116
    bench.hear(request_id, b.Pong())
    assert bench.exchange.next_deadline() == 131
    bench.exchange.tick(131, 0)
    bench.exchange.tick(141, 0)
    assert "silent for 25.0 s" in str(bench.exchange.drop_reason)


def test_a_slow_line_that_still_takes_bytes_is_not_given_up() -> None:
    bench = Bench(keepalive_interval=15, keepalive_timeout=10)
    bench.exchange.tick(115, 5000)
    bench.exchange.tick(125, 3000)
    assert bench.exchange.drop_reason is None
    bench.exchange.tick(135, 3000)
    assert bench.exchange.drop_reason is not None


# A peer that misbehaves.


def test_a_body_that_does_not_parse_drops_the_connection() -> None:
    bench = Bench()
    bench.enqueue(b"a")
    [(_, request_id, _)] = bench.sent()
    raw = encode_frames(op.ENQUEUE_RESULT, request_id, b"\xff\xff\xff\xff")
    bench.exchange.receive(raw, bench.now)
    assert "sent a body that does not parse: results" in str(bench.exchange.drop_reason)


def test_the_wrong_kind_of_answer_drops_the_connection() -> None:
    bench = Bench()
    bench.enqueue(b"a")
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.AckResult(()))
    assert "answered Enqueue with AckResult" in str(bench.exchange.drop_reason)


def test_operations_of_a_later_version_are_ignored() -> None:
    bench = Bench()
    bench.exchange.receive(encode_frames(0x2E, 5, b"new"), bench.now)
    bench.hear(9, b.EnqueueResult(ids_of(1)))
    assert bench.exchange.drop_reason is None


def test_a_dropped_message_fails_its_request_only() -> None:
    bench = Bench()
    first = bench.ask(b.ListQueues(), b.ListQueuesResult)
    second = bench.ask(b.ListQueues(), b.ListQueuesResult)
    [(_, one, _), (_, two, _)] = bench.sent()
    bench.exchange.receive(frame_header(op.LIST_QUEUES_RESULT, 0x80, one, 0), bench.now)
    bench.hear(two, b.ListQueuesResult(0, 1))
    assert isinstance(first.results[0], ProtocolError)
    assert second.one().cluster_node_count == 1
    assert bench.exchange.drop_reason is None


def test_an_error_code_from_the_future_is_an_internal_error_with_its_text() -> None:
    bench = Bench()
    ticket = bench.ask(b.GetStats("q"), b.GetStatsResult)
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.Error(0x42, "something new", {}))
    with pytest.raises(InternalError, match="something new"):
        ticket.one()


def test_answers_in_pieces_are_joined() -> None:
    bench = Bench()
    stream = bench.consume()
    [(_, request_id, _)] = bench.sent()
    bench.hear(request_id, b.ConsumeOk("c-1"))
    raw = layouts.encode(delivered(1, 2, 3))
    for position in range(0, len(raw), 50):
        piece = raw[position : position + 50]
        flags = CONTINUATION if position + 50 < len(raw) else 0
        header = frame_header(op.DELIVERY, flags, request_id, len(piece))
        bench.exchange.receive(header + piece, bench.now)
    assert len(stream.buffer) == 3


# The end.


def test_closing_says_goodbye_and_ends_every_call() -> None:
    bench = Bench()
    sent, waiting = bench.enqueue(b"a"), bench.enqueue(b"b")
    asked = bench.ask(b.ListQueues(), b.ListQueuesResult, repeatable=True)
    stream = bench.consume()
    bench.sent()
    bench.exchange.close()
    assert [opcode for opcode, _, _ in bench.sent()] == [op.DISCONNECT]
    for ticket in (sent, waiting, asked, bench.enqueue(b"late"), bench.ack("x")):
        assert isinstance(ticket.results[0], ClientClosedError)
    assert stream.closed
    late = bench.consume()
    assert late.closed
    assert isinstance(late.opened.results[0], FilaError)


def test_request_ids_in_use_are_passed_over_when_the_counter_wraps() -> None:
    bench = Bench()
    stream = bench.consume()
    bench.sent()
    assert stream.request_id == 1
    bench.exchange._last_id = 0xFFFFFFFE
    bench.enqueue(b"a")
    [(_, request_id, _)] = bench.sent()
    assert request_id == 0xFFFFFFFF
    bench.ask(b.ListQueues(), b.ListQueuesResult)
    [(_, request_id, _)] = bench.sent()
    assert request_id == 2
