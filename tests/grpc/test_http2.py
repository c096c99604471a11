"""HTTP/2 in memory: an independent implementation on the other side, then raw bytes."""

import random
from collections.abc import Callable

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.edges.grpc import frames, http2
from fila.edges.grpc.fields import Request, encode, status_200
from fila.edges.grpc.http2 import DATA, REQUEST, RESET, Http2, Http2Error, Http2Limits
from fila.edges.grpc.outflow import Stream
from tests.grpc.bytes_in import FIELDS, Clock, Raw, data, fields_block, headers

RESPONSE = status_200([(b"content-type", b"application/grpc")])
TRAILERS = encode([(b"grpc-status", b"0")])


class Pair:
    """Our server and a client of another maker, joined in memory."""

    def __init__(self, limits: Http2Limits | None = None) -> None:
        self.clock = Clock()
        self.server = Http2(limits or Http2Limits(), self.clock)
        self.client = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        )
        self.client.initiate_connection()
        self.exchange()

    def exchange(self) -> tuple[list[http2.Event], list[h2.events.Event]]:
        """Carry bytes both ways until there are none."""
        ours: list[http2.Event] = []
        theirs: list[h2.events.Event] = []
        while True:
            data = self.client.data_to_send()
            if data or self.server.more:
                ours += self.server.feed(data)
            back = self.server.out.take()
            if back:
                theirs += self.client.receive_data(back)
            if not data and not back and not self.server.more:
                return ours, theirs

    def request(self, data: bytes = b"", end: bool = True) -> Stream:
        id = self.client.get_next_available_stream_id()
        self.client.send_headers(id, FIELDS, end_stream=end and not data)
        if data:
            self.client.send_data(id, data, end_stream=end)
        self.exchange()
        return self.server.streams[id]


def test_a_request_arrives_with_the_fields_that_matter() -> None:
    pair = Pair()
    pair.client.send_headers(1, [*FIELDS, ("grpc-timeout", "5S")])
    ((kind, stream, request, ended),), _ = pair.exchange()
    assert (kind, stream.id, ended) == (REQUEST, 1, False)
    assert request == Request(
        b"POST",
        b"/fila.v1.FilaService/Enqueue",
        b"application/grpc",
        b"5S",
        b"",
        b"Bearer 0123",
    )


def test_a_response_is_understood() -> None:
    pair = Pair()
    stream = pair.request(b"hello")
    pair.server.out.headers(stream, RESPONSE)
    pair.server.out.data(stream, b"world")
    pair.server.out.trailers(stream, TRAILERS)
    _, events = pair.exchange()
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["ResponseReceived", "DataReceived", "TrailersReceived", "StreamEnded"]
    assert events[1].data == b"world"  # type: ignore[attr-defined]
    assert ("grpc-status", "0") in events[2].headers  # type: ignore[attr-defined]
    assert pair.server.streams == {}


def test_a_call_that_is_over_before_the_client_finished_tells_it_to_stop() -> None:
    pair = Pair()
    stream = pair.request(end=False)
    pair.server.out.trailers(stream, RESPONSE + TRAILERS)
    _, events = pair.exchange()
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["ResponseReceived", "StreamEnded", "StreamReset"]


def test_repeated_fields_are_decoded_once_and_mean_the_same() -> None:
    pair = Pair()
    seen = []
    for _ in range(5):
        id = pair.client.get_next_available_stream_id()
        pair.client.send_headers(id, FIELDS, end_stream=True)
        (event,), _ = pair.exchange()
        seen.append(event[2])
    assert seen == [seen[0]] * 5
    assert seen[4] is seen[2], "the same block of bytes is looked up, not decoded"


