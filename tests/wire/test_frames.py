from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import opcodes as op
from fila.wire.errors import INVALID_FRAME
from fila.wire.frames import CONTINUATION, FrameDecoder, encode_frames, frame_header

FRAMES = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=60)), max_size=8
)


def _piece(opcode: int, flags: int, request_id: int, body: bytes) -> bytes:
    return frame_header(opcode, flags, request_id, len(body)) + body


def test_a_frame_is_length_opcode_flags_request_id_and_body() -> None:
    assert encode_frames(op.PING, 7).hex() == "00000006" + "03" + "00" + "00000007"
    assert (
        encode_frames(op.GET_STATS, 1, b"abc").hex() == "00000009" + "f9" + "00" + "00000001616263"
    )


@given(FRAMES, st.data())
def test_frames_come_out_whole_however_the_bytes_are_cut(
    frames: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(encode_frames(*frame) for frame in frames)
    decoder = FrameDecoder()
    received: list[Any] = []
    position = 0
    while position < len(stream):
        size = data.draw(st.integers(1, 30))
        received += decoder.feed(stream[position : position + size])
        position += size
    assert received == frames
    assert decoder.buffered_bytes == 0
    assert decoder.take_errors() == []


def test_a_stream_cut_in_two_at_every_byte_gives_the_same_frames() -> None:
    frames = [(op.ENQUEUE, 1, b"x" * 100), (op.PING, 2, b""), (op.ACK, 3, b"y" * 50)]
    stream = b"".join(encode_frames(*frame, frame_bytes_max=40) for frame in frames)
    for cut in range(len(stream) + 1):
        decoder = FrameDecoder(frame_bytes_max=40)
        assert decoder.feed(stream[:cut]) + decoder.feed(stream[cut:]) == frames


@given(st.binary(max_size=400), st.integers(7, 50))
def test_a_body_larger_than_a_frame_is_continued_and_joined(body: bytes, limit: int) -> None:
    stream = encode_frames(op.ENQUEUE, 9, body, limit)
    pieces = FrameDecoder(frame_bytes_max=limit)
    assert pieces.feed(stream) == [(op.ENQUEUE, 9, body)]
    longest = max(1, -(-len(body) // (limit - 6)))
    assert len(stream) == len(body) + 10 * longest


def test_pieces_of_different_requests_may_interleave() -> None:
    decoder = FrameDecoder()
    stream = [
        _piece(op.ENQUEUE, CONTINUATION, 1, b"a"),
        _piece(op.ENQUEUE, CONTINUATION, 2, b"x"),
        _piece(op.ACK, CONTINUATION, 1, b"-"),
        _piece(op.PING, 0, 3, b""),
        _piece(op.ENQUEUE, 0, 2, b"y"),
        _piece(op.ENQUEUE, CONTINUATION, 1, b"b"),
        _piece(op.ENQUEUE, 0, 1, b"c"),
        _piece(op.ACK, 0, 1, b"-"),
    ]
    assert decoder.feed(b"".join(stream)) == [
        (op.PING, 3, b""),
        (op.ENQUEUE, 2, b"xy"),
        (op.ENQUEUE, 1, b"abc"),
        (op.ACK, 1, b"--"),
    ]
    assert decoder.buffered_bytes == 0


def test_a_frame_longer_than_the_limit_is_fatal_and_names_its_request() -> None:
    decoder = FrameDecoder(frame_bytes_max=100)
    ping = encode_frames(op.PING, 1)
    assert decoder.feed(ping + frame_header(op.ENQUEUE, 0, 77, 95)) == [(op.PING, 1, b"")]
    [error] = decoder.take_errors()
    assert (error.code, error.request_id, error.fatal) == (INVALID_FRAME, 77, True)
    assert error.message == "frame of 101 bytes exceeds the limit of 100"
    assert decoder.feed(ping) == []
    assert decoder.take_errors() == []


def test_a_frame_of_exactly_the_limit_is_accepted() -> None:
    decoder = FrameDecoder(frame_bytes_max=100)
    assert decoder.feed(encode_frames(op.ENQUEUE, 1, b"x" * 94, 100)) == [
        (op.ENQUEUE, 1, b"x" * 94)
    ]


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_lying_length_gets_the_same_verdict_however_it_is_cut(cut: int) -> None:
    decoder = FrameDecoder()
    junk = b"\xff\xff\xff\xff\x10\x00\x00\x00\x00\x05"
    assert decoder.feed(junk[:cut]) + decoder.feed(junk[cut:]) == []
    [error] = decoder.take_errors()
    assert error.fatal
    assert error.request_id == 5
    assert decoder.buffered_bytes == 0


@pytest.mark.parametrize("length", range(6))
def test_a_length_shorter_than_the_header_is_fatal(length: int) -> None:
    for rest in (b"", b"\x03\x00\x00\x00\x00\x01"):
        decoder = FrameDecoder()
        assert decoder.feed(length.to_bytes(4) + rest) == []
        [error] = decoder.take_errors()
        assert error.fatal
        assert "shorter than its 6-byte header" in error.message


def test_reserved_flags_cost_only_the_message_that_used_them() -> None:
    decoder = FrameDecoder()
    stream = [
        _piece(op.ENQUEUE, 0x80, 1, b"a"),
        _piece(op.ENQUEUE, 0x02 | CONTINUATION, 2, b"a"),
        _piece(op.ENQUEUE, CONTINUATION, 2, b"b"),
        _piece(op.ENQUEUE, 0, 2, b"c"),
        _piece(op.ENQUEUE, 0, 2, b"fresh"),
    ]
    assert decoder.feed(b"".join(stream)) == [(op.ENQUEUE, 2, b"fresh")]
    errors = decoder.take_errors()
    assert [(error.request_id, error.fatal) for error in errors] == [(1, False), (2, False)]


def test_a_message_over_the_assembly_limit_is_dropped_and_the_connection_lives_on() -> None:
    decoder = FrameDecoder(frame_bytes_max=50, assembly_bytes_max=100)
    assert decoder.feed(encode_frames(op.ENQUEUE, 1, b"x" * 500, 50)) == []
    [error] = decoder.take_errors()
    assert (error.request_id, error.fatal) == (1, False)
    assert "exceed 100 bytes" in error.message
    assert decoder.buffered_bytes == 0
    assert decoder.feed(encode_frames(op.ENQUEUE, 1, b"y" * 90, 50)) == [(op.ENQUEUE, 1, b"y" * 90)]


def test_a_flood_of_started_messages_is_first_refused_and_then_fatal() -> None:
    decoder = FrameDecoder(assembly_streams_max=4)
    for request_id in range(8):
        decoder.feed(_piece(op.ENQUEUE, CONTINUATION, request_id, b"x"))
    assert [error.fatal for error in decoder.take_errors()] == [False] * 4
    assert decoder.buffered_bytes == 4
    decoder.feed(_piece(op.ENQUEUE, CONTINUATION, 8, b"x"))
    assert [error.fatal for error in decoder.take_errors()] == [True]
    assert decoder.buffered_bytes == 0


def test_a_flood_of_empty_pieces_takes_no_memory() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(_piece(op.ENQUEUE, CONTINUATION, 1, b"") * 10_000) == []
    assert decoder.buffered_bytes == 0
    assert decoder.feed(_piece(op.ENQUEUE, 0, 1, b"end")) == [(op.ENQUEUE, 1, b"end")]


def test_a_large_message_arrives_in_small_chunks_without_quadratic_work() -> None:
    body = bytes(8 * 1024 * 1024)
    stream = encode_frames(op.ENQUEUE, 1, body, 1024 * 1024)
    decoder = FrameDecoder(frame_bytes_max=1024 * 1024)
    received: list[Any] = []
    for position in range(0, len(stream), 1000):
        received += decoder.feed(stream[position : position + 1000])
    assert received == [(op.ENQUEUE, 1, body)]


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_random_bytes_never_raise_and_never_pile_up(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(frame_bytes_max=64, assembly_bytes_max=64, assembly_streams_max=2)
    for chunk in chunks:
        decoder.feed(chunk)
        for error in decoder.take_errors():
            assert error.code == INVALID_FRAME
        assert decoder.buffered_bytes <= 64 + 4 + 64
