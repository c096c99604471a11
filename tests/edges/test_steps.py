"""Requests larger than a turn: in steps, answered once, in order, and fair to other clients."""

from __future__ import annotations

from typing import Any

import pytest

from fila.core.settings import Settings
from fila.wire import bodies, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from fila.wire.message import message_body
from fila.wire.message_codec import queue_field
from tests.broker.turns import Bench
from tests.edges.wires import Wire

WORK = 64  # of a turn here
MANY = 3_000
PING = bodies.Ping()


def bench() -> Bench:
    return Bench(settings=Settings(turn_work=WORK))


def wire_with(*queues: str) -> Wire:
    wire = Wire(bench())
    for queue in queues:
        wire.send(bodies.CreateQueue(queue))
    wire.settle()
    wire.received()
    return wire


def enqueue(*queues: str, payload: bytes = b"x") -> bytes:
    body = message_body(None, payload)
    return message_codec.encode_enqueue([(queue_field(one.encode()), body) for one in queues])


def send(wire: Wire, opcode: int, body: bytes, request_id: int) -> None:
    wire.send_bytes(encode_frames(opcode, request_id, body))


def rows_per_turn(wire: Wire) -> list[int]:
    return [sum(len(one.ops) for one in batches) for batches in wire.bench.committer.commits]


def results(frames: list[tuple[int, int, bytes]], request_id: int) -> list[tuple[int, bytes]]:
    (body,) = [body for _, number, body in frames if number == request_id]
    return message_codec.decode_enqueue_results(body)


def ids_of(wire: Wire, queue: str, count: int) -> list[bytes]:
    """Lease so many of a queue's messages."""
    wire.send(bodies.Consume(queue, count), request_id=900)
    ids: list[bytes] = []
    while len(ids) < count:
        wire.settle()
        for opcode, _, body in wire.frames():
            if opcode == op.DELIVERY:
                ids += [item[0] for item in message_codec.decode_delivery(body)]
    return ids


def test_every_message_has_its_result_in_its_place_and_no_turn_is_long() -> None:
    wire = wire_with("a", "b")
    queues = [("a", "b", "gone")[at % 3] for at in range(MANY)]
    before = len(wire.bench.committer.commits)
    send(wire, op.ENQUEUE, enqueue(*queues), 7)
    wire.settle()
    found = results(wire.frames(), 7)
    assert [code for code, _ in found] == [
        errors.QUEUE_NOT_FOUND if queue == "gone" else errors.OK for queue in queues
    ]
    for queue in ("a", "b"):
        ids = [id for name, (_, id) in zip(queues, found, strict=True) if name == queue]
        assert ids == sorted(set(ids)) and len(ids) == MANY // 3, "in the order they were sent"
    assert wire.bench.broker.machine.state.queues["a"].pending == MANY // 3
    turns = rows_per_turn(wire)[before:]
    assert max(turns) <= WORK + 20 and len(turns) >= MANY // WORK


def test_what_comes_behind_it_on_the_connection_waits_and_what_others_send_does_not() -> None:
    wire = wire_with("a")
    other = Wire(wire.bench)
    send(wire, op.ENQUEUE, enqueue(*["a"] * MANY), 7)
    wire.send(PING, request_id=8)
    rounds = 0
    while not (answered := wire.received()):
        other.send(PING, request_id=rounds)
        wire.bench.loop.step()
        wire.bench.loop.step()
        assert other.received() == [(op.PONG, rounds)], "others are answered with the next commit"
        rounds += 1
    wire.settle()
    assert answered + wire.received() == [(op.ENQUEUE_RESULT, 7), (op.PONG, 8)]
    assert rounds > 10


def test_nothing_is_stored_of_a_request_whose_last_message_is_no_message() -> None:
    wire = wire_with("a")
    broken = enqueue(*["a"] * MANY)[:-3]
    send(wire, op.ENQUEUE, broken, 7)
    wire.send(PING, request_id=8)
    wire.settle()
    (refused, answered) = wire.frames()
    assert refused[:2] == (op.ERROR, 7) and answered[:2] == (op.PONG, 8)
    assert f"messages[{MANY - 1}]".encode() in refused[2]
    assert wire.bench.broker.machine.state.queues["a"].pending == 0


def test_a_connection_that_ends_in_the_middle_ends_its_request() -> None:
    wire = wire_with("a")
    send(wire, op.ENQUEUE, enqueue(*["a"] * MANY), 7)
    for _ in range(40):
        wire.bench.loop.step()
    stored = wire.bench.broker.machine.state.queues["a"].pending
    assert 0 < stored < MANY
    wire.connection.connection_lost(None)
    wire.settle()
    assert wire.bench.broker.machine.state.queues["a"].pending == stored
    assert not wire.bench.broker.rota.waiting and wire.bench.faults == []


