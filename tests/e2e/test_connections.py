"""How connections begin, misbehave and end."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest

from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, encode_frames, frame_header
from tests.e2e.jitter import Jitter
from tests.e2e.peer import Closed, Peer, Quiet, Refused
from tests.e2e.process import Broker, wait_until


def test_the_handshake_tells_version_and_frame_limit(broker: Broker) -> None:
    with broker.peer(handshake=False) as peer:
        ok = peer.request(bodies.Handshake(1, None), bodies.HandshakeOk)
        assert ok == bodies.HandshakeOk(1, 0, 16 * 1024 * 1024)


def test_an_api_key_is_accepted_where_none_is_asked_for(broker: Broker) -> None:
    with broker.peer(handshake=False) as peer:
        assert peer.request(bodies.Handshake(1, "some-key"), bodies.HandshakeOk).version == 1
        peer.ping()


@pytest.mark.parametrize("opcode", [op.PING, op.ENQUEUE, op.LIST_QUEUES, op.PONG, 0x77])
def test_anything_but_a_handshake_first_is_refused_and_closed(broker: Broker, opcode: int) -> None:
    with broker.peer(handshake=False) as peer:
        request = peer.send(opcode)
        with pytest.raises(Refused) as refused:
            peer.reply(request)
        assert refused.value.code == errors.INVALID_FRAME
        assert "Handshake" in refused.value.message
        peer.expect_close()


def test_another_version_is_refused_with_the_one_that_is_spoken(broker: Broker) -> None:
    with broker.peer(handshake=False) as peer:
        with pytest.raises(Refused) as refused:
            peer.request(bodies.Handshake(2, None), bodies.HandshakeOk)
        assert refused.value.code == errors.UNSUPPORTED_VERSION
        assert refused.value.metadata == {"max_version": "1"}
        peer.expect_close()


def test_a_handshake_that_does_not_parse_is_refused_and_closed(broker: Broker) -> None:
    with broker.peer(handshake=False) as peer:
        request = peer.send(op.HANDSHAKE, b"\x00")
        with pytest.raises(Refused) as refused:
            peer.reply(request)
        assert refused.value.code == errors.INVALID_FRAME
        peer.expect_close()


def test_a_second_handshake_is_refused_and_the_connection_lives_on(peer: Peer) -> None:
    with pytest.raises(Refused) as refused:
        peer.request(bodies.Handshake(1, None), bodies.HandshakeOk)
    assert refused.value.code == errors.INVALID_FRAME
    peer.ping()


def test_a_connection_without_a_byte_is_no_event(broker: Broker) -> None:
    log = broker.log()
    for _ in range(20):
        broker.peer(handshake=False).close()
    with broker.peer() as peer:
        peer.ping()
    assert broker.log() == log


def test_half_a_frame_that_stays_disturbs_nobody(broker: Broker, queue: str) -> None:
    with broker.peer() as stays, broker.peer() as other:
        other.create_queue(queue)
        frame = encode_frames(op.CONSUME, 9, layouts.encode(bodies.Consume(queue)))
        stays.send_bytes(frame[:-3])
        other.enqueue(queue, b"x")
        other.ping()
        stays.send_bytes(frame[-3:])
        assert stays.reply(9)[0] == op.CONSUME_OK
        assert stays.take_one(9).payload == b"x"


def test_a_frame_may_arrive_byte_by_byte(peer: Peer) -> None:
    for byte in encode_frames(op.PING, 77):
        peer.send_bytes(bytes([byte]))
        time.sleep(0.001)  # one segment each
    assert peer.reply(77)[0] == op.PONG


def test_a_client_that_never_shakes_hands_is_closed(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"connection.handshake_timeout_ms": 300}) as broker:
        silent, half = broker.peer(handshake=False), broker.peer(handshake=False)
        half.send_bytes(b"\x00\x00")
        began = time.monotonic()
        silent.expect_close()
        half.expect_close()
        assert time.monotonic() - began > 0.25
        with broker.peer() as peer:
            with pytest.raises(Quiet):
                peer.reply(12345, timeout_s=0.5)  # one that did is left alone
            peer.ping()


def test_a_consumer_killed_by_rst_is_unregistered_at_once(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    with broker.peer() as watcher:
        watcher.create_queue(queue)
        doomed = broker.peer()
        doomed.consume(queue)
        assert watcher.stats(queue).active_consumers == 1
        doomed.reset()
        began = time.monotonic()
        wait_until(lambda: watcher.stats(queue).active_consumers == 0, 20, "the consumer to go")
        assert time.monotonic() - began < jitter.late_ms_max / 1000


def test_a_client_that_closes_its_side_is_unregistered(broker: Broker, queue: str) -> None:
    with broker.peer() as watcher, broker.peer() as closing:
        watcher.create_queue(queue)
        closing.consume(queue)
        closing.socket.shutdown(socket.SHUT_WR)
        wait_until(lambda: watcher.stats(queue).active_consumers == 0, 20, "the consumer to go")


def test_pings_are_answered_with_their_request_id(peer: Peer) -> None:
    for request_id in (0, 1, 0xFFFFFFFF):
        peer.send(op.PING, request_id=request_id)
        assert peer.reply(request_id) == (op.PONG, b"")


def test_replies_to_pipelined_requests_carry_their_ids(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    requests = [peer.post_enqueue(queue, [b"%d" % n]) for n in range(200)]
    ids = [peer.enqueue_results(request)[0][1] for request in requests]
    assert ids == sorted(set(ids))


def test_an_unknown_opcode_costs_one_request(peer: Peer) -> None:
    for opcode in (0x00, 0x2E, 0x40, 0x77, 0xE3, 0xFF, op.HANDSHAKE_OK, op.DELIVERY, op.ERROR):
        request = peer.send(opcode, b"whatever")
        with pytest.raises(Refused) as refused:
            peer.reply(request)
        assert refused.value.code == errors.INVALID_FRAME
    peer.ping()


def test_a_body_that_does_not_parse_names_its_field_and_changes_nothing(
    peer: Peer, queue: str
) -> None:
    peer.create_queue(queue)
    name = struct.pack(">H", len(queue)) + queue.encode()
    good = name + b"\x00\x00" + b"\x00\x00\x00\x01x"
    bad = name + b"\x00\x00" + b"\x00\x00\x00\xffx"
    request = peer.send(op.ENQUEUE, struct.pack(">I", 2) + good + bad)
    with pytest.raises(Refused) as refused:
        peer.reply(request)
    assert refused.value.code == errors.INVALID_FRAME
    assert "payload" in refused.value.message
    assert peer.stats(queue).depth == 0


@pytest.mark.parametrize("length", [0, 5, 16 * 1024 * 1024 + 1, 0xFFFFFFFF, 0x50524920])
def test_a_length_no_frame_can_have_is_refused_and_closed(broker: Broker, length: int) -> None:
    with broker.peer() as peer:
        peer.send_bytes(struct.pack(">IBBI", length, op.ENQUEUE, 0, 7))
        with pytest.raises(Refused) as refused:
            peer.reply(7 if length > 5 else 0)
        assert refused.value.code == errors.INVALID_FRAME
        assert str(length) in refused.value.message
        peer.expect_close()


def test_the_reason_for_closing_arrives_though_the_client_goes_on_sending(broker: Broker) -> None:
    """Closing with unread bytes would reset the connection and wipe out the Error on its way."""
    with broker.peer() as peer:
        peer.send_bytes(struct.pack(">IBBI", 20 * 1024 * 1024, op.ENQUEUE, 0, 7))
        try:
            for _ in range(64):
                peer.send_bytes(bytes(64 * 1024))
        except ConnectionError:
            pass
        with pytest.raises(Refused) as refused:
            peer.reply(7)
        assert "exceeds the limit" in refused.value.message


def test_reserved_flags_cost_one_request(peer: Peer) -> None:
    peer.send_bytes(frame_header(op.PING, 0x82, 5, 0))
    with pytest.raises(Refused) as refused:
        peer.reply(5)
    assert refused.value.code == errors.INVALID_FRAME
    peer.ping()


def test_pieces_of_different_requests_may_interleave(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    body = layouts.encode(bodies.GetStats(queue))
    for place in range(len(body)):
        last = place == len(body) - 1
        for request_id in (101, 102, 103):
            header = frame_header(op.GET_STATS, 0 if last else CONTINUATION, request_id, 1)
            peer.send_bytes(header + body[place : place + 1])
    peer.ping()
    for request_id in (101, 102, 103):
        assert peer.reply(request_id)[0] == op.GET_STATS_RESULT


def test_more_continued_messages_at_once_than_allowed_are_refused(peer: Peer) -> None:
    for request_id in range(17):
        peer.send_bytes(frame_header(op.ENQUEUE, CONTINUATION, request_id, 1) + b"x")
    with pytest.raises(Refused) as refused:
        peer.reply(16)
    assert refused.value.code == errors.INVALID_FRAME
    peer.last_request = 1_000
    peer.ping()


def test_a_refused_client_no_longer_consumes(broker: Broker, queue: str) -> None:
    """Closed by the server for its bytes: its consumers go with it, read or unread."""
    with broker.peer() as watcher, broker.peer() as broken:
        watcher.create_queue(queue)
        broken.consume(queue)
        broken.send_bytes(struct.pack(">IBBI", 1, op.PING, 0, 0))
        wait_until(lambda: watcher.stats(queue).active_consumers == 0, 20, "the consumer to go")
        watcher.enqueue(queue, b"x")
        assert watcher.take_one(watcher.consume(queue)).attempts == 0


def test_a_disconnect_is_followed_by_the_end_of_the_connection(broker: Broker) -> None:
    with broker.peer() as peer:
        peer.send(op.PING, request_id=50)
        peer.send(op.DISCONNECT)
        peer.send(op.PING, request_id=51)  # after goodbye: no answer
        peer.expect_close()
        assert peer.reply(50)[0] == op.PONG
        with pytest.raises(Closed):
            peer.reply(51)