def test_remembered_fields_are_forgotten_when_the_table_changes() -> None:
    pair = Pair()
    noise = random.Random(1)
    for number in range(300):
        path = f"/service/{noise.randrange(6)}"
        extra = [("x-request", f"{noise.randrange(40)}")] if noise.random() < 0.5 else []
        fields = [*FIELDS[:2], (":path", path), *FIELDS[3:], *extra]
        id = pair.client.get_next_available_stream_id()
        pair.client.send_headers(id, fields, end_stream=True)
        (event,), _ = pair.exchange()
        assert isinstance(event[2], Request)
        assert event[2].path == path.encode(), f"request {number}"
        pair.server.out.trailers(event[1], RESPONSE + TRAILERS)


@given(
    st.lists(st.integers(0, 200_000), max_size=6),
    st.sampled_from((0, 1_000, 16_384, 65_535, 200_000)),
)
@settings(max_examples=25)
def test_what_is_sent_arrives_whatever_the_windows(sizes: list[int], window: int) -> None:
    pair = Pair()
    pair.client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
    streams = [pair.request() for _ in range(3)]
    sent: dict[int, bytes] = {}
    for at, stream in enumerate(streams):
        pair.server.out.headers(stream, RESPONSE)
        sent[stream.id] = b"".join(bytes([at]) * size for size in sizes)
        for size in sizes:
            if size:
                pair.server.out.data(stream, bytes([at]) * size)
        pair.server.out.trailers(stream, TRAILERS)
    got = dict.fromkeys(sent, b"")
    ended = set()
    for _ in range(10_000):
        _, events = pair.exchange()
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                got[event.stream_id] += event.data
                pair.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                ended.add(event.stream_id)
        if len(ended) == 3:
            break
        if window == 0:
            for stream in streams:
                if stream.id not in ended:
                    pair.client.increment_flow_control_window(50_000, stream.id)
    assert got == sent
    assert pair.server.out.waiting_bytes == 0


def test_nothing_is_sent_beyond_the_window() -> None:
    pair = Pair()
    stream = pair.request()
    pair.server.out.headers(stream, RESPONSE)
    pair.server.out.data(stream, b"x" * 200_000)
    _, events = pair.exchange()
    data = [event for event in events if isinstance(event, h2.events.DataReceived)]
    assert sum(len(event.data or b"") for event in data) == 65_535
    assert stream.out_bytes == pair.server.out.waiting_bytes == 200_000 - 65_535


def test_streams_take_turns() -> None:
    pair = Pair()
    streams = [pair.request() for _ in range(2)]
    pair.server.out.blocked = True
    for stream in streams:
        pair.server.out.headers(stream, RESPONSE)
        pair.server.out.data(stream, b"x" * 30_000)
    pair.server.out.blocked = False
    _, events = pair.exchange()
    order = [event.stream_id for event in events if isinstance(event, h2.events.DataReceived)]
    assert order == [1, 3, 1, 3]


def test_no_data_leaves_while_the_socket_is_full() -> None:
    pair = Pair()
    stream = pair.request()
    pair.server.out.headers(stream, RESPONSE)
    pair.exchange()
    pair.server.out.blocked = True
    pair.server.out.data(stream, b"late")
    pair.client.ping(b"12345678")
    _, events = pair.exchange()
    assert [type(event).__name__ for event in events] == ["PingAckReceived"]
    pair.server.out.blocked = False
    _, events = pair.exchange()
    assert [type(event).__name__ for event in events] == ["DataReceived"]


def test_the_client_may_send_again_what_was_given_back() -> None:
    limits = Http2Limits(stream_window_bytes=65_536, connection_window_bytes=131_072)
    pair = Pair(limits)
    stream = pair.request(end=False)
    received = 0
    for _ in range(100):
        room = min(
            pair.client.local_flow_control_window(stream.id),
            pair.client.max_outbound_frame_size,
        )
        assert room > 0
        pair.client.send_data(stream.id, b"x" * room)
        events, _ = pair.exchange()
        received += sum(len(data) for kind, _, data, _ in events if kind == DATA)
        pair.server.give_back(stream)
        pair.exchange()
    assert received > 500_000


