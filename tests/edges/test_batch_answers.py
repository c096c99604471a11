"""Answers to LeaseBatch: megabytes for forty bytes, so one at a time, and only to who reads."""

from __future__ import annotations

import pyarrow as pa

from fila.core.settings import Settings
from fila.edges.limits import ConnectionLimits
from fila.wire import bodies, errors, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.forms import ARROW
from tests.broker.turns import Bench, DelayingCommitter
from tests.edges.wires import Wire

KiB = 1024
LIMITS = ConnectionLimits(unsent_bytes_max=16 * KiB, consumers_max=8)
AGAIN = bodies.LeaseBatch("q", "s/0")


def filled(count: int, bench: Bench | None = None) -> Wire:
    wire = Wire(bench, limits=LIMITS)
    wire.send(bodies.CreateQueue("q"))
    item = bodies.EnqueueItem("q", {}, b"x" * KiB)
    wire.send(bodies.Enqueue((item,) * count))
    wire.settle()
    wire.received()
    return wire


def leased(wire: Wire) -> list[bodies.LeaseBatchResult]:
    return [
        layouts.decode(bodies.LeaseBatchResult, body)
        for opcode, _, body in wire.frames()
        if opcode == op.LEASE_BATCH_RESULT
    ]


def test_a_client_that_reads_nothing_is_told_one_batch_however_often_it_asks() -> None:
    wire = filled(64)
    wire.send(bodies.LeaseBatch("q", "s/0", 64))
    wire.settle()
    assert leased(wire)[0].messages == 64
    other = Wire(wire.bench, limits=LIMITS)
    other.send(*[AGAIN] * 8)
    other.settle()
    assert 64 * KiB < len(other.transport.unsent) < 80 * KiB
    # Somebody else is told meanwhile.
    wire.send(AGAIN)
    wire.settle()
    assert [(one.messages, one.again) for one in leased(wire)] == [(64, True)]
    told = 0
    for _ in range(8):
        found = leased(other)
        assert len(found) == 1 and len(message_codec.decode_delivery(found[0].body)) == 64
        told += 1
        other.settle()
    assert told == 8 and len(other.transport.unsent) == 0
    assert len(wire.bench.broker.telling) == 0


def test_a_batch_that_came_over_several_turns_is_told_whole_and_as_a_new_one() -> None:
    bench = Bench(settings=Settings(pass_messages=16, delivery_messages=8))
    wire = filled(100, bench)
    wire.send(bodies.LeaseBatch("q", "s/0", 90), request_id=5)
    wire.settle()
    (one,) = leased(wire)
    assert (one.messages, one.again) == (90, False)
    assert len(message_codec.decode_delivery(one.body)) == 90
    wire.send(bodies.LeaseBatch("q", "s/0", 0, form=2), request_id=6)
    wire.settle()
    assert [(one.messages, one.again, one.body) for one in leased(wire)] == [(90, True, b"")]


def test_all_who_wait_for_one_batch_are_told_it_one_after_the_other() -> None:
    wire = filled(0)
    waiting = bodies.LeaseBatch("q", "s/0", 64, wait_ms=60_000)
    wire.send(*[waiting] * 3)
    wire.settle()
    other = Wire(wire.bench, limits=LIMITS)
    other.send(bodies.Enqueue((bodies.EnqueueItem("q", {}, b"x" * KiB),) * 64))
    other.settle()
    told = []
    for _ in range(3):
        told += leased(wire)
        wire.settle()
    assert [(one.messages, one.again) for one in told] == [(64, False), (64, True), (64, True)]
    assert all(len(message_codec.decode_delivery(one.body)) == 64 for one in told)


def test_requests_that_wait_are_counted_with_the_consumers_of_their_connection() -> None:
    wire = filled(0)
    wire.send(*[bodies.Consume("q")] * 3, request_id=10)
    waiting = [bodies.LeaseBatch("q", f"s/{at}", 1, wait_ms=60_000) for at in range(7)]
    wire.send(*waiting, request_id=20)
    wire.settle()
    frames = wire.frames()
    refused = [
        layouts.decode(bodies.Error, body) for opcode, _, body in frames if opcode == op.ERROR
    ]
    assert [one.code for one in refused] == [errors.CHANNEL_FULL] * 2
    assert "8 consumers and waiting lease requests" in refused[0].message


def test_who_leaves_leaves_the_line_and_the_next_one_is_told() -> None:
    wire = filled(64)
    wire.send(bodies.LeaseBatch("q", "s/0", 64))
    wire.settle()
    leased(wire)
    gone, stays = Wire(wire.bench, limits=LIMITS), Wire(wire.bench, limits=LIMITS)
    gone.send(*[AGAIN] * 3)
    gone.settle()
    assert len(wire.bench.broker.telling) == 1
    gone.transport.abort()
    stays.send(AGAIN)
    stays.settle()
    assert len(leased(stays)) == 1
    assert len(wire.bench.broker.telling) == 0


