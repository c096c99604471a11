"""Large messages: copied rarely on their way in, and never many of them read and stored at once."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from fila.core.work import SHIFT
from fila.edges.grpc.v1 import bulk_pb2
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import (
    CONTINUATION,
    LARGE_BYTES,
    FrameDecoder,
    encode_frames,
    frame_header,
    frame_views,
)
from tests.broker.turns import Bench
from tests.edges.wires import GrpcWire, Wire

KiB = 1 << 10
MiB = 1 << 20
SIZE = 100 * KiB
COUNT = 200  # 20 MB of them


def pieces_of(data: bytes, rng: random.Random) -> list[bytes]:
    found = []
    while data:
        size = rng.choice((1, 7, 9, 11, 1_000, LARGE_BYTES, 256 * KiB))
        found.append(data[:size])
        data = data[size:]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_large_and_small_frames_come_out_as_they_went_in_whatever_the_pieces(seed: int) -> None:
    rng = random.Random(seed)
    sent = []
    data = b""
    for number in range(30):
        body = rng.randbytes(rng.choice((0, 5, LARGE_BYTES - 6, LARGE_BYTES + 1, 300_000)))
        frame_max = rng.choice((MiB, 70_000, 3_000))
        sent.append((number % 200, number, body))
        data += encode_frames(number % 200, number, body, frame_max)
    decoder = FrameDecoder(MiB)
    found = []
    for piece in pieces_of(data, rng):
        most = rng.choice((0, 1, 256))
        found += decoder.feed(piece, most)
        if rng.random() < 0.5:
            while decoder.more:
                found += decoder.feed(b"", rng.choice((1, 256)))
    while decoder.more:
        found += decoder.feed(b"")
    assert found == sent
    assert decoder.buffered_bytes == 0 and decoder.take_errors() == []


def peak_bytes(decoder: FrameDecoder, data: bytes) -> int:
    parts = [data[at : at + 256 * KiB] for at in range(0, len(data), 256 * KiB)]
    tracemalloc.start()
    try:
        found = []
        for part in parts:
            found += decoder.feed(part)
        assert len(found) == 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_frame_is_in_memory_twice_at_most() -> None:
    body = b"x" * (8 * MiB)
    assert peak_bytes(FrameDecoder(), encode_frames(1, 1, body)) < 2.3 * len(body)


def test_so_is_one_that_comes_in_several() -> None:
    body = b"x" * (8 * MiB)
    assert peak_bytes(FrameDecoder(), encode_frames(1, 1, body, MiB)) < 2.3 * len(body)


def test_a_flood_of_tiny_pieces_costs_only_its_bytes() -> None:
    tiny = frame_header(1, CONTINUATION, 1, 1) + b"x"
    data = tiny * 200_000 + frame_header(1, 0, 1, 0)
    assert peak_bytes(FrameDecoder(), data) < 4 * MiB


def test_a_delivery_in_several_frames_is_no_copy_of_its_body() -> None:
    body = bytes(5 * MiB)
    parts = frame_views(1, 1, body, MiB)
    views = [one for one in parts if isinstance(one, memoryview)]
    assert all(view.obj is body for view in views) and sum(map(len, views)) == len(body)
    assert b"".join(parts) == encode_frames(1, 1, body, MiB)


# --- messages that are read and stored anew


def stored_bytes(bench: Bench) -> list[int]:
    """What each turn wrote."""
    return [
        sum(len(value) for one in batches for _, _, value in one.ops)
        for batches in bench.committer.commits
    ]


def held(bench: Bench, prefetch: int = 4) -> tuple[Wire, list[bytes]]:
    """A connection whose consumers hold all messages of a queue of large ones."""
    wire = Wire(bench)
    wire.send(bodies.CreateQueue("q"))
    wire.settle()
    item = bodies.EnqueueItem("q", {}, bytes(SIZE))
    for at in range(COUNT // 10):
        wire.send(bodies.Enqueue((item,) * 10), request_id=at)
        wire.settle()
        wire.received()
    for at in range(COUNT // prefetch):
        wire.send(bodies.Consume("q", prefetch), request_id=1_000 + at)
    ids: list[bytes] = []
    while len(ids) < COUNT:
        wire.settle()
        for opcode, _, body in wire.frames():
            if opcode == op.DELIVERY:
                ids += [one[0] for one in message_codec.decode_delivery(body)]
    return wire, ids


STEP_BYTES = 256 << SHIFT  # of a request in steps, with the default settings


@pytest.mark.parametrize("opcode", [op.NACK, op.RELEASE])
def test_a_small_request_that_names_many_large_messages_takes_many_turns(opcode: int) -> None:
    bench = Bench()
    wire, ids = held(bench)
    field = message_codec.queue_field(b"q")
    if opcode == op.NACK:
        body = message_codec.encode_nacks([(field, id, b"no") for id in ids])
    else:
        body = len(ids).to_bytes(4, "big") + b"".join(
            field + len(id).to_bytes(2, "big") + id for id in ids
        )
    before = len(stored_bytes(bench))
    wire.send_bytes(encode_frames(opcode, 7, body))
    wire.settle()
    found = [body for number, request, body in wire.frames() if request == 7]
    assert list(message_codec.decode_codes(found[0])) == [errors.OK] * COUNT
    turns = stored_bytes(bench)[before:]
    assert sum(turns) >= COUNT * SIZE and max(turns) <= 3 * STEP_BYTES


@pytest.mark.parametrize("method", ["FilaService/Nack", "FilaBulk/Release"])
def test_so_does_one_over_grpc(method: str) -> None:
    bench = Bench()
    wire, ids = held(bench)
    names = [id.decode() for id in ids]
    request: bytes
    if method == "FilaService/Nack":
        nacks = [pb.NackMessage(queue="q", message_id=id, error="no") for id in names]
        request = pb.NackRequest(messages=nacks).SerializeToString()
    else:
        request = bulk_pb2.ReleaseRequest(queue="q", message_ids=names).SerializeToString()
    caller = GrpcWire(bench)
    wire.connection.connection_lost(None)  # who holds them is gone: anybody may say so
    before = len(stored_bytes(bench))
    caller.call(1, method, request)
    bench.loop.settle()
    ((said,), fields) = caller.answers()[1]
    assert fields is not None
    if method == "FilaService/Nack":
        assert all(one.HasField("success") for one in pb.NackResponse.FromString(said).results)
    else:
        assert list(bulk_pb2.ReleaseResponse.FromString(said).codes) == [0] * COUNT
    turns = stored_bytes(bench)[before:]
    assert sum(turns) >= COUNT * SIZE and max(turns) <= 3 * STEP_BYTES


def test_what_is_handed_back_by_who_leaves_is_bounded_in_bytes() -> None:
    bench = Bench()
    wire, _ = held(bench)
    before = len(stored_bytes(bench))
    wire.send(bodies.Disconnect())
    bench.loop.settle()
    assert bench.broker.machine.state.queues["q"].pending == COUNT
    turns = stored_bytes(bench)[before:]
    # One lease at least, which is as large as a consumer's prefetch here.
    assert sum(turns) >= COUNT * SIZE and max(turns) <= 4 * STEP_BYTES


def test_leases_of_large_messages_that_run_out_together_end_some_at_a_time() -> None:
    bench = Bench()
    wire, _ = held(bench)
    before = len(stored_bytes(bench))
    for at in range(COUNT // 4):
        wire.send(bodies.CancelConsume(), request_id=1_000 + at)
    wire.settle()
    bench.time.pass_ms(60_000)
    bench.broker.begin()
    bench.loop.settle()
    assert bench.broker.machine.state.queues["q"].pending == COUNT
    turns = stored_bytes(bench)[before:]
    assert sum(turns) >= COUNT * SIZE and max(turns) <= 4 * STEP_BYTES