def test_a_stream_that_is_not_given_back_holds_up_only_itself() -> None:
    limits = Http2Limits(stream_window_bytes=65_536, connection_window_bytes=131_072)
    pair = Pair(limits)
    held, other = pair.request(end=False), pair.request(end=False)
    while pair.client.local_flow_control_window(held.id) > 0:
        room = min(16_384, pair.client.local_flow_control_window(held.id))
        pair.client.send_data(held.id, b"x" * room)
        pair.exchange()
    for _ in range(20):
        pair.client.send_data(other.id, b"y" * 16_384)
        events, _ = pair.exchange()
        assert [kind for kind, *_ in events] == [DATA]
        pair.server.give_back(other)
        pair.exchange()
    assert pair.client.local_flow_control_window(held.id) == 0


def test_a_cancelled_call_is_an_event_and_its_data_is_dropped() -> None:
    pair = Pair()
    stream = pair.request(end=False)
    pair.server.out.data(stream, b"x" * 100_000)
    pair.client.reset_stream(stream.id)
    events, _ = pair.exchange()
    assert [kind for kind, *_ in events] == [RESET]
    assert stream.closed and pair.server.streams == {}
    assert pair.server.out.waiting_bytes == 0
    pair.server.out.data(stream, b"more")  # nobody minds
    pair.server.out.trailers(stream, TRAILERS)
    assert pair.server.out.take() == b""


def test_calls_beyond_the_limit_are_refused_and_the_others_go_on() -> None:
    pair = Pair(Http2Limits(streams_max=3))
    raw = Raw(Http2Limits(streams_max=3))
    for id in (1, 3, 5):
        assert len(raw.feed(headers(id))) == 1
    assert raw.feed(headers(7)) == []
    assert frames.rst_stream(7, frames.REFUSED_STREAM) in raw.out()
    assert raw.feed(frames.frame(frames.DATA, 0, 7, b"late")) == []
    assert [kind for kind, *_ in raw.feed(data(3, b"x", True))] == [DATA]
    assert pair.client.remote_settings.max_concurrent_streams == 3


def test_after_going_away_new_calls_are_ignored_and_old_ones_finish() -> None:
    raw = Raw()
    raw.feed(headers(1))
    raw.server.go_away(frames.NO_ERROR, "bye")
    assert frames.goaway(1, frames.NO_ERROR, "bye") in raw.out()
    assert raw.feed(headers(3)) == []
    assert [kind for kind, *_ in raw.feed(data(1, b"x", True))] == [DATA]
    assert raw.feed(data(3, b"x", True)) == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_bytes_may_come_in_pieces_of_any_size(size: int) -> None:
    server = Http2(Http2Limits(), Clock())
    stream = (
        frames.PREFACE
        + frames.settings({})
        + headers(1, end=False)
        + data(1, b"hello", False)
        + data(1, b"", True)
    )
    events = []
    for at in range(0, len(stream), size):
        events += server.feed(stream[at : at + size])
    assert [kind for kind, *_ in events] == [REQUEST, DATA, DATA]


def test_padding_and_priorities_are_taken_off() -> None:
    raw = Raw()
    block = fields_block()
    padded = bytes((4,)) + b"\x00\x00\x00\x00\x10" + block + bytes(4)
    flags = frames.PADDED | frames.WITH_PRIORITY | frames.END_HEADERS
    ((kind, _, request, _),) = raw.feed(frames.frame(frames.HEADERS, flags, 1, padded))
    assert kind == REQUEST and isinstance(request, Request) and request.method == b"POST"
    frame = frames.frame(frames.DATA, frames.PADDED, 1, b"\x03abc" + bytes(3))
    ((_, _, found, _),) = raw.feed(frame)
    assert found == b"abc"