def test_a_queue_deleted_in_the_middle_refuses_the_rest() -> None:
    wire = wire_with("a")
    other = Wire(wire.bench)
    send(wire, op.ENQUEUE, enqueue(*["a"] * MANY), 7)
    for _ in range(40):
        wire.bench.loop.step()
    other.send(bodies.DeleteQueue("a"))
    wire.settle()
    codes = [code for code, _ in results(wire.frames(), 7)]
    stored = codes.count(errors.OK)
    assert 0 < stored < MANY
    assert codes == [errors.OK] * stored + [errors.QUEUE_NOT_FOUND] * (MANY - stored)


@pytest.mark.parametrize(
    ("opcode", "result"),
    [(op.ACK, op.ACK_RESULT), (op.NACK, op.NACK_RESULT), (op.RELEASE, op.RELEASE_RESULT)],
)
def test_settling_more_than_a_turn_takes_gives_one_code_each(opcode: int, result: int) -> None:
    wire = wire_with("a")
    send(wire, op.ENQUEUE, enqueue(*["a"] * MANY), 7)
    wire.settle()
    wire.frames()
    ids = ids_of(wire, "a", MANY)
    wire.send(bodies.CancelConsume(), request_id=900)
    wire.settle()
    field = queue_field(b"a")
    given = [*ids, b"no id at all", ids[0]]
    items: list[Any] = [(field, id, b"why")[: 3 if opcode == op.NACK else 2] for id in given]
    encode: Any = message_codec.encode_nacks if opcode == op.NACK else message_codec.encode_acks
    before = len(wire.bench.committer.commits)
    send(wire, opcode, encode(items), 9)
    wire.settle()
    ((_, _, body),) = [frame for frame in wire.frames() if frame[:2] == (result, 9)]
    expected = [errors.OK] * MANY + [errors.MESSAGE_NOT_FOUND] * 2
    assert list(message_codec.decode_codes(body)) == expected
    assert max(rows_per_turn(wire)[before:]) <= 3 * WORK + 20


def test_a_flood_of_small_frames_is_spread_over_turns_and_answered_in_order() -> None:
    wire = Wire(bench())
    other = Wire(wire.bench)
    wire.send(*[PING] * 2_000, request_id=1)
    other.send(PING, request_id=5)
    wire.bench.loop.step()
    assert other.received() == [(op.PONG, 5)], "a newcomer does not wait behind the flood"
    assert len(wire.received()) <= WORK
    wire.settle()
    assert wire.received()[-1] == (op.PONG, 2_000)


def test_large_messages_fill_a_turn_by_their_bytes() -> None:
    wire = wire_with("a")
    before = len(wire.bench.committer.commits)
    send(wire, op.ENQUEUE, enqueue(*["a"] * 100, payload=b"x" * 65_536), 7)
    wire.settle()
    assert {code for code, _ in results(wire.frames(), 7)} == {errors.OK}
    commits = wire.bench.committer.commits[before:]
    sizes = [sum(len(op[2]) for one in batches for op in one.ops) for batches in commits]
    assert max(sizes) <= 3 * 65_536 and len([size for size in sizes if size > 65_536]) >= 33


def test_a_client_that_waits_for_its_turn_is_read_only_up_to_a_bound() -> None:
    wire = wire_with("a")
    send(wire, op.ENQUEUE, enqueue(*["a"] * MANY), 7)
    for number in range(8, 1_000):
        if not wire.transport.reading:
            break
        send(wire, op.ENQUEUE, enqueue("a", payload=b"x" * 16_384), number)
    assert number < 40
    wire.settle()
    assert wire.transport.reading
    assert [request for _, request in wire.received()] == list(range(7, number))


def test_a_ping_does_not_wait_behind_many_connections_with_whole_requests() -> None:
    wire = wire_with("a")
    crowd = [Wire(wire.bench) for _ in range(8)]
    other = Wire(wire.bench)
    for one in crowd:
        send(one, op.ENQUEUE, enqueue(*["a"] * 2 * WORK), 7)  # the largest that is done at once
    rounds = 0
    while not crowd[-1].received():
        other.send(PING, request_id=rounds)
        wire.bench.loop.step()
        wire.bench.loop.step()
        assert other.received() == [(op.PONG, rounds)], "others are answered with the next commit"
        rounds += 1
    assert rounds >= 3


def test_requests_that_read_single_messages_fill_a_turn_sooner() -> None:
    wire = wire_with("a")
    send(wire, op.ENQUEUE, enqueue(*["a"] * WORK), 6)
    ids = ids_of(wire, "a", WORK)
    before = len(wire.bench.committer.commits)
    body = [message_codec.encode_acks([(queue_field(b"a"), id)]) for id in ids]
    wire.send_bytes(b"".join([encode_frames(op.RELEASE, at, one) for at, one in enumerate(body)]))
    wire.settle()
    assert wire.bench.broker.machine.state.queues["a"].counters.released == WORK
    assert len(wire.bench.committer.commits) - before >= 5, "five of work each"
