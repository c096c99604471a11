"""What the broker fails over costs one connection; only a command broken off stops the broker."""

from __future__ import annotations

import logging

import pytest

from fila.core.machine import Machine
from fila.edges import fibp_messages
from fila.edges.failures import FIBP, Failures
from fila.edges.fibp import FibpConnection
from fila.edges.grpc.call import Call
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, layouts, message_codec
from fila.wire import opcodes as op
from tests.edges.wires import GrpcWire, Wire

PING, QUEUE = bodies.Ping(), bodies.CreateQueue("q")
MESSAGE = bodies.Enqueue((bodies.EnqueueItem("q", {}, b"x"),))


def fails(*_: object) -> None:
    raise RuntimeError("planted")


def test_an_unforeseen_error_in_a_decoder_ends_that_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    other = Wire(wire.bench)
    with monkeypatch.context() as patch:
        planted = fibp_messages.KINDS[op.ENQUEUE]._replace(read=fails)  # type: ignore[arg-type]
        patch.setitem(fibp_messages.KINDS, op.ENQUEUE, planted)
        wire.send(QUEUE, MESSAGE, PING, request_id=5)
    wire.settle()
    # What came before is answered, then the error, and what came after it is not looked at.
    assert wire.received() == [(op.CREATE_QUEUE_RESULT, 5), (op.ERROR, 0)]
    assert wire.transport.closing
    assert wire.bench.faults == []
    other.send(MESSAGE, request_id=9)
    other.settle()
    assert other.received() == [(op.ENQUEUE_RESULT, 9)]


def test_an_answer_that_cannot_be_encoded_ends_the_connection_and_what_it_did_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    wire.send(QUEUE)
    wire.settle()
    wire.received()
    with monkeypatch.context() as patch:
        patch.setattr(message_codec, "encode_enqueue_results", fails)
        wire.send(MESSAGE)
    wire.settle()
    assert wire.received() == [(op.ERROR, 0)]
    assert wire.transport.closing and wire.bench.faults == []
    assert wire.bench.broker.machine.state.queues["q"].pending == 1


def test_a_delivery_that_cannot_be_encoded_ends_its_consumer_and_the_message_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    other = Wire(wire.bench)
    other.send(QUEUE)
    wire.send(bodies.Consume("q", 10), request_id=1)
    wire.settle()
    wire.received()
    with monkeypatch.context() as patch:
        patch.setattr(message_codec, "encode_delivery", fails)
        other.send(MESSAGE)
        other.settle()
    assert (op.ERROR, 0) in wire.received() and wire.transport.closing
    assert wire.bench.faults == []
    queue = wire.bench.broker.machine.state.queues["q"]
    assert len(queue.leased) == 1 and queue.consumers == {}


def test_an_error_that_cannot_be_said_cuts_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire()
    with monkeypatch.context() as patch:
        patch.setattr(layouts, "decode", fails)
        patch.setattr(layouts, "encode", fails)
        wire.connection.data_received(b"\0\0\0\x08\x10\0\0\0\0\x01\0\0")
    assert wire.transport.aborted and wire.closed
    assert wire.bench.faults == []


def test_a_command_that_breaks_off_stops_the_broker_and_is_no_failure_of_a_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire()
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(Machine, "follow", fails)
        wire.send(QUEUE)
    wire.settle()
    assert [str(fault) for fault in wire.bench.faults] == ["planted"]
    assert wire.received() == []
    assert caplog.records == []


def test_failures_are_counted_and_told_with_one_traceback_for_each_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = Failures()
    for number in range(5):
        try:
            fails() if number < 4 else int("x")
        except Exception as error:
            failures.report(FIBP, "198.51.100.7:1", error)
    assert failures.counts == {"fibp": 5, "grpc": 0, "http": 0, "unknown": 0}
    assert [record.exc_info is not None for record in caplog.records] == [
        *(True, False, False, False),
        True,
    ]


def test_a_lease_batch_that_cannot_be_encoded_ends_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    other = Wire(wire.bench)
    other.send(QUEUE, MESSAGE)
    other.settle()
    with monkeypatch.context() as patch:
        patch.setattr(message_codec, "encode_delivery", fails)
        wire.send(bodies.LeaseBatch("q", "s/0", 10), request_id=1)
        wire.settle()
    assert (op.ERROR, 0) in wire.received() and wire.transport.closing
    assert wire.bench.faults == []
    other.received()
    other.send(PING, request_id=9)
    other.settle()
    assert other.received() == [(op.PONG, 9)]


def test_an_answer_with_more_items_than_a_u16_counts_is_refused_whole() -> None:
    wire = Wire()
    config = wire.bench.broker.machine.state.config
    config.update({f"k{number}": "v" for number in range(65_536)})
    wire.send(bodies.ListConfig(""), bodies.ListConfig("k1"), request_id=5)
    wire.settle()
    frames = wire.frames()
    refused = layouts.decode(bodies.Error, frames[0][2])
    assert frames[0][:2] == (op.ERROR, 5)
    assert "entries: 65536 items are too many" in refused.message
    assert "over gRPC" in refused.message
    assert frames[1][:2] == (op.LIST_CONFIG_RESULT, 6)
    assert not wire.transport.closing and wire.bench.faults == []


def test_a_grpc_answer_that_fails_when_it_is_released_ends_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    wire.send(QUEUE)
    wire.settle()
    wire.received()
    grpc = GrpcWire(wire.bench)
    request = pb.EnqueueRequest(messages=[pb.EnqueueMessage(queue="q")]).SerializeToString()
    with monkeypatch.context() as patch:
        patch.setattr(Call, "write", fails)
        grpc.call(1, "FilaService/Enqueue", request)
        wire.send(PING, request_id=9)  # released by the same commit
        wire.settle()
    assert grpc.failures.counts["grpc"] == 1 and grpc.transport.closing
    assert wire.bench.faults == [] and wire.received() == [(op.PONG, 9)]
    assert wire.bench.broker.machine.state.queues["q"].pending == 1


def test_a_consumer_of_a_deleted_queue_that_cannot_be_told_ends_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire()
    wire.send(QUEUE)
    wire.settle()
    grpc = GrpcWire(wire.bench)
    consume = pb.ConsumeRequest(queue="q").SerializeToString()
    grpc.call(1, "FilaService/Consume", consume)
    fibp = Wire(wire.bench)
    fibp.send(bodies.Consume("q"), request_id=3)
    wire.settle()
    with monkeypatch.context() as patch:
        patch.setattr(Call, "end", fails)
        patch.setattr(FibpConnection, "_frame", fails)
        wire.bench.broker.delete_queue("q")
        wire.settle()
    wire.settle()
    assert grpc.transport.closing and fibp.transport.aborted
    assert wire.bench.faults == []
