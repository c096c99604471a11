"""Requests over gRPC that are larger than a turn: in parts, answered once, and nobody waits."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from fila.core.settings import Settings
from fila.edges.grpc import frames, parts, service
from fila.edges.grpc.protobuf_reader import FIELDS_MAX, Fields, InvalidMessage
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.edges.inbound import Inbound
from fila.edges.limits import ConnectionLimits
from fila.wire import bodies
from fila.wire import opcodes as op
from fila.wire.ids import id_text
from tests.broker.turns import Bench
from tests.edges.wires import GrpcWire, Wire

WORK = 64  # of a turn here
MANY = 3_000


def wire_with(*queues: str) -> GrpcWire:
    wire = GrpcWire(Bench(settings=Settings(turn_work=WORK)))
    window = frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 30})
    wire.connection.data_received(window + frames.window_update(0, 1 << 30))
    for at, queue in enumerate(queues):
        made = admin_pb2.CreateQueueRequest(name=queue)
        wire.call(1 + 2 * at, "FilaAdmin/CreateQueue", made.SerializeToString())
    wire.bench.loop.settle()
    wire.answers()
    return wire


def enqueue(count: int, queue: str = "q", payload: bytes = b"a payload") -> bytes:
    one = pb.EnqueueMessage(queue=queue, payload=payload)
    return pb.EnqueueRequest(messages=[one] * count).SerializeToString()


def rows_per_turn(wire: GrpcWire) -> list[int]:
    return [sum(len(one.ops) for one in batches) for batches in wire.bench.committer.commits]


def answer(wire: GrpcWire, stream: int) -> bytes:
    wire.bench.loop.settle()
    messages, fields = wire.answers()[stream]
    assert fields is not None, "the call has ended"
    (message,) = messages
    return message


def refusal(wire: GrpcWire, stream: int) -> bytes:
    wire.bench.loop.settle()
    messages, fields = wire.answers()[stream]
    assert messages == [] and fields is not None
    return fields


def leased(wire: GrpcWire, count: int) -> list[str]:
    consumer = Wire(wire.bench)
    consumer.send(bodies.Consume("q", count), request_id=1)
    queue = wire.bench.broker.machine.state.queues["q"]
    while len(queue.leased) < count:
        wire.bench.loop.settle()
        consumer.received()
    consumer.transport.close()
    consumer.connection.connection_lost(None)
    return [id_text(id).decode() for id in queue.leased]


def test_every_message_has_its_result_in_its_place_and_no_turn_is_long() -> None:
    wire = wire_with("a", "b")
    queues = [("a", "b", "gone")[at % 3] for at in range(MANY)]
    request = pb.EnqueueRequest(
        messages=[pb.EnqueueMessage(queue=one, payload=b"x" * 8) for one in queues]
    )
    before = len(rows_per_turn(wire))
    wire.call(101, "FilaService/Enqueue", request.SerializeToString())
    results = pb.EnqueueResponse.FromString(answer(wire, 101)).results
    assert [bool(one.message_id) for one in results] == [one != "gone" for one in queues]
    assert {one.error.code for one in results if not one.message_id} == {
        pb.ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND
    }
    ids = [one.message_id for one, queue in zip(results, queues, strict=True) if queue == "a"]
    assert ids == sorted(set(ids)), "in the order they were sent"
    assert wire.bench.broker.machine.state.queues["a"].pending == MANY // 3
    turns = rows_per_turn(wire)[before:]
    assert max(turns) <= WORK + 20 and len(turns) >= MANY // WORK


@pytest.mark.parametrize("method", ["Ack", "Nack"])
def test_settlements_take_as_many_turns_as_they_need(method: str) -> None:
    wire = wire_with("q")
    wire.call(101, "FilaService/Enqueue", enqueue(500))
    answer(wire, 101)
    ids = [*leased(wire, 500), "00000000-0000-0000-0000-000000000000"]
    before = len(rows_per_turn(wire))
    request: Message
    if method == "Ack":
        request = pb.AckRequest(messages=[pb.AckMessage(queue="q", message_id=one) for one in ids])
    else:
        request = pb.NackRequest(
            messages=[pb.NackMessage(queue="q", message_id=one, error="no") for one in ids]
        )
    wire.call(103, f"FilaService/{method}", request.SerializeToString())
    said = answer(wire, 103)
    found = (pb.AckResponse if method == "Ack" else pb.NackResponse).FromString(said).results
    assert [one.HasField("success") for one in found] == [True] * 500 + [False]
    assert max(rows_per_turn(wire)[before:]) <= 3 * WORK + 20


def test_messages_with_options_and_releases_go_in_parts_as_well() -> None:
    wire = wire_with("q")
    messages = [
        bulk_pb2.MessageWithOptions(queue="q", payload=b"x" * 20, fairness_key=f"k-{at % 7}")
        for at in range(900)
    ]
    before = len(rows_per_turn(wire))
    request = bulk_pb2.EnqueueWithRequest(messages=messages)
    wire.call(101, "FilaBulk/EnqueueWith", request.SerializeToString())
    stored = bulk_pb2.EnqueueWithResponse.FromString(answer(wire, 101)).results
    assert len({one.message_id for one in stored}) == 900
    ids = leased(wire, 900)
    release = bulk_pb2.ReleaseRequest(message_ids=ids).SerializeToString()
    queue = bulk_pb2.ReleaseRequest(queue="q").SerializeToString()
    wire.call(
        103, "FilaBulk/Release", release + queue
    )  # its name comes last, and is the last one's
    codes = bulk_pb2.ReleaseResponse.FromString(answer(wire, 103)).codes
    assert list(codes) == [0] * 900
    assert wire.bench.broker.machine.state.queues["q"].pending == 900
    assert max(rows_per_turn(wire)[before:]) <= 3 * WORK + 20


def test_others_are_served_while_it_takes_its_turns() -> None:
    wire = wire_with("q")
    other = Wire(wire.bench)
    wire.call(101, "FilaService/Enqueue", enqueue(MANY))
    rounds = 0
    while not (found := wire.answers()):
        other.send(bodies.Ping(), request_id=rounds)
        wire.bench.loop.step()
        wire.bench.loop.step()
        assert other.received() == [(op.PONG, rounds)], "others are answered with the next commit"
        rounds += 1
    assert list(found) == [101] and rounds > 10


def test_nothing_is_stored_of_a_request_whose_last_message_is_no_message() -> None:
    wire = wire_with("q")
    wire.call(101, "FilaService/Enqueue", enqueue(MANY)[:-3])
    assert b"it is cut short" in refusal(wire, 101)
    wire.call(103, "FilaService/Enqueue", enqueue(MANY) + b"\x0a\x03\x0a\x01\xff")
    assert b"UTF-8" in refusal(wire, 103)
    assert wire.bench.broker.machine.state.queues["q"].pending == 0


def test_a_request_in_parts_holds_no_more_than_one_in_a_piece() -> None:
    wire = wire_with("q")
    most = ConnectionLimits().messages_max
    wire.call(101, "FilaService/Enqueue", b"\x0a\x00" * (most + 1))
    assert f"it may hold {most} messages".encode() in refusal(wire, 101)
    fields = Fields()
    data = b"\x10\x00" * (FIELDS_MAX + 1)
    position = parts.cut(data, 0, FIELDS_MAX, 1 << 30, fields)
    assert position == len(data) - 2
    with pytest.raises(InvalidMessage, match="far too many fields"):
        parts.cut(data, position, 1_024, 1 << 20, fields)


def test_a_call_that_is_cancelled_in_the_middle_ends_there() -> None:
    wire = wire_with("q")
    wire.call(101, "FilaService/Enqueue", enqueue(MANY))
    for _ in range(40):
        wire.bench.loop.step()
    state = wire.bench.broker.machine.state
    stored = state.queues["q"].pending
    assert 0 < stored < MANY and wire.port.inbound.buffered_bytes > 0
    wire.connection.connection_lost(None)
    wire.bench.loop.settle()
    assert state.queues["q"].pending == stored
    assert not wire.bench.broker.rota.waiting and wire.bench.faults == []
    assert wire.port.inbound.buffered_bytes == 0


def test_a_failure_between_two_parts_costs_that_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = wire_with("q")
    other = GrpcWire(wire.bench)
    wire.call(101, "FilaService/Enqueue", enqueue(MANY))
    for _ in range(40):
        wire.bench.loop.step()

    def fails(*_: object) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(service, "store", fails)
        for _ in range(40):
            wire.bench.loop.step()
    assert wire.transport.closing and wire.failures.counts["grpc"] == 1
    assert wire.bench.faults == [] and wire.port.inbound.buffered_bytes == 0
    other.call(1, "FilaService/Enqueue", enqueue(1))
    assert pb.EnqueueResponse.FromString(answer(other, 1)).results[0].message_id


def test_batches_of_a_stream_are_stored_and_answered_in_their_order() -> None:
    wire = wire_with("q")

    def batch(number: int, count: int) -> bytes:
        one = pb.EnqueueMessage(queue="q", payload=b"x" * 30)
        return pb.StreamEnqueueRequest(
            messages=[one] * count, sequence_number=number
        ).SerializeToString()

    sizes = [1, 2_000, 3, 1_500, 2]
    sent = [batch(number, count) for number, count in enumerate(sizes, start=1)]
    before = len(rows_per_turn(wire))
    wire.call(101, "FilaService/StreamEnqueue", *sent)
    wire.bench.loop.settle()
    messages, fields = wire.answers()[101]
    found = [pb.StreamEnqueueResponse.FromString(one) for one in messages]
    assert [one.sequence_number for one in found] == [1, 2, 3, 4, 5] and fields is not None
    assert [len(one.results) for one in found] == sizes
    ids = [result.message_id for one in found for result in one.results]
    assert ids == sorted(set(ids))
    assert max(rows_per_turn(wire)[before:]) <= WORK + 20
    assert wire.port.inbound.buffered_bytes == 0


def test_small_requests_wait_for_their_turn_when_this_one_is_full() -> None:
    wire = wire_with("q")
    before = len(rows_per_turn(wire))
    for at in range(20):
        wire.call(101 + 2 * at, "FilaService/Enqueue", enqueue(WORK))
    wire.bench.loop.settle()
    found = wire.answers()
    assert len(found) == 20 and all(fields for _, fields in found.values())
    turns = rows_per_turn(wire)[before:]
    assert max(turns) <= 2 * WORK + 20 and len(turns) >= 10


def test_a_request_of_the_first_shape_is_never_cut() -> None:
    wire = wire_with("q")
    wire.call(101, "FilaService/Enqueue", b"\x0a\x01q\x1a\x80\x80\x02" + b"x" * 32_768)
    assert len(answer(wire, 101)) == 38
    wire.call(103, "FilaService/Enqueue", b"\x0a\x80\x80\x08" + b"a" * 131_072)
    assert refusal(wire, 103), "no name is so long, and it is not read as one"


def test_requests_that_are_carried_out_take_room_and_stay() -> None:
    inbound = Inbound(100_000)

    class Sender:
        gone = False

        def make_room(self) -> None:
            self.gone = True
            inbound.count(self, 60_000, 0)

    one = Sender()
    inbound.count(one, 0, 60_000)
    inbound.keep(30_000)
    assert not one.gone
    inbound.keep(30_000)
    assert one.gone and inbound.buffered_bytes == 60_000
    inbound.keep(-60_000)
    assert inbound.buffered_bytes == 0
