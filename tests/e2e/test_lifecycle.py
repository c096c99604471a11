"""One message from enqueue to ack, and everything an ack or nack may meet on the way."""

from __future__ import annotations

import time
import uuid

import pytest

from fila.wire import bodies, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.message import message_body
from tests.e2e.jitter import Jitter
from tests.e2e.peer import Peer, Refused
from tests.e2e.process import Broker


def test_a_message_is_enqueued_delivered_and_acknowledged(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    before_ms = time.time_ns() // 1_000_000
    [id] = peer.enqueue(queue, b"hello", headers={"tenant": "acme", "größe": "ü"})
    assert peer.stats(queue).depth == 1
    stream = peer.consume(queue)
    message = peer.take_one(stream)
    after_ms = time.time_ns() // 1_000_000
    assert (message.id, message.queue, message.payload) == (id, queue, b"hello")
    assert message.headers == {"tenant": "acme", "größe": "ü"}
    assert (message.fairness_key, message.weight, message.throttle_keys) == ("default", 1, ())
    assert message.attempts == 0
    assert before_ms <= message.enqueued_at_ms <= message.leased_at_ms <= after_ms
    leased = peer.stats(queue)
    assert (leased.depth, leased.in_flight, leased.active_consumers) == (0, 1, 1)
    assert peer.ack(queue, id) == [errors.OK]
    done = peer.stats(queue)
    assert (done.depth, done.in_flight) == (0, 0)


def test_a_waiting_consumer_gets_a_new_message_at_once(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    with broker.peer() as producer, broker.peer() as consumer:
        producer.create_queue(queue)
        stream = consumer.consume(queue)
        began = time.monotonic()
        producer.enqueue(queue, b"now")
        message = consumer.take_one(stream)
        assert message.arrived_s - began < jitter.late_ms_max / 1000


def test_messages_of_one_key_come_in_enqueue_order(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    ids = peer.enqueue(queue, *(b"%d" % n for n in range(100)))
    ids += [peer.enqueue(queue, b"%d" % n)[0] for n in range(100, 120)]
    stream = peer.consume(queue)
    messages = peer.take(stream, 120)
    assert [message.id for message in messages] == ids
    assert [message.payload for message in messages] == [b"%d" % n for n in range(120)]
    assert ids == sorted(ids)


def test_a_nacked_message_comes_back_with_attempt_one(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    [id] = peer.enqueue(queue, b"again")
    stream = peer.consume(queue)
    assert peer.take_one(stream).attempts == 0
    assert peer.nack(queue, id, error="no luck") == [errors.OK]
    again = peer.take_one(stream)
    assert (again.id, again.attempts, again.payload) == (id, 1, b"again")
    peer.nack(queue, id)
    assert peer.take_one(stream).attempts == 2


def test_a_nacked_message_goes_to_the_back_of_its_line(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    first, second, third = peer.enqueue(queue, b"1", b"2", b"3")
    stream = peer.consume(queue, prefetch=1)
    assert peer.take_one(stream).id == first
    peer.nack(queue, first)
    order = []
    for _ in range(3):
        message = peer.take_one(stream)
        order.append(message.id)
        peer.ack(queue, message.id)
    assert order == [second, third, first]


def test_an_unknown_pending_or_finished_message_cannot_be_settled(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    finished, pending = peer.enqueue(queue, b"finished", b"pending")
    stream = peer.consume(queue, prefetch=1)
    peer.take_one(stream)
    peer.cancel(stream)
    assert peer.ack(queue, finished) == [errors.OK]
    wrong = [finished, pending, str(uuid.uuid4()), "not-a-uuid", ""]
    assert peer.ack(queue, *wrong) == [errors.MESSAGE_NOT_FOUND] * 5
    assert peer.nack(queue, *wrong) == [errors.MESSAGE_NOT_FOUND] * 5
    found = peer.stats(queue)
    assert (found.depth, found.in_flight) == (1, 0)


def test_one_frame_may_hold_messages_for_several_queues(peer: Peer, queue: str) -> None:
    other = queue + "-other"
    peer.create_queue(queue)
    peer.create_queue(other)
    names = [queue, "missing-" + queue, other, queue]
    items = [
        (message_codec.queue_field(name.encode()), message_body(None, b"%d" % place))
        for place, name in enumerate(names)
    ]
    results = peer.enqueue_results(peer.send(op.ENQUEUE, message_codec.encode_enqueue(items)))
    assert [code for code, _ in results] == [0, errors.QUEUE_NOT_FOUND, 0, 0]
    assert [bool(id) for _, id in results] == [True, False, True, True]
    here, there = peer.consume(queue), peer.consume(other)
    assert [message.payload for message in peer.take(here, 2)] == [b"0", b"3"]
    assert peer.take_one(there).payload == b"2"
    fields = [message_codec.queue_field(name.encode()) for name in (other, queue, other)]
    ids = [results[2][1], results[0][1], results[3][1]]
    acks = [(field, id.encode()) for field, id in zip(fields, ids, strict=True)]
    codes = peer.codes(peer.send(op.ACK, message_codec.encode_acks(acks)))
    assert codes == [errors.OK, errors.OK, errors.MESSAGE_NOT_FOUND]


def test_an_empty_frame_of_messages_gets_an_empty_result(peer: Peer) -> None:
    assert peer.enqueue_results(peer.send(op.ENQUEUE, message_codec.encode_enqueue([]))) == []
    assert peer.codes(peer.send(op.ACK, message_codec.encode_acks([]))) == []
    assert peer.codes(peer.send(op.NACK, message_codec.encode_nacks([]))) == []


def test_prefetch_bounds_what_a_consumer_holds(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    peer.enqueue(queue, *[b"x"] * 10)
    stream = peer.consume(queue, prefetch=3)
    held = peer.take(stream, 3)
    peer.expect_quiet(stream, 0.1)
    assert peer.stats(queue).in_flight == 3
    peer.ack(queue, held[0].id)
    peer.take_one(stream)
    peer.expect_quiet(stream, 0.1)


def test_the_default_prefetch_is_256(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    peer.enqueue(queue, *[b"x"] * 300)
    peer.take(peer.consume(queue), 256)
    assert peer.stats(queue).in_flight == 256


def test_a_prefetch_beyond_the_limit_is_refused(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    with pytest.raises(Refused) as refused:
        peer.consume(queue, prefetch=65_536)
    assert refused.value.code == errors.INVALID_CONFIG_VALUE
    assert "65535" in refused.value.message


def test_two_consumers_share_the_messages(broker: Broker, queue: str) -> None:
    with broker.peer() as one, broker.peer() as two:
        one.create_queue(queue)
        first, second = one.consume(queue), two.consume(queue)
        ids = one.enqueue(queue, *[b"x"] * 20)
        got = one.take(first, 10) + two.take(second, 10)
        assert sorted(message.id for message in got) == ids


def test_several_consumes_live_on_one_connection(peer: Peer, queue: str) -> None:
    other = queue + "-other"
    peer.create_queue(queue)
    peer.create_queue(other)
    here, again, there = peer.consume(queue), peer.consume(queue), peer.consume(other)
    assert peer.stats(queue).active_consumers == 2
    peer.enqueue(other, b"there")
    peer.enqueue(queue, *[b"here"] * 4)
    assert peer.take_one(there).queue == other
    assert len(peer.take(here, 2) + peer.take(again, 2)) == 4


def test_a_cancelled_consume_gets_nothing_more_and_keeps_its_leases(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    [id] = peer.enqueue(queue, b"held")
    stream = peer.consume(queue)
    peer.take_one(stream)
    peer.cancel(stream)
    peer.enqueue(queue, b"later")
    peer.expect_quiet(stream, 0.1)
    found = peer.stats(queue)
    assert (found.depth, found.in_flight, found.active_consumers) == (1, 1, 0)
    assert peer.ack(queue, id) == [errors.OK]


def test_cancelling_what_is_no_consume_does_nothing(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    stream = peer.consume(queue)
    peer.cancel(4_000_000_000)
    peer.ping()
    (id,) = peer.enqueue(queue, b"x")
    assert peer.take_one(stream).id == id, "the consumer that is there goes on"


def test_a_request_id_in_use_by_a_consume_is_refused_for_another(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    stream = peer.consume(queue)
    peer.post(bodies.Consume(queue), request_id=stream)
    with pytest.raises(Refused) as refused:
        peer.reply(stream)
    assert refused.value.code == errors.INVALID_FRAME
    assert peer.stats(queue).active_consumers == 1
    peer.enqueue(queue, b"x")
    assert peer.take_one(stream).payload == b"x"


def test_another_connection_may_ack_if_it_does_not_consume_the_queue(
    broker: Broker, queue: str
) -> None:
    with broker.peer() as consumer, broker.peer() as helper:
        consumer.create_queue(queue)
        [id] = consumer.enqueue(queue, b"x")
        consumer.take_one(consumer.consume(queue))
        assert helper.ack(queue, id) == [errors.OK]


def test_a_connection_that_consumes_cannot_settle_what_another_holds(
    broker: Broker, queue: str
) -> None:
    with broker.peer() as holder, broker.peer() as other:
        holder.create_queue(queue)
        [id] = holder.enqueue(queue, b"x")
        holder.take_one(holder.consume(queue))
        other.consume(queue)
        assert other.ack(queue, id) == [errors.MESSAGE_NOT_FOUND]
        assert other.nack(queue, id) == [errors.MESSAGE_NOT_FOUND]
        assert holder.ack(queue, id) == [errors.OK]