def test_a_batch_acked_while_it_stood_in_line_is_leased_anew_or_not_found() -> None:
    wire = filled(4)
    wire.send(bodies.LeaseBatch("q", "s/0", 2))
    wire.settle()
    leased(wire)
    wire.send(AGAIN, bodies.AckBatch("q", "s/0"), request_id=5)
    wire.settle()
    opcodes = {(opcode, number) for opcode, number in wire.received()}
    assert opcodes == {(op.ACK_BATCH_RESULT, 6), (op.ERROR, 5)}
    wire.send(bodies.LeaseBatch("q", "s/0", 2), bodies.AckBatch("q", "s/0"), request_id=7)
    wire.settle()
    (one,) = leased(wire)
    assert (one.messages, one.again) == (2, False)


def test_what_all_are_being_told_is_bounded_while_commits_are_slow() -> None:
    size = 64 * (KiB + 6)
    bench = Bench(DelayingCommitter, settings=Settings(pass_bytes=size, leaving_bytes=3 * size))
    committer = bench.committer
    assert isinstance(committer, DelayingCommitter)

    def settle() -> None:
        bench.loop.settle()
        while committer.waiting:
            committer.release()
            bench.loop.settle()

    wire = Wire(bench, limits=LIMITS, handshake=False)
    wire.send(bodies.Handshake(1, None), bodies.CreateQueue("q"))
    wire.send(bodies.Enqueue((bodies.EnqueueItem("q", {}, b"x" * KiB),) * 64))
    wire.send(bodies.LeaseBatch("q", "s/0", 64))
    settle()
    wire.received()
    assert bench.broker.machine.view.batch_bytes("q", "s/0") == size
    others = [Wire(bench, limits=LIMITS, handshake=False) for _ in range(10)]
    for one in others:
        one.send(bodies.Handshake(1, None), AGAIN)
    bench.loop.settle()
    assert len(bench.broker.telling) == 7  # three are read, and wait for their commit
    settle()
    assert [len(leased(one)) for one in others] == [1] * 10


PARTS = Settings(tell_messages=8, delivery_messages=4)


def in_parts(wire: Wire, request: bodies.LeaseBatch) -> tuple[bodies.LeaseBatchResult, int]:
    """The answer, and how many pings of another client were answered before it."""
    other = Wire(wire.bench, limits=LIMITS)
    wire.send(request, request_id=7)
    rounds = 0
    while not (found := leased(wire)):
        other.send(bodies.Ping(), request_id=rounds)
        wire.bench.loop.step()
        wire.bench.loop.step()
        assert other.received() == [(op.PONG, rounds)], "others are answered with the next commit"
        rounds += 1
        assert rounds < 1_000
    return found[0], rounds


def test_a_large_batch_is_read_and_told_in_parts_and_answered_once() -> None:
    wire = filled(100, Bench(settings=PARTS))
    wire.send(bodies.LeaseBatch("q", "s/0", 100, form=2))
    wire.settle()
    (counted,) = leased(wire)
    found, rounds = in_parts(wire, AGAIN)
    ids = [item[0] for item in message_codec.decode_delivery(found.body)]
    assert (counted.messages, found.messages, found.again) == (100, 100, True)
    assert ids == sorted(set(ids)) and len(ids) == 100 and rounds >= 100 // 8 - 1


def test_the_same_as_arrow_is_a_stream_of_several_record_batches() -> None:
    wire = filled(100, Bench(settings=PARTS))
    wire.send(bodies.LeaseBatch("q", "s/0", 100, form=2))
    wire.settle()
    leased(wire)
    found, rounds = in_parts(wire, AGAIN._replace(form=ARROW))
    batches = list(pa.ipc.open_stream(found.body))
    assert found.messages == 100 and max([len(one) for one in batches]) <= 8 + 4
    ids = pa.Table.from_batches(batches)["message_id"].to_pylist()
    assert len(set(ids)) == 100 and rounds >= 100 // 8 - 1


def test_a_batch_that_ends_while_it_is_told_is_refused() -> None:
    wire = filled(100, Bench(settings=PARTS))
    wire.send(bodies.LeaseBatch("q", "s/0", 100, form=2))
    wire.settle()
    leased(wire)
    other = Wire(wire.bench, limits=LIMITS)
    wire.send(AGAIN, request_id=7)
    for _ in range(6):
        wire.bench.loop.step()
    assert wire.frames() == []
    other.send(bodies.AckBatch("q", "s/0"))
    other.settle()
    ((opcode, request_id, body),) = wire.frames()
    assert (opcode, request_id) == (op.ERROR, 7)
    assert layouts.decode(bodies.Error, body).code == errors.BATCH_NOT_FOUND
    assert len(wire.bench.broker.telling) == 0
    assert in_parts(wire, bodies.LeaseBatch("q", "s/1", 1))[0].messages == 0


def test_a_connection_that_ends_while_it_is_told_leaves_nothing_behind() -> None:
    wire = filled(100, Bench(settings=PARTS))
    wire.send(bodies.LeaseBatch("q", "s/0", 100, form=2))
    wire.settle()
    gone = Wire(wire.bench, limits=LIMITS)
    gone.send(AGAIN, request_id=7)
    for _ in range(6):
        wire.bench.loop.step()
    gone.connection.connection_lost(None)
    wire.settle()
    assert len(wire.bench.broker.telling) == 0
    found, _ = in_parts(wire, AGAIN)
    assert found.messages == 100