def test_fields_may_be_continued() -> None:
    raw = Raw()
    block = fields_block()
    assert raw.feed(frames.frame(frames.HEADERS, frames.END_STREAM, 1, block[:5])) == []
    assert raw.feed(frames.frame(frames.CONTINUATION, 0, 1, block[5:9])) == []
    last = frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, block[9:])
    ((kind, _, _, ended),) = raw.feed(last)
    assert (kind, ended) == (REQUEST, True)


def test_a_peer_that_shrinks_its_table_is_told_that_it_is_not_used() -> None:
    raw = Raw()
    raw.feed(headers(1))
    raw.feed(frames.settings({frames.HEADER_TABLE_SIZE: 0}))
    raw.server.out.headers(raw.server.streams[1], RESPONSE)
    raw.server.out.trailers(raw.server.streams[1], TRAILERS)
    out = raw.out()
    assert b"\x20" + RESPONSE in out
    assert b"\x20" + TRAILERS not in out


def test_too_large_fields_are_marked_and_far_too_large_ones_end_the_connection() -> None:
    raw = Raw(Http2Limits(header_bytes_max=4_096))
    large = encode([(b"x-large", b"v" * 5_000)])
    ((_, _, request, _),) = raw.feed(headers(1, block=fields_block() + large))
    assert isinstance(request, Request) and request.too_large
    huge = encode([(b"x-huge", b"v" * 9_000)])
    assert raw.fault(headers(3, block=fields_block() + huge)) == frames.ENHANCE_YOUR_CALM


