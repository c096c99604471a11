"""Frames for streams that are over, and bodies that are not as long as they were said to be."""

from __future__ import annotations

import pytest

from fila.edges.grpc import frames
from fila.edges.grpc.fields import encode, status_200
from fila.edges.grpc.http2 import DATA, REQUEST, RESET, Http2Limits
from fila.edges.grpc.outflow import ABANDONED_MAX
from tests.grpc.bytes_in import Raw, data, fields_block, headers

RESPONSE = status_200([(b"content-type", b"application/grpc")]) + encode([(b"grpc-status", b"0")])
CLOSED = frames.STREAM_CLOSED


def test_data_after_the_client_cancelled_is_an_error_of_the_stream() -> None:
    raw = Raw()
    raw.feed(headers(1) + frames.rst_stream(1, frames.CANCEL))
    assert raw.feed(data(1, b"x", False)) == []
    assert frames.rst_stream(1, CLOSED) in raw.out()
    assert [kind for kind, *_ in raw.feed(headers(3))] == [REQUEST]


def test_data_after_both_sides_have_ended_is_an_error_of_the_stream() -> None:
    raw = Raw()
    raw.feed(headers(1, end=True))
    raw.server.out.trailers(raw.server.streams[1], RESPONSE)
    raw.out()
    raw.feed(data(1, b"x", False))
    assert raw.out() == frames.rst_stream(1, CLOSED)


def test_data_that_was_on_its_way_when_the_server_ended_the_call_is_ignored() -> None:
    raw = Raw()
    raw.feed(headers(1))
    raw.server.out.trailers(raw.server.streams[1], RESPONSE)
    raw.out()
    assert raw.feed(data(1, b"late", False) + data(1, b"last", True)) == []
    assert raw.out() == b""
    # It has said that this was all: from now on it knows better.
    raw.feed(data(1, b"more", False))
    assert raw.out() == frames.rst_stream(1, CLOSED)


def test_trailers_that_were_on_their_way_are_decoded_and_ignored() -> None:
    raw = Raw()
    raw.feed(headers(1))
    raw.server.out.trailers(raw.server.streams[1], RESPONSE)
    raw.out()
    # They change the table of fields: who skips them misunderstands whatever comes after.
    assert raw.feed(headers(1, end=True, block=b"\x40\x01a\x01b")) == []
    ((kind, stream, request, _),) = raw.feed(headers(3, block=fields_block() + b"\xbe"))
    assert (kind, stream.id, request.malformed) == (REQUEST, 3, "")  # type: ignore[union-attr]


def test_data_of_a_call_that_was_refused_for_being_too_many_is_ignored() -> None:
    raw = Raw(Http2Limits(streams_max=1))
    raw.feed(headers(1) + headers(3))
    assert frames.rst_stream(3, frames.REFUSED_STREAM) in raw.out()
    assert raw.feed(data(3, b"late", True)) == []
    assert raw.out() == b""


def test_only_so_many_streams_are_remembered() -> None:
    raw = Raw()
    last = 2 * ABANDONED_MAX + 21
    for id in range(1, last + 1, 2):
        raw.feed(headers(id))
        raw.server.out.trailers(raw.server.streams[id], RESPONSE)
    raw.out()
    assert len(raw.server.out.abandoned) == ABANDONED_MAX
    raw.feed(data(1, b"very late", False) + data(last, b"late", False))
    assert raw.out() == frames.rst_stream(1, CLOSED)


def test_data_for_closed_streams_without_end_is_too_much() -> None:
    raw = Raw()
    raw.feed(headers(1) + frames.rst_stream(1, frames.CANCEL))
    assert raw.fault(data(1, b"", False) * 3_000) == frames.ENHANCE_YOUR_CALM


def announced(length: bytes) -> bytes:
    return fields_block() + encode([(b"content-length", length)])


@pytest.mark.parametrize(
    "sent",
    [
        data(1, b"abcdef", True),  # more than was said
        data(1, b"abc", False) + data(1, b"def", False),
        data(1, b"abc", True),  # less
        data(1, b"abc", False) + data(1, b"", True),
        data(1, b"abc", False) + headers(1, end=True, block=encode([(b"x", b"y")])),
    ],
)
def test_a_body_of_another_length_than_announced_ends_the_stream(sent: bytes) -> None:
    raw = Raw()
    raw.feed(headers(1, block=announced(b"5")))
    events = raw.feed(sent)
    assert events[-1][0] == RESET
    assert frames.rst_stream(1, frames.PROTOCOL_ERROR) in raw.out()
    assert [kind for kind, *_ in raw.feed(headers(3))] == [REQUEST]


def test_a_body_as_long_as_announced_arrives_padding_not_counted() -> None:
    raw = Raw()
    raw.feed(headers(1, block=announced(b"5")))
    padded = frames.frame(frames.DATA, frames.PADDED, 1, b"\x04abc" + bytes(4))
    events = raw.feed(padded + data(1, b"de", True))
    assert [(kind, content) for kind, _, content, _ in events] == [(DATA, b"abc"), (DATA, b"de")]


@pytest.mark.parametrize("length", [b"", b"-1", b"1x", b"+3", b"9" * 19, b"\xb2"])
def test_a_length_that_is_none_ends_the_stream(length: bytes) -> None:
    raw = Raw()
    assert raw.feed(headers(1, block=announced(length))) == []
    assert frames.rst_stream(1, frames.PROTOCOL_ERROR) in raw.out()


def test_a_length_said_twice_has_to_be_the_same() -> None:
    raw = Raw()
    same = announced(b"5") + encode([(b"content-length", b"5")])
    other = announced(b"5") + encode([(b"content-length", b"6")])
    assert [kind for kind, *_ in raw.feed(headers(1, block=same))] == [REQUEST]
    assert raw.feed(headers(3, block=other)) == []
    assert frames.rst_stream(3, frames.PROTOCOL_ERROR) in raw.out()


def test_a_body_that_was_announced_and_does_not_come_at_all_ends_the_stream() -> None:
    raw = Raw()
    assert raw.feed(headers(1, end=True, block=announced(b"5"))) == []
    assert frames.rst_stream(1, frames.PROTOCOL_ERROR) in raw.out()