BROKEN: dict[str, tuple[Callable[[], bytes], int]] = {
    "a frame larger than allowed": (
        lambda: frames.frame_header(300_000, frames.DATA, 0, 1),
        frames.FRAME_SIZE_ERROR,
    ),
    "data for a stream never opened": (lambda: data(9, b"x", False), frames.PROTOCOL_ERROR),
    "data for the connection": (lambda: data(0, b"x", False), frames.PROTOCOL_ERROR),
    "fields of a stream with an even number": (lambda: headers(2), frames.PROTOCOL_ERROR),
    "fields of stream 0": (lambda: headers(0), frames.PROTOCOL_ERROR),
    "a stream that goes back": (lambda: headers(5) + headers(3), frames.STREAM_CLOSED),
    "fields that are not finished": (
        lambda: frames.frame(frames.HEADERS, 0, 1, fields_block()) + data(1, b"", True),
        frames.PROTOCOL_ERROR,
    ),
    "fields continued on another stream": (
        lambda: (
            frames.frame(frames.HEADERS, 0, 1, fields_block())
            + frames.frame(frames.CONTINUATION, frames.END_HEADERS, 3, b"")
        ),
        frames.PROTOCOL_ERROR,
    ),
    "a continuation of nothing": (
        lambda: frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b""),
        frames.PROTOCOL_ERROR,
    ),
    "fields that cannot be decoded": (
        lambda: headers(1, block=b"\xff\xff\xff\xff\xff"),
        frames.COMPRESSION_ERROR,
    ),
    "a table larger than allowed": (
        lambda: headers(1, block=b"\x3f\xff\xff\x07" + fields_block()),
        frames.COMPRESSION_ERROR,
    ),
    "settings of a stream": (
        lambda: frames.frame(frames.SETTINGS, 0, 1, b""),
        frames.PROTOCOL_ERROR,
    ),
    "settings of a strange length": (
        lambda: frames.frame(frames.SETTINGS, 0, 0, b"12345"),
        frames.FRAME_SIZE_ERROR,
    ),
    "a window of more than 31 bits": (
        lambda: frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 31}),
        frames.FLOW_CONTROL_ERROR,
    ),
    "a frame size below the least": (
        lambda: frames.settings({frames.MAX_FRAME_SIZE: 100}),
        frames.PROTOCOL_ERROR,
    ),
    "a push setting that is no bool": (
        lambda: frames.settings({frames.ENABLE_PUSH: 2}),
        frames.PROTOCOL_ERROR,
    ),
    "a connection window that overflows": (
        lambda: frames.window_update(0, (1 << 31) - 1),
        frames.FLOW_CONTROL_ERROR,
    ),
    "a window that grows by nothing": (lambda: frames.window_update(0, 0), frames.PROTOCOL_ERROR),
    "a window update of a strange length": (
        lambda: frames.frame(frames.WINDOW_UPDATE, 0, 0, b"123"),
        frames.FRAME_SIZE_ERROR,
    ),
    "a reset of a stream never opened": (lambda: frames.rst_stream(9, 8), frames.PROTOCOL_ERROR),
    "a ping of a stream": (
        lambda: frames.frame(frames.PING, 0, 1, bytes(8)),
        frames.PROTOCOL_ERROR,
    ),
    "a ping of a strange length": (
        lambda: frames.frame(frames.PING, 0, 0, bytes(7)),
        frames.FRAME_SIZE_ERROR,
    ),
    "a push": (lambda: frames.frame(frames.PUSH_PROMISE, 0, 1, bytes(4)), frames.PROTOCOL_ERROR),
    "more padding than frame": (
        lambda: headers(1) + frames.frame(frames.DATA, frames.PADDED, 1, b"\x05ab"),
        frames.PROTOCOL_ERROR,
    ),
    "a stream that depends on itself": (
        lambda: frames.frame(frames.PRIORITY, 0, 1, b"\x00\x00\x00\x01\x10"),
        frames.PROTOCOL_ERROR,
    ),
    "more data than the connection's window": (
        lambda: headers(1) + data(1, bytes(250_000), False),
        frames.FLOW_CONTROL_ERROR,
    ),
    "fields continued without end": (
        lambda: (
            frames.frame(frames.HEADERS, 0, 1, b"")
            + frames.frame(frames.CONTINUATION, 0, 1, b"") * 100
        ),
        frames.ENHANCE_YOUR_CALM,
    ),
    "pings without end": (
        lambda: frames.frame(frames.PING, 0, 0, bytes(8)) * 11_000,
        frames.ENHANCE_YOUR_CALM,
    ),
    "settings without end": (lambda: frames.settings({}) * 11_000, frames.ENHANCE_YOUR_CALM),
    "empty data without end": (
        lambda: headers(1) + data(1, b"", False) * 11_000,
        frames.ENHANCE_YOUR_CALM,
    ),
    "priorities without end": (
        lambda: frames.frame(frames.PRIORITY, 0, 1, bytes(5)) * 11_000,
        frames.ENHANCE_YOUR_CALM,
    ),
    "calls opened and cancelled without end": (
        lambda: b"".join(
            headers(id) + frames.rst_stream(id, frames.CANCEL) for id in range(1, 5_000, 2)
        ),
        frames.ENHANCE_YOUR_CALM,
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule_ends_the_connection(what: str) -> None:
    make, code = BROKEN[what]
    narrow = Http2Limits(connection_window_bytes=200_000, frame_bytes_max=256 * 1024)
    raw = Raw(narrow if what == "more data than the connection's window" else None)
    assert raw.fault(make()) == code


STREAM_FAULTS: dict[str, tuple[Callable[[], bytes], int]] = {
    "data after the end": (lambda: data(1, b"", True) + data(1, b"x", False), frames.STREAM_CLOSED),
    "trailers that do not end": (lambda: headers(1), frames.PROTOCOL_ERROR),
    "a stream window that overflows": (
        lambda: frames.window_update(1, (1 << 31) - 1),
        frames.FLOW_CONTROL_ERROR,
    ),
    "a stream window that grows by nothing": (
        lambda: frames.window_update(1, 0),
        frames.PROTOCOL_ERROR,
    ),
    "more data than the stream's window": (
        lambda: data(1, bytes(25_000), False) * 200,
        frames.FLOW_CONTROL_ERROR,
    ),
}


@pytest.mark.parametrize("what", STREAM_FAULTS)
def test_a_rule_broken_on_a_stream_ends_the_stream_alone(what: str) -> None:
    make, code = STREAM_FAULTS[what]
    raw = Raw()
    raw.feed(headers(1))
    events = raw.feed(make())
    assert events[-1][0] == RESET
    assert frames.rst_stream(1, code) in raw.out()
    assert [kind for kind, *_ in raw.feed(headers(3))] == [REQUEST]


MALFORMED = {
    "no path": [one for one in FIELDS if one[0] != ":path"],
    "a name in capitals": [*FIELDS, ("X-Thing", "1")],
    "a pseudo field at the end": [*FIELDS, (":path", "/other")],
    "an unknown pseudo field": [(":status", "200"), *FIELDS],
    "a field of the connection": [*FIELDS, ("connection", "close")],
    "te of something else": [*FIELDS, ("te", "gzip")],
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_fields_end_the_stream(what: str) -> None:
    raw = Raw()
    block = encode([(name.encode(), value.encode()) for name, value in MALFORMED[what]])
    assert raw.feed(headers(1, block=block)) == []
    assert frames.rst_stream(1, frames.PROTOCOL_ERROR) in raw.out()


def test_work_without_a_result_is_forgotten_after_a_while() -> None:
    raw = Raw()
    answered = 0
    for _ in range(20):
        raw.feed(frames.frame(frames.PING, 0, 0, bytes(8)) * 9_000)
        answered += raw.out().count(frames.ping_ack(bytes(8)))
        raw.clock.now_s += 11.0
    assert answered == 20 * 9_000
    flood = frames.frame(frames.PING, 0, 0, bytes(8)) * 21_000
    assert raw.fault(flood) == frames.ENHANCE_YOUR_CALM


def test_a_round_handles_a_limited_number_of_frames() -> None:
    raw = Raw()
    pings = frames.frame(frames.PING, 0, 0, bytes(8)) * (http2.FRAMES_PER_ROUND + 10)
    raw.server.feed(pings)
    assert raw.server.more
    assert raw.server.out.take().count(b"\x00\x00\x08\x06\x01") == http2.FRAMES_PER_ROUND
    raw.server.feed(b"")
    assert not raw.server.more
    assert raw.server.out.take().count(b"\x00\x00\x08\x06\x01") == 10


def test_words_that_are_not_the_preface_are_refused() -> None:
    server = Http2(Http2Limits(), Clock())
    with pytest.raises(Http2Error, match="not HTTP/2"):
        server.feed(b"GET / HTTP/1.1\r\n\r\n")


def test_the_first_frame_must_be_settings() -> None:
    server = Http2(Http2Limits(), Clock())
    with pytest.raises(Http2Error, match="first frame"):
        server.feed(frames.PREFACE + headers(1))


@given(st.data())
@settings(max_examples=200)
def test_no_bytes_raise_anything_but_a_protocol_error(draw: st.DataObject) -> None:
    raw = Raw()
    pieces = st.one_of(
        st.binary(max_size=60),
        st.builds(
            frames.frame,
            st.integers(0, 11),
            st.integers(0, 255),
            st.sampled_from((0, 1, 2, 3, 5, 7)),
            st.binary(max_size=20),
        ),
        st.builds(headers, st.sampled_from((1, 3, 5, 7, 9))),
        st.builds(data, st.sampled_from((1, 3, 5)), st.binary(max_size=9), st.booleans()),
    )
    try:
        for piece in draw.draw(st.lists(pieces, max_size=12)):
            raw.feed(piece)
            for stream in list(raw.server.streams.values()):
                raw.server.give_back(stream)
                raw.server.out.data(stream, b"x" * draw.draw(st.integers(1, 100)))
    except Http2Error:
        pass
    assert raw.server.out.waiting_bytes == sum(
        stream.out_bytes for stream in raw.server.streams.values()
    )
